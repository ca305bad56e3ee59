// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a driver call costs with the collector in the process, and without it:
//
//   audit_collector_benchmark COLLECTOR [OPTIONS OF GOOGLE BENCHMARK]
//   audit_collector_benchmark ""        [OPTIONS OF GOOGLE BENCHMARK]
//
// A reader in another process empties the channel, as the command does. CommonCall is a call that
// is no event; PushAndPop is two calls that are, from that many frames deep.

#include <benchmark/benchmark.h>
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
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

// Few enough for the ring: else it is the reader that is measured.
BENCHMARK(CommonCall)->Arg(0)->Arg(80);
BENCHMARK(PushAndPop)->Arg(0)->Arg(20)->Arg(80)->Iterations(5000)->Repetitions(20);

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
