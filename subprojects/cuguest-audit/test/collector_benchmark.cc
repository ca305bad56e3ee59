// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a driver call costs with the collector in the process, and without it:
//
//   audit_collector_benchmark COLLECTOR [OPTIONS OF GOOGLE BENCHMARK]
//   audit_collector_benchmark ""        [OPTIONS OF GOOGLE BENCHMARK]
//
// A reader in another process empties the channel, as the command does. CommonCall is a call that
// is no event; PushAndPop is two calls that are, from that many frames deep. Record, Copy, Wait and
// Launch are given objects of contexts: the argument is how many of a context that is over there
// are. MakeAndFree is two calls that make an object and free it.

#include <benchmark/benchmark.h>
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
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

// Of a context of their own, which ends.
void LeaveObjects(std::int64_t count) {
  static std::int64_t left = 0;
  if (left >= count) return;
  CUcontext other = nullptr;
  CUctxCreateParams* none = nullptr;
  RAW_AS(decltype(&cuCtxCreate), "cuCtxCreate_v4")(&other, none, 0, 0);
  for (; left < count; ++left) {
    CUstream stream = nullptr;
    RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  }
  RAW_AS(decltype(&cuCtxDestroy), "cuCtxDestroy_v2")(other);
}

struct Objects {
  Objects() {
    RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    RAW(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
    RAW_AS(decltype(&cuMemAlloc), "cuMemAlloc_v2")(&memory, 4096);
  }

  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
};

Objects& TheObjects() {
  static Objects objects;
  return objects;
}

template <typename Body>
void Measure(benchmark::State& state, const Body& body) {
  const Objects& objects = TheObjects();
  LeaveObjects(state.range(0));
  for (auto _ : state) body(objects);
  RAW(cuCtxSynchronize)();
}

void Record(benchmark::State& state) {
  const auto call = RAW(cuEventRecord);
  Measure(state, [&](const Objects& objects) { call(objects.event, objects.stream); });
}

void Wait(benchmark::State& state) {
  const auto call = RAW(cuStreamWaitEvent);
  Measure(state, [&](const Objects& objects) { call(objects.stream, objects.event, 0); });
}

void Copy(benchmark::State& state) {
  const auto call = RAW_AS(decltype(&cuMemcpyDtoD), "cuMemcpyDtoD_v2");
  Measure(state, [&](const Objects& objects) { call(objects.memory + 8, objects.memory, 8); });
}

void Fill(benchmark::State& state) {
  const auto call = RAW(cuMemsetD8Async);
  Measure(state, [&](const Objects& objects) { call(objects.memory, 0, 8, objects.stream); });
}

// A launch that is refused for its shape, so that it is the call that is measured.
void Launch(benchmark::State& state) {
  const auto call = RAW(cuLaunchKernel);
  Measure(state, [&](const Objects& objects) {
    call(nullptr, 0, 1, 1, 1, 1, 1, 0, objects.stream, nullptr, nullptr);
  });
}

void MakeAndFree(benchmark::State& state) {
  const auto make = RAW(cuEventCreate);
  const auto free = RAW_AS(decltype(&cuEventDestroy), "cuEventDestroy_v2");
  Measure(state, [&](const Objects&) {
    CUevent event = nullptr;
    make(&event, CU_EVENT_DISABLE_TIMING);
    free(event);
  });
}

// First those where nothing is left: what is left stays.
BENCHMARK(Record)->Arg(0);
BENCHMARK(Wait)->Arg(0);
BENCHMARK(Copy)->Arg(0);
BENCHMARK(Fill)->Arg(0);
BENCHMARK(Launch)->Arg(0);
BENCHMARK(MakeAndFree)->Arg(0);
// Few enough for the ring: else it is the reader that is measured.
BENCHMARK(CommonCall)->Arg(0)->Arg(80);
BENCHMARK(PushAndPop)->Arg(0)->Arg(20)->Arg(80)->Iterations(5000)->Repetitions(20);
BENCHMARK(Record)->Arg(1)->Arg(10000);
BENCHMARK(Copy)->Arg(10000);
BENCHMARK(Fill)->Arg(10000);
BENCHMARK(Launch)->Arg(10000);
BENCHMARK(MakeAndFree)->Arg(10000);

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
