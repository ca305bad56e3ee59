// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries that each embed their own static copy of cuguest, in one process: they do
// not see each other's statics, nest in each other, and can be unloaded and loaded
// again, since a copy leaves nothing behind (no thread, no handler, no static
// destructor that calls the driver).

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/driver.h"
#include "cuguest/testing/stack_probe.h"
#include "test/support/files.h"
#include "test/support/scenario.h"

namespace {

using cuguest::Driver;
using cuguest::testing::StackProbe;
using cuguest_test::MakeContext;

const Driver& TheDriver() { return **Driver::GetInitialized(); }

class Guest {
 public:
  explicit Guest(const std::string& name) {
    const std::string path = cuguest_test::FindBeside("test/" + name + ".so");
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) std::printf("%s\n", dlerror());
    CHECK(library_ != nullptr);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest() { CHECK(dlclose(library_) == 0); }

  CUresult Call(CUcontext context, void (*callee)(void*), void* argument) const {
    return reinterpret_cast<CUresult (*)(CUcontext, void (*)(void*), void*)>(Symbol("GuestCall"))(
        context, callee, argument);
  }
  CUresult Enter(void* storage, CUcontext context) const {
    return reinterpret_cast<CUresult (*)(void*, CUcontext)>(Symbol("GuestEnter"))(storage, context);
  }
  CUresult Move(void* guard, CUcontext context) const {
    return reinterpret_cast<CUresult (*)(void*, CUcontext)>(Symbol("GuestMove"))(guard, context);
  }
  CUresult Reassert(void* guard) const {
    return reinterpret_cast<CUresult (*)(void*)>(Symbol("GuestReassert"))(guard);
  }
  CUresult EnterScope(void* storage, CUcontext context) const {
    return reinterpret_cast<CUresult (*)(void*, CUcontext)>(Symbol("GuestEnterScope"))(storage,
                                                                                       context);
  }
  void MoveScope(void* from, void* to) const {
    reinterpret_cast<void (*)(void*, void*)>(Symbol("GuestMoveScope"))(from, to);
  }
  CUresult LeaveScope(void* scope) const {
    return reinterpret_cast<CUresult (*)(void*)>(Symbol("GuestLeaveScope"))(scope);
  }
  void DropScope(void* scope) const {
    reinterpret_cast<void (*)(void*)>(Symbol("GuestDropScope"))(scope);
  }
  void Leave(void* guard) const { reinterpret_cast<void (*)(void*)>(Symbol("GuestLeave"))(guard); }
  unsigned long long Incidents() const {
    return reinterpret_cast<unsigned long long (*)()>(Symbol("GuestIncidents"))();
  }
  const void* Table() const { return reinterpret_cast<const void* (*)()>(Symbol("GuestTable"))(); }

 private:
  void* Symbol(const char* name) const {
    void* symbol = dlsym(library_, name);
    CHECK(symbol != nullptr);
    return symbol;
  }
  void* library_;
};

// Room for a ContextScope.
struct alignas(16) Scope {
  unsigned char bytes[sizeof(cuguest::ContextScope)];
};

void LeakAPush(void* context) { TheDriver().CtxPushCurrent(static_cast<CUcontext>(context)); }

void EachCopyHasItsOwnStatics() {
  const Guest a("guest_a");
  const Guest b("guest_b");
  const CUcontext ours = MakeContext();
  const CUcontext other = MakeContext();
  CHECK(a.Table() != nullptr && b.Table() != nullptr);
  CHECK(a.Table() != b.Table());
  CHECK(a.Table() != *Driver::Get());
  const StackProbe before = StackProbe::Take();
  CHECK(a.Call(ours, &LeakAPush, other) == CUDA_SUCCESS);
  CHECK(before.Difference(StackProbe::Take()).empty());
  CHECK(a.Incidents() == 1);
  CHECK(b.Incidents() == 0);
  CHECK(cuguest::IncidentCount() == 0);
}

struct Nested {
  const Guest* inner;
  CUcontext context;
  CUcontext leaked;
  CUresult result;
};

void CallInner(void* data) {
  auto* nested = static_cast<Nested*>(data);
  nested->result = nested->inner->Call(nested->context, &LeakAPush, nested->leaked);
}

// b repairs what its callee did, and a, around it, finds nothing wrong.
void CopiesNest() {
  const Guest a("guest_a");
  const Guest b("guest_b");
  const CUcontext outer = MakeContext();
  Nested nested{&b, MakeContext(), MakeContext(), CUDA_ERROR_UNKNOWN};
  const StackProbe before = StackProbe::Take();
  CHECK(a.Call(outer, &CallInner, &nested) == CUDA_SUCCESS);
  CHECK(nested.result == CUDA_SUCCESS);
  CHECK(a.Incidents() == 0);
  CHECK(b.Incidents() == 1);
  CHECK(before.Difference(StackProbe::Take()).empty());
}

// A guard goes back to the copy that entered it, which knows its thread and its place; also if
// others are in between, and if it has to be repaired.
// What the scopes of two copies leave, which end in `order`; `copies` has one bit for each scope.
struct Left {
  bool is_current;  // the caller's context
  bool is_the_callers;
  unsigned long long incidents;
};
Left EndInOrder(const Guest* const (&guests)[2], const std::vector<CUcontext>& contexts,
                unsigned copies, const std::vector<int>& order, CUcontext caller) {
  const unsigned long long before = guests[0]->Incidents() + guests[1]->Incidents();
  TheDriver().CtxPushCurrent(caller);
  std::vector<Scope> scopes(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK(guests[copies >> i & 1]->EnterScope(&scopes[i], contexts[i]) == CUDA_SUCCESS);
  }
  for (const int i : order) {
    const auto index = static_cast<std::size_t>(i);
    static_cast<void>(guests[copies >> i & 1]->LeaveScope(&scopes[index]));
  }
  CUcontext current = nullptr;
  CHECK(TheDriver().CtxGetCurrent(&current) == CUDA_SUCCESS);
  const bool is_alone = StackProbe::Take().stack().size() == 1;
  for (CUcontext popped = current; popped != nullptr;) {
    TheDriver().CtxPopCurrent(&popped);
    TheDriver().CtxGetCurrent(&popped);
  }
  for (std::size_t i = 0; i < order.size(); ++i) guests[copies >> i & 1]->DropScope(&scopes[i]);
  return {current == caller, current == caller && is_alone,
          guests[0]->Incidents() + guests[1]->Incidents() - before};
}

// Scopes of two copies, up to four, in every order of ending. What each copy's own order, and the
// nesting of the copies, lets be restored is restored. Where the scopes of one copy end out of turn
// with those of the other, that one sees a callee's fault: it may leave another context current,
// but never in silence; and not if the outermost scope ends last.
void ScopesOfTwoCopiesEndInAnyOrder() {
  const Guest a("guest_a");
  const Guest b("guest_b");
  const Guest* const guests[] = {&a, &b};
  const CUcontext caller = MakeContext();
  const CUcontext x = MakeContext();
  const CUcontext y = MakeContext();
  int walked = 0;
  int wrong = 0;
  for (const std::vector<CUcontext>& contexts :
       {std::vector<CUcontext>{x, y, x, y}, {x, x, y, y}, {caller, x, x, y}}) {
    for (std::size_t count = 1; count <= 4; ++count) {
      for (unsigned copies = 0; copies < 1U << count; ++copies) {
        std::vector<int> order(count);
        for (std::size_t i = 0; i < count; ++i) order[i] = static_cast<int>(i);
        do {
          const Left left = EndInOrder(guests, contexts, copies, order, caller);
          const bool is_nested = std::is_sorted(order.rbegin(), order.rend());
          const bool is_of_one_copy = copies == 0 || copies == (1U << count) - 1;
          ++walked;
          if (!left.is_the_callers) ++wrong;
          CHECK(left.is_the_callers || left.incidents > 0);
          CHECK(left.is_current || order.back() != 0);
          if (is_nested || is_of_one_copy) CHECK(left.is_the_callers && left.incidents == 0);
        } while (std::next_permutation(order.begin(), order.end()));
      }
    }
  }
  std::printf("%d orders of the scopes of two copies, %d of which leave another stack\n", walked,
              wrong);
  CHECK(walked == 3 * (2 + 4 * 2 + 8 * 6 + 16 * 24));
}

void OneCopyEndsTheGuardOfAnother() {
  const Guest a("guest_a");
  const Guest b("guest_b");
  const CUcontext host = MakeContext();
  const CUcontext ours = MakeContext();
  CHECK(TheDriver().CtxPushCurrent(host) == CUDA_SUCCESS);
  const StackProbe before = StackProbe::Take();
  alignas(cuguest::ContextGuard) char first[sizeof(cuguest::ContextGuard)];
  alignas(cuguest::ContextGuard) char second[sizeof(cuguest::ContextGuard)];
  for (const CUcontext context : {ours, host}) {
    CHECK(a.Enter(first, context) == CUDA_SUCCESS);
    CHECK(b.Enter(second, ours) == CUDA_SUCCESS);
    a.Leave(second);
    b.Leave(first);
    CHECK(before.Difference(StackProbe::Take()).empty());
  }
  CHECK(a.Incidents() == 0);
  CHECK(b.Incidents() == 0);
  CHECK(a.Enter(first, ours) == CUDA_SUCCESS);
  LeakAPush(host);
  b.Leave(first);
  CHECK(before.Difference(StackProbe::Take()).empty());
  CHECK(a.Incidents() == 1);
  CHECK(b.Incidents() == 0);
  // Elsewhere it is elsewhere for each copy.
  CHECK(a.Enter(first, ours) == CUDA_SUCCESS);
  std::thread([&] {
    const StackProbe there = StackProbe::Take();
    b.Leave(first);
    CHECK(there.Difference(StackProbe::Take()).empty());
  }).join();
  CHECK(a.Incidents() == 2);
  CHECK(!before.Difference(StackProbe::Take()).empty());
  // Its own thread closes it in the copy that entered it.
  CHECK(b.Enter(second, host) == CUDA_SUCCESS);
  b.Leave(second);
  CHECK(!before.Difference(StackProbe::Take()).empty());
  CHECK(a.Enter(second, host) == CUDA_SUCCESS);
  a.Leave(second);
  CHECK(before.Difference(StackProbe::Take()).empty());
  CHECK(a.Incidents() == 2 && b.Incidents() == 0);
  CHECK(TheDriver().CtxPopCurrent(nullptr) == CUDA_SUCCESS);
}

// And what another copy moves: here also in a copy that gave the thread's number to another one.
void OneCopyMovesTheGuardOfAnother() {
  const Guest a("guest_a");
  const Guest b("guest_b");
  const CUcontext host = MakeContext();
  const CUcontext ours = MakeContext();
  const CUcontext other = MakeContext();
  alignas(cuguest::ContextGuard) char first[sizeof(cuguest::ContextGuard)];
  alignas(cuguest::ContextScope) char scope[2][sizeof(cuguest::ContextScope)];
  alignas(cuguest::ContextScope) char inner[sizeof(cuguest::ContextScope)];
  const auto enters_and_leaves = [&](const Guest& guest) {
    CHECK(guest.Enter(first, ours) == CUDA_SUCCESS);
    guest.Leave(first);
  };
  enters_and_leaves(a);
  std::thread([&] { enters_and_leaves(b); }).join();
  CHECK(TheDriver().CtxPushCurrent(host) == CUDA_SUCCESS);
  const StackProbe before = StackProbe::Take();
  CHECK(a.Enter(first, ours) == CUDA_SUCCESS);
  CHECK(b.Move(first, other) == CUDA_SUCCESS);
  LeakAPush(host);
  CHECK(b.Reassert(first) == CUDA_SUCCESS);
  CHECK(a.Incidents() == 1 && b.Incidents() == 0);
  CHECK(a.EnterScope(inner, ours) == CUDA_SUCCESS);
  CHECK(b.Move(first, ours) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(a.LeaveScope(inner) == CUDA_SUCCESS);
  a.DropScope(inner);
  b.Leave(first);
  CHECK(before.Difference(StackProbe::Take()).empty());
  CHECK(a.EnterScope(scope[0], ours) == CUDA_SUCCESS);
  CHECK(a.EnterScope(inner, other) == CUDA_SUCCESS);
  b.MoveScope(scope[0], scope[1]);
  b.DropScope(scope[1]);  // before the inner one
  CHECK(a.Incidents() == 2 && b.Incidents() == 0);
  CHECK(!before.Difference(StackProbe::Take()).empty());
  CHECK(b.LeaveScope(inner) == CUDA_SUCCESS);
  CHECK(before.Difference(StackProbe::Take()).empty());
  CHECK(a.LeaveScope(inner) == CUDA_ERROR_ILLEGAL_STATE);
  a.DropScope(inner);
  CHECK(a.EnterScope(scope[0], ours) == CUDA_SUCCESS);
  CHECK(a.EnterScope(inner, other) == CUDA_SUCCESS);
  CHECK(b.LeaveScope(scope[0]) == CUDA_ERROR_NOT_READY);
  b.DropScope(scope[0]);
  a.DropScope(inner);
  CHECK(before.Difference(StackProbe::Take()).empty());
  CHECK(a.Incidents() == 2 && b.Incidents() == 0);
  CHECK(TheDriver().CtxPopCurrent(nullptr) == CUDA_SUCCESS);
}

void Nothing(void*) {}

void ACopyIsUnloadedAndLoadedAgain() {
  const CUcontext context = MakeContext();
  const CUcontext other = MakeContext();
  for (int round = 0; round < 5; ++round) {
    const Guest a("guest_a");
    CHECK(a.Incidents() == 0);
    CHECK(a.Call(context, &LeakAPush, other) == CUDA_SUCCESS);
    CHECK(a.Incidents() == 1);
    std::thread([&a, context] {
      CHECK(a.Call(context, &Nothing, nullptr) == CUDA_SUCCESS);
    }).join();
  }
  // What it had asked to be told of forks has gone with it.
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void CopiesAreInitialisedByManyThreadsAtOnce() {
  const Guest a("guest_a");
  const Guest b("guest_b");
  const CUcontext context = MakeContext();
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      const Guest& guest = i % 2 == 0 ? a : b;
      for (int round = 0; round < 100; ++round) {
        CHECK(guest.Call(context, &Nothing, nullptr) == CUDA_SUCCESS);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(a.Incidents() == 0 && b.Incidents() == 0);
}

// The program ends while the copy is loaded, and while it is not.
void TheProgramEndsWithACopyLoaded() {
  static const Guest s_guest("guest_a");
  CHECK(s_guest.Call(MakeContext(), &Nothing, nullptr) == CUDA_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"each_copy_has_its_own_statics", &EachCopyHasItsOwnStatics},
          {"copies_nest", &CopiesNest},
          {"scopes_of_two_copies_end_in_any_order", &ScopesOfTwoCopiesEndInAnyOrder},
          {"one_copy_ends_the_guard_of_another", &OneCopyEndsTheGuardOfAnother},
          {"one_copy_moves_the_guard_of_another", &OneCopyMovesTheGuardOfAnother},
          {"a_copy_is_unloaded_and_loaded_again", &ACopyIsUnloadedAndLoadedAgain},
          {"copies_are_initialised_by_many_threads_at_once",
           &CopiesAreInitialisedByManyThreadsAtOnce},
          {"the_program_ends_with_a_copy_loaded", &TheProgramEndsWithACopyLoaded},
      });
}
