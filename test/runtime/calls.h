// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of the bridge, in forms that succeed and in forms that fail, for the tests of
// what none of them may do. test/headers/calls_test.py fails where a function of the bridge
// is named in none of *_calls.cc.

#ifndef CUGUEST_TEST_RUNTIME_CALLS_H_
#define CUGUEST_TEST_RUNTIME_CALLS_H_

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/stream.h"
#include "cuguest/status.h"
#include "test/objects/memory/memories.h"
#include "test/runtime/runtime.h"

namespace cuguest_runtime_test {

// The code of what `version` of the driver brought, where the driver is older.
inline absl::StatusCode Since(int version, absl::StatusCode code) {
  return cuguest_test::HasDriver(version) ? code : absl::StatusCode::kUnimplemented;
}

// What a call said, and the object it gave.
struct Outcome {
  Outcome(absl::Status said) : status(std::move(said)) {}  // NOLINT: implicit
  template <typename T, typename = decltype(std::declval<const T&>().error())>
  Outcome(T made) : status(ToStatus(made)) {  // NOLINT: implicit
    if (made.ok()) object = std::make_shared<T>(std::move(made));
  }
  template <typename T>
  Outcome(absl::StatusOr<T> result) : status(result.status()) {  // NOLINT: implicit
    if (result.ok()) object = std::make_shared<T>(*std::move(result));
  }

  Outcome(absl::Status said, std::shared_ptr<void> of)
      : status(std::move(said)), object(std::move(of)) {}

  absl::Status status;
  std::shared_ptr<void> object;
  std::function<void()> end_context;  // that it made, where the driver refused to destroy it
};

// `outcome`, and with it an object that the call used and that goes when what it gave is gone.
template <typename T>
Outcome Together(Outcome outcome, T used) {
  struct Both {
    T used;
    std::shared_ptr<void> given;  // goes first
  };
  outcome.object = std::shared_ptr<void>(new Both{std::move(used), std::move(outcome.object)},
                                         [](void* both) { delete static_cast<Both*>(both); });
  return outcome;
}

// What the calls are given. Nothing of it changes by a call, and nothing lives in a primary
// context.
class Things {
 public:
  static constexpr size_t kCount = 16;
  static constexpr size_t kTooMany = size_t{1} << 58;
  using Numbers = std::array<int, kCount>;

  Things();
  Things(const Things&) = delete;
  Things& operator=(const Things&) = delete;
  ~Things();

  cuguest_test::Owner home;
  cuguest_test::Owner other;
  cuguest_test::Memories memories{home};
  cuguest::DeviceView<int> view;          // of memory in `home`
  cuguest::DeviceView<int> managed_view;  // of the same
  cuguest::DeviceView<int> pool_view;     // of memory that no context owns
  cuguest::Stream stream;                 // of `home`
  cuguest::Stream capturing;              // of `home`, in mode relaxed
  cuguest::Event event;                   // of `home`, recorded
  cuguest::Event others_event;            // of `other`, recorded
  CUarray array = nullptr;                // of `home`
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;      // of `library`
  CUfunction function = nullptr;  // the same in `home`
  mutable Numbers numbers = {};

  // An incarnation of the primary context that was reset, and what belonged to it.
  ContextRef ended;
  cuguest::DeviceView<int> ended_view;
  cuguest::Event ended_event;
  CUdeviceptr freed = 0;
};

struct Call {
  // The functions, as `Class::Function`; after a colon, what is particular about this form.
  const char* names;
  std::optional<absl::StatusCode> expected;  // nothing where it depends on what is current
  std::function<Outcome(const Things&)> make;
};

inline constexpr auto kOk = absl::StatusCode::kOk;
inline constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
inline constexpr auto kOver = absl::StatusCode::kFailedPrecondition;
inline constexpr auto kDepends = std::nullopt;

// What a call that gives a value says of it.
inline absl::Status Holds(bool claim) {
  return claim ? absl::OkStatus() : absl::InternalError("a value is not what it should be");
}

// A scope around nothing.
template <typename Scope>
absl::Status EnterAndLeave(Scope& scope) {
  if (!scope.ok()) return cuguest::ToStatus(scope);
  if (const CUresult code = scope.Reassert(); code != CUDA_SUCCESS) {
    return cuguest::ToStatus(code, "reassert a scope");
  }
  return cuguest::ToStatus(scope.Leave(), "leave a scope");
}

std::vector<Call> Joined(const std::vector<std::vector<Call>>& tables);

// They leave the last error of the runtime as it is, set or not: those of bridge_calls.cc,
// memory_calls.cc and stream_calls.cc.
const std::vector<Call>& Calls();
std::vector<Call> BridgeCalls();
std::vector<Call> MemoryCalls();
std::vector<Call> StreamCalls();

// Those that load, link and launch code, which never call the runtime.
const std::vector<Call>& CallsOfCode();

// In which a call of the runtime fails: they leave it clean, but overwrite one that was set.
const std::vector<Call>& CallsThatTheRuntimeRefuses();

// Runs `body(name)` with each stack and state of the primary context that a caller may have.
// Tests put a stack that a failed call changed back by the argument.
using SetUp = std::function<void()>;
void InEveryState(const Things& things,
                  const std::function<void(const char* name, const SetUp& set_stack)>& body);

}  // namespace cuguest_runtime_test

#endif  // CUGUEST_TEST_RUNTIME_CALLS_H_
