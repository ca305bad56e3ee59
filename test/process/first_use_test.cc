// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first use of a library that is loaded at run time, by several threads, inside the dynamic
// linker, in a forked child: nothing waits for a lock of cuguest's. See Note [No lock while a
// library is loaded].

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cudaimage/decompress.h"
#include "cuguest/driver.h"
#include "cuguest/no_context_guard.h"
#include "test/support/files.h"
#include "test/support/scenario.h"

namespace {

namespace cudaimage = cuguest::internal::cudaimage;
using cuguest::Driver;

constexpr char kDriver[] = "libcuda.so.1";
// Longer than any step below takes, shorter than the test's own limit: a deadlock is a SIGALRM.
constexpr unsigned kSeconds = 10;

// What happens when cuguest loads a library, before it is loaded; null for nothing.
std::atomic<void (*)(const char* name)> g_on_load{nullptr};
std::atomic<int> g_loads{0};
// What the plugin's constructor runs.
void (*g_in_constructor)() = nullptr;

void Await(const std::atomic<bool>& flag) {
  while (!flag.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

// In front of the C library's, for this program and cuguest in it.
extern "C" void* dlopen(const char* name, int mode) noexcept {
  using Dlopen = void* (*)(const char*, int);
  const auto next = reinterpret_cast<Dlopen>(dlsym(RTLD_NEXT, "dlopen"));
  if (name != nullptr) {
    if (auto* const on_load = g_on_load.load()) on_load(name);
  }
  return next(name, mode);
}

extern "C" void CalledInConstructor() { g_in_constructor(); }

namespace {

// A first use on a worker stops where it loads `kLibrary`, until the same first use is made in
// the constructor of a plugin that the main thread loads.
const char* g_library = nullptr;
void (*g_use)() = nullptr;
std::thread::id g_worker;
std::atomic<bool> g_worker_is_known{false};
std::atomic<bool> g_worker_loads{false};
std::atomic<bool> g_in_constructor_now{false};

void UseOnBothSides(const char* library, void (*use)()) {
  alarm(kSeconds);
  g_library = library;
  g_use = use;
  g_on_load = [](const char* name) {
    if (std::strcmp(name, g_library) != 0 || !g_worker_is_known ||
        std::this_thread::get_id() != g_worker) {
      return;
    }
    g_worker_loads = true;
    Await(g_in_constructor_now);
  };
  g_in_constructor = [] {
    g_in_constructor_now = true;
    g_use();
  };
  std::thread worker([use] {
    g_worker = std::this_thread::get_id();
    g_worker_is_known = true;
    use();
  });
  Await(g_worker_loads);
  const std::string plugin = cuguest_test::FindBeside("test/calls_host.so");
  CHECK(dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
  worker.join();
  std::printf("both have returned\n");
}

void DriverInAConstructor() {
  UseOnBothSides(kDriver, [] { CHECK(Driver::Get().ok()); });
}

void GuardInAConstructor() {
  UseOnBothSides(kDriver, [] {
    const cuguest::NoContextGuard guard;
    // Nobody has called cuInit; the table is there.
    CHECK(guard.result() == CUDA_SUCCESS || guard.result() == CUDA_ERROR_NOT_INITIALIZED);
  });
}

// Four bytes that neither format accepts: what counts is that the library is loaded.
template <typename Decompress>
void DecompressDamaged(Decompress decompress) {
  static constexpr unsigned char kDamaged[] = {0xff, 0xff, 0xff, 0xff};
  cudaimage::UnpackedBytes unpacked;
  const cudaimage::Status status =
      decompress(cudaimage::Bytes(kDamaged, sizeof(kDamaged)), 16, &unpacked);
  CHECK(status.code() == cudaimage::Status::Code::kDamaged);
}

void Lz4InAConstructor() {
  UseOnBothSides("liblz4.so.1", [] { DecompressDamaged(cudaimage::DecompressLz4); });
}

void ZstdInAConstructor() {
  UseOnBothSides("libzstd.so.1", [] { DecompressDamaged(cudaimage::DecompressZstd); });
}

// As many threads as race are all in their dlopen at once, and all have one table afterwards.
void RacingThreadsHaveOneTable() {
  alarm(kSeconds);
  constexpr int kThreads = 8;
  g_on_load = [](const char* name) {
    if (std::strcmp(name, kDriver) != 0) return;
    ++g_loads;
    while (g_loads < kThreads) std::this_thread::yield();
  };
  std::vector<const Driver*> tables(kThreads);
  std::vector<std::thread> threads;
  for (const Driver*& table : tables) {
    threads.emplace_back([&table] {
      const absl::StatusOr<const Driver*> driver = Driver::Get();
      CHECK(driver.ok());
      table = *driver;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Driver* table : tables) CHECK(table == tables[0] && table == *Driver::Get());
  CHECK((*Driver::Get())->version > 0);
  std::printf("%d loads, one table\n", g_loads.load());
}

// The loader may call out (LD_AUDIT, an interposed dlopen, a library's constructor).
void FirstUseInsideFirstUse() {
  alarm(kSeconds);
  static const Driver* inner = nullptr;
  g_on_load = [](const char* name) {
    if (std::strcmp(name, kDriver) == 0 && g_loads++ == 0) inner = *Driver::Get();
  };
  const Driver* const outer = *Driver::Get();
  CHECK(g_loads == 2 && inner == outer);
}

void ForkInTheMiddleOfAFirstUse() {
  alarm(kSeconds);
  static std::atomic<bool> may_go_on{false};
  static const pid_t parent = getpid();
  g_on_load = [](const char* name) {
    if (std::strcmp(name, kDriver) != 0 || getpid() != parent) return;
    g_worker_loads = true;
    Await(may_go_on);
  };
  std::thread worker([] { CHECK(Driver::GetInitialized().ok()); });
  Await(g_worker_loads);
  cuguest_test::Fork([] {
    alarm(kSeconds);
    // Nobody has initialised CUDA yet, so that it works here.
    CHECK(Driver::GetInitialized().ok());
  });
  may_go_on = true;
  worker.join();
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"driver_in_a_constructor", &DriverInAConstructor, {"both have returned"}},
          {"guard_in_a_constructor", &GuardInAConstructor, {"both have returned"}},
          {"lz4_in_a_constructor", &Lz4InAConstructor, {"both have returned"}},
          {"zstd_in_a_constructor", &ZstdInAConstructor, {"both have returned"}},
          {"racing_threads_have_one_table", &RacingThreadsHaveOneTable, {"8 loads, one table"}},
          {"first_use_inside_first_use", &FirstUseInsideFirstUse},
          {"fork_in_the_middle_of_a_first_use", &ForkInTheMiddleOfAFirstUse},
      });
}
