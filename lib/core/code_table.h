// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table of an API's error codes.                                                     tier: 0

#ifndef CUGUEST_LIB_CORE_CODE_TABLE_H_
#define CUGUEST_LIB_CORE_CODE_TABLE_H_

#include <algorithm>
#include <cstddef>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Rows in ascending order of their member `code`.
template <typename Row>
class CodeTable {
 public:
  template <std::size_t kSize>
  constexpr CodeTable(const Row (&rows)[kSize]) : begin_(rows), end_(rows + kSize) {}  // NOLINT

  // nullptr if there is none.
  [[nodiscard]] const Row* Find(int code) const noexcept {
    const Row* const row = std::lower_bound(
        begin_, end_, code, [](const Row& one, int wanted) { return one.code < wanted; });
    return row != end_ && row->code == code ? row : nullptr;
  }

 private:
  const Row* begin_;
  const Row* end_;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_CODE_TABLE_H_
