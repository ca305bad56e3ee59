// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface between cudasim/sim_library.h and each of the simulated libraries: one
// exported function, `cudasimLibraryControl`, returns this table. Private to the pair,
// as driver/control.h is.

#ifndef CUDASIM_LIBRARY_CONTROL_H_
#define CUDASIM_LIBRARY_CONTROL_H_

#include <cstddef>
#include <cstdint>

namespace cudasim::library {

inline constexpr int kControlVersion = 1;
inline constexpr char kControlSymbol[] = "cudasimLibraryControl";

struct Control {
  int version;
  bool (*has_entry)(const char*);
  void (*fail_call)(const char*, unsigned, int, bool);
  void (*clear_faults)();
  std::uint64_t (*calls)(const char*);
  void (*reset_calls)();
  const char* (*entry_name)(size_t);
};

}  // namespace cudasim::library

#endif  // CUDASIM_LIBRARY_CONTROL_H_
