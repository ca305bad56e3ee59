// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What holds for the handles of every library, as cases of each one's test program:
//
//   struct Cublas { ... };          // what Note [Kits] wants
//   LIBRARY_SUITE(Cublas)
//
// Note [Kits]
// ~~~~~~~~~~~
//   Handles, Scope                     the types under test
//   kSoname, kCreate, kDestroy         the library, and entries of it
//   kMakesInCaptures                   a handle may be made while something captures
//   Borrow(handles, stream)            a scope, for a StreamRef or a CUstream
//   Prepare(handles, context, count)
//   Handle(scope), kNoHandle           what it borrowed, comparable
//   IsFresh(scope), Spoil(scope)       its settings are as they were made; change them all
//   SetStream(scope, stream)           as somebody else does by the library's function
//   Work(context)                      memory in a context, and
//     Run(scope), IsRight()            something to compute with it, and whether it was; waits

#ifndef CUGUEST_TEST_LIBRARIES_LIBRARY_SUITE_H_
#define CUGUEST_TEST_LIBRARIES_LIBRARY_SUITE_H_

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cudasim/sim_library.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/green_context.h"
#include "cuguest/host_scope.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/objects/memory/memories.h"
#include "test/support/advised.h"
#include "test/support/capture_mode.h"
#include "test/support/runtime.h"

namespace cuguest_library_test {

using absl::StatusCode;
using cudasim::Sim;
using cudasim::SimLibrary;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::PrimaryContext;
using cuguest::StreamRef;
using cuguest::testing::UndisturbedScope;
using cuguest_test::GetStack;
using cuguest_test::NoRefusal;
using cuguest_test::Owner;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::ThreadMode;

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

inline void Fail(const std::string& difference) { BOOST_ERROR(difference); }

#define STATUS_OK(expression)                     \
  do {                                            \
    const absl::Status status_ = (expression);    \
    BOOST_TEST(status_.ok(), status_.ToString()); \
  } while (false)

inline StreamRef StreamOf(const Owner& owner) {
  return StreamRef::Borrow(owner.stream(), owner.ref());
}

inline PrimaryContext Primary() { return PrimaryContext::Retain(cuguest::Device::Borrow(0)); }

// A stream that captures, of a context; the capture must live to its end.
class Capture {
 public:
  Capture(CUcontext context, CUstreamCaptureMode mode, unsigned flags = CU_STREAM_NON_BLOCKING)
      : guard_(context) {
    OK(RAW(cuStreamCreate)(&stream_, flags));
    OK(RAW(cuStreamBeginCapture)(stream_, mode));
    OK(guard_.Leave());
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    if (graph_ == nullptr) End();
    OK(RAW(cuGraphDestroy)(graph_));
    OK(RAW(cuStreamDestroy)(stream_));
  }
  CUstream stream() const { return stream_; }

  void End() {
    OK(RAW(cuStreamEndCapture)(stream_, &graph_));
    BOOST_TEST_REQUIRE(graph_ != nullptr);
  }
  void Replay() {
    const ContextGuard guard(guard_.get());
    CUgraphExec exec = nullptr;
    OK(RAW(cuGraphInstantiate)(&exec, graph_, 0));
    OK(RAW(cuGraphLaunch)(exec, stream_));
    OK(RAW(cuStreamSynchronize)(stream_));
    OK(RAW(cuGraphExecDestroy)(exec));
  }

 private:
  ContextGuard guard_;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
};

template <typename Kit>
void Run(typename Kit::Handles& handles, const StreamRef& stream, typename Kit::Work& work) {
  const UndisturbedScope undisturbed(&Fail);
  auto scope = Kit::Borrow(handles, stream);
  BOOST_TEST_REQUIRE(scope.ok(), scope.status().ToString());
  STATUS_OK(work.Run(scope));
  STATUS_OK(scope.Leave());
  STATUS_OK(scope.Leave());
  BOOST_TEST(!scope.ok());
}

template <typename Kit>
void WorksWhateverIsCurrent() {
  const Owner home;
  const Owner other;
  typename Kit::Handles handles;
  for (const std::vector<CUcontext>& stack :
       {std::vector<CUcontext>{}, {home.get()}, {other.get()}, {home.get(), other.get()}}) {
    typename Kit::Work work(home.ref());
    SetStack(stack);
    Run<Kit>(handles, StreamOf(home), work);
    BOOST_TEST(work.IsRight());
    Run<Kit>(handles, StreamRef::Borrow(nullptr, home.ref()), work);
    Run<Kit>(handles, StreamRef::Borrow(CU_STREAM_PER_THREAD, home.ref()), work);
    BOOST_TEST(GetStack() == stack);
    SetStack({});
    BOOST_TEST(work.IsRight());
    std::thread([&] { Run<Kit>(handles, StreamOf(home), work); }).join();
    BOOST_TEST(work.IsRight());
  }
  BOOST_TEST(handles.Forget(home.ref()));
  BOOST_TEST(!handles.Forget(home.ref()));
}

// Its memory is the primary's.
template <typename Kit>
void WorksInAGreenContext() {
  const auto green = cuguest::GreenContext::Create(cuguest::Device::Borrow(0), cuguest::SmCount{8});
  BOOST_TEST_REQUIRE(green.ok(), green.status().ToString());
  const auto stream = cuguest::Stream::Create(green->context());
  BOOST_TEST_REQUIRE(stream.ok(), stream.status().ToString());
  typename Kit::Work work(green->context());
  typename Kit::Handles handles;
  Run<Kit>(handles, *stream, work);
  BOOST_TEST(work.IsRight());
  BOOST_TEST(handles.Forget(green->context()));
}

// A green context has no per-thread stream.
template <typename Kit>
void RefusesAStreamThatIsNone() {
  const auto green = cuguest::GreenContext::Create(cuguest::Device::Borrow(0), cuguest::SmCount{8});
  BOOST_TEST_REQUIRE(green.ok(), green.status().ToString());
  const StreamRef stream = StreamRef::Borrow(CU_STREAM_PER_THREAD, green->context());
  typename Kit::Handles handles;
  const UndisturbedScope undisturbed(&Fail);
  const auto scope = Kit::Borrow(handles, stream);
  BOOST_TEST((scope.status().code() == absl::StatusCode::kInvalidArgument),
             scope.status().ToString());
  BOOST_TEST(absl::StrContains(scope.status().ToString(), "green contexts"));
}

// The context of the scope is current inside, and on top of the caller's.
template <typename Kit>
void MakesItsContextCurrent() {
  const Owner home;
  const Owner other;
  typename Kit::Handles handles;
  SetStack({other.get()});
  {
    auto scope = Kit::Borrow(handles, StreamOf(home));
    BOOST_TEST(GetStack() == (std::vector<CUcontext>{other.get(), home.get()}));
    OK(RAW(cuCtxSetCurrent)(other.get()));  // a callee that does not behave
    STATUS_OK(scope.Reassert());
    BOOST_TEST(GetStack() == (std::vector<CUcontext>{other.get(), home.get()}));
    BOOST_TEST(TakeIncidents().size() == 1U);
    OK(RAW(cuCtxPushCurrent)(other.get()));
  }
  BOOST_TEST(TakeIncidents().size() == 1U);
  BOOST_TEST(GetStack() == (std::vector<CUcontext>{other.get()}));
  SetStack({home.get()});
  {
    auto scope = Kit::Borrow(handles, StreamOf(home));
    OK(RAW(cuCtxPushCurrent)(other.get()));
  }
  BOOST_TEST(TakeIncidents().size() == 1U);
  BOOST_TEST(GetStack() == (std::vector<CUcontext>{home.get()}));
  SetStack({});
}

// As a function that takes a handle and a stream leaves it (cupy/cupy#2362). Work that went to the
// other stream would be in its graph, and not done.
template <typename Kit>
void WorksOnItsStreamWhateverWasSet() {
  const Owner home;
  const Owner elsewhere;
  typename Kit::Handles handles;
  for (const Owner* const owner : {&home, &elsewhere}) {
    typename Kit::Work work(home.ref());
    Run<Kit>(handles, StreamOf(home), work);
    BOOST_TEST(work.IsRight());
    Capture other(owner->get(), CU_STREAM_CAPTURE_MODE_RELAXED);
    {
      const auto scope = Kit::Borrow(handles, StreamOf(home));
      BOOST_TEST(Kit::SetStream(scope, other.stream()));
    }
    Run<Kit>(handles, StreamOf(home), work);
    other.End();
    BOOST_TEST(work.IsRight());
  }
}

template <typename Kit>
void EachScopeHasAHandleToItself() {
  const Owner home;
  typename Kit::Handles handles;
  STATUS_OK(Kit::Prepare(handles, home.ref(), 2));
  SimLibrary::ResetCalls();
  std::optional<decltype(Kit::Handle(Kit::Borrow(handles, StreamOf(home))))> first;
  {
    auto outer = Kit::Borrow(handles, StreamOf(home));
    auto inner = Kit::Borrow(handles, StreamOf(home));
    first = Kit::Handle(outer);
    BOOST_TEST((Kit::Handle(inner) != *first));
    STATUS_OK(inner.Leave());
    const auto again = Kit::Borrow(handles, StreamOf(home));
    BOOST_TEST(again.ok());
  }
  STATUS_OK(Kit::Prepare(handles, home.ref(), 2));
  STATUS_OK(Kit::Prepare(handles, home.ref(), 0));
  BOOST_TEST(SimLibrary::Calls(Kit::kCreate) == 0U);
  BOOST_TEST(SimLibrary::Calls(Kit::kDestroy) == 0U);
}

// Of one context or two, in a capture mode of the caller's.
template <typename Kit>
void EndsInAnyOrder() {
  const Owner host;
  const Owner homes[2];
  typename Kit::Handles handles;
  for (const Owner& home : homes) STATUS_OK(Kit::Prepare(handles, home.ref(), 3));
  SimLibrary::ResetCalls();
  std::vector<std::size_t> order = {0, 1, 2};
  do {
    for (const std::size_t which : {0, 1}) {
      SetStack({host.get()});
      const cuguest::CaptureModeGuard mode(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
      {
        std::vector<std::function<void()>> ends;
        auto first = Kit::Borrow(handles, StreamOf(homes[0]));
        auto second = Kit::Borrow(handles, StreamOf(homes[which]));
        auto third = Kit::Borrow(handles, StreamOf(homes[0]));
        BOOST_TEST((first.ok() && second.ok() && third.ok()));
        BOOST_TEST((Kit::Spoil(first) && Kit::Spoil(second) && Kit::Spoil(third)));
        ends.emplace_back([&] { static_cast<void>(first.Leave()); });
        ends.emplace_back([&] { static_cast<void>(second.Leave()); });
        ends.emplace_back([&] { static_cast<void>(third.Leave()); });
        for (const std::size_t each : order) ends[each]();
        BOOST_TEST(GetStack() == std::vector<CUcontext>{host.get()});
        CUstreamCaptureMode now = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        OK(RAW(cuThreadExchangeStreamCaptureMode)(&now));
        BOOST_TEST(now == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        for (const Owner& home : homes) {
          const auto again = Kit::Borrow(handles, StreamOf(home));
          BOOST_TEST((again.ok() && Kit::IsFresh(again)));
        }
      }
      SetStack({});
    }
  } while (std::next_permutation(order.begin(), order.end()));
  BOOST_TEST(SimLibrary::Calls(Kit::kCreate) == 0U);
  BOOST_TEST(SimLibrary::Calls(Kit::kDestroy) == 0U);
  BOOST_TEST(TakeIncidents().empty());
}

// Up to where the records of a thread's scopes go on in memory of the heap, and beyond.
template <typename Kit>
void LendsInsideManyScopes() {
  const Owner home;
  const Owner other;
  typename Kit::Handles handles;
  STATUS_OK(Kit::Prepare(handles, home.ref(), 2));
  SetStack({home.get()});
  const cuguest::CaptureModeGuard mode(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  std::deque<ContextGuard> guards;
  for (int depth = 0; depth <= 20; ++depth) {
    for (const Owner* const current : {&home, &other}) {
      const ContextGuard inner(current->get());
      const std::vector<CUcontext> stack = GetStack();
      auto scope = Kit::Borrow(handles, StreamOf(home));
      {
        const auto second = Kit::Borrow(handles, StreamOf(home));
        BOOST_TEST((scope.ok() && second.ok()));
        BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_RELAXED);
        BOOST_TEST(GetStack().back() == home.get());
      }
      BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_RELAXED);
      STATUS_OK(scope.Leave());
      BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
      BOOST_TEST(GetStack() == stack);
    }
    guards.emplace_back(home.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
  }
  while (!guards.empty()) guards.pop_back();
  SetStack({});
  BOOST_TEST(TakeIncidents().empty());
}

// Whichever context was current, and however the scope ends.
template <typename Kit>
void RestoresTheModeAfterACallee() {
  const Owner home;
  typename Kit::Handles handles;
  for (const std::vector<CUcontext>& stack : {std::vector<CUcontext>{home.get()}, {}}) {
    SetStack(stack);
    for (const bool is_asked : {false, true}) {
      const cuguest::CaptureModeGuard mode(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
      {
        auto scope = Kit::Borrow(handles, StreamOf(home));
        BOOST_TEST(scope.ok());
        CUstreamCaptureMode left = CU_STREAM_CAPTURE_MODE_GLOBAL;
        OK(RAW(cuThreadExchangeStreamCaptureMode)(&left));
        BOOST_TEST(left == CU_STREAM_CAPTURE_MODE_RELAXED);
        if (is_asked) STATUS_OK(scope.Leave());
      }
      BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
      BOOST_TEST(GetStack() == stack);
      const auto incidents = TakeIncidents();
      BOOST_TEST_REQUIRE(incidents.size() == 1U);
      BOOST_TEST((incidents[0].kind == cuguest::Incident::Kind::kCaptureMode));
      BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kRepaired));
    }
    SetStack({});
  }
}

// A guard around the scope ends before it; with a library that called its host back, or without.
template <typename Kit>
void LetsTheHostIn() {
  const Owner home;
  const Owner host;
  typename Kit::Handles handles;
  for (const auto& [current, calls_back] :
       {std::pair(&home, false), {&home, true}, {&host, false}, {&host, true}}) {
    const std::vector<CUcontext> stack = {current->get()};
    SetStack(stack);
    CUstreamCaptureMode callers = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    OK(RAW(cuThreadExchangeStreamCaptureMode)(&callers));
    std::optional<ContextGuard> around;
    around.emplace(home.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
    auto scope = Kit::Borrow(handles, StreamOf(home));
    if (calls_back) {
      const cuguest::HostScope in_host;
      BOOST_TEST(GetStack() == stack);
      BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    }
    BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_RELAXED);
    BOOST_TEST(GetStack().back() == home.get());
    around.reset();
    BOOST_TEST(TakeIncidents().size() == 1U);  // it ended out of turn
    STATUS_OK(scope.Leave());
    BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    OK(RAW(cuThreadExchangeStreamCaptureMode)(&callers));
    BOOST_TEST(GetStack() == stack);
    SetStack({});
  }
}

template <typename Kit>
void ThreadsShareThePool() {
  constexpr int kThreads = 8;
  constexpr int kRounds = 40;
  const Owner homes[2];
  typename Kit::Handles handles;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        const Owner& home = homes[(i + round) % 2];
        auto scope = Kit::Borrow(handles, StreamOf(home));
        // Settings of one thread never meet another's.
        if (!scope.ok() || !Kit::IsFresh(scope) || !Kit::Spoil(scope)) ++wrong;
        if (!scope.Leave().ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  if (SimLibrary::IsActive(Kit::kSoname)) BOOST_TEST(handles.Forget(homes[0].ref()));
}

// A thread does not take another one's for good. Each of three has begun with the first handle, or
// with what was left while another had it.
template <typename Kit>
void ThreadsComeToHandlesOfTheirOwn() {
  constexpr int kThreads = 3;
  const Owner home;
  typename Kit::Handles handles;
  STATUS_OK(Kit::Prepare(handles, home.ref(), kThreads));
  struct Step {
    int thread;
    bool opens;
  };
  std::vector<Step> steps;
  for (int round = 0; round < 40; ++round) {
    for (int one = 0; one < kThreads; ++one) {
      const int other = (one + 1) % kThreads;
      steps.insert(steps.end(), {{one, true}, {other, true}, {other, false}, {one, false}});
    }
  }
  for (int i = 0; i < kThreads; ++i) steps.insert(steps.end(), {{i, true}, {i, false}});

  std::vector<decltype(Kit::Handle(Kit::Borrow(handles, StreamOf(home))))> had(kThreads);
  std::atomic<std::size_t> done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::unique_ptr<typename Kit::Scope> scope;
      for (std::size_t at = 0; at < steps.size(); ++at) {
        while (done < at) std::this_thread::yield();
        if (steps[at].thread != i) continue;
        scope = nullptr;
        if (steps[at].opens) {
          scope.reset(new typename Kit::Scope(Kit::Borrow(handles, StreamOf(home))));
          had[static_cast<std::size_t>(i)] = Kit::Handle(*scope);
        }
        ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(std::set(had.begin(), had.end()).size() == kThreads);
}

template <typename Kit>
void InvalidatesNoCapture() {
  const Owner home;
  typename Kit::Handles handles;
  {  // what is loaded but once is loaded
    typename Kit::Work work(home.ref());
    STATUS_OK(Kit::Prepare(handles, home.ref(), Kit::kMakesInCaptures ? 1 : 2));
    Run<Kit>(handles, StreamOf(home), work);
  }
  for (const CUstreamCaptureMode mode : kModes) {
    for (const unsigned flags : {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT}) {
      typename Kit::Work captured(home.ref());
      typename Kit::Work beside(home.ref());
      Capture capture(home.get(), mode, flags);
      {
        const auto taken = Kit::Borrow(handles, StreamOf(home));
        Run<Kit>(handles, StreamRef::Borrow(capture.stream(), home.ref()), captured);
        std::thread([&] {
          if (Kit::kMakesInCaptures) Run<Kit>(handles, StreamOf(home), beside);
        }).join();
      }
      Run<Kit>(handles, StreamOf(home), beside);
      capture.End();
      BOOST_TEST(beside.IsRight());
      capture.Replay();
      BOOST_TEST(captured.IsRight());
    }
  }
}

template <typename Kit>
void Refuses() {
  const Owner home;
  typename Kit::Handles handles;
  ContextRef ended;
  {
    const PrimaryContext primary = Primary();
    ended = primary.context();
    OK(RAW(cuDevicePrimaryCtxReset)(0));
  }
  const auto refused = [&](const StreamRef& stream, StatusCode code,
                           const std::vector<std::string>& words) {
    const UndisturbedScope undisturbed(&Fail);
    const auto scope = Kit::Borrow(handles, stream);
    BOOST_TEST(!scope.ok());
    const std::string no_refusal = NoRefusal(scope.status(), code, words);
    BOOST_TEST(no_refusal.empty(), no_refusal);
    BOOST_TEST((Kit::Handle(scope) == Kit::kNoHandle));
    BOOST_TEST((scope.CheckOperand(&scope, 1).code() == StatusCode::kFailedPrecondition));
  };
  refused(StreamRef(), StatusCode::kInvalidArgument, {"borrow", "empty"});
  refused(StreamRef::Borrow(nullptr, ended), StatusCode::kFailedPrecondition, {"destroyed"});
  BOOST_TEST((Kit::Prepare(handles, ended, 1).code() == StatusCode::kFailedPrecondition));
  BOOST_TEST((Kit::Prepare(handles, ContextRef(), 1).code() == StatusCode::kFailedPrecondition));
  STATUS_OK(Kit::Prepare(handles, home.ref(), 1));
  const Capture capture(home.get(), CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_DEFAULT);
  refused(StreamRef::Borrow(nullptr, home.ref()), StatusCode::kFailedPrecondition,
          {"stream 0", "blocking stream", "906"});
}

// A handle of a destroyed context is never used nor destroyed.
template <typename Kit>
void IsGivenUpAfterAReset() {
  typename Kit::Handles handles;
  for (const bool is_told : {true, false}) {
    const PrimaryContext primary = Primary();
    const ContextRef life = primary.context();
    STATUS_OK(Kit::Prepare(handles, life, 2));
    OK(RAW(cuDevicePrimaryCtxReset)(0));
    SimLibrary::ResetCalls();
    Sim::ResetCalls();
    if (is_told) BOOST_TEST(handles.ForgetDestroyed(life));
    BOOST_TEST(Sim::TotalCalls() == 0U);
    BOOST_TEST(handles.DropDead() == (is_told ? 0U : 1U));
    const PrimaryContext revived = Primary();
    BOOST_TEST((revived.context() != life));
    {
      typename Kit::Work work(revived.context());
      Run<Kit>(handles, StreamRef::Borrow(nullptr, revived.context()), work);
      BOOST_TEST(work.IsRight());
    }
    BOOST_TEST(SimLibrary::Calls(Kit::kDestroy) == 0U);
    BOOST_TEST(handles.Forget(revived.context()));
  }
}

template <typename Kit>
void OutlivesItsContext() {
  typename Kit::Handles handles;
  const PrimaryContext primary = Primary();
  auto scope = Kit::Borrow(handles, StreamRef::Borrow(nullptr, primary.context()));
  BOOST_TEST_REQUIRE(scope.ok());
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  SimLibrary::ResetCalls();
  const absl::Status status = scope.Leave();
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_CONTEXT_IS_DESTROYED), status.ToString());
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(handles.DropDead() == 1U);
  BOOST_TEST(SimLibrary::Calls(Kit::kDestroy) == 0U);
}

// A scope does not go on in an incarnation that foreign code destroyed.
template <typename Kit>
void EndsWhereItCannotGoOn() {
  typename Kit::Handles handles;
  const PrimaryContext primary = Primary();
  auto scope = Kit::Borrow(handles, StreamRef::Borrow(nullptr, primary.context()));
  STATUS_OK(scope.Reassert());
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  SimLibrary::ResetCalls();
  const absl::Status status = scope.Reassert();
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_CONTEXT_IS_DESTROYED), status.ToString());
  BOOST_TEST(!scope.ok());
  BOOST_TEST((scope.status() == status));
  BOOST_TEST((Kit::Handle(scope) == Kit::kNoHandle));
  BOOST_TEST(GetStack().empty());
  BOOST_TEST((cuguest::CodeOf(scope.Reassert()) == CUDA_ERROR_ILLEGAL_STATE));
  STATUS_OK(scope.Leave());
  BOOST_TEST(handles.DropDead() == 1U);
  BOOST_TEST(SimLibrary::Calls(Kit::kDestroy) == 0U);
}

template <typename Kit>
void ForgetsWhatIsInUseLater() {
  const Owner home;
  typename Kit::Handles handles;
  STATUS_OK(Kit::Prepare(handles, home.ref(), 1));
  auto scope = Kit::Borrow(handles, StreamOf(home));
  SimLibrary::ResetCalls();
  BOOST_TEST(handles.Forget(home.ref()));
  BOOST_TEST(SimLibrary::Calls(Kit::kDestroy) == 0U);
  typename Kit::Work work(home.ref());
  STATUS_OK(work.Run(scope));
  STATUS_OK(scope.Leave());
  BOOST_TEST(work.IsRight());
  // Nothing but the next Forget() destroys them: a capture may have begun there.
  const Owner other;
  STATUS_OK(Kit::Prepare(handles, other.ref(), 1));
  STATUS_OK(Kit::Prepare(handles, home.ref(), 1));
  BOOST_TEST(handles.DropDead() == 0U);
  BOOST_TEST(handles.ForgetDestroyed(other.ref()));
  BOOST_TEST(SimLibrary::Calls(Kit::kDestroy) == 0U);
  BOOST_TEST(handles.Forget(home.ref()));
  if (SimLibrary::IsActive(Kit::kSoname)) BOOST_TEST(SimLibrary::Calls(Kit::kDestroy) == 2U);
}

// Destroying would end what can be seen to capture.
template <typename Kit>
void GivesUpRatherThanEndACapture() {
  const Owner home;
  typename Kit::Handles handles;
  STATUS_OK(Kit::Prepare(handles, home.ref(), 1));
  const Capture capture(home.get(), CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_DEFAULT);
  const UndisturbedScope undisturbed(&Fail);
  BOOST_TEST(handles.Forget(home.ref()));
}

template <typename Kit>
void ChecksOperands() {
  const Owner home;
  typename Kit::Handles handles;
  auto buffer = DeviceBuffer<float>::Allocate(home.ref(), 64).value();
  const auto pointer = reinterpret_cast<const float*>(buffer.get());
  const auto scope = Kit::Borrow(handles, StreamOf(home));
  const float on_the_host = 0;
  STATUS_OK(scope.CheckOperand(pointer, 256));
  STATUS_OK(scope.CheckOperand(pointer + 60, 16));
  STATUS_OK(scope.CheckOperand(nullptr, 0));
  for (const absl::Status& status :
       {scope.CheckOperand(&on_the_host, 4), scope.CheckOperand(nullptr, 4),
        scope.CheckOperand(pointer + 60, 1 << 20)}) {
    BOOST_TEST((status.code() == StatusCode::kInvalidArgument), status.ToString());
  }
}

// Of a stream that was handed in: its context is found, whatever is current.
template <typename Kit>
void TakesAStreamThatWasHandedIn() {
  const Owner home;
  const Owner other;
  typename Kit::Handles handles;
  for (const CUcontext current : {CUcontext{}, home.get(), other.get()}) {
    if (current == nullptr) {
      SetStack({});
    } else {
      SetStack({current});
    }
    const UndisturbedScope undisturbed(&Fail);
    typename Kit::Work work(home.ref());
    {
      auto scope = Kit::Borrow(handles, home.stream());
      BOOST_TEST_REQUIRE(scope.ok(), scope.status().ToString());
      STATUS_OK(work.Run(scope));
    }
    BOOST_TEST(work.IsRight());
  }
  SetStack({});
  const auto none = Kit::Borrow(handles, CUstream{});
  BOOST_TEST(none.status() == StreamRef::Borrow(nullptr).status());
  BOOST_TEST(!none.ok());
}

// One that could not borrow, and that nobody asked.
template <typename Kit>
void ReportsARefusalThatNobodyAsked() {
  typename Kit::Handles handles;
  TakeIncidents();
  { const auto scope = Kit::Borrow(handles, StreamRef()); }
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == cuguest::Incident::Kind::kUnasked));
  for (const bool by_status : {false, true}) {
    const auto scope = Kit::Borrow(handles, StreamRef());
    BOOST_TEST(!(by_status ? scope.status().ok() : scope.ok()));
  }
  BOOST_TEST(TakeIncidents().empty());
}

template <typename Kit>
void RefusesMemoryOfAnotherDevice() {
  const Owner home;
  const Owner far(1);
  typename Kit::Handles handles;
  auto buffer = DeviceBuffer<float>::Allocate(far.ref(), 64).value();
  const auto scope = Kit::Borrow(handles, StreamOf(home));
  const absl::Status status = scope.CheckOperand(reinterpret_cast<const float*>(buffer.get()), 256);
  const std::string no_refusal =
      NoRefusal(status, StatusCode::kInvalidArgument,
                {"device 1", "device 0", Advised(": copy it there first")});
  BOOST_TEST(no_refusal.empty(), no_refusal);
  // One that goes on in another device's memory.
  const cuguest_test::Virtual range(2);
  range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 0);
  range.Map(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 1);
  const auto* const mapped = reinterpret_cast<const void*>(range.At(0));
  STATUS_OK(scope.CheckOperand(mapped, cuguest_test::kUnit));
  const std::string goes_on =
      NoRefusal(scope.CheckOperand(mapped, 2 * cuguest_test::kUnit),
                StatusCode::kFailedPrecondition, {"memory of device 1", "device 0 may not use it"});
  BOOST_TEST(goes_on.empty(), goes_on);
  range.Allow(1, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  STATUS_OK(scope.CheckOperand(mapped, 2 * cuguest_test::kUnit));
  auto near = DeviceBuffer<float>::Allocate(home.ref(), 64).value();
  STATUS_OK(cuguest::Copy(near.view(), buffer.view()));
  STATUS_OK(scope.CheckOperand(reinterpret_cast<const float*>(near.get()), 256));
}

// Every device reaches the host's pinned memory and managed memory, whichever context they are of.
template <typename Kit>
void TakesMemoryThatEveryDeviceReaches() {
  const Owner home;
  const Owner far(1);
  typename Kit::Handles handles;
  auto portable =
      cuguest::PinnedBuffer<float>::Allocate(far.ref(), 64, CU_MEMHOSTALLOC_PORTABLE).value();
  auto pinned = cuguest::PinnedBuffer<float>::Allocate(far.ref(), 64).value();
  CUdeviceptr managed = 0;
  {
    const cuguest::ContextGuard guard(far.ref());
    OK(RAW(cuMemAllocManaged)(&managed, 256, CU_MEM_ATTACH_GLOBAL));
  }
  {
    const auto scope = Kit::Borrow(handles, StreamOf(home));
    STATUS_OK(scope.CheckOperand(portable.data(), 256));
    STATUS_OK(scope.CheckOperand(pinned.data(), 256));
    STATUS_OK(scope.CheckOperand(reinterpret_cast<const void*>(managed), 256));
    BOOST_TEST(!scope.CheckOperand(portable.data(), 1 << 20).ok());
  }
  const cuguest::ContextGuard guard(far.ref());
  OK(RAW(cuMemFree)(managed));
}

// A library that is opened does what the linked one does.
template <typename Kit>
void MayBeOpened() {
  using Library = std::decay_t<decltype(std::declval<typename Kit::Handles&>().library())>;
  const absl::StatusOr<Library> library = Library::Open();
  BOOST_TEST_REQUIRE(library.ok(), library.status().ToString());
  const Owner home;
  typename Kit::Handles handles(*library);
  {
    typename Kit::Work work(home.ref());
    Run<Kit>(handles, StreamOf(home), work);
    BOOST_TEST(work.IsRight());
  }
  BOOST_TEST(library->template Find<void (*)()>(Kit::kCreate).ok());
  BOOST_TEST((library->template Find<void (*)()>("no_such_function").status().code() ==
              StatusCode::kUnimplemented));
  BOOST_TEST(handles.library().template Find<void (*)()>(Kit::kDestroy).ok());
}

}  // namespace cuguest_library_test

#define LIBRARY_SUITE(Kit)                                                                        \
  BOOST_AUTO_TEST_CASE(works_whatever_is_current) { WorksWhateverIsCurrent<Kit>(); }              \
  BOOST_AUTO_TEST_CASE(works_in_a_green_context,                                                  \
                       *cuguest_test::NeedsDriver(12040, "green contexts")) {                     \
    WorksInAGreenContext<Kit>();                                                                  \
  }                                                                                               \
  BOOST_AUTO_TEST_CASE(refuses_a_stream_that_is_none,                                             \
                       *cuguest_test::NeedsDriver(12040, "green contexts")) {                     \
    RefusesAStreamThatIsNone<Kit>();                                                              \
  }                                                                                               \
  BOOST_AUTO_TEST_CASE(makes_its_context_current) { MakesItsContextCurrent<Kit>(); }              \
  BOOST_AUTO_TEST_CASE(works_on_its_stream_whatever_was_set) {                                    \
    WorksOnItsStreamWhateverWasSet<Kit>();                                                        \
  }                                                                                               \
  BOOST_AUTO_TEST_CASE(each_scope_has_a_handle_to_itself) { EachScopeHasAHandleToItself<Kit>(); } \
  BOOST_AUTO_TEST_CASE(ends_in_any_order) { EndsInAnyOrder<Kit>(); }                              \
  BOOST_AUTO_TEST_CASE(lends_inside_many_scopes) { LendsInsideManyScopes<Kit>(); }                \
  BOOST_AUTO_TEST_CASE(restores_the_mode_after_a_callee) { RestoresTheModeAfterACallee<Kit>(); }  \
  BOOST_AUTO_TEST_CASE(lets_the_host_in) { LetsTheHostIn<Kit>(); }                                \
  BOOST_AUTO_TEST_CASE(threads_share_the_pool) { ThreadsShareThePool<Kit>(); }                    \
  BOOST_AUTO_TEST_CASE(threads_come_to_their_own_handles) {                                       \
    ThreadsComeToHandlesOfTheirOwn<Kit>();                                                        \
  }                                                                                               \
  BOOST_AUTO_TEST_CASE(invalidates_no_capture) { InvalidatesNoCapture<Kit>(); }                   \
  BOOST_AUTO_TEST_CASE(refuses) { Refuses<Kit>(); }                                               \
  BOOST_AUTO_TEST_CASE(is_given_up_after_a_reset) { IsGivenUpAfterAReset<Kit>(); }                \
  BOOST_AUTO_TEST_CASE(outlives_its_context) { OutlivesItsContext<Kit>(); }                       \
  BOOST_AUTO_TEST_CASE(ends_where_it_cannot_go_on) { EndsWhereItCannotGoOn<Kit>(); }              \
  BOOST_AUTO_TEST_CASE(forgets_what_is_in_use_later) { ForgetsWhatIsInUseLater<Kit>(); }          \
  BOOST_AUTO_TEST_CASE(gives_up_rather_than_end_a_capture) {                                      \
    GivesUpRatherThanEndACapture<Kit>();                                                          \
  }                                                                                               \
  BOOST_AUTO_TEST_CASE(checks_operands) { ChecksOperands<Kit>(); }                                \
  BOOST_AUTO_TEST_CASE(refuses_memory_of_another_device, *cuguest_test::NeedsDevices(2)) {        \
    RefusesMemoryOfAnotherDevice<Kit>();                                                          \
  }                                                                                               \
  BOOST_AUTO_TEST_CASE(takes_memory_that_every_device_reaches, *cuguest_test::NeedsDevices(2)) {  \
    TakesMemoryThatEveryDeviceReaches<Kit>();                                                     \
  }                                                                                               \
  BOOST_AUTO_TEST_CASE(takes_a_stream_that_was_handed_in) { TakesAStreamThatWasHandedIn<Kit>(); } \
  BOOST_AUTO_TEST_CASE(reports_a_refusal_that_nobody_asked) {                                     \
    ReportsARefusalThatNobodyAsked<Kit>();                                                        \
  }                                                                                               \
  BOOST_AUTO_TEST_CASE(may_be_opened) { MayBeOpened<Kit>(); }

#endif  // CUGUEST_TEST_LIBRARIES_LIBRARY_SUITE_H_
