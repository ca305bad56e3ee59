// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// program SCENARIO GUEST OTHER_GUEST: a program to be audited. Exits with 0 if all went as it
// expected; scenarios end as they say.

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "audit/channel.h"
#include "subprojects/cudasim/test/support/raw_driver.h"

namespace {

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                            \
    }                                                                      \
  } while (false)

const char* guest_path = nullptr;
const char* other_path = nullptr;

struct Guest {
  explicit Guest(const char* path) : library(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT(library != nullptr);
  }
  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library, name));
  }
  int Push(CUcontext context) const { return Find<int(CUcontext)>("Push")(context) + 0; }
  int PushAndPop(CUcontext context) const {
    return Find<int(CUcontext)>("PushAndPop")(context) + 0;
  }
  void* library;
};

CUcontext MakeContext(int device) {
  EXPECT(RAW(cuInit)(0) == CUDA_SUCCESS);
  CUcontext context = nullptr;
  CUctxCreateParams* none = nullptr;
  EXPECT(RAW_AS(decltype(&cuCtxCreate), "cuCtxCreate_v4")(&context, none, 0, device) ==
         CUDA_SUCCESS);
  return context;
}

int Pop() {
  CUcontext popped = nullptr;
  return RAW_AS(decltype(&cuCtxPopCurrent), "cuCtxPopCurrent_v2")(&popped) + 0;
}

int Synchronize() { return RAW(cuCtxSynchronize)() + 0; }

// A guest leaks a push; the next call of the program is a common one.
int LeakAndCheck() {
  const Guest guest(guest_path);
  const CUcontext context = MakeContext(0);
  EXPECT(Synchronize() == 0);
  EXPECT(guest.Push(context) == 0);
  EXPECT(Synchronize() == 0);
  EXPECT(Synchronize() == 0);
  EXPECT(Pop() == 0);
  return 0;
}

// Nothing is called afterwards.
int LeaksInTheEnd() {
  const CUcontext context = MakeContext(0);
  const Guest guest(guest_path);
  return guest.Push(context);
}

// By a handler of exit().
int CallsInExit() {
  static CUcontext context = nullptr;
  context = MakeContext(0);
  std::atexit([] { EXPECT(Guest(guest_path).PushAndPop(context) == 0); });
  return 0;
}

// In the library, which has not returned then.
int ExitsInTheGuest() {
  const CUcontext context = MakeContext(0);
  return Guest(guest_path).Find<int(CUcontext)>("PushAndExit")(context);
}

// The runtime's first call in the process creates a primary context.
int RuntimeSetsDevice() {
  EXPECT(cudaSetDevice(0) == cudaSuccess);
  void* memory = nullptr;
  EXPECT(cudaMalloc(&memory, 1) == cudaSuccess);
  EXPECT(cudaMalloc(&memory, 1) == cudaSuccess);
  std::thread([&] { EXPECT(cudaMalloc(&memory, 1) == cudaSuccess); }).join();
  EXPECT(cudaSetDevice(99) == cudaErrorInvalidDevice);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
  EXPECT(cudaGetLastError() == cudaSuccess);
  return 0;
}

// Two libraries of the same code, one after the other at the same address if the linker so likes.
int ReplacesGuest() {
  const CUcontext context = MakeContext(0);
  for (const char* path : {guest_path, other_path}) {
    const Guest guest(path);
    for (int i = 0; i < 3; ++i) EXPECT(guest.PushAndPop(context) == 0);
    EXPECT(dlclose(guest.library) == 0);
  }
  return 0;
}

int Forks() {
  const CUcontext context = MakeContext(0);
  const Guest guest(guest_path);
  EXPECT(guest.PushAndPop(context) == 0);
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    EXPECT(RAW(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED);
    std::thread([&] {
      EXPECT(RAW(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED);
    }).join();
    _exit(7);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  EXPECT(guest.PushAndPop(context) == 0);
  return 0;
}

// Children of a process whose other threads are busy.
int ForksAmongThreads() {
  const CUcontext context = MakeContext(0);
  const Guest guest(guest_path);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!is_over) EXPECT(guest.PushAndPop(context) == 0);
    });
  }
  for (int i = 0; i < 10; ++i) {
    const pid_t child = fork();
    int count = 0;
    if (child == 0) _exit(RAW(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED ? 7 : 1);
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// Each call of the stack leaves another context current.
int MovesBetweenContexts() {
  const CUcontext first = MakeContext(0);
  const CUcontext second = MakeContext(0);
  EXPECT(Guest(guest_path).PushAndPop(first) == 0);
  EXPECT(Pop() == 0);
  EXPECT(RAW(cuCtxSetCurrent)(second) == CUDA_SUCCESS);
  EXPECT(RAW_AS(decltype(&cuCtxDestroy), "cuCtxDestroy_v2")(second) == CUDA_SUCCESS);
  return 0;
}

// A child that makes no call ends by exit(), its parent does not.
int ChildExits() {
  MakeContext(0);
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  _exit(0);
}

int ManyThreads() {
  const CUcontext context = MakeContext(0);
  const Guest guest(guest_path);
  std::vector<std::thread> threads;
  for (int i = 0; i < 64; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) EXPECT(guest.PushAndPop(context) == 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

int LeavesAtOnce() {
  const CUcontext context = MakeContext(0);
  EXPECT(Guest(guest_path).PushAndPop(context) == 0);
  _exit(3);
}

int IsKilled() {
  const CUcontext context = MakeContext(0);
  EXPECT(Guest(guest_path).PushAndPop(context) == 0);
  kill(getpid(), SIGKILL);
  return 1;
}

// A dead handle may be pushed while it is on a stack.
int UsesADestroyedHandle() {
  const CUcontext dead = MakeContext(0);
  MakeContext(0);
  EXPECT(RAW_AS(decltype(&cuCtxDestroy), "cuCtxDestroy_v2")(dead) == CUDA_SUCCESS);
  EXPECT(Guest(guest_path).Push(dead) == 0);
  return 0;
}

// Of two of each kind, those of one context, which is over; the last call may not return.
int UsesWhatIsOver() {
  CUstream streams[2] = {};
  CUevent events[2] = {};
  CUdeviceptr memory[2] = {};
  CUcontext contexts[2] = {};
  for (int i = 1; i >= 0; --i) {
    contexts[i] = MakeContext(0);
    EXPECT(RAW(cuStreamCreate)(&streams[i], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    EXPECT(RAW(cuEventCreate)(&events[i], CU_EVENT_DEFAULT) == CUDA_SUCCESS);
    EXPECT(RAW_AS(decltype(&cuMemAlloc), "cuMemAlloc_v2")(&memory[i], 4 << 20) == CUDA_SUCCESS);
  }
  EXPECT(RAW_AS(decltype(&cuCtxDestroy), "cuCtxDestroy_v2")(contexts[0]) == CUDA_SUCCESS);
  EXPECT(RAW(cuCtxSetCurrent)(contexts[1]) == CUDA_SUCCESS);
  EXPECT(RAW(cuMemsetD8Async)(memory[1], 0, 8, streams[1]) == CUDA_SUCCESS);
  EXPECT(RAW_AS(decltype(&cuMemFree), "cuMemFree_v2")(memory[0]) == CUDA_ERROR_INVALID_VALUE);
  // The context's memory was mapped last and is unmapped: another's is there now.
  CUdeviceptr again = 0;
  EXPECT(RAW_AS(decltype(&cuMemAlloc), "cuMemAlloc_v2")(&again, 4 << 20) == CUDA_SUCCESS);
  EXPECT(again == memory[0]);
  EXPECT(RAW_AS(decltype(&cuMemFree), "cuMemFree_v2")(again) == CUDA_SUCCESS);
  EXPECT(RAW_AS(decltype(&cuMemFree), "cuMemFree_v2")(again) == CUDA_ERROR_INVALID_VALUE);
  RAW(cuEventQuery)(events[0]);
  return 0;
}

// The first makes the primary context, too, and so does the one behind the last one's end.
int MakesGreenContexts() {
  CUdevResource whole = {};
  CUdevResource part = {};
  unsigned count = 1;
  CUdevResourceDesc description = nullptr;
  EXPECT(RAW(cuInit)(0) == CUDA_SUCCESS);
  EXPECT(RAW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
  EXPECT(RAW(cuDevSmResourceSplitByCount)(&part, &count, &whole, nullptr, 0, 16) == CUDA_SUCCESS);
  EXPECT(RAW(cuDevResourceGenerateDesc)(&description, &part, 1) == CUDA_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    CUgreenCtx green[2] = {};
    for (CUgreenCtx& one : green) {
      EXPECT(RAW(cuGreenCtxCreate)(&one, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
             CUDA_SUCCESS);
    }
    for (const CUgreenCtx one : green) EXPECT(RAW(cuGreenCtxDestroy)(one) == CUDA_SUCCESS);
  }
  return 0;
}

// A limit is asked for, changed and set back.
int ChangesSettings() {
  MakeContext(0);
  std::size_t value = 0;
  EXPECT(RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096) == CUDA_SUCCESS);
  EXPECT(RAW(cuCtxGetLimit)(&value, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS);
  EXPECT(RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 2 * value) == CUDA_SUCCESS);
  EXPECT(RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, value) == CUDA_SUCCESS);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT(RAW(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
  return 0;
}

// Records beyond what the ring holds.
int Floods() {
  const CUcontext context = MakeContext(0);
  const Guest guest(guest_path);
  const auto push_and_pop = guest.Find<int(CUcontext)>("PushAndPop");
  for (int i = 0; i < 40000; ++i) EXPECT(push_and_pop(context) == 0);
  return 0;
}

// A stray write into the head of its channel, between two pushes.
int OverwritesItsChannel() {
  const CUcontext context = MakeContext(0);
  const Guest guest(guest_path);
  EXPECT(guest.Push(context) == 0);
  std::ifstream maps("/proc/self/maps");
  std::uintptr_t channel = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:cuguest-audit") != std::string::npos)
      channel = std::stoull(line, nullptr, 16);
  }
  EXPECT(channel != 0);
  reinterpret_cast<cuguest::audit::ChannelHeader*>(channel)->head.store(std::uint64_t{1} << 62);
  EXPECT(guest.Push(context) == 0);
  return 0;
}

constexpr struct {
  const char* name;
  int (*run)();
} kScenarios[] = {
    {"leak_and_check", LeakAndCheck},
    {"leaks_in_the_end", LeaksInTheEnd},
    {"calls_in_exit", CallsInExit},
    {"exits_in_the_guest", ExitsInTheGuest},
    {"runtime_sets_device", RuntimeSetsDevice},
    {"replaces_guest", ReplacesGuest},
    {"forks", Forks},
    {"forks_among_threads", ForksAmongThreads},
    {"moves_between_contexts", MovesBetweenContexts},
    {"child_exits", ChildExits},
    {"many_threads", ManyThreads},
    {"leaves_at_once", LeavesAtOnce},
    {"is_killed", IsKilled},
    {"uses_a_destroyed_handle", UsesADestroyedHandle},
    {"uses_what_is_over", UsesWhatIsOver},
    {"makes_green_contexts", MakesGreenContexts},
    {"changes_settings", ChangesSettings},
    {"floods", Floods},
    {"overwrites_its_channel", OverwritesItsChannel},
};

}  // namespace

int main(int count, char** arguments) {
  EXPECT(count == 4);
  guest_path = arguments[2];
  other_path = arguments[3];
  for (const auto& scenario : kScenarios) {
    if (std::strcmp(scenario.name, arguments[1]) == 0) return scenario.run();
  }
  std::fprintf(stderr, "no scenario %s\n", arguments[1]);
  return 2;
}
