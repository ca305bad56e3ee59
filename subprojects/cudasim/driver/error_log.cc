// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/error_log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "driver/api.h"
#include "driver/process.h"

struct CUlogsCallbackEntry_st {
  CUlogsCallback function;
  void* user;
};

namespace cudasim::driver {
namespace {

// -1: nobody asked for a log, or it cannot be written.
int OpenLog() {
  const char* const name = secure_getenv("CUDA_LOG_FILE");
  if (name == nullptr) return -1;
  const std::string_view file = name;
  if (file == "stdout") return STDOUT_FILENO;
  if (file == "stderr") return STDERR_FILENO;
  return open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

int LogFile() {
  static const int log = OpenLog();
  return log;
}

// Those that are registered. The lock is held while one is called, so that none is called any more
// once it has been unregistered; a callback may fail calls of its own.
struct Callbacks {
  std::recursive_mutex mutex;
  std::vector<CUlogsCallbackHandle> all;
  std::atomic<size_t> count{0};
};
Callbacks& TheCallbacks() {
  static auto* const callbacks = new Callbacks;  // also after the last destructor
  return *callbacks;
}

// As a driver of CUDA 13.0 words them (docs/guarantees.md); nullptr: not known.
const char* ReasonOf(CUresult code) {
  switch (code) {
    case CUDA_ERROR_INVALID_CONTEXT:
      return "No CUDA context is current to the calling thread";
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      return "API call conflicts with a stream capture sequence initiated from the calling thread";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "No device code available for GPU ISA 90";
    default:
      return nullptr;
  }
}

void Tell(const std::string& line) {
  if (LogFile() >= 0) {
    const std::string written = "[" + std::to_string(getpid()) + "][CUDA][E] " + line + "\n";
    // One call, so that lines of several threads stay whole. Nobody can be told that it failed.
    if (write(LogFile(), written.data(), written.size()) < 0) return;
  }
  Callbacks& callbacks = TheCallbacks();
  if (callbacks.count.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(callbacks.mutex);
  const std::vector<CUlogsCallbackHandle> called = callbacks.all;
  for (const CUlogsCallbackHandle one : called) {
    std::string copy = line;  // which a callback may write to
    one->function(one->user, CU_LOG_LEVEL_ERROR, copy.data(), copy.size());
  }
}

}  // namespace

void LogFailure(const Entry& entry, CUresult code) {
  if (code == CUDA_ERROR_NOT_INITIALIZED && Process::IsFresh()) return;
  if (LogFile() < 0 && TheCallbacks().count.load(std::memory_order_acquire) == 0) return;
  if (const char* const reason = ReasonOf(code)) Tell(reason);
  const char* name = "an unrecognized code";
  static_cast<void>(GetErrorName(code, &name));
  Tell("Returning " + std::to_string(static_cast<int>(code)) + " (" + name + ") from " +
       entry.symbol);
}

CUresult LogsRegisterCallback(CUlogsCallback function, void* user, CUlogsCallbackHandle* handle) {
  if (function == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Callbacks& callbacks = TheCallbacks();
  const std::lock_guard lock(callbacks.mutex);
  *handle = new CUlogsCallbackEntry_st{function, user};
  callbacks.all.push_back(*handle);
  callbacks.count.store(callbacks.all.size(), std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult LogsUnregisterCallback(CUlogsCallbackHandle handle) {
  Callbacks& callbacks = TheCallbacks();
  const std::lock_guard lock(callbacks.mutex);
  for (size_t i = 0; i < callbacks.all.size(); ++i) {
    if (callbacks.all[i] != handle) continue;
    callbacks.all.erase(callbacks.all.begin() + static_cast<std::ptrdiff_t>(i));
    callbacks.count.store(callbacks.all.size(), std::memory_order_release);
    delete handle;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cudasim::driver
