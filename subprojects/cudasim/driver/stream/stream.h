// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams. What was submitted to a stream and is not done yet is in schedule.h.

#ifndef CUDASIM_DRIVER_STREAM_STREAM_H_
#define CUDASIM_DRIVER_STREAM_STREAM_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "driver/context/context.h"

namespace cudasim::driver {

struct Stream {
  Incarnation incarnation;  // where it was created, which may be a green context
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
  bool is_legacy = false;
};

// Of one that was never a stream's.
std::uint64_t NextStreamId();

// The stream that a handle means. 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are
// streams of the current context: INVALID_CONTEXT or CONTEXT_IS_DESTROYED without
// a living one, and INVALID_HANDLE for the per-thread stream of a green one. A created
// stream that was destroyed, or whose context is gone, panics, and so does what never was
// one. Captures in progress may refuse the call (capture.h).
CUresult FindStream(CUstream handle, Stream* stream);

// The same as FindStream, for work: also the sticky error.
CUresult FindReadyStream(CUstream handle, Stream* stream);

// A new stream of the context. In a green one it is CU_STREAM_NON_BLOCKING, whatever
// `flags` say.
CUresult CreateStream(const Incarnation& incarnation, unsigned flags, int priority,
                      CUstream* handle);

// Whether `Stream::id` is that of stream 0 or a per-thread stream.
bool IsSpecialStream(std::uint64_t id);

size_t CountStreams();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_STREAM_STREAM_H_
