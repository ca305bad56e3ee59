// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
/// \file
/// How much of a kernel runs at once on a context's device, and which shape makes the most of it.
///
///   absl::StatusOr<LaunchShape> full = SuggestShape(blur, context);  // the device, once
///   if (!full.ok()) return full.status();
///   absl::StatusOr<LaunchShape> shape = LaunchShape::ForElements(pixels, full->block.x);

#ifndef CUGUEST_OBJECTS_OCCUPANCY_H_
#define CUGUEST_OBJECTS_OCCUPANCY_H_

#include <cuda.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/launch.h"

CUGUEST_BEGIN_NAMESPACE

/// The functions below. `block` is a number of threads.
/// Stack:   as it was.
/// Threads: any; not from a stream callback: kPermissionDenied. Invalidates no capture.
/// Errors:  those of ObjectDriver::Get() and of Kernel's functions, what each function adds, and
///          kInvalidArgument: a block of no threads or of more than the kernel allows.
/// Cost:    in a context in which the kernel was found before, four driver calls if that is
///          current, else six. The driver computes on the host: no work on the device.
/// Source:  CUDA Driver API, "Occupancy".

/// Blocks on one multiprocessor; 0 if not even one fits there.
[[nodiscard]] CUGUEST_API absl::StatusOr<int> MaxActiveBlocks(const Kernel& kernel,
                                                              const ContextRef& context,
                                                              unsigned block,
                                                              std::size_t shared_bytes = 0);

/// The smallest grid, in one dimension, that fills the device, of the blocks with which the most
/// threads run at once; with `shared_bytes` of dynamic shared memory and at most `max_block`
/// threads each; 0: as many as the kernel allows.
/// Errors: kResourceExhausted: not one block fits, with that much shared memory.
[[nodiscard]] CUGUEST_API absl::StatusOr<LaunchShape> SuggestShape(const Kernel& kernel,
                                                                   const ContextRef& context,
                                                                   std::size_t shared_bytes = 0,
                                                                   unsigned max_block = 0);

/// Clusters of that shape on the device; 0 if not even one fits.
/// Errors: kInvalidArgument  the shape has no cluster, or Launch() would refuse it
///         kUnimplemented    a driver below CUDA 11.7, or a device without clusters
/// Cost:   one driver call more for a cluster of more than 8 blocks.
[[nodiscard]] CUGUEST_API absl::StatusOr<int> MaxActiveClusters(const Kernel& kernel,
                                                                const ContextRef& context,
                                                                const LaunchShape& shape);

/// Bytes of dynamic shared memory that each of `blocks` blocks on one multiprocessor can have: no
/// more than the kernel may, see Kernel::SetMaxDynamicSharedBytes(). The driver does not count what
/// it reserves for itself in each block, so slightly less may fit.
/// Errors: kInvalidArgument  less than one block; or so many do not fit without any
///         kUnimplemented    a driver below CUDA 10.2
[[nodiscard]] CUGUEST_API absl::StatusOr<std::size_t> AvailableDynamicShared(
    const Kernel& kernel, const ContextRef& context, int blocks, unsigned block);

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_OCCUPANCY_H_
