// SPDX-License-Identifier: Apache-2.0
//
// fork() and CUDA: a child of a process that has called cuInit cannot use CUDA, and the
// driver says only CUDA_ERROR_NOT_INITIALIZED. cuguest must name the fork.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

#include "cuguest/compatibility.h"
#include "cuguest/context_guard.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/memory.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/peer_access.h"
#include "cuguest/primary_context.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::Driver;
using cuguest::DriverProblem;
using cuguest::PrimaryContext;
using cuguest::ProblemOf;
using cuguest_test::MakeContext;

// Runs `in_child` in a forked child; both ends must do well.
template <typename InChild>
void Fork(InChild in_child) {
  std::fflush(stdout);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    in_child();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

bool Mentions(const absl::Status& status, const char* words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

void EverythingNamesTheForkInAChild() {
  CHECK(Driver::GetInitialized().ok());
  const CUcontext context = MakeContext();
  Fork([context] {
    const absl::Status init = Driver::GetInitialized().status();
    CHECK(ProblemOf(init) == DriverProblem::kForkedChild);
    CHECK(cuguest::CodeOf(init) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(Mentions(init, "was forked from one that had initialised CUDA"));
    const absl::Status checked = cuguest::CheckCompatibility(cuguest::QueryVersions()).status;
    CHECK(ProblemOf(checked) == DriverProblem::kForkedChild);
    CHECK(Mentions(checked, "CUDA cannot work here: "));
    CHECK(ProblemOf(Device::Count().status()) == DriverProblem::kForkedChild);
    CHECK(ProblemOf(PrimaryContext::Retain(Device::Borrow(0)).status()) ==
          DriverProblem::kForkedChild);
    const ContextGuard guard(context);
    CHECK(guard.result() == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(Mentions(ToStatus(guard), "this process was forked from one that used CUDA"));
    const cuguest::NoContextGuard none;
    CHECK(none.result() == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cuguest::testing::StackProbe::Take().stack().empty());
  });
  const ContextGuard guard(context);
  CHECK(guard.ok());
}

// The host initialised CUDA, and cuguest is used for the first time in the child.
void TheFirstUseInAChild() {
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  Fork([] {
    CHECK(ProblemOf(Driver::GetInitialized().status()) == DriverProblem::kForkedChild);
    int not_null = 0;
    const ContextGuard guard(reinterpret_cast<CUcontext>(&not_null));
    CHECK(guard.result() == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(Mentions(ToStatus(guard), "was it forked from one that used CUDA?"));
  });
  CHECK(Driver::GetInitialized().ok());
}

// The scope of a guard is open when the process forks: the child leaves it with an
// incident and no crash, and the parent notices nothing.
void AGuardHeldAcrossAFork() {
  CHECK(Driver::GetInitialized().ok());
  const CUcontext context = MakeContext();
  std::optional<ContextGuard> guard;
  guard.emplace(context);
  std::optional<PrimaryContext> primary = PrimaryContext::Retain(Device::Borrow(0)).value();
  const CUcontext next = MakeContext();
  Fork([&guard, &primary, next] {
    CHECK(guard->MoveTo(next) == CUDA_ERROR_NOT_INITIALIZED);
    ContextGuard empty;
    CHECK(empty.MoveTo(next) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(Mentions(ToStatus(empty), "this process was forked from one that used CUDA"));
    CHECK(cuguest::IncidentCount() == 0);
    CHECK(guard->Restore() == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cuguest::IncidentCount(cuguest::IncidentKind::kFailed) == 1);
    CHECK(!primary->Release().ok());
    guard.reset();
    primary.reset();
  });
  CHECK(guard->Restore() == CUDA_SUCCESS);
  CHECK(cuguest::IncidentCount() == 0);
  CHECK(primary->Release().ok());
}

// Before cuInit a fork is harmless: both sides may use CUDA, at the same time.
void MemoryHeldAcrossAFork() {
  CHECK(Driver::GetInitialized().ok());
  const auto home = cuguest::ContextRef::Borrow(MakeContext());
  using Buffer = cuguest::DeviceBuffer<int>;
  std::optional<Buffer> buffer = Buffer::Allocate(home, 4).value();
  Fork([&buffer, &home] {
    for (const absl::Status& status :
         {cuguest::Describe(buffer->get()).status(), buffer->Free(),
          Buffer::Allocate(home, 4).status(), cuguest::Zero(buffer->view()),
          cuguest::PeerAccess::Enable(home, home).status()}) {
      CHECK(cuguest::CodeOf(status) == CUDA_ERROR_NOT_INITIALIZED);
    }
    CHECK(!buffer->empty());
    buffer.reset();
  });
  CHECK(cuguest::Zero(buffer->view()).ok());
  CHECK(buffer->Free().ok());
}

void AStreamAndAnEventHeldAcrossAFork() {
  CHECK(Driver::GetInitialized().ok());
  const auto home = cuguest::ContextRef::Borrow(MakeContext());
  std::optional<cuguest::Stream> stream = cuguest::Stream::Create(home).value();
  std::optional<cuguest::Event> event = cuguest::Event::Create(home).value();
  Fork([&stream, &event] {
    for (const absl::Status& status :
         {stream->ref().Synchronize(), stream->Release(), event->Record(stream->ref()),
          event->Synchronize(), event->Release()}) {
      CHECK(cuguest::CodeOf(status) == CUDA_ERROR_NOT_INITIALIZED);
    }
    stream.reset();
    event.reset();
  });
  CHECK(event->Record(stream->ref()).ok());
  CHECK(event->Synchronize().ok());
  CHECK(event->Release().ok());
  CHECK(stream->Release().ok());
}

void AForkBeforeCuInit() {
  CHECK(Driver::Get().ok());
  Fork([] {
    CHECK(Driver::GetInitialized().ok());
    const ContextGuard guard(MakeContext());
    CHECK(guard.ok());
  });
  CHECK(Driver::GetInitialized().ok());
  const ContextGuard guard(MakeContext());
  CHECK(guard.ok());
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"everything_names_the_fork_in_a_child", &EverythingNamesTheForkInAChild},
          {"the_first_use_in_a_child", &TheFirstUseInAChild},
          {"a_guard_held_across_a_fork", &AGuardHeldAcrossAFork},
          {"memory_held_across_a_fork", &MemoryHeldAcrossAFork},
          {"a_stream_and_an_event_held_across_a_fork", &AStreamAndAnEventHeldAcrossAFork},
          {"a_fork_before_cuinit", &AForkBeforeCuInit},
      });
}
