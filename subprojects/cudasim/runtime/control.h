// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface between cudasim/sim_runtime.h and the simulated libcudart.so: one
// exported function, `cudasimRuntimeControl`, returns this table. Private to the pair,
// as driver/control.h is.

#ifndef CUDASIM_RUNTIME_CONTROL_H_
#define CUDASIM_RUNTIME_CONTROL_H_

#include <driver_types.h>

#include <cstddef>
#include <cstdint>

namespace cudasim::runtime {

inline constexpr int kControlVersion = 3;
inline constexpr char kControlSymbol[] = "cudasimRuntimeControl";

struct Control {
  int version;
  void (*fail_call)(const char*, unsigned, cudaError_t, bool);
  void (*clear_faults)();
  void (*on_every_call)(void (*)(const char*));
  std::uint64_t (*calls)(const char*);
  std::uint64_t (*total_calls)();
  void (*reset_calls)();
  const char* (*entry_name)(size_t);
  void (*tag_execution_contexts)(bool);
};

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_CONTROL_H_
