// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/call.h"

namespace conformance {
namespace {

// When work is done is not determined, nor how long it took.
int Query(Frame& frame) {
  const CUresult code = RAW(cuEventQuery)(frame.As<CUevent>(0));
  return code == CUDA_ERROR_NOT_READY ? 0 : code;
}
int ElapsedTime(Frame& frame) {
  float milliseconds = 0;
  const CUresult code = RAW(cuEventElapsedTime)(frame.IsNull(0) ? nullptr : &milliseconds,
                                                frame.As<CUevent>(1), frame.As<CUevent>(2));
  return code == CUDA_ERROR_NOT_READY ? 0 : code;
}

// Argument 1 is the flags.
void Created(Frame& frame) {
  OfCurrent(0)(frame);
  Object* event = frame.ObjectOf(0);
  if (event != nullptr) event->is_shared = (frame.Number(1) & CU_EVENT_INTERPROCESS) != 0;
}

Value FirstArgument(const World&, const Values& values) { return values[0]; }

}  // namespace

Room EventRoom() {
  return {
      "events",
      {
          {DRIVER(cuEventCreate),
           6,
           {Make("E"), Number({0, 0, 1, 2, 2, 3, 4, 6, 0x7777})},
           Created},
          {RUNTIME(cudaEventCreateWithFlags), 2, {Make("E"), Number({0, 1, 2, 4, 6})}, Created},
          {DRIVER(cuEventDestroy), 3, {Use("E")}, Ends(0), IsFree(0)},
          {DRIVER(cuEventRecord), 9, {Use("E"), UseStream()}},
          {"cuEventQuery", Query, 3, {Use("E")}},
          {DRIVER(cuEventSynchronize), 3, {Use("E")}},
          {"cuEventElapsedTime", ElapsedTime, 3, {Out(), Use("E"), Use("E")}},
          {DRIVER(cuCtxRecordEvent), 1, {Use("CCPG"), Use("E", 0)}},
          {DRIVER(cuCtxWaitEvent), 1, {Use("CCPG"), Use("E", 0)}, {}, MayWait(FirstArgument, 1)},
      },
  };
}

}  // namespace conformance
