// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/context/visible_devices.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace cudasim::driver {
namespace {

constexpr int kNoDevice = -1;

std::string UuidText(int index) {
  const CUuuid uuid = UuidOfDevice(index);
  std::string text = "GPU";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += digits;
  }
  return text;
}

int FindByUuid(std::string_view text, int count) {
  int found = kNoDevice;
  for (int index = 0; index < count; ++index) {
    if (UuidText(index).compare(0, text.size(), text) != 0) continue;
    if (found != kNoDevice) return kNoDevice;
    found = index;
  }
  return found;
}

int FindByIndex(std::string_view text, int count) {
  int index = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return kNoDevice;
    index = index * 10 + (digit - '0');
    if (index >= count) return kNoDevice;
  }
  return text.empty() ? kNoDevice : index;
}

int Find(std::string_view text, int count) {
  constexpr std::string_view kUuid = "GPU-";
  const bool is_uuid = text.substr(0, kUuid.size()) == kUuid;
  return is_uuid ? FindByUuid(text, count) : FindByIndex(text, count);
}

}  // namespace

CUuuid UuidOfDevice(int index) {
  constexpr char kPrefix[] = "cudasim-device-";
  CUuuid uuid = {};
  static_assert(sizeof(kPrefix) == sizeof(uuid.bytes));
  std::memcpy(uuid.bytes, kPrefix, sizeof(uuid.bytes));
  uuid.bytes[15] = static_cast<char>(index);
  return uuid;
}

CUresult FindVisibleDevices(const char* list, int count, std::vector<int>* devices) {
  devices->clear();
  for (int index = 0; list == nullptr && index < count; ++index) devices->push_back(index);
  for (std::string_view rest = list == nullptr ? "" : list; !rest.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    const int index = Find(rest.substr(0, end), count);
    if (index == kNoDevice) break;
    if (std::find(devices->begin(), devices->end(), index) != devices->end()) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    devices->push_back(index);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return devices->empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

}  // namespace cudasim::driver
