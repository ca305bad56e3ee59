// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a driver call costs with the collector in the process:
//
//   audit_collector_benchmark COLLECTOR SWITCH [OPTIONS OF GOOGLE BENCHMARK]
//
// Either may be "". SWITCH is fixtures/switched_cupti.cc's library: each is then measured without
// callbacks as well, and with one that returns at once. A reader in another process empties the
// channel, as the command does, and says on stderr how far it was behind.
//
// common is a call that is no event; push_pop is two calls that are, from that many frames deep.
// launch, copy and record are what programs do most, and no events either but for the first of
// each. part is what an event is made of, without a driver.

#include <benchmark/benchmark.h>
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "audit/channel.h"
#include "audit/channel_reader.h"
#include "audit/channel_server.h"
#include "audit/collect/chain_cache.h"
#include "audit/collect/channel_writer.h"
#include "audit/collect/clock.h"
#include "audit/collect/object_table.h"
#include "subprojects/cudasim/test/support/raw_driver.h"
#include "test/fixtures/switched_cupti.h"

namespace {

using namespace cuguest::audit;

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

void CommonCall(benchmark::State& state, int frames) {
  const auto call = RAW(cuCtxGetStreamPriorityRange);
  Descend(frames, [&] {
    for (auto _ : state) benchmark::DoNotOptimize(call(nullptr, nullptr));
  });
}

void PushAndPop(benchmark::State& state, int frames) {
  const auto push = RAW_AS(decltype(&cuCtxPushCurrent), "cuCtxPushCurrent_v2");
  const auto pop = RAW_AS(decltype(&cuCtxPopCurrent), "cuCtxPopCurrent_v2");
  Descend(frames, [&] {
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

void Launch(benchmark::State& state, int /*frames*/) {
  const auto launch = RAW(cuLaunchKernel);
  Enqueue(state, [=](const Work& work) {
    return launch(work.kernel, 1, 1, 1, 1, 1, 1, 0, work.stream, nullptr, nullptr);
  });
}

void Copy(benchmark::State& state, int /*frames*/) {
  const auto copy = RAW(cuMemcpyDtoDAsync);
  Enqueue(state, [=](const Work& work) {
    return copy(work.memory, work.memory + Work::kCopied, Work::kCopied, work.stream);
  });
}

void RecordEvent(benchmark::State& state, int /*frames*/) {
  const auto record = RAW(cuEventRecord);
  Enqueue(state, [=](const Work& work) { return record(work.event, work.stream); });
}

void MakeAndFree(benchmark::State& state, int /*frames*/) {
  const auto make = RAW(cuEventCreate);
  const auto free = RAW(cuEventDestroy);
  Work::Check(RAW(cuCtxSetCurrent)(context));
  for (auto _ : state) {
    CUevent event = nullptr;
    make(&event, CU_EVENT_DISABLE_TIMING);
    free(event);
  }
}

// What an event is made of.
struct Parts {
  Clock clock;
  ChannelWriter writer;
  ObjectTable objects;
  ChainCache chains;
};
Parts parts;

void TakeTime(benchmark::State& state, int /*frames*/) {
  for (auto _ : state) benchmark::DoNotOptimize(parts.clock.Now());
}

void CaptureChain(benchmark::State& state, int frames) {
  Descend(frames, [&] {
    const auto key = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    for (auto _ : state) {
      benchmark::DoNotOptimize(parts.chains.Capture(key, 1, 1, &parts.objects, &parts.writer));
    }
  });
}

void WriteEvent(benchmark::State& state, int /*frames*/) {
  EventRecord event = {};
  event.kind = static_cast<std::uint8_t>(EventKind::kCall);
  event.time_ns = MonotonicNs();
  for (auto _ : state) benchmark::DoNotOptimize(parts.writer.WriteEvent(event));
}

struct Row {
  const char* name;
  void (*body)(benchmark::State& state, int frames);
  int frames;
  bool is_call;  // of the driver's
};

constexpr Row kRows[] = {
    {"common", CommonCall, 0, true},
    {"push_pop", PushAndPop, 0, true},
    {"push_pop_20", PushAndPop, 20, true},
    {"push_pop_80", PushAndPop, 80, true},
    {"launch", Launch, 0, true},
    {"copy", Copy, 0, true},
    {"record", RecordEvent, 0, true},
    {"make_free", MakeAndFree, 0, true},
    {"part_time", TakeTime, 0, false},
    {"part_chain_1", CaptureChain, 1, false},
    {"part_chain_20", CaptureChain, 20, false},
    {"part_chain_80", CaptureChain, 80, false},
    {"part_write", WriteEvent, 0, false},
};

// Few enough for the ring: else it is the reader that is measured.
constexpr int kCalls = 20 * kBatch;

using Position = std::pair<const char*, CuptiSwitch>;

void Register(const std::vector<Position>& positions, SwitchFunction* change, bool has_channel) {
  const auto add = [&](const std::string& name, const Row& row, CuptiSwitch to) {
    const auto run = [=, &row](benchmark::State& state) {
      if (change != nullptr && change(to) != 0) state.SkipWithError("CUPTI refuses the switch");
      row.body(state, row.frames);
    };
    benchmark::RegisterBenchmark(name.c_str(), run)->Iterations(kCalls)->Repetitions(20);
  };
  for (const Row& row : kRows) {
    if (!row.is_call && has_channel) add(row.name, row, CuptiSwitch::kOff);
    if (!row.is_call) continue;
    for (const auto& [name, to] : positions) add(std::string(row.name) + "/" + name, row, to);
  }
}

void ReadUntilTheEnd(ChannelServer* server) {
  ChannelReader reader;
  std::uint64_t events = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t most_ns = 0;
  while (reader.processes().empty() || !reader.AllEnded()) {
    server->Serve(&reader);
    const std::uint64_t now = MonotonicNs();
    const std::size_t count = reader.Poll([&](const ChannelProcess& process, const Event& event) {
      const std::uint64_t made = process.start_ns + event.time_ns;
      const std::uint64_t behind = now > made ? now - made : 0;
      ++events;
      total_ns += behind;
      most_ns = std::max(most_ns, behind);
    });
    if (count < ChannelReader::kManyEvents) usleep(1000);
  }
  std::uint64_t lost = 0;
  for (const auto& process : reader.processes()) lost += process->lost;
  std::fprintf(
      stderr, "reader: %llu events, %llu lost, behind by %.2f ms in the mean, %.2f at most\n",
      static_cast<unsigned long long>(events), static_cast<unsigned long long>(lost),
      static_cast<double>(total_ns) / 1e6 / static_cast<double>(std::max<std::uint64_t>(events, 1)),
      static_cast<double>(most_ns) / 1e6);
}

long ResidentKib() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

// Where each page of the channel has been touched, and the chain is known.
void TellMemory() {
  const auto push = RAW_AS(decltype(&cuCtxPushCurrent), "cuCtxPushCurrent_v2");
  const auto pop = RAW_AS(decltype(&cuCtxPopCurrent), "cuCtxPopCurrent_v2");
  constexpr int kEvents = 1'000'000;
  CUcontext popped = nullptr;
  const long before = ResidentKib();
  for (int i = 0; i < kEvents / 2; ++i) {
    push(context);
    pop(&popped);
  }
  std::fprintf(stderr, "memory: %ld KiB more after %d events\n", ResidentKib() - before, kEvents);
}

// Returns in the audited process.
void BeAudited(const char* collector, const char* cupti) {
  // For its parts, which write by themselves.
  static std::string address;
  ChannelServer server(kChannelSlots);
  const pid_t audited = fork();  // the parent reads: its child's end is then seen
  if (audited != 0) {
    ReadUntilTheEnd(&server);
    int status = 0;
    waitpid(audited, &status, 0);
    std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  address = server.address();
  setenv("CUDA_INJECTION64_PATH", collector, 1);
  setenv(kChannelVariable, address.c_str(), 1);
  if (*cupti != '\0') setenv(kCuptiVariable, cupti, 1);
  if (!parts.writer.Open(address.c_str(), /*forked=*/false)) std::exit(1);
}

SwitchFunction* FindSwitch(const char* cupti) {
  void* library = *cupti != '\0' ? dlopen(cupti, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (library == nullptr) return nullptr;
  return reinterpret_cast<SwitchFunction*>(dlsym(library, "CuguestSwitchCupti"));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const bool is_audited = *arguments[1] != '\0';
  if (is_audited) BeAudited(arguments[1], arguments[2]);
  setenv("CUDASIM_UNKNOWN_KERNELS", "skip", 1);  // the simulation runs no PTX
  CUctxCreateParams* none = nullptr;
  if (RAW(cuInit)(0) != CUDA_SUCCESS ||
      RAW_AS(decltype(&cuCtxCreate), "cuCtxCreate_v4")(&context, none, 0, 0) != CUDA_SUCCESS) {
    return 77;
  }
  SwitchFunction* change = FindSwitch(arguments[2]);
  std::vector<Position> positions = {{is_audited ? "auditor" : "plain", CuptiSwitch::kCollector}};
  if (change != nullptr) {
    positions.insert(positions.end(),
                     {{"plain", CuptiSwitch::kOff}, {"empty callback", CuptiSwitch::kEmpty}});
  }
  Register(positions, change, is_audited);
  arguments[2] = arguments[0];
  count -= 2;
  benchmark::Initialize(&count, arguments + 2);
  benchmark::RunSpecifiedBenchmarks();
  if (change != nullptr) change(CuptiSwitch::kCollector);
  if (is_audited) TellMemory();
  return 0;
}
