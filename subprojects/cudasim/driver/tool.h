// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls and contexts that a subscriber is told of (cudasim/tool.h). The runtime reports its
// calls through the same subscription, which it finds in the control table.
//
// Threads: any. A call that nobody subscribed to costs one relaxed load.

#ifndef CUDASIM_DRIVER_TOOL_H_
#define CUDASIM_DRIVER_TOOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cudasim/tool.h"

namespace cudasim::driver {

struct Tool {
  std::atomic<const cudasimSubscriber*> subscriber{nullptr};
  std::uint64_t (*current_context)();
};
Tool& TheTool();

// Tells of a context that was made, or whose incarnation has ended.
class Context;
void ReportCreated(Context* context);
void ReportDestroyed(Context* context);

// Loads what CUDA_INJECTION64_PATH names and calls it.
void LoadInjection();

template <typename... Arguments>
std::array<const void*, sizeof...(Arguments) + 1> PointersTo(const Arguments&... arguments) {
  return {static_cast<const void*>(&arguments)..., nullptr};
}

// CallReport
//
// Tells of one call. `tool` may be null; what else it is given must outlive it.
class CallReport {
 public:
  template <size_t count>
  CallReport(const Tool* tool, int domain, size_t index, const char* name, const char* symbol,
             const std::array<const void*, count>& arguments)
      : tool_(tool),
        subscriber_(tool != nullptr ? tool->subscriber.load(std::memory_order_acquire) : nullptr) {
    if (subscriber_ == nullptr) return;
    call_ = {domain,           static_cast<unsigned>(index),     name, symbol,
             arguments.data(), static_cast<unsigned>(count - 1), 0,    0};
    Tell(subscriber_->enter);
  }
  CallReport(const CallReport&) = delete;
  CallReport& operator=(const CallReport&) = delete;

  template <typename Code>
  Code Leave(Code code) {
    if (subscriber_ == nullptr) return code;
    call_.result = static_cast<int>(code);
    Tell(subscriber_->leave);
    return code;
  }

 private:
  void Tell(void (*function)(const cudasimCall*)) {
    if (function == nullptr) return;
    call_.context = tool_->current_context();
    function(&call_);
  }

  const Tool* const tool_;
  const cudasimSubscriber* const subscriber_;
  cudasimCall call_;  // set where there is a subscriber
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_TOOL_H_
