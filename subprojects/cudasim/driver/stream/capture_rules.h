// SPDX-License-Identifier: Apache-2.0
//
// What the call that this thread is in may do while streams capture. The rule of each
// entry is in the table of capture_rules.cc; a function asks at the point at which a
// real driver does: after the context or the stream was found, and before most other
// arguments are looked at. CurrentAlive and FindStream ask already.

#ifndef CUDASIM_DRIVER_STREAM_CAPTURE_RULES_H_
#define CUDASIM_DRIVER_STREAM_CAPTURE_RULES_H_

#include <cuda.h>

#include "driver/stream/stream.h"

namespace cudasim::driver {

// For a call that works on no stream, in no context or in `current`.
CUresult AskCaptures();
CUresult AskCaptures(const Incarnation& current);

// For a call on `stream`.
CUresult AskCaptures(const Stream& stream);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_STREAM_CAPTURE_RULES_H_
