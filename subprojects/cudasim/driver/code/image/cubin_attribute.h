// SPDX-License-Identifier: Apache-2.0
//
// The lists of attributes in the .nv.info sections of machine code.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_CUBIN_ATTRIBUTE_H_
#define CUDASIM_DRIVER_CODE_IMAGE_CUBIN_ATTRIBUTE_H_

#include <cstdint>
#include <cstring>
#include <string_view>

namespace cudasim::driver {

// Those that are read here; numbers as nvcc's code has them.
enum class CubinAttribute : std::uint8_t {
  kMaxThreads = 0x05,
  kRequiredThreads = 0x10,
  kFrameSize = 0x11,
  kParameter = 0x17,
  kRegisters = 0x2f,
  kLargeParameter = 0x45,  // came with parameters of more than 4 KiB
};

// Calls `visit` with the number and the value of each that has a value of some size: a
// format, a number, two bytes of size, the value.
template <typename Visit>
void ForEachAttribute(std::string_view info, const Visit& visit) {
  struct {
    std::uint8_t format;
    std::uint8_t number;
    std::uint16_t size;
  } header;
  constexpr std::uint8_t kSizedValue = 4;
  while (info.size() >= sizeof(header)) {
    std::memcpy(&header, info.data(), sizeof(header));
    info.remove_prefix(sizeof(header));
    if (header.format != kSizedValue) continue;
    const std::string_view value = info.substr(0, header.size);
    visit(static_cast<CubinAttribute>(header.number), value);
    info.remove_prefix(value.size());
  }
}

// False if the value is shorter than that.
template <typename T>
bool ReadValue(std::string_view value, T* to) {
  if (value.size() < sizeof(T)) return false;
  std::memcpy(to, value.data(), sizeof(T));
  return true;
}

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_CUBIN_ATTRIBUTE_H_
