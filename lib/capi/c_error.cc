// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "cuguest/error.h"
#include "lib/guard/nesting.h"

const char* cuguest_error_name(int code) { return cuguest::ErrorName(static_cast<CUresult>(code)); }

const char* cuguest_error_text(int code) { return cuguest::ErrorText(static_cast<CUresult>(code)); }

const char* cuguest_error_advice(int code) {
  return cuguest::internal::Advice(static_cast<CUresult>(code));
}
