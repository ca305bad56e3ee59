// SPDX-License-Identifier: Apache-2.0
//
// Streams. Work is done when it is submitted, so a stream is an owner, not a queue.

#ifndef CUGUEST_LIB_SIM_STREAM_H_
#define CUGUEST_LIB_SIM_STREAM_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "lib/sim/context.h"

namespace cuguest_sim {

struct Stream {
  Life life;
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
  bool is_legacy = false;
};

// The stream that a handle means. 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are
// streams of the current context: INVALID_CONTEXT or CONTEXT_IS_DESTROYED without
// a living one. A created stream whose context is gone gives the real driver's
// error; a destroyed one, or what never was one, panics. Captures in progress may refuse
// the call (capture_rules.h).
CUresult FindStream(CUstream handle, Stream* stream);

// The same, but for an orphan always CONTEXT_IS_DESTROYED, as cuStreamGetId and
// cuStreamIsCapturing answer.
CUresult FindStreamToDescribe(CUstream handle, Stream* stream);

// The same as FindStream, for work: also the sticky error.
CUresult FindReadyStream(CUstream handle, Stream* stream);

size_t CountStreams();

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_STREAM_H_
