// SPDX-License-Identifier: Apache-2.0

#include "driver/entry.h"

#include "driver/fault.h"
#include "driver/process.h"

namespace cudasim::driver {
namespace {

CUresult Refusal(const Entry& entry) {
  CountCall(entry.base_index);
  const CUresult injected = TakeFault(entry.base_index);
  if (injected != CUDA_SUCCESS) return injected;
  const CUresult process = Process::Serves(entry.floor);
  if (process != CUDA_SUCCESS) return process;
  return CUDA_SUCCESS;
}

}  // namespace

Call& ThisCall() {
  thread_local Call call;
  return call;
}

const CUstream*& CallbackStream() {
  thread_local const CUstream* stream = nullptr;
  return stream;
}

EntryScope::EntryScope(const Entry& entry) : outer_(ThisCall()), refusal_(CUDA_SUCCESS) {
  RunHook(entry.base);
  ThisCall() = Call{&entry, entry.per_thread};
  refusal_ = Refusal(entry);
}

}  // namespace cudasim::driver
