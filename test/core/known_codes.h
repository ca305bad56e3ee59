// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every code that the table claims to know.

#ifndef CUGUEST_TEST_CORE_KNOWN_CODES_H_
#define CUGUEST_TEST_CORE_KNOWN_CODES_H_

#include <string_view>
#include <vector>

#include "cuguest/error.h"

namespace cuguest_test {

inline std::vector<CUresult> KnownCodes() {
  std::vector<CUresult> codes;
  for (int number = 0; number < 1100; ++number) {
    const auto code = static_cast<CUresult>(number);
    if (std::string_view(cuguest::ErrorName(code)) != "CUDA_ERROR_UNRECOGNIZED")
      codes.push_back(code);
  }
  return codes;
}

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_CORE_KNOWN_CODES_H_
