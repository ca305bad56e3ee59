// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// How many multiprocessors (SMs) a device has, and a context, which may have fewer: a green
/// context has those of its partition, a context with an execution affinity those that MPS gives
/// it.
///
///   absl::StatusOr<SmCount> mine = SmCountOf(shared.context());
///   if (!mine.ok()) return mine.status();
///   const unsigned blocks = 2 * static_cast<unsigned>(*mine);

#ifndef CUGUEST_SM_COUNT_H_
#define CUGUEST_SM_COUNT_H_

#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// All SMs of `device`.
/// Stack, count: never touched.
/// Threads: any.
/// Errors:  those of Driver::GetInitialized(), and kNotFound: no such device.
/// Cost:    one driver call.
[[nodiscard]] CUGUEST_API absl::StatusOr<SmCount> SmCountOf(Device device);

/// The SMs that work in `context` is given. It may be given more: the CUDA documentation names MPS
/// with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, and dynamic parallelism on compute capability 9.x (CUDA
/// Driver API, "Green Contexts").
/// Stack, count: left as they were.
/// Threads: any.
/// Errors:  those of ContextGuard; and the driver's code where it refuses to answer.
/// Cost:    four driver calls if the context is current, else six; one more for a green context,
///          and on a driver below CUDA 11.4.
/// Needs:   below CUDA 11.4 a context always has the whole device, whose SMs are returned.
/// Source:  CUDA Driver API, cuCtxGetExecAffinity; docs/guarantees.md.
[[nodiscard]] CUGUEST_API absl::StatusOr<SmCount> SmCountOf(const ContextRef& context);

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_SM_COUNT_H_
