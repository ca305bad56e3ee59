// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Apart from c_error.cc, so that who asks for no text does not have error_text.cc.

#include "cuguest/c.h"
#include "cuguest/error.h"
#include "lib/guard/nesting.h"

std::size_t cuguest_error_write(int code, const char* doing, char* text, std::size_t size) {
  const CUresult result = static_cast<CUresult>(code);
  return cuguest::internal::MakeError(result, doing != nullptr ? doing : "",
                                      cuguest::internal::Advice(result))
      .Write(text, size);
}
