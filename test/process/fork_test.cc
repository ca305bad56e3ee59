// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fork() and CUDA: a child of a process that has called cuInit cannot use CUDA, and the
// driver says only CUDA_ERROR_NOT_INITIALIZED. cuguest must name the fork.

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/c.h"
#include "cuguest/capture.h"
#include "cuguest/compatibility.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident_listener.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/memory.h"
#include "cuguest/objects/peer_access.h"
#include "cuguest/objects/stream.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/sharing.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/process/plugin.h"
#include "test/support/advised.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::Driver;
using cuguest::IncidentListener;
using cuguest::PrimaryContext;
using cuguest::ProblemOf;
using cuguest::SharedContext;
using cuguest_test::Fork;
using cuguest_test::MakeContext;

constexpr unsigned kSecondsToHang = 20;  // alarm() ends who takes longer

void ForkByFork(const std::function<void()>& in_child) { Fork(in_child); }

// As Fork(); the C library calls no handler in the child.
void ForkBySystemCall(const std::function<void()>& in_child) {
  const auto make = [] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); };
  Fork(in_child, +make);
}

// As Fork(), in a handler of the host's, which was registered before cuguest was used.
const std::function<void()>* g_in_handler = nullptr;
void RegisterHandlerOfHost() {
  const auto handle = [] {
    if (g_in_handler != nullptr) (*g_in_handler)();
  };
  CHECK(pthread_atfork(nullptr, nullptr, +handle) == 0);
}
void ForkWithHandlerOfHost(const std::function<void()>& in_child) {
  g_in_handler = &in_child;
  Fork([] {});
  g_in_handler = nullptr;
}

struct WayToFork {
  const char* name;
  void (*fork)(const std::function<void()>& in_child);
};
// The kernel is older than MADV_WIPEONFORK.
std::atomic<bool> g_wipes_nothing{false};
std::atomic<int> g_refused_advice{0};

// Without pages that are wiped in a child, there is nothing to notice the other two by. A sanitizer
// has locks of its own, which only fork() frees in a child.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
std::vector<WayToFork> WaysToFork() {
  constexpr int kNoAdvice = -1;
  constexpr int kWipeOnFork = 18;  // MADV_WIPEONFORK
  const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const page =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  const bool wipes = !g_wipes_nothing && syscall(SYS_madvise, page, size, kNoAdvice) != 0 &&
                     syscall(SYS_madvise, page, size, kWipeOnFork) == 0;
  CHECK(munmap(page, size) == 0);
  if (!wipes) return {{"fork", &ForkByFork}};
  std::vector<WayToFork> ways = {{"fork", &ForkByFork},
                                 {"handler of the host", &ForkWithHandlerOfHost}};
  if (!kIsSanitized) ways.push_back({"system call", &ForkBySystemCall});
  return ways;
}

bool Mentions(const absl::Status& status, const char* words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

void StartedWithExec() { CHECK(Driver::GetInitialized().ok()); }

void EverythingNamesTheForkInAChild() {
  CHECK(Driver::GetInitialized().ok());
  const CUcontext context = MakeContext();
  Fork([context] {
    const absl::Status init = Driver::GetInitialized().status();
    CHECK(ProblemOf(init) == Driver::Problem::kForkedChild);
    CHECK(cuguest::CodeOf(init) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(Mentions(init, "was forked from one that had initialised CUDA"));
    CHECK(Mentions(init, Advised("start it with exec or spawn")));
    CHECK(cuguest_test::RunSelf({"started_with_exec"}).code == 0);
    const absl::Status checked = cuguest::CheckCompatibility(cuguest::QueryVersions());
    CHECK(ProblemOf(checked) == Driver::Problem::kForkedChild);
    CHECK(Mentions(checked, "CUDA cannot work here: "));
    CHECK(ProblemOf(cuguest::CountDevices().status()) == Driver::Problem::kForkedChild);
    CHECK(ProblemOf(ToStatus(PrimaryContext::Retain(Device::Borrow(0)))) ==
          Driver::Problem::kForkedChild);
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
    CHECK(ProblemOf(Driver::GetInitialized().status()) == Driver::Problem::kForkedChild);
    int not_null = 0;
    const ContextGuard guard(reinterpret_cast<CUcontext>(&not_null));
    CHECK(guard.result() == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(Mentions(ToStatus(guard), "was it forked from one that used CUDA?"));
  });
  CHECK(Driver::GetInitialized().ok());
}

// Scopes are open when the process forks: in the child their ends make no driver call, succeed and
// report nothing; the parent notices nothing.
void ScopesHeldAcrossAFork() {
  CHECK(Driver::GetInitialized().ok());
  const CUcontext context = MakeContext();
  const CUcontext next = MakeContext();
  std::optional<ContextGuard> guard;
  std::optional<cuguest::ExactGuard> exact;
  std::optional<cuguest::CaptureModeGuard> mode;
  std::optional<cuguest::NoContextGuard> none;
  std::optional<cuguest::HostScope> host;
  cuguest::ContextScope scope;
  cuguest_guard of_c = CUGUEST_INIT(cuguest_guard);
  guard.emplace(context);
  exact.emplace(next);
  CHECK(scope.Enter(context) == CUDA_SUCCESS);
  CHECK(cuguest_guard_enter(&of_c, next, CUGUEST_ELIDE, CUGUEST_HERE) == CUDA_SUCCESS);
  CHECK(cuguest_push(next) == CUDA_SUCCESS);
  mode.emplace();
  none.emplace();
  host.emplace();
  std::optional<PrimaryContext> primary = PrimaryContext::Retain(Device::Borrow(0));
  for (const bool in_turn : {false, true}) {
    Fork([&] {
      CHECK(guard->MoveTo(next) == CUDA_ERROR_NOT_INITIALIZED);
      CHECK(scope.MoveTo(next) == CUDA_ERROR_NOT_INITIALIZED);
      CHECK(guard->Reassert() == CUDA_ERROR_NOT_INITIALIZED);
      ContextGuard empty;
      CHECK(empty.MoveTo(next) == CUDA_ERROR_NOT_INITIALIZED);
      CHECK(Mentions(ToStatus(empty), "this process was forked from one that used CUDA"));
      CHECK(cuguest_pop() == CUDA_ERROR_ILLEGAL_STATE);
      if (Sim::IsActive()) Sim::ResetCalls();
      if (in_turn) {
        CHECK(host->Leave() == CUDA_SUCCESS);
        CHECK(none->Leave() == CUDA_SUCCESS);
        CHECK(mode->Leave() == CUDA_SUCCESS);
        CHECK(cuguest_guard_leave(&of_c) == CUDA_SUCCESS);
        CHECK(scope.Leave() == CUDA_SUCCESS);
        CHECK(scope.Leave() == CUDA_ERROR_ILLEGAL_STATE);
        CHECK(exact->Leave() == CUDA_SUCCESS);
        CHECK(guard->Leave() == CUDA_SUCCESS);
      } else {
        std::thread([&] { guard.reset(); }).join();
        exact.reset();
        { const cuguest::ContextScope moved(std::move(scope)); }
        cuguest_guard_cleanup(&of_c);
        mode.reset();
        none.reset();
        host.reset();
      }
      if (Sim::IsActive()) CHECK(Sim::TotalCalls() == 0);
      CHECK(cuguest::IncidentCount() == 0);
      CHECK(!primary->Release().ok());
      primary.reset();
    });
  }
  CHECK(host->Leave() == CUDA_SUCCESS);
  CHECK(none->Leave() == CUDA_SUCCESS);
  CHECK(mode->Leave() == CUDA_SUCCESS);
  CHECK(cuguest_pop() == CUDA_SUCCESS);
  CHECK(cuguest_guard_leave(&of_c) == CUDA_SUCCESS);
  CHECK(scope.Leave() == CUDA_SUCCESS);
  CHECK(exact->Leave() == CUDA_SUCCESS);
  CHECK(guard->Leave() == CUDA_SUCCESS);
  CHECK(cuguest::testing::StackProbe::Take().stack().empty());
  CHECK(cuguest::IncidentCount() == 0);
  CHECK(primary->Release().ok());
}

// The end is the first thing that the child does with cuguest, on the thread of the scope or on
// another one.
void AnEndIsTheFirstThingInAChild() {
  RegisterHandlerOfHost();
  CHECK(Driver::GetInitialized().ok());
  const CUcontext context = MakeContext();
  const CUcontext next = MakeContext();
  std::optional<ContextGuard> guard;
  std::optional<cuguest::ExactGuard> exact;
  std::optional<cuguest::CaptureModeGuard> mode;
  std::optional<cuguest::NoContextGuard> none;
  std::optional<cuguest::HostScope> host;
  struct Kind {
    const char* name;
    std::function<void()> enter;
    std::function<CUresult()> leave;
  };
  const Kind kinds[] = {
      {"elided guard", [&] { guard.emplace(context); }, [&] { return guard->Leave(); }},
      {"guard", [&] { guard.emplace(next); }, [&] { return guard->Leave(); }},
      {"exact guard", [&] { exact.emplace(next); }, [&] { return exact->Leave(); }},
      {"capture mode", [&] { mode.emplace(); }, [&] { return mode->Leave(); }},
      {"no context", [&] { none.emplace(); }, [&] { return none->Leave(); }},
      {"host scope", [&] { host.emplace(); }, [&] { return host->Leave(); }},
  };
  const ContextGuard outer(context);
  for (const auto& [way, fork_by] : WaysToFork()) {
    for (const Kind& kind : kinds) {
      for (const bool is_own_thread : {true, false}) {
        std::printf("%s, %s, %s thread\n", way, kind.name, is_own_thread ? "own" : "other");
        kind.enter();
        fork_by([&] {
          if (Sim::IsActive()) Sim::ResetCalls();
          CUresult code = CUDA_ERROR_UNKNOWN;
          if (is_own_thread) {
            code = kind.leave();
          } else {
            std::thread([&] { code = kind.leave(); }).join();
          }
          if (Sim::IsActive()) CHECK(Sim::TotalCalls() == 0);
          CHECK(code == CUDA_SUCCESS);
          CHECK(cuguest::IncidentCount() == 0);
          CHECK(cuguest_pop() == CUDA_ERROR_ILLEGAL_STATE);
        });
        CHECK(kind.leave() == CUDA_SUCCESS);
      }
    }
  }
}

// What a thread that ends leaves open, another one ends: nothing of it is kept.
void EndOnThreadsThatEnd(int threads) {
  const CUcontext context = MakeContext();
  const ContextGuard outer(context);
  for (int i = 0; i < threads; ++i) {
    cuguest::ContextScope scope;
    pid_t thread = 0;
    std::thread([&] {
      thread = gettid();
      CHECK(scope.Enter(context) == CUDA_SUCCESS);
    }).join();
    static_cast<void>(scope.Leave());
    // A thread that was joined may be some steps from its end, for an emulator many.
    while (syscall(SYS_tgkill, getpid(), thread, 0) == 0) std::this_thread::yield();
  }
  CHECK(cuguest::internal::g_ended_elsewhere <= 1);
}

// A scope before CUDA needs no driver: neither the parent's thread nor what others have ended on it
// is anything to the child, which can use CUDA.
void AScopeBeforeCuInitInAParent() {
  RegisterHandlerOfHost();
  CHECK(Driver::Get().ok());
  std::optional<cuguest::HostScope> host;
  host.emplace();
  for (const auto& [way, fork_by] : WaysToFork()) {
    std::printf("%s\n", way);
    fork_by([&] {
      CHECK(Driver::GetInitialized().ok());
      EndOnThreadsThatEnd(/*threads=*/100);
      const CUcontext context = MakeContext();
      std::optional<ContextGuard> guard;
      guard.emplace(context);
      std::thread([&] { CHECK(guard->Leave() == CUDA_ERROR_NOT_READY); }).join();
      { const ContextGuard closes_it(context); }
      CHECK(cuguest::testing::StackProbe::Take().stack().empty());
      CHECK(host->Leave() == CUDA_SUCCESS);
      CHECK(cuguest::internal::g_ended_elsewhere <= 1);
    });
  }
  std::thread([&] { CHECK(host->Leave() == CUDA_ERROR_NOT_READY); }).join();
  CHECK(cuguest::internal::g_ended_elsewhere == 1);
  for (const auto& [way, fork_by] : WaysToFork()) {
    std::printf("%s, with an end elsewhere\n", way);
    fork_by([&] {
      CHECK(Driver::GetInitialized().ok());
      const ContextGuard guard(MakeContext());
      CHECK(guard.ok());
      const ContextGuard nested(MakeContext());
      CHECK(nested.ok());
      CHECK(cuguest::internal::g_ended_elsewhere == 0);
    });
  }
}

// The C library has no memory for another function that it calls in children.
std::atomic<bool> g_watches_no_forks{false};

// Whether this program has its own of some functions of the C library.
std::string WhyNotItsOwn() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "a sanitizer has the C library's functions to itself";
#else
  return "";
#endif
}

// Whether the kernel tells a process that it was forked: the ninth field of /proc/self/stat, which
// is 0 for no process.
std::string WhyNoFlags() {
  std::ifstream file("/proc/self/stat");
  std::string field;
  for (int i = 0; i < 9; ++i) file >> field;
  return field == "0" ? "an emulator has no flags of processes in /proc/self/stat" : WhyNotItsOwn();
}

void AnEndInAChildWithoutWipedPages() {
  g_wipes_nothing = true;
  AnEndIsTheFirstThingInAChild();
  CHECK(g_refused_advice > 0);
}

void AScopeBeforeCuInitWithoutWipedPages() {
  g_wipes_nothing = true;
  AScopeBeforeCuInitInAParent();
  CHECK(g_refused_advice > 0);
}

void AWatchOfForksThatFailedIsTriedAgain() {
  CHECK(Driver::GetInitialized().ok());
  const CUcontext context = MakeContext();
  g_wipes_nothing = true;
  g_watches_no_forks = true;
  CHECK(ContextGuard(context).ok());
  g_watches_no_forks = false;
  std::thread([context] { CHECK(ContextGuard(context).ok()); }).join();
  std::optional<ContextGuard> guard;
  guard.emplace(context);
  Fork([&guard] {
    if (Sim::IsActive()) Sim::ResetCalls();
    guard.reset();
    if (Sim::IsActive()) CHECK(Sim::TotalCalls() == 0);
    CHECK(cuguest::IncidentCount() == 0);
  });
}

// Nothing of CUDA was used before, so that the child may use it; its threads have other numbers.
void AHostScopeBeforeCuInit() {
  CHECK(Driver::Get().ok());
  std::optional<cuguest::HostScope> host;
  host.emplace();
  Fork([&] {
    host.reset();
    CHECK(cuguest::IncidentCount() == 0);
    CHECK(Driver::GetInitialized().ok());
    const CUcontext context = MakeContext();
    std::optional<ContextGuard> guard;
    guard.emplace(context);
    std::thread([&] { guard.reset(); }).join();
    CHECK(cuguest::IncidentCount(cuguest::Incident::Kind::kElsewhere) == 1);
    { const ContextGuard closes_it(context); }
    CHECK(cuguest::testing::StackProbe::Take().stack().empty());
  });
  CHECK(host->Leave() == CUDA_SUCCESS);
  CHECK(cuguest::IncidentCount() == 0);
}

// Before cuInit a fork is harmless: both sides may use CUDA, at the same time.
void MemoryHeldAcrossAFork() {
  CHECK(Driver::GetInitialized().ok());
  const auto home = cuguest::ContextRef::Borrow(MakeContext());
  using Buffer = cuguest::DeviceBuffer<int>;
  std::optional<Buffer> buffer = Buffer::Allocate(home, 4).value();
  Fork([&buffer, &home] {
    for (const absl::Status& status :
         {cuguest::Describe(buffer->get()).status(), buffer->Release(),
          Buffer::Allocate(home, 4).status(), cuguest::Zero(buffer->view()),
          cuguest::PeerAccess::Enable(home, home).status()}) {
      CHECK(cuguest::CodeOf(status) == CUDA_ERROR_NOT_INITIALIZED);
    }
    CHECK(!buffer->empty());
    buffer.reset();
  });
  CHECK(cuguest::Zero(buffer->view()).ok());
  CHECK(buffer->Release().ok());
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

// Nothing of CUDA was used before but the table: what streams tell their users is known in the
// child.
void AStreamThatEndsInAChildBeforeCuInit() {
  CHECK(Driver::Get().ok());
  Fork([] {
    const auto home = cuguest::ContextRef::Borrow(MakeContext());
    std::optional<cuguest::Stream> stream = cuguest::Stream::Create(home).value();
    const absl::StatusOr<cuguest::DeviceBuffer<int>> left =
        cuguest::DeviceBuffer<int>::AllocateAsync(stream->ref(), 4);
    auto buffer = cuguest::DeviceBuffer<int>::AllocateAsync(stream->ref(), 4);
    CHECK(left.ok() && buffer.ok());
    stream.reset();
    CHECK(buffer->Release().ok());
  });
}

// A thread is in a callback when the process forks, which the child does not have.
void AListenerThatIsCalledAcrossAFork() {
  RegisterHandlerOfHost();
  CHECK(Driver::GetInitialized().ok());
  const CUcontext context = MakeContext();
  static std::atomic<bool> s_is_inside{false};
  static std::atomic<bool> s_may_return{false};
  const auto wait = [](const cuguest::Incident&, void*) {
    s_is_inside = true;
    while (!s_may_return) usleep(100);
  };
  std::optional<IncidentListener> listener(std::in_place, +wait, nullptr);
  cuguest_incident_listener of_c = CUGUEST_INIT(cuguest_incident_listener);
  const auto ignore = [](const cuguest_incident*, void*) {};
  CHECK(cuguest_incident_listener_register(&of_c, +ignore, nullptr) == 0);
  std::thread guest([context] { const ContextGuard unasked(nullptr); });
  while (!s_is_inside) usleep(100);
  for (const auto& [way, fork_by] : WaysToFork()) {
    std::printf("%s\n", way);
    fork_by([&] {
      alarm(kSecondsToHang);
      listener.reset();
      CHECK(cuguest_incident_listener_remove(&of_c) == 0);
      { const ContextGuard unasked(context); }
      const IncidentListener another(+wait, nullptr);
    });
  }
  s_may_return = true;
  guest.join();
  CHECK(cuguest_incident_listener_remove(&of_c) == 0);
}

// Two threads are somewhere in cuguest when the process forks, and the child uses all that they do.
void ForksWhileOthersAreInside() {
  CHECK(Driver::GetInitialized().ok());
  constexpr int kForks = 1000;
  const CUcontext context = MakeContext();
  std::atomic<int> heard{0};
  const auto hear = [](const cuguest::Incident&, void* user) {
    ++*static_cast<std::atomic<int>*>(user);
  };
  std::optional<IncidentListener> listener(std::in_place, +hear, &heard);
  std::atomic<bool> stop{false};
  const auto work = [&] {
    static_cast<void>(SharedContext::Attach(context));
    { const ContextGuard unasked(nullptr); }
    const IncidentListener another(+hear, &heard);
    { const ContextGuard guard(context); }
  };
  std::thread first([&] {
    while (!stop) work();
  });
  std::thread second([&] {
    while (!stop) work();
  });
  for (int i = 0; i < kForks; ++i) {
    Fork([&] {
      alarm(kSecondsToHang);
      const int before = heard;
      work();
      listener.reset();
      CHECK(heard - before >= 2);
    });
  }
  stop = true;
  first.join();
  second.join();
  std::printf("%d forks, %d calls of listeners\n", kForks, heard.load());
}

// Libraries attach, which they watch forks for, and are unloaded, while others fork.
void LibrariesThatGoWhileOthersFork() {
  alarm(kSecondsToHang);
  const CUcontext context = MakeContext();
  const SharedContext home = SharedContext::Attach(context);  // so that no library is
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] {
      while (!stop) {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        CHECK(waitpid(child, nullptr, 0) == child);
      }
    });
  }
  // For a time, not a number of times: a thread sanitizer has this take twenty times as long.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) {
    for (const char* const name : {"plugin_a", "plugin_b"}) {
      const cuguest_test::Plugin plugin(name);
      CHECK(plugin.Detach(plugin.Attach(context)));
    }
  }
  CHECK(!cuguest_test::Plugin::IsLoaded("plugin_a"));
  stop = true;
  for (std::thread& other : others) other.join();
}

// A walk over the loaded objects that lasts, with the dynamic linker's lock.
std::atomic<bool> g_lingers{false};
std::atomic<bool> g_walks{false};

using Visitor = int(dl_phdr_info*, std::size_t, void*);
struct Visit {
  Visitor* visitor;
  void* data;
};

[[maybe_unused]] int Linger(dl_phdr_info* object, std::size_t size, void* data) {
  if (g_lingers.exchange(false)) {
    g_walks = true;
    usleep(100 * 1000);
  }
  const auto* const visit = static_cast<const Visit*>(data);
  return visit->visitor(object, size, visit->data);
}

// Attaching looks for the process's registry the first time, among the loaded objects.
void AForkDuringTheFirstAttach() {
  CHECK(Driver::GetInitialized().ok());
  const CUcontext context = MakeContext();
  g_lingers = true;
  std::thread first([context] { CHECK(SharedContext::Attach(context).ok()); });
  while (!g_walks) usleep(100);
  Fork([context] {
    alarm(kSecondsToHang);
    CHECK(!SharedContext::Attach(context).ok());
  });
  first.join();
}

// The walk is a stranger's, and what attaches in the child are copies that have not looked yet.
void AForkDuringAWalkOfAnother() {
  const cuguest_test::Plugin other("plugin_a");
  CHECK(Driver::GetInitialized().ok());
  const CUcontext context = MakeContext();
  g_lingers = true;
  std::thread walks([] { dl_iterate_phdr([](auto...) { return 0; }, nullptr); });
  while (!g_walks) usleep(100);
  Fork([&] {
    alarm(kSecondsToHang);
    CHECK(!SharedContext::Attach(context).ok());
    CHECK(!SharedContext::Attach(cuguest::ContextRef::Borrow(context)).ok());
    CHECK(other.Attach(context) == nullptr);
    CHECK(other.CheckSharing().find("was forked") != std::string::npos);
  });
  walks.join();
  CHECK(other.CheckSharing().empty());
  const SharedContext mine = SharedContext::Attach(context);
  void* const others = other.Attach(context);
  CHECK(mine.use_count() == 2);
  CHECK(other.Detach(others));
}

// A child whose parent has not called cuInit shares as any process does, once it has.
void AChildThatInitializesShares() {
  const cuguest_test::Plugin other("plugin_a");
  Fork([&] {
    CHECK(other.CheckSharing().find("was forked") != std::string::npos);
    CHECK(Mentions(cuguest::CheckSharing(),
                   Advised("ask after this copy's Driver::GetInitialized()")));
    CHECK(Driver::GetInitialized().ok());
    CHECK(cuguest::CheckSharing().ok());
    const CUcontext context = MakeContext();
    const SharedContext mine = SharedContext::Attach(context);
    void* const others = other.Attach(context);
    CHECK(mine.use_count() == 2);
    CHECK(other.CheckSharing().empty());
    CHECK(other.Detach(others));
  });
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

// Instead of the C library's, for every object of this process. A sanitizer has its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" [[gnu::visibility("default")]] int madvise(void* begin, std::size_t size,
                                                      int advice) noexcept {
  if (g_wipes_nothing) {
    ++g_refused_advice;
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(syscall(SYS_madvise, begin, size, advice));
}

extern "C" [[gnu::visibility("default")]] int dl_iterate_phdr(Visitor* visitor, void* data) {
  static auto* const s_walk =
      reinterpret_cast<int (*)(Visitor*, void*)>(dlsym(RTLD_NEXT, "dl_iterate_phdr"));
  Visit visit{visitor, data};
  return s_walk(&Linger, &visit);
}

// What pthread_atfork() of glibc calls, which is in each object.
extern "C" [[gnu::visibility("default")]] int __register_atfork(void (*before)(), void (*parent)(),
                                                                void (*child)(), void* object) {
  static auto* const s_register =
      reinterpret_cast<int (*)(void (*)(), void (*)(), void (*)(), void*)>(
          dlsym(RTLD_NEXT, "__register_atfork"));
  return g_watches_no_forks ? ENOMEM : s_register(before, parent, child, object);
}
#endif

// Skipped where `why` gives a reason.
static cuguest_test::Scenario Unless(std::string (*why)(), const char* name, void (*run)()) {
  cuguest_test::Scenario scenario = {name, run};
  scenario.skip = why;
  return scenario;
}

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"everything_names_the_fork_in_a_child", &EverythingNamesTheForkInAChild},
          {"started_with_exec", &StartedWithExec},
          {"the_first_use_in_a_child", &TheFirstUseInAChild},
          {"scopes_held_across_a_fork", &ScopesHeldAcrossAFork},
          {"an_end_is_the_first_thing_in_a_child", &AnEndIsTheFirstThingInAChild},
          {"a_scope_before_cuinit_in_a_parent", &AScopeBeforeCuInitInAParent},
          Unless(&WhyNotItsOwn, "a_watch_of_forks_that_failed_is_tried_again",
                 &AWatchOfForksThatFailedIsTriedAgain),
          Unless(&WhyNotItsOwn, "an_end_in_a_child_without_wiped_pages",
                 &AnEndInAChildWithoutWipedPages),
          Unless(&WhyNotItsOwn, "a_scope_before_cuinit_without_wiped_pages",
                 &AScopeBeforeCuInitWithoutWipedPages),
          {"a_host_scope_before_cuinit", &AHostScopeBeforeCuInit},
          {"memory_held_across_a_fork", &MemoryHeldAcrossAFork},
          {"a_stream_and_an_event_held_across_a_fork", &AStreamAndAnEventHeldAcrossAFork},
          {"a_stream_that_ends_in_a_child_before_cuinit", &AStreamThatEndsInAChildBeforeCuInit},
          {"a_fork_before_cuinit", &AForkBeforeCuInit},
          {"a_listener_that_is_called_across_a_fork", &AListenerThatIsCalledAcrossAFork},
          Unless(&WhyNotItsOwn, "a_fork_during_the_first_attach", &AForkDuringTheFirstAttach),
          Unless(&WhyNoFlags, "a_fork_during_a_walk_of_another", &AForkDuringAWalkOfAnother),
          Unless(&WhyNoFlags, "a_child_that_initializes_shares", &AChildThatInitializesShares),
          {"libraries_that_go_while_others_fork", &LibrariesThatGoWhileOthersFork},
          {"forks_while_others_are_inside", &ForksWhileOthersAreInside},
      });
}
