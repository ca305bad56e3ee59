// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a driver call costs with the collector in the process, and without it:
//
//   audit_collector_benchmark COLLECTOR [OPTIONS OF GOOGLE BENCHMARK]
//   audit_collector_benchmark ""        [OPTIONS OF GOOGLE BENCHMARK]
//
// A reader in another process empties the channel, as the command does. CommonCall is a call that
// is no event; PushAndPop is two calls that are, from that many frames deep. Launch, Copy and
// EventRecord are what programs do most, and no events either but for the first of each.

#include <benchmark/benchmark.h>
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "audit/channel.h"
#include "audit/channel_reader.h"
#include "audit/channel_server.h"
#include "subprojects/cudasim/test/support/raw_driver.h"

namespace {

using cuguest::audit::ChannelProcess;
using cuguest::audit::ChannelReader;
using cuguest::audit::ChannelServer;
using cuguest::audit::Event;

CUcontext context = nullptr;

template <typename Body>
__attribute__((noinline)) void Descend(int frames, const Body& body) {
  [[maybe_unused]] volatile char used[32] = {};
  if (frames == 0) {
    body();
  } else {
    Descend(frames - 1, body);
  }
  used[0] = 1;  // no tail call
}

void CommonCall(benchmark::State& state) {
  const auto call = RAW(cuCtxGetStreamPriorityRange);
  Descend(static_cast<int>(state.range(0)), [&] {
    for (auto _ : state) benchmark::DoNotOptimize(call(nullptr, nullptr));
  });
}

void PushAndPop(benchmark::State& state) {
  const auto push = RAW_AS(decltype(&cuCtxPushCurrent), "cuCtxPushCurrent_v2");
  const auto pop = RAW_AS(decltype(&cuCtxPopCurrent), "cuCtxPopCurrent_v2");
  Descend(static_cast<int>(state.range(0)), [&] {
    CUcontext popped = nullptr;
    for (auto _ : state) {
      push(context);
      pop(&popped);
    }
  });
}

// What is enqueued in a stream. The device is awaited between batches, off the clock: when many
// operations wait for it, a call waits for one of them.
constexpr int kBatch = 256;

struct Work {
  Work() {
    constexpr char kPtx[] =
        ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n";
    CUmodule module = nullptr;
    Check(RAW(cuCtxSetCurrent)(context));
    Check(RAW(cuModuleLoadData)(&module, kPtx));
    Check(RAW(cuModuleGetFunction)(&kernel, module, "k"));
    Check(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    Check(RAW(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
    Check(RAW(cuMemAlloc)(&memory, 2 * kCopied));
  }

  static void Check(CUresult result) {
    if (result == CUDA_SUCCESS) return;
    std::fprintf(stderr, "CUresult %d\n", static_cast<int>(result));
    std::exit(1);
  }

  static constexpr std::size_t kCopied = 64;
  CUfunction kernel = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
};

template <typename Call>
void Enqueue(benchmark::State& state, const Call& call) {
  static const Work work;
  while (state.KeepRunningBatch(kBatch)) {
    for (int i = 0; i < kBatch; ++i) benchmark::DoNotOptimize(call(work));
    state.PauseTiming();
    Work::Check(RAW(cuStreamSynchronize)(work.stream));
    state.ResumeTiming();
  }
}

void Launch(benchmark::State& state) {
  const auto launch = RAW(cuLaunchKernel);
  Enqueue(state, [=](const Work& work) {
    return launch(work.kernel, 1, 1, 1, 1, 1, 1, 0, work.stream, nullptr, nullptr);
  });
}

void Copy(benchmark::State& state) {
  const auto copy = RAW(cuMemcpyDtoDAsync);
  Enqueue(state, [=](const Work& work) {
    return copy(work.memory, work.memory + Work::kCopied, Work::kCopied, work.stream);
  });
}

void EventRecord(benchmark::State& state) {
  const auto record = RAW(cuEventRecord);
  Enqueue(state, [=](const Work& work) { return record(work.event, work.stream); });
}

// Few enough for the ring: else it is the reader that is measured.
BENCHMARK(CommonCall)->Arg(0)->Arg(80);
BENCHMARK(PushAndPop)->Arg(0)->Arg(20)->Arg(80)->Iterations(5000)->Repetitions(20);
BENCHMARK(Launch)->Iterations(20 * kBatch)->Repetitions(20);
BENCHMARK(Copy)->Iterations(20 * kBatch)->Repetitions(20);
BENCHMARK(EventRecord)->Iterations(20 * kBatch)->Repetitions(20);

void ReadUntilTheEnd(ChannelServer* server) {
  ChannelReader reader;
  while (reader.processes().empty() || !reader.AllEnded()) {
    server->Serve(&reader);
    const std::size_t events = reader.Poll([](const ChannelProcess&, const Event&) {});
    if (events < ChannelReader::kManyEvents) usleep(1000);
  }
}

void BeAudited(const char* collector) {
  ChannelServer server(cuguest::audit::kChannelSlots);
  const pid_t audited = fork();  // the parent reads: its child's end is then seen
  if (audited != 0) {
    ReadUntilTheEnd(&server);
    int status = 0;
    waitpid(audited, &status, 0);
    std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  setenv("CUDA_INJECTION64_PATH", collector, 1);
  setenv(cuguest::audit::kChannelVariable, server.address().c_str(), 1);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  if (*arguments[1] != '\0') BeAudited(arguments[1]);
  setenv("CUDASIM_UNKNOWN_KERNELS", "skip", 1);  // the simulation runs no PTX
  CUctxCreateParams* none = nullptr;
  if (RAW(cuInit)(0) != CUDA_SUCCESS ||
      RAW_AS(decltype(&cuCtxCreate), "cuCtxCreate_v4")(&context, none, 0, 0) != CUDA_SUCCESS) {
    return 77;
  }
  --count;
  benchmark::Initialize(&count, arguments + 1);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
