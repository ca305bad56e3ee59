// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams and events.

#include "test/current_context/calls.h"

namespace cudasim_facts {
namespace current_context {

const std::vector<DriverCall> kStreamCalls = {
    {"cuStreamCreate",
     [](Trial& t) {
       return Makes<CUstream>(
           t, [](CUstream* made) { return RAW(cuStreamCreate)(made, CU_STREAM_NON_BLOCKING); },
           [&](CUstream made) { t.SawOfStream(made); }, RAW(cuStreamDestroy));
     }},
    {"cuStreamCreateWithPriority",
     [](Trial& t) {
       return Makes<CUstream>(
           t,
           [](CUstream* made) {
             return RAW(cuStreamCreateWithPriority)(made, CU_STREAM_NON_BLOCKING, 0);
           },
           [&](CUstream made) { t.SawOfStream(made); }, RAW(cuStreamDestroy));
     }},
    {"cuStreamDestroy",
     [](Trial& t) {
       CUstream stream = nullptr;
       t.InA([&] { OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING)); });
       return t.Do([&] { return RAW(cuStreamDestroy)(stream); });
     }},
    {"cuStreamSynchronize",
     [](Trial& t) { return t.Do([&] { return RAW(cuStreamSynchronize)(t.o.stream); }); }},
    {"cuStreamQuery",
     [](Trial& t) { return t.Do([&] { return RAW(cuStreamQuery)(t.o.stream); }); }},
    {"cuStreamWaitEvent",
     [](Trial& t) { return t.Do([&] { return RAW(cuStreamWaitEvent)(t.o.stream, t.o.end, 0); }); }},
    {"cuStreamGetCtx",
     [](Trial& t) {
       CUcontext context = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuStreamGetCtx)(t.o.stream, &context); });
       t.Saw(context);
       return code;
     }},
    {"cuStreamGetGreenCtx",
     [](Trial& t) {
       CUgreenCtx green = nullptr;
       return t.Do([&] { return RAW(cuStreamGetGreenCtx)(t.o.stream, &green); });
     }},
    {"cuStreamIsCapturing",
     [](Trial& t) {
       auto status = CU_STREAM_CAPTURE_STATUS_NONE;
       return t.Do([&] { return RAW(cuStreamIsCapturing)(t.o.stream, &status); });
     }},
    {"cuStreamGetCaptureInfo",
     [](Trial& t) {
       auto status = CU_STREAM_CAPTURE_STATUS_NONE;
       cuuint64_t id = 0;
       using Get = CUresult (*)(CUstream, CUstreamCaptureStatus*, cuuint64_t*);
       return t.Do([&] { return RAW_AS(Get, "cuStreamGetCaptureInfo")(t.o.stream, &status, &id); });
     }},
    {"cuStreamBeginCapture",
     [](Trial& t) {
       const CUresult code = t.Do(
           [&] { return RAW(cuStreamBeginCapture)(t.o.stream, CU_STREAM_CAPTURE_MODE_RELAXED); });
       CUgraph graph = nullptr;
       if (code == CUDA_SUCCESS) {
         OK(RAW(cuStreamEndCapture)(t.o.stream, &graph));
         OK(RAW(cuGraphDestroy)(graph));
       }
       return code;
     }},
    {"cuStreamEndCapture",
     [](Trial& t) {
       CUgraph graph = nullptr;
       OK(RAW(cuStreamBeginCapture)(t.o.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
       const CUresult code = t.Do([&] { return RAW(cuStreamEndCapture)(t.o.stream, &graph); });
       if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
       return code;
     }},

    {"cuEventCreate",
     [](Trial& t) {
       return Makes<CUevent>(
           t, [](CUevent* made) { return RAW(cuEventCreate)(made, 0); },
           [&](CUevent made) { t.SawOfEvent(made); }, RAW(cuEventDestroy));
     }},
    {"cuEventDestroy",
     [](Trial& t) {
       CUevent event = nullptr;
       t.InA([&] { OK(RAW(cuEventCreate)(&event, 0)); });
       return t.Do([&] { return RAW(cuEventDestroy)(event); });
     }},
    {"cuEventRecord",
     [](Trial& t) { return t.Do([&] { return RAW(cuEventRecord)(t.o.event, t.o.stream); }); }},
    {"cuEventQuery", [](Trial& t) { return t.Do([&] { return RAW(cuEventQuery)(t.o.end); }); }},
    {"cuEventSynchronize",
     [](Trial& t) { return t.Do([&] { return RAW(cuEventSynchronize)(t.o.end); }); }},
    {"cuIpcGetEventHandle",
     [](Trial& t) {
       CUevent event = nullptr;
       CUipcEventHandle handle = {};
       t.InA([&] {
         OK(RAW(cuEventCreate)(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
       });
       const CUresult code = t.Do([&] { return RAW(cuIpcGetEventHandle)(&handle, event); });
       OK(RAW(cuEventDestroy)(event));
       return code;
     }},
    {"cuEventElapsedTime",
     [](Trial& t) {
       float time = 0;
       return t.Do([&] { return RAW(cuEventElapsedTime)(&time, t.o.start, t.o.end); });
     }},
};

}  // namespace current_context
}  // namespace cudasim_facts
