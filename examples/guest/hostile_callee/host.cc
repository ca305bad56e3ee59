// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does a guard do when something that the library calls changes the context stack?
//
// A host with the stack [X] [A]< (A is current) calls a library, which calls a third party, which
// changes the stack: in six ways, each while the library works in its caller's context A and while
// it works in a context B of its own. The pictures show the stack that the host has afterwards.
//
//   2. The callee's fault: LeakPush
//
//      push, pop, in A               [X] [A] [A]<
//      push, pop, in B               [X] [A] [B]<
//      ...
//      ContextGuard, in B            [X] [A]<        left a push behind, repaired by inference
//
// Two faults are beyond what the default mode can see or repair (context_guard.h).

#include <dlfcn.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/exact_guard.h"
#include "cuguest/incident_listener.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "examples/guest/hostile_callee/callee.h"
#include "examples/support/stage.h"

using cuguest::Driver;

// The library, in five ways. `context` is where it works: its caller's, or one of its own.
namespace guest {

using Callee = std::function<void()>;

// As in the programming guide.
void PushPop(const Driver& driver, CUcontext context, const Callee& callee) {
  driver.CtxPushCurrent(context);
  callee();
  CUcontext popped = nullptr;
  driver.CtxPopCurrent(&popped);
}

// As guards with cudaGetDevice and cudaSetDevice do.
void GetAndSet(const Driver& driver, CUcontext context, const Callee& callee) {
  CUcontext before = nullptr;
  driver.CtxGetCurrent(&before);
  driver.CtxSetCurrent(context);
  callee();
  driver.CtxSetCurrent(before);
}

void Guarded(const Driver&, CUcontext context, const Callee& callee) {
  const cuguest::ContextGuard guard(context);
  if (CHECK(guard.ok())) callee();
}

void GuardedByPush(const Driver&, CUcontext context, const Callee& callee) {
  const cuguest::ContextGuard guard(context, cuguest::GuardMode::kAlwaysPush);
  if (CHECK(guard.ok())) callee();
}

void GuardedExactly(const Driver&, CUcontext context, const Callee& callee) {
  const cuguest::ExactGuard guard(context);
  if (CHECK(guard.ok())) callee();
}

}  // namespace guest

namespace host {

struct Way {
  const char* name;
  void (*work)(const Driver& driver, CUcontext context, const guest::Callee& callee);
};
constexpr Way kWays[] = {{"push, pop", &guest::PushPop},
                         {"get, set", &guest::GetAndSet},
                         {"ContextGuard", &guest::Guarded},
                         {"guard, kAlwaysPush", &guest::GuardedByPush},
                         {"ExactGuard", &guest::GuardedExactly}};

constexpr const char* kUndefined = nullptr;  // sets a destroyed handle: not run

// The stack that each way leaves, bottom first, when it works in A and when it works in B.
struct Fault {
  std::string_view name;
  const char* left[10];
};
constexpr Fault kFaults[] = {
    {"ReplaceTop", {"XA", "XA", "XA", "XA", "XA", "XA", "XA", "XA", "XA", "XA"}},
    {"LeakPush", {"XAA", "XAB", "XAA", "XBA", "XA", "XA", "XA", "XA", "XA", "XA"}},
    {"LeakLibrarysPush", {"XAA", "XAB", "XAA", "XBA", "XAA", "XA", "XAA", "XA", "XA", "XA"}},
    {"PopOnce", {"X", "X", "A", "A", "XA", "XA", "XA", "XA", "XA", "XA"}},
    {"PopTwice", {"", "", "A", "A", "A", "XA", "XA", "XA", "XA", "XA"}},
    {"DestroyContext", {"X", "X", kUndefined, "A", "X", "XA", "X", "XA", "X", "XA"}},
};

std::string Picture(const std::string& names) {
  std::string picture;
  for (const char name : names) picture += std::string(picture.empty() ? "[" : " [") + name + "]";
  return picture.empty() ? "(empty)" : picture + "<";
}

// What the library's guard reported of one call.
std::vector<std::string> reports;
void Report(const cuguest::Incident& incident, void*) noexcept {
  reports.push_back(std::string(Name(incident.kind)) + ", " + Name(incident.repair));
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  void* library = dlopen(support::Beside("hostile_callee_library.so").c_str(), RTLD_NOW);
  if (library == nullptr) return absl::NotFoundError(dlerror());
  CUGUEST_ASSIGN_OR_RETURN(const auto primary, cuguest::PrimaryContext::Retain(device));
  support::Stage stage(driver, device, {"X", "A", "B", "C"});
  const cuguest::IncidentListener listener(&Report);

  for (const Fault& fault : kFaults) {
    auto* const commit = reinterpret_cast<CalleeFault*>(dlsym(library, fault.name.data()));
    support::PrintScene(("The callee's fault: " + std::string(fault.name)).c_str());
    const char* const* left = fault.left;
    for (const Way& way : kWays) {
      for (const char* const name : {"A", "B"}) {
        const char* const expected = *left++;
        if (expected == kUndefined) continue;
        stage.Set({"X", "A"});
        reports.clear();
        const CalleeContexts contexts = {stage["C"], primary.get(), stage[name]};
        way.work(driver, contexts.library, [&] { CHECK(commit(driver, contexts)); });
        CHECK(stage.Shows(std::string(way.name) + ", in " + name, Picture(expected),
                          reports.empty() ? "" : reports[0]));
        CHECK(reports.size() <= 1);
        CHECK(reports.size() == 1 || way.work != &guest::GuardedExactly);
        if (fault.name == "DestroyContext") stage.Create(name);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "What does a guard do when something that the library calls changes the context stack?",
      &host::Demonstrate);
}
