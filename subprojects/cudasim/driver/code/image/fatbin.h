// SPDX-License-Identifier: Apache-2.0
//
// Fatbin containers: several images of the same code, of which one is chosen.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_FATBIN_H_
#define CUDASIM_DRIVER_CODE_IMAGE_FATBIN_H_

#include <string_view>
#include <vector>

namespace cudasim::driver {

struct FatbinMember {
  enum class Kind { kPtx, kCubin, kOther };
  Kind kind = Kind::kOther;
  int architecture = 0;
  bool is_compressed = false;
  std::string_view data;   // without a header
  std::string_view whole;  // with its header
};

// Whether a container begins there. It is read by pointer, as a driver does it.
bool IsFatbin(const void* image);

// The members, which are looked for no farther than the container says that it goes.
// False if one of them is not inside.
bool ReadFatbin(const void* image, std::vector<FatbinMember>* members);

// The container's header, for a container of some of its members.
std::string_view FatbinHeaderOf(const void* image);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_FATBIN_H_
