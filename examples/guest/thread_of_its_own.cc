// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In which context does a thread of a library's own work, and a task of it on somebody else's?
//
// A thread that was just started has no current context. A ThreadHome in its function binds it to
// the context that a stream, a pointer or a device means, for as long as the function runs, creates
// none, and says when it is gone.
//
//      thread                        inside          afterwards
//      of the library, a stream of A [A]<            (empty)
//      of the library, the device    [P]<            (empty)
//      of a pool that has X          [X] [A]<        [X]<

#include <functional>
#include <thread>

#include "cuguest/acquire.h"
#include "cuguest/primary_keeper.h"
#include "cuguest/status.h"
#include "cuguest/thread_home.h"
#include "examples/guest/saxpy.h"
#include "examples/support/stage.h"

using cuguest::Error;
using cuguest::ThreadHome;

// The library, which works on threads. It links no CUDA library.
namespace guest {

using Task = std::function<void()>;

// A progress thread: it serves a stream that was handed over, and keeps nothing alive.
void Serve(CUstream stream, const std::vector<Task>& tasks) {
  ThreadHome home(stream);
  for (const Task& task : tasks) {
    if (!home.Check().ok()) return;  // the context is gone
    task();
  }
}

// A worker of a pool of the library's own: in the primary context of a device, which it keeps
// alive, and enters again after a reset.
std::vector<CUresult> Work(cuguest::Device device, const std::vector<Task>& tasks) {
  ThreadHome home(device, ThreadHome::Keep::kReference, ThreadHome::IfOver::kReenter);
  std::vector<CUresult> codes;
  for (const Task& task : tasks) {
    codes.push_back(home.Check().code);
    task();
  }
  return codes;
}

// A task on somebody else's pool, with a copy of what was acquired for all of them.
Error RunTask(const cuguest::Acquired& acquired, const Task& task) {
  const ThreadHome home(acquired);
  if (home.ok()) task();
  return home.error();
}

}  // namespace guest

// A program with a context A, in which it makes a stream and memory, and a pool with a context X.
namespace host {

template <typename Function>
void OnAnotherThread(const Function& function) {
  std::thread(function).join();
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"X", "A", "P"});
  const auto a = cuguest::ContextRef::Borrow(stage["A"]);
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(a));
  CUGUEST_ASSIGN_OR_RETURN(const auto memory,
                           cuguest::DeviceBuffer<float>::CopyOf(a, support::Ramp(1)));
  const auto shows = [&stage](const char* when, const char* stack) {
    return [=, &stage] { CHECK(stage.Shows(when, stack)); };
  };

  support::PrintScene("A progress thread, for a stream of A");
  OnAnotherThread([&] {
    CHECK(stage.Shows("it begins", "(empty)"));
    guest::Serve(stream.get(), {shows("its first task", "[A]<"), [&] { stage.Set({"X"}); },
                                shows("a task after one that left X", "[A]<")});
    CHECK(stage.Shows("it ends", "(empty)"));
  });

  support::PrintScene("A worker for the device, whose primary context P is not active yet");
  OnAnotherThread([&] {
    const auto codes = guest::Work(device, {shows("refused", "(empty)")});
    CHECK(codes.front() == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(!support::IsActive(device));
  });
  CHECK(cuguest::AcquireOn(device, cuguest::IfInactive::kCreateAndKeep).ok());
  OnAnotherThread([&] {
    const auto codes = guest::Work(
        device, {shows("kept by the library", "[P]<"), [&] { support::ResetDevice(device); },
                 [&] {
                   CHECK(stage.Shows("after a reset", "(empty)"));
                   CHECK(cuguest::AcquireOn(device, cuguest::IfInactive::kCreateAndKeep).ok());
                 },
                 shows("in the next incarnation", "[P]<")});
    CHECK(codes[2] == CUDA_ERROR_INVALID_CONTEXT && codes[3] == CUDA_SUCCESS);
    CHECK(stage.Shows("it ends", "(empty)"));
  });
  CHECK(cuguest::ReleaseKeptPrimary(device).ok());
  CHECK(!support::IsActive(device));

  support::PrintScene("A task on a thread of a pool that has X current");
  const cuguest::Acquired acquired = cuguest::AcquireFromPointer(memory.get());
  OnAnotherThread([&] {
    stage.Set({"X"});
    CHECK(guest::RunTask(acquired, shows("the task", "[X] [A]<")).ok());
    CHECK(stage.Shows("after it", "[X]<"));
    stage.Set({});
  });
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("In which context does a thread of a library's own work?",
                             &host::Demonstrate);
}
