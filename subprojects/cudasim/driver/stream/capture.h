// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The captures in progress, of the whole process, and what a call may do meanwhile.

#ifndef CUDASIM_DRIVER_STREAM_CAPTURE_H_
#define CUDASIM_DRIVER_STREAM_CAPTURE_H_

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "driver/graph/graph.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {

// What an event recorded in a capturing stream stands for.
struct CapturedPoint {
  std::uint64_t capture_id = 0;  // 0: it was not recorded in a capture
  std::vector<NodePointer> nodes;
};

// What cuStreamGetCaptureInfo says. The arrays belong to the capture, until the next
// call for that stream.
struct CaptureInfo {
  std::uint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
};

// The mode of this thread, which cuThreadExchangeStreamCaptureMode exchanges.
CUstreamCaptureMode& ThisThreadsCaptureMode();

// Captures
//
// A capture is active, or invalidated: nothing more is recorded, and cuStreamEndCapture, which ends
// the capture, fails. It has branches: the stream it began in and those that waited for an event of
// it. What invalidates one is in capture_rules.cc.
//
// Threads: any; one mutex, which nothing takes while no stream captures.
class Captures {
 public:
  // No capture begins, records or ends meanwhile.
  static std::unique_lock<std::mutex> Lock();

  static bool Any();
  static CUstreamCaptureStatus StatusOf(const Stream& stream);
  static bool FindInfo(const Stream& stream, CaptureInfo* info);

  // What the next node in the stream depends on: nodes of the capture's graph, also those that were
  // added to it by hand. INVALID_VALUE for other nodes; nothing is changed then.
  static CUresult Depend(const Stream& stream, const CUgraphNode* nodes, size_t count,
                         bool replace);

  static CUresult Begin(const Stream& stream, CUstreamCaptureMode mode);
  static CUresult End(const Stream& stream, CUgraph* graph);

  // Whether there is such a capture. Those are lost, if `lose`.
  static bool HasForbiddingUnsafeCalls(bool lose);
  static bool HasInContext(std::uint64_t context_id, bool lose);
  static bool HasInBlockingStreamOf(std::uint64_t context_id, bool lose);
  static void Lose(const Stream& stream);

  // False if the stream does not capture. Else `code` is what the call returns.
  static bool Record(const Stream& stream, const Work& work, CUresult* code);

  // What an event recorded now in the stream stands for.
  static CapturedPoint PointOf(const Stream& stream);

  // SUCCESS if the event is no captured one, CAPTURED_EVENT if it is, INVALID_VALUE if its capture
  // is invalidated or over. A captured event's capture is invalidated, if `lose`.
  static CUresult CheckEvent(const CapturedPoint& point, bool lose);

  // The stream waits for a captured point: it becomes a branch, or the capture is invalidated.
  static CUresult Join(const Stream& stream, const CapturedPoint& point);

  // The stream, or everything in the context, is gone, and with it the capture that
  // began there. What other branches have recorded stays, and must still be joined.
  static void Drop(const Stream& stream);
  static void DropIncarnation(std::uint64_t context_id, bool also_created);
};

// Submits the work, or records it if the stream captures; then invalid work is accepted,
// and refused when the graph is instantiated. `task`: null if it is done, or recorded.
CUresult Submit(CUstream handle, const Stream& stream, const Work& work,
                TaskPointer* task = nullptr);

// Submits it, to a stream that does not capture, behind `after`, too. Null if it is done.
TaskPointer SubmitUncaptured(CUstream handle, const Stream& stream, const Work& work,
                             const TaskPointer& after);

// What the call that this thread is in may do while streams capture. The rule of each
// entry is in the table of capture_rules.cc; a function asks at the point at which a
// real driver does: after the context or the stream was found, and before most other
// arguments are looked at. CurrentAlive and FindStream ask already.
//
// For a call that works on no stream, in no context or in `current`.
CUresult AskCaptures();
CUresult AskCaptures(const Incarnation& current);

// For a call on `stream`.
CUresult AskCaptures(const Stream& stream);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_STREAM_CAPTURE_H_
