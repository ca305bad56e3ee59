// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/stream/host_function.h"

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/entry.h"
#include "driver/stream/capture.h"
#include "driver/stream/schedule.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

// On the driver's thread.
template <typename Function>
void CallUser(CUstream stream, const Function& function) {
  CallbackStream() = &stream;
  function();
  CallbackStream() = nullptr;
}

}  // namespace

// Unlike a callback it is not called after a sticky error, as <cuda.h> says.
CUresult MakeHostWork(const CUDA_HOST_NODE_PARAMS& params, const Incarnation& incarnation,
                      Work* work) {
  if (params.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  work->type = CU_GRAPH_NODE_TYPE_HOST;
  work->incarnation = incarnation;
  work->is_valid = [] { return true; };
  work->describe = [=](CUgraphNodeParams* any) { any->host = {params.fn, params.userData}; };
  work->run = [=](CUstream in) {
    if (StickyError() == CUDA_SUCCESS) CallUser(in, [=] { params.fn(params.userData); });
  };
  return CUDA_SUCCESS;
}

CUresult LaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  CUresult code = FindReadyStream(handle, &stream);
  Work work;
  if (code == CUDA_SUCCESS) code = MakeHostWork({function, data}, stream.incarnation, &work);
  return code == CUDA_SUCCESS ? Submit(handle, stream, work) : code;
}

CUresult StreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  Job job;
  job.incarnation = stream.incarnation;
  job.is_host = true;
  job.run = [=] { CallUser(handle, [&] { callback(handle, StickyError(), data); }); };
  Schedule::Submit(stream, job);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
