// SPDX-License-Identifier: Apache-2.0
//
// The C interface between testing/sim_runtime.h and the simulated libcudart.so: one
// exported function, `cuguestSimRuntimeControl`, returns this table. Private to the pair,
// as lib/sim/control.h is.

#ifndef CUGUEST_LIB_SIM_RUNTIME_CONTROL_H_
#define CUGUEST_LIB_SIM_RUNTIME_CONTROL_H_

#include <driver_types.h>

#include <cstddef>
#include <cstdint>

namespace cuguest_sim_runtime {

inline constexpr int kControlVersion = 1;
inline constexpr char kControlSymbol[] = "cuguestSimRuntimeControl";

struct Control {
  int version;
  void (*fail_call)(const char*, unsigned, cudaError_t, bool);
  void (*clear_faults)();
  std::uint64_t (*calls)(const char*);
  std::uint64_t (*total_calls)();
  void (*reset_calls)();
  const char* (*entry_name)(size_t);
};

}  // namespace cuguest_sim_runtime

#endif  // CUGUEST_LIB_SIM_RUNTIME_CONTROL_H_
