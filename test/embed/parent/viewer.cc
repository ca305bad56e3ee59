// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cstdio>

#include "picture.h"

int main() {
  std::puts(PictureStatus());
  return 0;
}
