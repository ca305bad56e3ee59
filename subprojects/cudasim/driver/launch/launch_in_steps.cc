// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches as CUDA 3 had them: block, shared memory and parameters are set of the function one by
// one, and stay set.
//
// Not measured but that cuFuncSetBlockShape succeeds (on an H200): as cuda.h says. That
// cuLaunchKernel makes what was set undefined is not followed.

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "driver/api.h"
#include "driver/code/module.h"
#include "driver/context/stack.h"
#include "driver/panic.h"

namespace cudasim::driver {
namespace {

constexpr size_t kMaxParameters = 4096;  // bytes

struct Steps {
  unsigned block[3] = {};
  unsigned shared_bytes = 0;
  size_t size = 0;  // of the parameters, whatever was written
  std::vector<unsigned char> parameters;
};

std::mutex steps_mutex;

// A handle is never used again, and a function that is set up like this is a rare one: nothing is
// removed.
std::map<CUfunction, Steps>& AllSteps() {
  static auto& all = *new std::map<CUfunction, Steps>;
  return all;
}

// Calls `change` with what was set of the function.
template <typename Change>
CUresult ChangeSteps(CUfunction handle, const Change& change) {
  Function function;
  const CUresult code = FindFunction(handle, &function);
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(steps_mutex);
  change(&AllSteps()[handle]);
  return CUDA_SUCCESS;
}

// Only while the function's context is current (measured on an H100, driver 580.159.04).
template <typename Change>
CUresult ChangeParameters(CUfunction handle, const Change& change) {
  Function function;
  Incarnation current;
  CUresult code = CurrentReady(&current);
  if (code == CUDA_SUCCESS) code = FindFunction(handle, &function);
  if (code != CUDA_SUCCESS) return code;
  if (function.incarnation.id != current.id) return CUDA_ERROR_INVALID_HANDLE;
  return ChangeSteps(handle, change);
}

template <typename Value>
CUresult SetParameter(CUfunction function, int offset, Value value) {
  return ParamSetv(function, offset, &value, sizeof(value));
}

}  // namespace

CUresult FuncSetBlockShape(CUfunction function, int x, int y, int z) {
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  return ChangeSteps(function, [=](Steps* steps) {
    steps->block[0] = static_cast<unsigned>(x);
    steps->block[1] = static_cast<unsigned>(y);
    steps->block[2] = static_cast<unsigned>(z);
  });
}

CUresult FuncSetSharedSize(CUfunction function, unsigned bytes) {
  return ChangeSteps(function, [=](Steps* steps) { steps->shared_bytes = bytes; });
}

CUresult ParamSetSize(CUfunction function, unsigned bytes) {
  if (bytes > kMaxParameters) return CUDA_ERROR_INVALID_VALUE;
  return ChangeParameters(function, [=](Steps* steps) { steps->size = bytes; });
}

CUresult ParamSetv(CUfunction function, int offset, void* value, unsigned bytes) {
  if (value == nullptr || offset < 0) return CUDA_ERROR_INVALID_VALUE;
  const auto begin = static_cast<size_t>(offset);
  if (begin + bytes > kMaxParameters) return CUDA_ERROR_INVALID_VALUE;
  return ChangeParameters(function, [=](Steps* steps) {
    steps->parameters.resize(kMaxParameters);
    std::memcpy(steps->parameters.data() + begin, value, bytes);
  });
}

CUresult ParamSeti(CUfunction function, int offset, unsigned value) {
  return SetParameter(function, offset, value);
}

CUresult ParamSetf(CUfunction function, int offset, float value) {
  return SetParameter(function, offset, value);
}

CUresult LaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  Steps steps;
  const CUresult code = ChangeSteps(function, [&](Steps* set) { steps = *set; });
  if (code != CUDA_SUCCESS) return code;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (steps.block[0] == 0)
    PanicHandle(function, "its block shape was never set, which is undefined");
  steps.parameters.resize(steps.size);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, steps.parameters.data(),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &steps.size, CU_LAUNCH_PARAM_END};
  return LaunchKernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                      steps.block[0], steps.block[1], steps.block[2], steps.shared_bytes, stream,
                      nullptr, steps.size != 0 ? extra : nullptr);
}

CUresult LaunchGrid(CUfunction function, int width, int height) {
  return LaunchGridAsync(function, width, height, nullptr);
}

CUresult LaunchOnce(CUfunction function) { return LaunchGrid(function, 1, 1); }

}  // namespace cudasim::driver
