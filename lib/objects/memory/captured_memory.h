// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that a capture allocates: it belongs to the graph.                            tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_CAPTURED_MEMORY_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_CAPTURED_MEMORY_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Allocates `bytes` by a node of the graph that `stream` captures. The caller has asked that it
// does, has its context current where the stream means the current one, and keeps the stream from
// being destroyed. `doing` is for the status.
//
// What a driver or a device cannot do is found out before it is asked: whether a refused call
// invalidates the capture is not documented.
//
// Errors: kUnimplemented      a driver below CUDA 11.4, or a device without pools
//         kResourceExhausted  as CaptureScope::Allocate()
// Cost:   four driver calls on CUDA 13.0 and newer, and those of StreamRef::device().
absl::StatusOr<MemoryRange> AllocateInCapture(const ObjectDriver& driver, const StreamRef& stream,
                                              std::size_t bytes, const std::string& doing);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_CAPTURED_MEMORY_H_
