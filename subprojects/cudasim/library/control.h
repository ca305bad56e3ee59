// SPDX-License-Identifier: Apache-2.0
//
// The C interface between testing/sim_library.h and each of the simulated libraries: one
// exported function, `cuguestSimLibraryControl`, returns this table. Private to the pair,
// as lib/sim/control.h is.

#ifndef CUGUEST_LIB_SIM_LIBRARY_CONTROL_H_
#define CUGUEST_LIB_SIM_LIBRARY_CONTROL_H_

#include <cstddef>
#include <cstdint>

namespace cuguest_sim_library {

inline constexpr int kControlVersion = 1;
inline constexpr char kControlSymbol[] = "cuguestSimLibraryControl";

struct Control {
  int version;
  bool (*has_entry)(const char*);
  void (*fail_call)(const char*, unsigned, int, bool);
  void (*clear_faults)();
  std::uint64_t (*calls)(const char*);
  void (*reset_calls)();
  const char* (*entry_name)(size_t);
};

}  // namespace cuguest_sim_library

#endif  // CUGUEST_LIB_SIM_LIBRARY_CONTROL_H_
