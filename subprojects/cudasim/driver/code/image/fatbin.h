// SPDX-License-Identifier: Apache-2.0
//
// Fatbin containers: several images of the same code, of which one is chosen.

#ifndef CUGUEST_LIB_SIM_FATBIN_H_
#define CUGUEST_LIB_SIM_FATBIN_H_

#include <string_view>
#include <vector>

namespace cuguest_sim {

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

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_FATBIN_H_
