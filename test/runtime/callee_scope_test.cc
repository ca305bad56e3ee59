// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/runtime/callee_scope.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/runtime/runtime.h"

BOOST_AUTO_TEST_SUITE(callee_scope)

namespace {

using namespace cuguest_runtime_test;
using cudasim::Sim;
using cuguest::Incident;
using cuguest::runtime::CalleeScope;
using cuguest_test::OnlySim;
using cuguest_test::TakeIncidents;
using Stack = std::vector<CUcontext>;

// What callees are known to do.
void SetTheDevice() { RT_OK(cudaSetDevice(0)); }
void LeaveAnError() { BOOST_CHECK_EQUAL(cudaSetDevice(4711), cudaErrorInvalidDevice); }
void LeaveAPush(CUcontext context) { OK(RAW(cuCtxPushCurrent)(context)); }
void PopOnceTooOften() {
  OK(RAW(cuCtxPopCurrent)(nullptr));
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

std::vector<Incident::Kind> KindsOf(const std::vector<Incident>& incidents) {
  std::vector<Incident::Kind> kinds;
  for (const Incident& incident : incidents) {
    // A stack of which only the top can be seen is put back by inference, a last error for certain.
    BOOST_TEST((incident.repair == (incident.kind == Incident::Kind::kLastError
                                        ? Incident::Repair::kRepaired
                                        : Incident::Repair::kInferred)));
    BOOST_TEST(std::string(incident.file) == __FILE__);
    kinds.push_back(incident.kind);
  }
  return kinds;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_good_callee_works_in_the_context_and_nothing_is_reported) {
  const OwnContext host;
  const OwnContext ours;
  for (const Stack& stack : {Stack{}, Stack{host.get()}, Stack{host.get(), ours.get()}}) {
    SetStack(stack);
    {
      const Undisturbed undisturbed;
      const CalleeScope scope(ContextRef::Borrow(ours.get()));
      BOOST_TEST(scope.ok());
      void* pointer = nullptr;
      RT_OK(cudaMalloc(&pointer, 64));
      CUcontext owner = nullptr;
      OK(RAW(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT,
                                    reinterpret_cast<CUdeviceptr>(pointer)));
      BOOST_TEST(owner == ours.get());
      RT_OK(cudaFree(pointer));
    }
    SetStack({});
  }
}

BOOST_AUTO_TEST_CASE(the_calls_of_the_header, *OnlySim()) {
  const OwnContext ours;
  const ContextRef context = ContextRef::Borrow(ours.get());
  Sim::ResetCalls();
  { const CalleeScope scope(context); }
  BOOST_TEST(Sim::TotalCalls() == 5U);
  Sim::ResetCalls();
  { const CalleeScope scope(ours.get()); }
  BOOST_TEST(Sim::TotalCalls() == 4U);
}

BOOST_AUTO_TEST_CASE(every_bad_habit_is_undone_and_reported) {
  const OwnContext host;
  const OwnContext ours;
  const auto primary = RetainPrimary();
  struct Habit {
    std::function<void()> callee;
    Incident::Kind kind;
  };
  const Habit habits[] = {
      {SetTheDevice, Incident::Kind::kReplaced},
      {LeaveAnError, Incident::Kind::kLastError},
      {[&] { LeaveAPush(host.get()); }, Incident::Kind::kLeakedPush},
      {PopOnceTooOften, Incident::Kind::kExtraPop},
  };
  for (const Habit& habit : habits) {
    // Ours on top of the stack is where a guard that elides would lose the caller's entry.
    for (const Stack& stack : {Stack{host.get()}, Stack{host.get(), ours.get()}}) {
      SetStack(stack);
      {
        const CalleeScope scope(ours.get());
        BOOST_TEST(scope.ok());
        habit.callee();
      }
      BOOST_TEST(GetStack() == stack);
      BOOST_CHECK_EQUAL(cudaPeekAtLastError(), cudaSuccess);
      BOOST_TEST((KindsOf(TakeIncidents()) == std::vector<Incident::Kind>{habit.kind}));
      SetStack({});
    }
  }
}

BOOST_AUTO_TEST_CASE(the_context_is_back_between_two_calls) {
  const OwnContext host;
  const OwnContext ours;
  const auto primary = RetainPrimary();
  SetStack({host.get()});
  {
    CalleeScope scope(ours.get());
    SetTheDevice();
    OK(scope.Reassert());
    BOOST_TEST(GetStack() == (Stack{host.get(), ours.get()}));
    SetTheDevice();
    OK(scope.Leave());
    BOOST_TEST(GetStack() == Stack{host.get()});
  }
  BOOST_TEST((KindsOf(TakeIncidents()) ==
              std::vector<Incident::Kind>{Incident::Kind::kReplaced, Incident::Kind::kReplaced}));
  SetStack({});
}

// Each of three has a callee that leaves an error.
BOOST_AUTO_TEST_CASE(scopes_end_in_any_order) {
  const OwnContext host;
  const OwnContext ours[2];
  std::vector<std::size_t> order = {0, 1, 2};
  do {
    SetStack({host.get()});
    std::optional<CalleeScope> scopes[3];
    for (std::size_t i = 0; i < 3; ++i) {
      scopes[i].emplace(ours[i % 2].get());
      LeaveAnError();
    }
    for (const std::size_t each : order) scopes[each].reset();
    BOOST_TEST(GetStack() == Stack{host.get()});
    BOOST_CHECK_EQUAL(cudaPeekAtLastError(), cudaSuccess);
    static_cast<void>(TakeIncidents());
    SetStack({});
  } while (std::next_permutation(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE(an_expected_error_is_taken_back_without_a_report) {
  const OwnContext ours;
  {
    CalleeScope scope(ours.get());
    BOOST_CHECK_EQUAL(scope.Note(cudaSetDevice(4711), "cudaSetDevice"), cudaErrorInvalidDevice);
  }
  BOOST_CHECK_EQUAL(cudaPeekAtLastError(), cudaSuccess);
}

BOOST_AUTO_TEST_CASE(a_context_that_is_none_or_over_is_refused) {
  auto primary = RetainPrimary();
  const ContextRef old = primary.context();
  EndPrimary();
  {
    const Undisturbed undisturbed;
    const CalleeScope none(nullptr);
    BOOST_TEST(!none.ok());
    BOOST_TEST((cuguest::ToStatus(none).code() == absl::StatusCode::kFailedPrecondition));
    const CalleeScope over(old);
    BOOST_TEST(over.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  BOOST_TEST(primary.Release().ok());
}

BOOST_AUTO_TEST_SUITE_END()
