// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handles that are numbers.

#ifndef CUDASIM_DRIVER_HANDLE_NUMBER_H_
#define CUDASIM_DRIVER_HANDLE_NUMBER_H_

#include <cstdint>

namespace cudasim::driver {

// HandleNumber
//
// A handle is a number of its own that is never used again, so that a garbage or stale one is
// always recognised; a real driver reads it as a pointer. As there (measured on an H200, driver
// 580.159.04), it looks like an address below 2^47: programs keep handles in signed integers. It is
// one where neither Linux nor a sanitizer maps memory unless asked to.
class HandleNumber {
 public:
  // `kind` is distinct for each kind of handle of a library, 1 to 127.
  constexpr explicit HandleNumber(unsigned kind) : base_(kRegion | std::uint64_t{kind} << 32) {}

  // `number` is 1, 2, ... below 2^28.
  constexpr std::uint64_t ToHandle(std::uint64_t number) const { return base_ | number << 4; }

  // Whether it may be a handle of any kind; an address of the program's is none.
  static constexpr bool IsHandle(std::uint64_t value) { return value >> 40 == kRegion >> 40; }

  // 0 for a value that is no handle of this kind.
  constexpr std::uint64_t ToNumber(std::uint64_t handle) const {
    const std::uint64_t number = (handle & 0xffffffffu) >> 4;
    return ToHandle(number) == handle ? number : 0;
  }

 private:
  static constexpr std::uint64_t kRegion = std::uint64_t{0x2c} << 40;
  std::uint64_t base_;
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_HANDLE_NUMBER_H_
