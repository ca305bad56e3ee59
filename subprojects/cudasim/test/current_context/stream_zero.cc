// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stream 0 is the current context's.

#include "test/current_context/calls.h"

namespace cudasim_facts {
namespace current_context {

const std::vector<DriverCall> kStreamZeroCalls = {
    {"cuStreamSynchronize, stream 0",
     [](Trial& t) { return t.Do([] { return RAW(cuStreamSynchronize)(nullptr); }); }},
    {"cuStreamGetCtx, stream 0",
     [](Trial& t) {
       CUcontext context = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuStreamGetCtx)(nullptr, &context); });
       t.Saw(context);
       return code;
     }},
    {"cuStreamIsCapturing, stream 0",
     [](Trial& t) {
       auto status = CU_STREAM_CAPTURE_STATUS_NONE;
       return t.Do([&] { return RAW(cuStreamIsCapturing)(nullptr, &status); });
     }},
    {"cuEventRecord, stream 0",
     [](Trial& t) { return t.Do([&] { return RAW(cuEventRecord)(t.o.event, nullptr); }); }},
    {"cuMemAllocAsync, stream 0",
     [](Trial& t) {
       CUdeviceptr memory = 0;
       const CUresult code = t.Do([&] { return RAW(cuMemAllocAsync)(&memory, kBytes, nullptr); });
       if (code == CUDA_SUCCESS) OK(RAW(cuMemFree)(memory));
       return code;
     }},
    {"cuMemcpyHtoDAsync, stream 0",
     [](Trial& t) {
       return Write(t, [&] {
         const CUresult code = RAW(cuMemcpyHtoDAsync)(t.o.p, t.o.pinned, 1, nullptr);
         if (code == CUDA_SUCCESS) OK(RAW(cuCtxSynchronize)());
         return code;
       });
     }},
    {"cuMemsetD8Async, stream 0",
     [](Trial& t) {
       return Write(t, [&] {
         const CUresult code = RAW(cuMemsetD8Async)(t.o.p, kNew, 1, nullptr);
         if (code == CUDA_SUCCESS) OK(RAW(cuCtxSynchronize)());
         return code;
       });
     }},
    {"cuLaunchKernel, stream 0",
     [](Trial& t) {
       return t.Do([&] {
         return RAW(cuLaunchKernel)(t.o.nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
       });
     }},
    {"cuGraphLaunch, stream 0",
     [](Trial& t) {
       const OneNode one(t);
       const CUresult code = t.Do([&] { return RAW(cuGraphLaunch)(one.executable, nullptr); });
       t.InA([] { OK(RAW(cuCtxSynchronize)()); });
       return code;
     }},
};

}  // namespace current_context
}  // namespace cudasim_facts
