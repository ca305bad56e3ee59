// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each half of the program has its own guards, whatever the linker has seen first.

#include "check.h"
#include "pair.h"

int main() {
  const answers without = ask_without_cuda();
  CHECK(without.cxx == 0 && without.c == 0 && without.c_from_cxx == 0);
  CHECK(without.error_of_cache == 801);
  const answers with = ask_with_cuda();
  CHECK(with.cxx != 0 && with.c != 0 && with.c_from_cxx != 0);
  CHECK(with.error_of_cache != 801 && with.error_of_cache != 0);
  return Conclude();
}
