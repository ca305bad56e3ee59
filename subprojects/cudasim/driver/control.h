// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface between cudasim/sim.h and the simulated libcuda.so.1: one
// exported function, `cudasimControl`, returns this table. It is private to
// the pair; the number is raised whenever the table changes, and a mismatch makes
// Sim::IsActive() abort with both numbers rather than guess.

#ifndef CUDASIM_DRIVER_CONTROL_H_
#define CUDASIM_DRIVER_CONTROL_H_

#include "cudasim/sim.h"
#include "driver/tool.h"

namespace cudasim::driver {

inline constexpr int kControlVersion = 16;
inline constexpr char kControlSymbol[] = "cudasimControl";

struct Control {
  int version;
  void (*set_device_count)(int);
  void (*set_driver_version)(int);
  void (*hide_entry)(const char*);
  void (*support_exec_affinity)(bool);
  void (*support_cig)(bool);
  void (*support_pageable_access)(bool);
  void (*support_memory_pools)(bool);
  void (*set_next_context_id)(std::uint64_t);
  void (*fail_call)(const char*, unsigned, CUresult, bool);
  void (*clear_faults)();
  void (*on_every_call)(void (*)(const char*));
  std::uint64_t (*calls)(const char*);
  std::uint64_t (*total_calls)();
  void (*reset_calls)();
  std::uint64_t (*unmodelled_calls)(const char*);
  void (*count_unmodelled)(const char*);
  const char* (*entry_name)(size_t);
  void* (*find_entry)(const char*);
  cudasim::SimLive (*live)();
  void (*register_kernel)(const char*, cudasim::SimKernel);
  void (*skip_unknown_kernels)(bool);
  std::uint64_t (*skipped_launches)(const char*);
  void (*schedule_work)(std::uint64_t, unsigned);
  bool (*find_variable)(const char*, void**, size_t*);
  std::uint64_t (*kernel_context_id)();
  bool (*kernel_may_access)(const void*, size_t);
  CUresult (*read_texture)(CUtexObject, float, float, float*);
  CUresult (*read_surface)(CUsurfObject, size_t, size_t, void*, size_t);
  CUresult (*write_surface)(CUsurfObject, size_t, size_t, const void*, size_t);
  void (*deinitialize)();
  const Tool& (*tool)();
  CUcontext (*primary_handle)(CUdevice);  // active or not
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTROL_H_
