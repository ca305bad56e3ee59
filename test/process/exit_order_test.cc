// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a guard meets at the end of a process. The driver registers its own end when
// cuInit is called, and glibc runs such things latest first:
//
//   1. main returns; thread_local destructors of the main thread
//   2. atexit handlers and destructors of static objects that came after cuInit: the
//      driver still works, guards enter and leave as ever
//   3. the driver's own end
//   4. handlers and static objects from before cuInit, and ELF destructors: the driver
//      answers every call with CUDA_ERROR_DEINITIALIZED. A guard cannot be entered, and
//      one that is still inside leaves in silence, with success and no incident.

#include <cstdio>
#include <cstdlib>
#include <new>

#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/support/scenario.h"

namespace {

using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::Driver;
using cuguest::NoContextGuard;
using cuguest::PrimaryContext;
using cuguest_test::MakeContext;

CUcontext g_context = nullptr;
bool g_in_scenario = false;

// Says what a guard says, and what leaving it gives.
void UseAGuard(const char* when) {
  if (!g_in_scenario) return;
  ContextGuard guard(g_context);
  const CUresult entered = guard.result();
  const CUresult left = guard.Leave();
  std::printf("%s: entered %s, left %s, %llu incidents\n", when, cuguest::ErrorName(entered),
              cuguest::ErrorName(left), cuguest::IncidentCount());
  std::fflush(stdout);
}

struct SaysSo {
  const char* when;
  ~SaysSo() { UseAGuard(when); }
};
SaysSo g_static{"static object from before cuInit"};

__attribute__((destructor)) void ElfDestructor() { UseAGuard("ELF destructor"); }

void GuardsThroughTheEnd() {
  g_in_scenario = true;
  std::atexit([] { UseAGuard("atexit from before cuInit"); });
  g_context = MakeContext();
  std::atexit([] { UseAGuard("atexit from after cuInit"); });
  static const SaysSo late{"static object from after cuInit"};
  thread_local const SaysSo of_thread{"thread_local object"};
  static_cast<void>(of_thread.when);
  UseAGuard("main");
}

// Never destroyed by the language; left by hand from an ELF destructor.
alignas(ContextGuard) unsigned char g_storage[sizeof(ContextGuard)];
alignas(NoContextGuard) unsigned char g_none_storage[sizeof(NoContextGuard)];
alignas(PrimaryContext) unsigned char g_primary_storage[sizeof(PrimaryContext)];
bool g_held = false;

__attribute__((destructor)) void LeaveLate() {
  if (!g_held) return;
  auto* none = reinterpret_cast<NoContextGuard*>(g_none_storage);
  std::printf("left none: %s\n", cuguest::ErrorName(none->Leave()));
  auto* guard = reinterpret_cast<ContextGuard*>(g_storage);
  std::printf("left guard: %s\n", cuguest::ErrorName(guard->Leave()));
  auto* primary = reinterpret_cast<PrimaryContext*>(g_primary_storage);
  std::printf("released: %s\n", primary->Release().ok() ? "ok" : "not ok");
  std::printf("incidents: %llu\n", cuguest::IncidentCount());
  std::fflush(stdout);
}

void HeldBeyondTheEnd() {
  g_context = MakeContext();
  new (g_storage) ContextGuard(g_context);
  new (g_none_storage) NoContextGuard();
  new (g_primary_storage) PrimaryContext(PrimaryContext::Retain(Device::Borrow(0)));
  g_held = true;
}

void LeakedAtTheEnd() {
  PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  CHECK(primary.Leak() != nullptr);
  std::printf("leaked\n");
}

// A process may end while its other threads are inside guards.
void ExitInsideAGuard() {
  g_context = MakeContext();
  const ContextGuard guard(g_context);
  std::printf("exiting\n");
  std::exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"guards_through_the_end",
           &GuardsThroughTheEnd,
           {"main: entered CUDA_SUCCESS, left CUDA_SUCCESS, 0 incidents",
            "thread_local object: entered CUDA_SUCCESS, left CUDA_SUCCESS, 0 incidents",
            "static object from after cuInit: entered CUDA_SUCCESS, left CUDA_SUCCESS, 0 incidents",
            "atexit from after cuInit: entered CUDA_SUCCESS, left CUDA_SUCCESS, 0 incidents",
            "atexit from before cuInit: entered CUDA_ERROR_DEINITIALIZED, left CUDA_SUCCESS, 0 "
            "incidents",
            "static object from before cuInit: entered CUDA_ERROR_DEINITIALIZED, left "
            "CUDA_SUCCESS, 0 incidents",
            "ELF destructor: entered CUDA_ERROR_DEINITIALIZED, left CUDA_SUCCESS, 0 incidents"}},
          {"held_beyond_the_end",
           &HeldBeyondTheEnd,
           {"left none: CUDA_SUCCESS", "left guard: CUDA_SUCCESS", "released: ok", "incidents: 0"}},
          {"leaked_at_the_end", &LeakedAtTheEnd, {"leaked"}},
          {"exit_inside_a_guard", &ExitInsideAGuard, {"exiting"}},
      });
}
