// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A driver that is not there when cuguest is first asked, and is when it is asked again. Each
// scenario is a process whose library path has no driver. See Note [A driver that comes later] in
// driver_access.cc.

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cuguest/acquire.h"
#include "cuguest/c.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/driver.h"
#include "cuguest/objects/driver.h"
#include "test/support/driver_path.h"
#include "test/support/scenario.h"

namespace {

using cuguest::ContextRef;
using cuguest::Driver;
using cuguest::ObjectDriver;
using cuguest::ProblemOf;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr unsigned kSeconds = 10;
std::atomic<int> g_looks{0};

}  // namespace

// In front of the C library's, for this program and cuguest in it.
extern "C" void* dlopen(const char* name, int mode) noexcept {
  using Dlopen = void* (*)(const char*, int);
  static const auto next = reinterpret_cast<Dlopen>(dlsym(RTLD_NEXT, "dlopen"));
  if (name != nullptr && std::strcmp(name, "libcuda.so.1") == 0) ++g_looks;
  return next(name, mode);
}

namespace {

// The questions that give codes, and those that give statuses.
bool CodeSaysThereIsOne() {
  const CUresult code = ContextRef::Current().result();
  CHECK(code == CUDA_ERROR_SHARED_OBJECT_INIT_FAILED || code == CUDA_ERROR_INVALID_CONTEXT ||
        code == CUDA_ERROR_NOT_INITIALIZED);
  return code != CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

bool StatusSaysThereIsOne() {
  const absl::Status status = Driver::Get().status();
  CHECK(status.ok() || ProblemOf(status) == Driver::Problem::kNoLibrary);
  return status.ok();
}

void EverybodyHasOne() {
  CHECK(CodeSaysThereIsOne());
  CHECK(StatusSaysThereIsOne());
  CHECK(ObjectDriver::GetInitialized().ok());
  const CUcontext context = cuguest_test::MakeContext();
  {
    const cuguest::ContextGuard guard(context);
    CHECK(guard.ok());
  }
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  CHECK(cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0);
}

const char* DriverFile() { return std::getenv("LATER_DRIVER"); }

void* LoadByItsPath() {
  void* const library = dlopen(DriverFile(), RTLD_NOW | RTLD_LOCAL);
  CHECK(library != nullptr);
  return library;
}

void ThereIsNone() {
  CHECK(!CodeSaysThereIsOne());
  CHECK(!StatusSaysThereIsOne());
  CHECK(ProblemOf(ObjectDriver::Get().status()) == Driver::Problem::kNoLibrary);
  CHECK(!Driver::IsInitialized());
}

// Whatever was asked before, and how often, the next question finds it.
template <bool (*ask)(), int kTimes>
void LoadedByItsPath() {
  for (int i = 0; i < kTimes; ++i) CHECK(!CodeSaysThereIsOne());
  LoadByItsPath();
  CHECK(ask());
  EverybodyHasOne();
}

bool AGuardSaysThereIsOne() {
  static int not_a_context = 0;
  const cuguest::ContextGuard guard(reinterpret_cast<CUcontext>(&not_a_context));
  return guard.result() == CUDA_ERROR_NOT_INITIALIZED;
}

bool AnAcquireSaysThereIsOne() {
  return cuguest::AcquireOn(cuguest::Device::Borrow(0), cuguest::IfInactive::kCreate).ok();
}

bool ObjectsSayThereIsOne() { return ObjectDriver::Get().ok(); }

void LoadedAfterAStatus() {
  ThereIsNone();
  LoadByItsPath();
  EverybodyHasOne();
}

// A status looks at once, a code an eighth of a second later at the latest.
template <bool (*ask)()>
void AFileThatAppears() {
  const std::string folder = cuguest_test::LibraryFolders()[0];
  for (int i = 0; i < 5; ++i) CHECK(!CodeSaysThereIsOne());
  CHECK(!StatusSaysThereIsOne());
  CHECK(symlink(DriverFile(), cuguest_test::DriverIn(folder).c_str()) == 0);
  const auto begin = steady_clock::now();
  const bool at_once = ask == &StatusSaysThereIsOne;
  while (!ask()) CHECK(!at_once && steady_clock::now() < begin + milliseconds(1000));
  CHECK(unlink(cuguest_test::DriverIn(folder).c_str()) == 0);
  EverybodyHasOne();
}

// A program that asks without end on a machine without a driver does not search folders each time.
void CodesLookNowAndThen() {
  constexpr int kQuestions = 100000;
  const auto begin = steady_clock::now();
  for (int i = 0; i < kQuestions; ++i) CHECK(!CodeSaysThereIsOne());
  const auto eighths = (steady_clock::now() - begin) / milliseconds(125);
  CHECK(g_looks >= 2 && g_looks <= 4 + eighths);
  const int looks = g_looks;
  CHECK(!StatusSaysThereIsOne());
  CHECK(g_looks == looks + 1);
}

void* LookUp(const char* name, int version, void* library) {
  using Get = CUresult (*)(const char*, void**, int, cuuint64_t);
  const auto get = reinterpret_cast<Get>(dlsym(library, "cuGetProcAddress"));
  void* function = nullptr;
  return get(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM) == CUDA_SUCCESS ? function
                                                                                          : nullptr;
}

void* PrivateDriver() {
  return dlmopen(LM_ID_NEWLM, DriverFile(), RTLD_NOW);  // cuguest cannot find it
}

[[maybe_unused]] void AdoptedAfterwards() {
  ThereIsNone();
  void* const library = PrivateDriver();
  CHECK(library != nullptr);
  CHECK(!CodeSaysThereIsOne() && !StatusSaysThereIsOne());
  CHECK(cuguest_driver_adopt(&LookUp, library) == 0);
  CHECK(CodeSaysThereIsOne() && StatusSaysThereIsOne());
  CHECK(cuguest_driver_adopt(&LookUp, library) == CUDA_ERROR_ILLEGAL_STATE);
}

// What was found is kept, so that another is refused.
void AdoptedTooLate() {
  ThereIsNone();
  void* const library = LoadByItsPath();
  CHECK(CodeSaysThereIsOne());
  CHECK(cuguest_driver_adopt(&LookUp, library) == CUDA_ERROR_ILLEGAL_STATE);
}

// Threads that ask while another loads it find it afterwards, and all have one table.
void ThreadsThatAsk() {
  alarm(kSeconds);
  constexpr int kThreads = 8;
  std::atomic<bool> is_loaded{false};
  std::atomic<int> asking{0};
  std::vector<const Driver*> tables(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ++asking;
      for (;;) {
        const bool must = is_loaded;
        const bool finds = i % 2 == 0 ? CodeSaysThereIsOne() : StatusSaysThereIsOne();
        CHECK(finds || !must);
        if (must) break;
      }
      tables[static_cast<std::size_t>(i)] = *Driver::Get();
    });
  }
  while (asking < kThreads) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds(20));
  LoadByItsPath();
  is_loaded = true;
  for (std::thread& thread : threads) thread.join();
  for (const Driver* table : tables) CHECK(table == tables[0]);
}

void AChildFindsItsOwn() {
  for (int i = 0; i < 5; ++i) CHECK(!CodeSaysThereIsOne());
  cuguest_test::Fork([] {
    CHECK(!CodeSaysThereIsOne() && !CodeSaysThereIsOne());
    LoadByItsPath();
    EverybodyHasOne();
  });
  CHECK(!CodeSaysThereIsOne());
  LoadByItsPath();
  EverybodyHasOne();
}

// The child has a lock of the loader's without the thread that holds it.
[[maybe_unused]] void AChildForkedWhileTheLoaderIsLocked() {
  alarm(kSeconds);
  static std::atomic<bool> holds{false};
  static std::atomic<bool> may_go_on{false};
  for (int i = 0; i < 5; ++i) CHECK(!CodeSaysThereIsOne());
  std::thread holder([] {
    const auto stay = [](dl_phdr_info*, std::size_t, void*) {
      holds = true;
      while (!may_go_on) std::this_thread::sleep_for(milliseconds(1));
      return 1;
    };
    dl_iterate_phdr(stay, nullptr);
  });
  while (!holds) std::this_thread::yield();
  cuguest_test::Fork([] {
    alarm(kSeconds);
    for (int i = 0; i < 5; ++i) CHECK(!CodeSaysThereIsOne());
  });
  may_go_on = true;
  holder.join();
}

}  // namespace

int main(int argc, char** argv) {
  static std::string s_folder = "/tmp/cuguest-later-XXXXXX";
  const bool is_child = argc == 2 && argv[1][0] != '-';
  if (!is_child && mkdtemp(s_folder.data()) == nullptr) return 1;
  const std::string driver = cuguest_test::DriverOnLibraryPath();
  const std::string path = cuguest_test::LibraryPathWithoutDriver(s_folder);
  std::vector<cuguest_test::Scenario> scenarios = {
    {"there_is_none", &ThereIsNone},
    {"loaded_after_one_code", &LoadedByItsPath<&CodeSaysThereIsOne, 1>},
    {"loaded_after_two_codes", &LoadedByItsPath<&CodeSaysThereIsOne, 2>},
    {"loaded_after_many_codes", &LoadedByItsPath<&CodeSaysThereIsOne, 100>},
    {"found_by_a_guard", &LoadedByItsPath<&AGuardSaysThereIsOne, 100>},
    {"found_by_an_acquire", &LoadedByItsPath<&AnAcquireSaysThereIsOne, 100>},
    {"found_by_objects", &LoadedByItsPath<&ObjectsSayThereIsOne, 100>},
    {"loaded_after_a_status", &LoadedAfterAStatus},
    {"a_file_that_appears_for_codes", &AFileThatAppears<&CodeSaysThereIsOne>},
    {"a_file_that_appears_for_statuses", &AFileThatAppears<&StatusSaysThereIsOne>},
    {"codes_look_now_and_then", &CodesLookNowAndThen},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which load no second time
    {"adopted_afterwards", &AdoptedAfterwards},
#endif
    {"adopted_too_late", &AdoptedTooLate},
    {"threads_that_ask", &ThreadsThatAsk},
    {"a_child_finds_its_own", &AChildFindsItsOwn},
#if !defined(__SANITIZE_THREAD__)  // whose fork takes the lock of the loader
    {"a_child_forked_while_the_loader_is_locked", &AChildForkedWhileTheLoaderIsLocked},
#endif
  };
  for (cuguest_test::Scenario& scenario : scenarios) {
    scenario.environment = {path, "LATER_DRIVER=" + driver};
    scenario.skip = []() -> std::string {
      if (cuguest_test::DriverOnLibraryPath().empty())
        return "the driver is not on the library path";
      const std::vector<std::string> environment = {
          cuguest_test::LibraryPathWithoutDriver(s_folder)};
      return cuguest_test::RunSelf({"there_is_none"}, environment).code != 0
                 ? "a driver is installed here"
                 : "";
    };
  }
  const int code = cuguest_test::RunScenarios(argc, argv, scenarios);
  if (!is_child) {
    unlink(cuguest_test::DriverIn(s_folder).c_str());
    rmdir(s_folder.c_str());
  }
  return code;
}
