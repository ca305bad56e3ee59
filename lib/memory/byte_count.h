// SPDX-License-Identifier: Apache-2.0
//
// From elements to bytes.

#ifndef CUGUEST_LIB_MEMORY_BYTE_COUNT_H_
#define CUGUEST_LIB_MEMORY_BYTE_COUNT_H_

#include <cstddef>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cuguest/internal/memory_range.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// `doing` is a verb: "allocate".
inline absl::StatusOr<std::size_t> ByteCount(const char* doing, const ElementType& type,
                                             std::size_t count) {
  if (count <= std::numeric_limits<std::size_t>::max() / type.size) return count * type.size;
  return absl::InvalidArgumentError(absl::StrCat(doing, " ", count, " elements of ", type.size,
                                                 " bytes: that is more than there are addresses"));
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MEMORY_BYTE_COUNT_H_
