// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library use a context of its own that its caller never sees?
//
// The CUDA programming guide shows it under "Library Context Management": create the context when
// the library is initialized and pop it, so that it is *floating*; push it at the beginning of
// every call and pop it at the end; destroy it when the library is shut down. Here SharedContext
// creates and destroys it, a ContextGuard pushes and pops, and a HostScope runs the host's callback
// with the host's own stack.
//
//      before guest::Mixer::Mix      [X] [A]<
//      inside                        [X] [A] [B]<    the library works
//      in the host's callback        [X] [A]<        the host's own stack
//      inside                        [X] [A] [B]<    the library works
//      after                         [X] [A]<        1000 samples checked

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/shared_context.h"
#include "examples/guest/saxpy.h"
#include "examples/support/stage.h"

// The library. It links no CUDA library.
namespace guest {

// Mixes two signals: gain * (x + y), in a context of its own.
//
// Threads: Mix() from any, also at the same time.
class Mixer {
 public:
  using Trace = std::function<void(CUcontext own)>;  // for the pictures
  using Progress = std::function<void()>;            // the host's; called in the host's context

  static absl::StatusOr<Mixer> Create(cuguest::Device device) {
    Mixer mixer;
    CUGUEST_ASSIGN_OR_RETURN(mixer.context_, cuguest::SharedContext::Create(device));
    return mixer;
  }

  absl::StatusOr<Signal> Mix(float gain, const Signal& x, const Signal& y, const Progress& progress,
                             const Trace& trace = nullptr) const {
    cuguest::ContextGuard guard(context_);  // pushes; its destructor pops
    CUGUEST_RETURN_IF_ERROR(guard);
    if (trace) trace(context_.get());
    CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(context_));
    CUGUEST_ASSIGN_OR_RETURN(const Signal scaled, Saxpy(stream, gain, x, Signal(x.size())));
    {
      const cuguest::HostScope host(guard);
      CUGUEST_RETURN_IF_ERROR(host);
      progress();
    }
    CUGUEST_RETURN_IF_ERROR(guard);  // the scope could not enter the context again
    if (trace) trace(context_.get());
    return Saxpy(stream, gain, y, scaled);
  }

 private:
  cuguest::SharedContext context_;  // floating: its end changes no stack, whatever is current
};

}  // namespace guest

// A program with two contexts of its own, and four threads that all call the library.
namespace host {

using guest::Mixer;
using support::Ramp;
using support::Stage;

void MixAndCheck(const Mixer& mixer, const Mixer::Progress& progress,
                 const Mixer::Trace& trace = nullptr) {
  const support::Undisturbed undisturbed;
  CHECK(support::Has(mixer.Mix(4.0F, Ramp(1), Ramp(2), progress, trace), Ramp(12)));
}

// One thread of the host's, with a stack of its own.
void MixOften(const Stage& stage, const Mixer& mixer, const std::vector<std::string>& names) {
  stage.Set(names);
  const std::string before = stage.Draw();
  for (int i = 0; i < 25; ++i) {
    MixAndCheck(mixer, [&] { CHECK(stage.Draw() == before); });
  }
  CHECK(stage.Shows("a thread, after 25 calls", before));
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  Stage stage(driver, device, {"X", "A"});
  stage.Set({"X", "A"});
  const support::Undisturbed undisturbed;  // also when the library's context is destroyed
  CUGUEST_ASSIGN_OR_RETURN(const Mixer mixer, Mixer::Create(device));

  support::PrintScene("A call with a callback of the host's");
  CHECK(stage.Shows("before guest::Mixer::Mix", "[X] [A]<"));
  const auto progress = [&] {
    CHECK(stage.Shows("in the host's callback", "[X] [A]<", "the host's own stack"));
  };
  MixAndCheck(mixer, progress, [&](CUcontext own) {
    stage.Name("B", own);
    CHECK(stage.Shows("inside", "[X] [A] [B]<", "the library works"));
  });
  CHECK(stage.Shows("after", "[X] [A]<", "1000 samples checked"));

  support::PrintScene("Four threads at the same time, 25 calls each, each with a stack of its own");
  const std::vector<std::vector<std::string>> stacks = {{}, {"X"}, {"A", "X"}, {"A", "A", "A"}};
  std::vector<std::thread> threads;
  for (const auto& names : stacks) {
    threads.emplace_back([&] { MixOften(stage, mixer, names); });
  }
  for (std::thread& thread : threads) thread.join();
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How does a library use a context of its own that its caller never sees?",
      &host::Demonstrate);
}
