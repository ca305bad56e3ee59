// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// `ContextOptions` is what SharedContext::Create makes a context with: flags, and what only some
/// systems offer, a number of SMs under MPS or the command queue of a graphics client.
///
///   ContextOptions options;
///   options.execution_affinity = SmCount{16};
///   absl::StatusOr<SharedContext> mine = SharedContext::Create(device, options);
///   if (!mine.ok()) return mine.status();        // kUnimplemented without MPS

#ifndef CUGUEST_CONTEXT_OPTIONS_H_
#define CUGUEST_CONTEXT_OPTIONS_H_

#include <cuda.h>

#include <optional>

#include "cuguest/export.h"
#include "cuguest/internal/toolkit.h"
#include "cuguest/sm_count.h"

CUGUEST_BEGIN_NAMESPACE

/// Threads: a value.
/// Source:  CUDA Driver API, cuCtxCreate; docs/guarantees.md. CUDA in Graphics has
///          not been measured where it is supported.
struct ContextOptions {
  CUGUEST_HIDE ContextOptions() = default;

  /// CU_CTX_SCHED_* and the others of cuCtxCreate. The coredump flags do not go with `cig`.
  unsigned flags = 0;

  /// The context's work gets this many SMs, rounded up to what the hardware can do: ask
  /// SmCountOf() what it became. Not together with `cig`.
  /// Needs: CUDA 11.4, and a process that is a client of an MPS server, on a device of compute
  ///        capability 7.0 or newer (cuDeviceGetExecAffinitySupport). A GreenContext needs no MPS.
  std::optional<SmCount> execution_affinity = {};

  /// CUDA in Graphics: `sharedData` is a graphics client's, a D3D12 command queue or the data that
  /// vkGetExternalComputeQueueDataNV writes, as `sharedDataType` says; it is read by Create alone,
  /// as far as the CUDA documentation says. Not together with `execution_affinity`.
  /// Needs: CUDA 12.5, and a device with CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED or
  ///        CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED.
  std::optional<CUctxCigParam> cig = {};
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CONTEXT_OPTIONS_H_
