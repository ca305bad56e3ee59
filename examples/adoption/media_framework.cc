// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does a media framework gain whose public interface is a push and a pop?
//
// The framework wraps a context F that an application hands it. Its plugins push and pop that
// context by two functions of the framework, without a token, and some pop with the driver's own
// call. When memory is freed, the framework calls a function of the application. The framework is
// written twice, in C: with the driver's push and pop, as GStreamer's CUDA library does it, and on
// cuguest/c.h: see docs/adoption/media_framework.md.

#include <functional>

#include "cuguest/c.h"
#include "examples/support/stage.h"

using cuguest::Driver;
using cuguest::ObjectDriver;
using Destroyed = std::function<void()>;  // the application's, with its data

// With the driver's calls. `cuda->Name` is the driver's cuName.
namespace before {

struct Context {
  const ObjectDriver* cuda;
  CUcontext handle;
};

int Push(Context* context) { return context->cuda->CtxPushCurrent(context->handle); }

int Pop(Context* context) {
  CUcontext popped = nullptr;
  return context->cuda->CtxPopCurrent(&popped);  // whatever it is
}

int Free(Context* context, CUdeviceptr memory, const Destroyed& notify) {
  int code = Push(context);
  if (code == 0) code = context->cuda->MemFree(memory);
  notify();
  Pop(context);  // also if the push failed
  return code;
}

}  // namespace before

// On cuguest.
namespace after {

struct Context {
  const ObjectDriver* cuda;
  cuguest_ref ref;
};

int Wrap(Context* context, CUcontext handle) { return cuguest_ref_borrow(&context->ref, handle); }

int Push(Context* context) {
  const int code = cuguest_ref_check(&context->ref);
  return code == 0 ? cuguest_push(context->ref.context) : code;
}

int Pop() { return cuguest_pop(); }

int Free(Context* context, CUdeviceptr memory, const Destroyed& notify) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  CUGUEST_SCOPE(cuguest_host_scope, host);
  int code = cuguest_guard_enter_ref(&guard, &context->ref, CUGUEST_ELIDE, CUGUEST_HERE);
  if (code == 0) code = context->cuda->MemFree(memory);
  if (cuguest_host_scope_enter(&host, CUGUEST_HERE) == 0) notify();  // in the application's stack
  return code;
}

}  // namespace after

// An application that works in A, and has made F for the framework.
namespace host {

using support::PrintScene;

CUdeviceptr AllocateIn(const ObjectDriver& driver, CUcontext context) {
  CUdeviceptr memory = 0;
  CUcontext popped = nullptr;
  SUCCEEDS(driver.CtxPushCurrent(context));
  SUCCEEDS(driver.MemAlloc(&memory, 4096));
  SUCCEEDS(driver.CtxPopCurrent(&popped));
  return memory;
}

absl::Status Demonstrate(const ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"A", "F"});
  before::Context old = {&driver, stage["F"]};
  after::Context context = {&driver, CUGUEST_REF_INIT};
  CHECK(after::Wrap(&context, stage["F"]) == 0);
  const auto pops = [&driver] {
    CUcontext popped = nullptr;
    SUCCEEDS(driver.CtxPopCurrent(&popped));
  };
  const auto pushes = [&] { SUCCEEDS(driver.CtxPushCurrent(stage["A"])); };

  PrintScene("A plugin pushes, and pops with the driver's own call");
  stage.Set({"A"});
  CHECK(before::Push(&old) == 0);
  pops();
  CHECK(stage.Shows("push, pop: afterwards", "[A]<", "as it was"));
  CHECK(after::Push(&context) == 0);
  pops();
  CHECK(stage.Shows("cuguest: afterwards", "[A]<", "as it was"));

  PrintScene("Between the two, code forgets to pop what it pushed");
  CHECK(before::Push(&old) == 0);
  pushes();
  CHECK(before::Pop(&old) == 0);
  CHECK(stage.Shows("push, pop: afterwards", "[A] [F]<", "WRONG CONTEXT"));
  stage.Set({"A"});
  CHECK(after::Push(&context) == 0);
  pushes();
  CHECK(after::Pop() == 0);
  CHECK(stage.Shows("cuguest: afterwards", "[A]<", "repaired, and reported"));

  PrintScene("Between the two, code pops once too often");
  CHECK(before::Push(&old) == 0);
  pops();
  CHECK(before::Pop(&old) == 0);
  CHECK(stage.Shows("push, pop: afterwards", "(empty)", "NO CONTEXT"));
  stage.Set({"A"});
  CHECK(after::Push(&context) == 0);
  pops();
  CHECK(after::Pop() == 0);
  CHECK(stage.Shows("cuguest: afterwards", "[A]<", "as it was"));

  PrintScene("The application's function is called when memory is freed, and forgets to pop");
  CHECK(before::Free(&old, AllocateIn(driver, stage["F"]), [&] {
          CHECK(stage.Shows("push, pop: when called", "[A] [F]<", "WRONG CONTEXT"));
          pushes();
        }) == 0);
  CHECK(stage.Shows("push, pop: afterwards", "[A] [F]<", "WRONG CONTEXT"));
  stage.Set({"A"});
  CHECK(after::Free(&context, AllocateIn(driver, stage["F"]), [&] {
          CHECK(stage.Shows("cuguest: when called", "[A]<", "as it was"));
          pushes();
        }) == 0);
  CHECK(stage.Shows("cuguest: afterwards", "[A] [A]<", "the application's own push"));

  PrintScene("The application destroys the context, and a plugin pushes it");
  stage.Set({"A"});
  stage.Destroy("F");
  support::PrintRow("push, pop", "(not run)", "pushes a destroyed handle: undefined");
  const support::Undisturbed undisturbed;
  CHECK(after::Push(&context) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(stage.Shows("cuguest: afterwards", "[A]<", "as it was"));
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "What does a media framework gain whose interface is a push and a pop?", &host::Demonstrate);
}
