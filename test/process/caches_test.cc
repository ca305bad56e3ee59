// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recipe of docs/recipes/caches.md: what becomes of a reader's streams, events and page-locked
// buffers where a context ends, before it uses cuguest and after. What is undefined before is what
// the simulation makes of it.

#include <malloc.h>

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "examples/recipes/caches_after.h"
#include "examples/recipes/caches_before.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cudasim::SimLive;
using cuguest_test::MakeContext;

// One thread, which waits while it is held.
class Pool {
 public:
  template <typename Task>
  std::future<CUresult> Run(Task task) {
    auto packaged = std::make_shared<std::packaged_task<CUresult()>>(std::move(task));
    std::future<CUresult> result = packaged->get_future();
    Change([&] { tasks_.push([packaged] { (*packaged)(); }); });
    return result;
  }
  void Hold() {
    Change([this] { is_held_ = true; });
  }
  void Go() {
    Change([this] { is_held_ = false; });
  }

 private:
  template <typename Do>
  void Change(const Do& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change();
    changed_.notify_one();
  }
  void Work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return !is_held_ && !tasks_.empty(); });
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_held_ = false;
  std::queue<std::function<void()>> tasks_;
  std::thread thread_ = std::thread([this] { Work(); });
};

Pool& ThePool() {
  static auto& pool = *new Pool;  // its thread ends with the process
  return pool;
}

struct Before {
  static constexpr bool kIsAfter = false;
  static std::future<CUresult> Read(const before::Part& part) {
    return before::Read(&ThePool(), part);
  }
};

struct After {
  static constexpr bool kIsAfter = true;
  static std::future<CUresult> Read(const before::Part& part) {
    return after::Read(&ThePool(), {part.file, part.offset, part.target, part.bytes});
  }
};

constexpr char kText[] = "what the file holds";

int MakeFile() {
  std::FILE* const file = std::tmpfile();
  CHECK(file != nullptr && std::fwrite(kText, sizeof(kText), 1, file) == 1);
  CHECK(std::fflush(file) == 0);
  return fileno(file);
}

template <typename Library>
std::future<CUresult> StartReading(CUdeviceptr target) {
  static const int s_file = MakeFile();
  return Library::Read({s_file, 0, target, sizeof(kText)});
}

// Returns when the thread has ended the task, which happens after its future is ready, and with it
// the reference that the task holds.
template <typename Library>
CUresult Read(CUdeviceptr target) {
  const CUresult code = StartReading<Library>(target).get();
  CHECK(ThePool().Run([] { return CUDA_SUCCESS; }).get() == CUDA_SUCCESS);
  return code;
}

CUdeviceptr AllocateIn(CUcontext context) {
  CUcontext popped = nullptr;
  CUdeviceptr memory = 0;
  CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
  CHECK(RAW(cuMemAlloc)(&memory, sizeof(kText)) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS && popped == context);
  return memory;
}

bool HasTheText(CUcontext context, CUdeviceptr memory) {
  CUcontext popped = nullptr;
  char text[sizeof(kText)] = {};
  CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
  CHECK(RAW(cuMemcpyDtoH)(text, memory, sizeof(text)) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
  return std::memcmp(text, kText, sizeof(text)) == 0;
}

// The simulation allocates a buffer by malloc. What is freed is then no memory of the process's,
// until as much is allocated again.
void BuffersAreMapped() { CHECK(mallopt(M_MMAP_THRESHOLD, before::kBufferBytes) == 1); }
std::string WhyBuffersAreNotMapped() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "malloc is a sanitizer's";
#elif defined(__aarch64__)
  return "the emulator maps no address again";
#else
  return "";
#endif
}

// A context that has the handle of `last`, which is destroyed first.
CUcontext MakeAgain(CUcontext last) {
  CHECK(RAW(cuCtxDestroy)(last) == CUDA_SUCCESS);
  CUcontext next = nullptr;
  while (next != last) next = MakeContext();
  return next;
}

// In two contexts, and again with what is kept.
template <typename Library>
void Reads() {
  for (const CUcontext context : {MakeContext(), MakeContext()}) {
    for (int i = 0; i < 2; ++i) {
      const CUdeviceptr memory = AllocateIn(context);
      CHECK(Read<Library>(memory) == CUDA_SUCCESS && HasTheText(context, memory));
    }
  }
  CHECK(Sim::Live().streams == 2 && Sim::Live().events == 2);
}

// The buffer of a context that is destroyed is handed out in another.
template <typename Library>
void BufferOfADestroyedContext() {
  BuffersAreMapped();
  const CUcontext one = MakeContext();
  const CUcontext other = MakeContext();
  CHECK(Read<Library>(AllocateIn(one)) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxDestroy)(one) == CUDA_SUCCESS);
  const CUdeviceptr memory = AllocateIn(other);
  const CUresult code = Read<Library>(memory);
  CHECK(code == (Library::kIsAfter ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM));
  CHECK(HasTheText(other, memory) == Library::kIsAfter);
}

// The same, where the host has allocated memory at the buffer's address meanwhile.
template <typename Library>
void BufferThatIsTheHostsNow() {
  BuffersAreMapped();
  const CUcontext one = MakeContext();
  const CUcontext other = MakeContext();
  CHECK(Read<Library>(AllocateIn(one)) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxDestroy)(one) == CUDA_SUCCESS);
  const CUdeviceptr memory = AllocateIn(other);
  CHECK(RAW(cuCtxPushCurrent)(other) == CUDA_SUCCESS);
  void* hosts = nullptr;
  CHECK(RAW(cuMemHostAlloc)(&hosts, before::kBufferBytes, 0) == CUDA_SUCCESS);
  CHECK(Read<Library>(memory) == CUDA_SUCCESS && HasTheText(other, memory));
  CHECK((std::memcmp(hosts, kText, sizeof(kText)) != 0) == Library::kIsAfter);
}

// The stream of a context that is destroyed is found at its handle.
template <typename Library>
void StreamAtAHandleUsedAgain() {
  const CUcontext one = MakeContext();
  // A buffer that goes on: the stream alone is another context's.
  CHECK(Read<Library>(AllocateIn(MakeContext())) == CUDA_SUCCESS);
  CHECK(Read<Library>(AllocateIn(one)) == CUDA_SUCCESS);
  const CUdeviceptr memory = AllocateIn(MakeAgain(one));
  CHECK(Read<Library>(memory) == CUDA_SUCCESS && HasTheText(one, memory));
}

// The same of a primary context, which has one handle for all incarnations.
template <typename Library>
void StreamOfAResetContext() {
  CUcontext primary = nullptr;
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  CHECK(Read<Library>(AllocateIn(MakeContext())) == CUDA_SUCCESS);
  CHECK(Read<Library>(AllocateIn(primary)) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  const CUdeviceptr memory = AllocateIn(primary);
  CHECK(Read<Library>(memory) == CUDA_SUCCESS && HasTheText(primary, memory));
}

// The context ends while a task waits.
template <typename Library>
void ContextOfAWaitingTask() {
  const CUcontext context = MakeContext();
  const CUdeviceptr memory = AllocateIn(context);
  ThePool().Hold();
  std::future<CUresult> code = StartReading<Library>(memory);
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
  ThePool().Go();
  CHECK(code.get() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

// A thread of the host's captures meanwhile, in mode GLOBAL.
template <typename Library>
void CaptureOfTheHost() {
  const CUcontext context = MakeContext();
  const CUdeviceptr memory = AllocateIn(context);
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  const CUresult read = Read<Library>(memory);
  const CUresult ended = RAW(cuStreamEndCapture)(stream, &graph);
  CHECK((read == CUDA_SUCCESS) == Library::kIsAfter);
  CHECK(ended == (Library::kIsAfter ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
}

// Pool memory of device 1, where the first device's context is current.
template <typename Library>
void MemoryOfAPool() {
  CUcontext primary = nullptr;
  CUmemoryPool pool = nullptr;
  CUdeviceptr memory = 0;
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuDeviceGetDefaultMemPool)(&pool, 1) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 1) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxPushCurrent)(primary) == CUDA_SUCCESS);
  CHECK(RAW(cuMemAllocFromPoolAsync)(&memory, sizeof(kText), pool, nullptr) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxPopCurrent)(&primary) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRelease)(1) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxPushCurrent)(MakeContext()) == CUDA_SUCCESS);
  const SimLive host = Sim::Live();
  CHECK((Read<Library>(memory) == CUDA_SUCCESS) == Library::kIsAfter);
  if constexpr (!Library::kIsAfter) return;
  CHECK(Read<Library>(memory) == CUDA_SUCCESS && HasTheText(primary, memory));
  CHECK(Sim::Live().primary_references == 1 && Sim::Live().streams == host.streams + 1);
  CHECK(after::Clear() == CUDA_SUCCESS);
  CHECK(Sim::Live() == host && after::TheLanes().size() == 0);
}

// A host that tells it before it destroys a context finds nothing left in it.
void ForgetsAContext() {
  const CUcontext context = MakeContext();
  const CUdeviceptr memory = AllocateIn(context);
  const SimLive host = Sim::Live();
  CHECK(Read<After>(memory) == CUDA_SUCCESS && Sim::Live() != host);
  CHECK(after::Forget(context) && Sim::Live() == host);
  CHECK(!after::Forget(context));
}

// Where it is undefined before, the simulation ends the process in that call.
cuguest_test::Scenario Case(const char* name, void (*run)(), const char* aborts_in = nullptr,
                            std::string (*skip)() = nullptr) {
  cuguest_test::Scenario scenario = {name, run};
  scenario.on = cuguest_test::On::kSimulation;
  scenario.skip = skip;
  if (aborts_in != nullptr) {
    scenario.lines = {std::string("cudasim: ") + aborts_in + "("};
    scenario.code = -SIGABRT;
  }
  return scenario;
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          Case("reads_before", &Reads<Before>),
          Case("reads_after", &Reads<After>),
          Case("hands_out_a_dead_buffer", &BufferOfADestroyedContext<Before>, nullptr,
               &WhyBuffersAreNotMapped),
          Case("hands_out_no_dead_buffer", &BufferOfADestroyedContext<After>, nullptr,
               &WhyBuffersAreNotMapped),
          Case("overwrites_the_hosts_memory", &BufferThatIsTheHostsNow<Before>, nullptr,
               &WhyBuffersAreNotMapped),
          Case("spares_the_hosts_memory", &BufferThatIsTheHostsNow<After>, nullptr,
               &WhyBuffersAreNotMapped),
          Case("finds_a_destroyed_contexts_stream", &StreamAtAHandleUsedAgain<Before>,
               "cuMemcpyHtoDAsync"),
          Case("finds_no_destroyed_contexts_stream", &StreamAtAHandleUsedAgain<After>),
          Case("finds_a_reset_contexts_stream", &StreamOfAResetContext<Before>,
               "cuMemcpyHtoDAsync"),
          Case("finds_no_reset_contexts_stream", &StreamOfAResetContext<After>),
          Case("pushes_a_destroyed_context", &ContextOfAWaitingTask<Before>, "cuCtxPushCurrent"),
          Case("refuses_a_destroyed_context", &ContextOfAWaitingTask<After>),
          Case("invalidates_the_hosts_capture", &CaptureOfTheHost<Before>),
          Case("spares_the_hosts_capture", &CaptureOfTheHost<After>),
          Case("cannot_read_into_a_pool", &MemoryOfAPool<Before>),
          Case("reads_into_a_pool", &MemoryOfAPool<After>),
          Case("forgets_a_context", &ForgetsAContext),
      });
}
