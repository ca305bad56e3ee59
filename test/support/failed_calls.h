// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver calls of a thread that fail, where they would be lines in the host's log of errors:
// not those that the runtime makes beneath a call of its own. Only the simulation tells.

#ifndef CUGUEST_TEST_SUPPORT_FAILED_CALLS_H_
#define CUGUEST_TEST_SUPPORT_FAILED_CALLS_H_

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cudasim/tool.h"
#include "cuguest/error.h"
#include "test/support/test.h"

namespace cuguest_test {

// From construction to Take(), on one thread; one at a time.
class FailedCalls {
 public:
  FailedCalls() {
    static const bool s_subscribed = Subscribe();
    BOOST_TEST_REQUIRE(s_subscribed);
    t_failed.clear();
    t_watches = true;
  }
  FailedCalls(const FailedCalls&) = delete;
  FailedCalls& operator=(const FailedCalls&) = delete;
  ~FailedCalls() { t_watches = false; }

  // "cuCtxGetId: CUDA_ERROR_INVALID_CONTEXT", in their order; without those for which only a call
  // that fails tells.
  std::vector<std::string> Take() {
    t_watches = false;
    return std::exchange(t_failed, {});
  }

 private:
  static bool Subscribe() {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver == nullptr) return false;
    void* const function = dlsym(driver, "cudasimSubscribe");
    return function != nullptr &&
           reinterpret_cast<decltype(&cudasimSubscribe)>(function)(&kSubscriber) == CUDA_SUCCESS;
  }

  static void Enter(const cudasimCall* call) {
    if (call->domain == cudasimRuntimeCall) ++t_runtime_depth;
  }

  static void Leave(const cudasimCall* call) {
    if (call->domain == cudasimRuntimeCall) {
      --t_runtime_depth;
      return;
    }
    const auto code = static_cast<CUresult>(call->result);
    if (!t_watches || t_runtime_depth != 0 || code == CUDA_SUCCESS ||
        code == CUDA_ERROR_NOT_READY) {
      return;
    }
    constexpr const char* kExceptions[] = {
        // nvJitLink looks for a private table, which the simulation alone does not have.
        "cuGetExportTable",
    };
    const bool is_exception =
        std::any_of(std::begin(kExceptions), std::end(kExceptions),
                    [&](const std::string& name) { return name == call->name; });
    if (!is_exception)
      t_failed.push_back(std::string(call->name) + ": " + cuguest::ErrorName(code));
  }

  static constexpr cudasimSubscriber kSubscriber = {CUDASIM_TOOL_VERSION, &Enter, &Leave, nullptr,
                                                    nullptr};
  static inline thread_local bool t_watches = false;
  static inline thread_local int t_runtime_depth = 0;
  static inline thread_local std::vector<std::string> t_failed;
};

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_FAILED_CALLS_H_
