// SPDX-License-Identifier: Apache-2.0
//
// Host functions in a stream. A real driver runs them on a thread of its own, with
// no context current and most of the API not permitted; so does this one, and
// waits for it, since work is done when it is submitted.

#include <thread>

#include "driver/api.h"
#include "driver/entry.h"
#include "driver/stream/capture.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

template <typename Function>
void RunOnDriverThread(CUstream stream, const Function& function) {
  std::thread thread([&] {
    CallbackStream() = &stream;
    function();
    CallbackStream() = nullptr;
  });
  thread.join();
}

}  // namespace

CUresult StreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  RunOnDriverThread(handle, [&] { callback(handle, CUDA_SUCCESS, data); });
  return CUDA_SUCCESS;
}

CUresult LaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_HOST;
  work.incarnation = stream.incarnation;
  work.is_valid = [] { return true; };
  work.run = [=](CUstream in) { RunOnDriverThread(in, [=] { function(data); }); };
  return Submit(handle, stream, work);
}

}  // namespace cudasim::driver
