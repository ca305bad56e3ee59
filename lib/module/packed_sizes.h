// SPDX-License-Identifier: Apache-2.0
//
// Three sizes as one number, so that one comparison compares them.                 tier: 3

#ifndef CUGUEST_LIB_MODULE_PACKED_SIZES_H_
#define CUGUEST_LIB_MODULE_PACKED_SIZES_H_

#include <cstdint>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// The low 16 bits of each.
constexpr std::uint64_t PackSizes(std::uint64_t x, std::uint64_t y, std::uint64_t z) noexcept {
  return (x & 0xffff) | (y & 0xffff) << 16 | (z & 0xffff) << 32;
}

// Of dimension 0, 1 or 2.
constexpr unsigned SizeOf(std::uint64_t packed, int dimension) noexcept {
  return static_cast<unsigned>(packed >> 16 * dimension & 0xffff);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_PACKED_SIZES_H_
