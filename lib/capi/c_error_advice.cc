// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "lib/guard/nesting.h"

const char* cuguest_error_advice(int code) {
  return cuguest::internal::Advice(static_cast<CUresult>(code));
}
