// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/call.h"

namespace conformance {
namespace {

// Of sixteen multiprocessors.
CUdevResourceDesc Describe() {
  CUdevResource whole = {};
  CUdevResource part = {};
  unsigned count = 1;
  CUdevResourceDesc description = nullptr;
  RAW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM);
  RAW(cuDevSmResourceSplitByCount)(&part, &count, &whole, nullptr, 0, 16);
  RAW(cuDevResourceGenerateDesc)(&description, &part, 1);
  return description;
}

int CreateGreen(Frame& frame) {
  CUgreenCtx green;
  std::memset(&green, Frame::kUntouched, sizeof(green));
  frame.code = RAW(cuGreenCtxCreate)(frame.IsNull(0) ? nullptr : &green, Describe(),
                                     frame.As<CUdevice>(1), frame.As<unsigned>(2));
  if (!frame.IsNull(0)) frame.SayOut(0, &green, sizeof(green), frame.code == 0);
  return frame.code;
}

int Multiprocessors(Frame& frame) {
  CUdevResource resource = {};
  const CUresult code = RAW(cuCtxGetDevResource)(
      frame.As<CUcontext>(0), frame.IsNull(1) ? nullptr : &resource, CU_DEV_RESOURCE_TYPE_SM);
  if (code == CUDA_SUCCESS) frame.SayNumber(resource.sm.smCount);
  return code;
}

void Destroyed(Frame& frame) { frame.world.EndContext(frame.value(0)); }

// A capture in one of its streams would go on for ever (measured on an H100, driver 580.159.04).
bool HasNoCaptures(const World& world, const Values&) { return world.captures == 0; }

void OfGreen(Frame& frame) {
  Object* stream = frame.ObjectOf(0);
  if (stream != nullptr) stream->place = frame.value(1);
}

}  // namespace

Room GreenRoom() {
  return {
      "green contexts",
      {
          {"cuGreenCtxCreate",
           CreateGreen,
           3,
           {Make("G"), Number({0, 0, 0, 7}), Number({1, 1, 1, 0, 2})}},
          {DRIVER(cuGreenCtxDestroy), 2, {Use("G")}, Destroyed, HasNoCaptures},
          {DRIVER(cuCtxFromGreenCtx), 2, {Out("G"), Use("G")}},
          {DRIVER(cuGreenCtxGetId), 2, {Use("G"), Out("i")}},
          {DRIVER(cuGreenCtxStreamCreate),
           4,
           {Make("S"), Use("G"), Number({1, 1, 1, 0}), Number({0, -1})},
           OfGreen},
          {DRIVER(cuStreamGetGreenCtx), 2, {UseStream(), Out("G")}},
          {DRIVER(cuGreenCtxRecordEvent), 2, {Use("G"), Use("E", 0)}},
          {DRIVER(cuGreenCtxWaitEvent),
           2,
           {Use("G"), Use("E", 0)},
           {},
           MayWait([](const World&, const Values& values) { return values[0]; }, 1)},
          {"cuCtxGetDevResource", Multiprocessors, 2, {Use("CPG"), Out()}},
      },
  };
}

}  // namespace conformance
