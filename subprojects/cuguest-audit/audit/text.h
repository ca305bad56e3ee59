// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What C++17's string_view lacks.
//
// Thread-safe: yes.

#ifndef CUGUEST_AUDIT_TEXT_H_
#define CUGUEST_AUDIT_TEXT_H_

#include <string_view>

namespace cuguest::audit {

constexpr bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_TEXT_H_
