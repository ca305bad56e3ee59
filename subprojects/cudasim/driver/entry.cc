// SPDX-License-Identifier: Apache-2.0

#include "driver/entry.h"

#include "driver/fault.h"
#include "driver/panic.h"
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

void PanicHandle(const void* handle, const char* text) {
  const Entry* entry = ThisCall().entry;
  Panic("%s(%p): %s", entry != nullptr ? entry->base : "(no entry)", handle, text);
}

void PanicNull() {
  PanicHandle(nullptr,
              "a null argument where a real driver crashes (measured on an H100, driver "
              "580.159.04)");
}

EntryScope::EntryScope(const Entry& entry) : outer_(ThisCall()), refusal_(CUDA_SUCCESS) {
  RunHook(entry.base);
  ThisCall() = Call{&entry, entry.per_thread};
  refusal_ = Refusal(entry);
}

}  // namespace cudasim::driver
