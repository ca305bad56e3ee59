// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sim::ScheduleWork: work that is done later, in an order that a seed chooses.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/busy.h"
#include "test/capture.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(sim_schedule)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;
using cudasim_test::Ended;
using cudasim_test::OnlySim;
using cudasim_test::RunChild;

namespace {

// As long as it lives.
struct Scheduled {
  explicit Scheduled(std::uint64_t seed, unsigned calls = 3) { Sim::ScheduleWork(seed, calls); }
  ~Scheduled() { Sim::ScheduleWork(0, 0); }
};

struct Pinned {
  explicit Pinned(const Guest& guest) : bytes(static_cast<unsigned char*>(guest.host)) {
    std::memset(bytes, 1, 16);
  }
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(bytes); }
  unsigned char operator[](size_t at) const {
    return static_cast<const volatile unsigned char*>(bytes)[at];
  }

  unsigned char* bytes;
};

// The order in which events of two streams happened, as the number of the stream of each. None does
// before all were recorded.
std::vector<int> Turns(std::uint64_t seed) {
  const Guest guest;
  const Scheduled scheduled(seed, /*calls=*/50);
  std::vector<CUevent> events(10);
  for (size_t i = 0; i < events.size(); ++i) {
    OK(RAW(cuEventCreate)(&events[i], 0));
    OK(RAW(cuEventRecord)(events[i], i < 5 ? guest.stream : guest.second));
  }
  std::vector<int> turns;
  std::set<size_t> happened;
  while (happened.size() < events.size()) {
    for (size_t i = 0; i < events.size(); ++i) {
      if (happened.count(i) != 0 || RAW(cuEventQuery)(events[i]) != CUDA_SUCCESS) continue;
      if (i % 5 != 0) BOOST_TEST(happened.count(i - 1) == 1u);
      happened.insert(i);
      turns.push_back(i < 5 ? 0 : 1);
    }
  }
  return turns;
}

}  // namespace

BOOST_AUTO_TEST_CASE(work_takes_calls, *OnlySim()) {
  const Guest guest;
  const Pinned pinned(guest);
  const Scheduled scheduled(1, /*calls=*/4);
  OK(RAW(cuMemsetD8Async)(pinned.address(), 2, 16, guest.stream));
  for (int i = 1; i < 4; ++i) {
    IS(RAW(cuStreamQuery)(guest.stream), NOT_READY);
    BOOST_TEST(pinned[0] == 1);
  }
  OK(RAW(cuStreamQuery)(guest.stream));
  BOOST_TEST(pinned[0] == 2);
}

BOOST_AUTO_TEST_CASE(waits_take_none, *OnlySim()) {
  const Guest guest;
  const Pinned pinned(guest);
  const Scheduled scheduled(1, /*calls=*/1000000);
  for (unsigned char i = 2; i < 10; ++i) {
    OK(RAW(cuMemsetD8Async)(pinned.address(), i, 16, guest.stream));
  }
  BOOST_TEST(pinned[0] == 1);
  OK(RAW(cuStreamSynchronize)(guest.stream));
  BOOST_TEST(pinned[0] == 9);
}

BOOST_AUTO_TEST_CASE(calls_of_every_kind_and_thread_count, *OnlySim()) {
  const Guest guest;
  const Scheduled scheduled(1, /*calls=*/4);
  OK(guest.Fill(guest.stream));
  CurrentContext();
  OnAnotherThread([] { CurrentContext(); });
  CurrentContext();
  OK(RAW(cuStreamQuery)(guest.stream));
}

BOOST_AUTO_TEST_CASE(a_seed_replays_its_order, *OnlySim()) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<int> turns = Turns(seed);
    BOOST_TEST(turns == Turns(seed));
    orders.insert(turns);
  }
  BOOST_TEST(orders.size() > 10u);
}

BOOST_AUTO_TEST_CASE(the_default_does_work_at_once, *OnlySim()) {
  const Guest guest;
  const Pinned pinned(guest);
  { const Scheduled scheduled(1); }
  OK(RAW(cuMemsetD8Async)(pinned.address(), 2, 16, guest.stream));
  BOOST_TEST(pinned[0] == 2);
}

BOOST_AUTO_TEST_CASE(what_is_left_is_done_after_the_mode, *OnlySim()) {
  const Guest guest;
  const Pinned pinned(guest);
  {
    const Scheduled scheduled(1, /*calls=*/1000000);
    OK(RAW(cuMemsetD8Async)(pinned.address(), 2, 16, guest.stream));
  }
  while (RAW(cuStreamQuery)(guest.stream) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  BOOST_TEST(pinned[0] == 2);
}

BOOST_AUTO_TEST_CASE(a_program_that_makes_no_call_sees_it_done, *OnlySim()) {
  const Guest guest;
  std::atomic<bool> was_called{false};
  const Scheduled scheduled(1, /*calls=*/1000000);
  OK(guest.Fill(guest.stream));
  OK(RAW(cuLaunchHostFunc)(
      guest.stream, [](void* data) { *static_cast<std::atomic<bool>*>(data) = true; },
      &was_called));
  while (!was_called) std::this_thread::yield();
  OK(RAW(cuStreamSynchronize)(guest.stream));
}

// Guests that race with their own streams, and how a test finds them.

namespace {

// Copies what a first stream writes, in a second one.
bool CopiesWhatWasWritten(std::uint64_t seed, bool waits) {
  const Guest guest;
  const Pinned pinned(guest);
  OK(RAW(cuMemsetD8)(guest.memory, 1, 16));
  OK(RAW(cuCtxSynchronize)());
  const Scheduled scheduled(seed);
  OK(RAW(cuMemsetD8Async)(guest.memory, 2, 16, guest.stream));
  if (waits) {
    OK(guest.Record(guest.never, guest.stream));
    OK(guest.Wait(guest.second, guest.never));
  }
  OK(RAW(cuMemcpyDtoHAsync)(pinned.bytes, guest.memory, 16, guest.second));
  OK(RAW(cuCtxSynchronize)());
  return pinned[0] == 2;
}

}  // namespace

BOOST_AUTO_TEST_CASE(two_streams_without_an_order_are_found, *OnlySim()) {
  int right = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    BOOST_TEST(CopiesWhatWasWritten(seed, /*waits=*/true));
    right += CopiesWhatWasWritten(seed, /*waits=*/false) ? 1 : 0;
  }
  BOOST_TEST(right > 0);
  BOOST_TEST(right < 20);
}

BOOST_AUTO_TEST_CASE(a_result_that_is_read_too_early_is_found, *OnlySim()) {
  const Guest guest;
  const Pinned pinned(guest);
  OK(RAW(cuMemsetD8)(guest.memory, 2, 16));
  OK(RAW(cuCtxSynchronize)());
  const Scheduled scheduled(1);
  OK(RAW(cuMemcpyDtoHAsync)(pinned.bytes, guest.memory, 16, guest.stream));
  BOOST_TEST(pinned[0] == 1);
  OK(RAW(cuStreamSynchronize)(guest.stream));
  BOOST_TEST(pinned[0] == 2);
}

CHILD(frees_in_a_stream_that_does_not_wait) {
  cudasim_test::Require(RAW(cuInit)(0), "cuInit");
  CUcontext context = nullptr;
  CUstream streams[2] = {};
  CUdeviceptr memory = 0;
  CUdeviceptr other = 0;
  RAW(cuDevicePrimaryCtxRetain)(&context, 0);
  RAW(cuCtxPushCurrent)(context);
  for (CUstream& stream : streams) RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Scheduled scheduled(seed);
    RAW(cuMemAllocAsync)(&memory, 16, streams[0]);
    RAW(cuMemAllocAsync)(&other, 16, streams[0]);
    RAW(cuMemcpyDtoDAsync)(other, memory, 16, streams[0]);
    RAW(cuMemFreeAsync)(memory, streams[1]);
    RAW(cuCtxSynchronize)();
  }
  return 0;
}

BOOST_AUTO_TEST_CASE(memory_that_is_freed_too_early_is_found, *OnlySim()) {
  const Ended ended = RunChild("frees_in_a_stream_that_does_not_wait");
  BOOST_TEST(ended.code == -SIGABRT);
  BOOST_TEST(ended.output.find("memory that was freed before") != std::string::npos, ended.output);
}

// What does not become asynchronous.

BOOST_AUTO_TEST_CASE(copies_with_pageable_memory, *OnlySim()) {
  const Guest guest;
  const Scheduled scheduled(1, /*calls=*/1000000);
  std::vector<unsigned char> large(100000, 3);
  CUdeviceptr memory = 0;
  OK(RAW(cuMemAlloc)(&memory, large.size()));
  OK(RAW(cuMemcpyHtoDAsync)(memory, large.data(), large.size(), guest.stream));
  OK(RAW(cuStreamQuery)(guest.stream));
  // A small one goes along with its call.
  unsigned char small[16] = {7};
  OK(RAW(cuMemcpyHtoDAsync)(memory, small, sizeof(small), guest.stream));
  IS(RAW(cuStreamQuery)(guest.stream), NOT_READY);
  small[0] = 8;
  OK(RAW(cuMemcpyDtoHAsync)(large.data(), memory, 1, guest.stream));
  BOOST_TEST(large[0] == 7);
  OK(RAW(cuStreamQuery)(guest.stream));
  OK(RAW(cuMemFree)(memory));
}

BOOST_AUTO_TEST_CASE(calls_that_end_what_work_uses, *OnlySim()) {
  const Guest guest;
  const Pinned pinned(guest);
  const Scheduled scheduled(1, /*calls=*/1000000);
  const auto fill = [&](unsigned char value) {
    OK(RAW(cuMemsetD8Async)(pinned.address(), value, 16, guest.stream));
  };
  CUdeviceptr memory = 0;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR shape = {4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  OK(RAW(cuMemAlloc)(&memory, 16));
  OK(RAW(cuArrayCreate)(&array, &shape));
  fill(2);
  OK(RAW(cuMemFree)(memory));
  BOOST_TEST(pinned[0] == 2);
  fill(3);
  OK(RAW(cuArrayDestroy)(array));
  BOOST_TEST(pinned[0] == 3);
}

BOOST_AUTO_TEST_CASE(the_end_of_a_context_waits, *OnlySim()) {
  const Guest guest;
  const Pinned pinned(guest);
  CUcontext own = nullptr;
  CUstream stream = nullptr;
  OK(RAW(cuCtxCreate)(&own, nullptr, 0, 0));
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  const Scheduled scheduled(1, /*calls=*/1000000);
  OK(RAW(cuMemsetD8Async)(pinned.address(), 2, 16, stream));
  OK(RAW(cuCtxDestroy)(own));
  BOOST_TEST(pinned[0] == 2);
}

// A graph's nodes work in the context that they were captured in, in whatever stream.
BOOST_AUTO_TEST_CASE(the_end_of_a_context_waits_for_its_graphs, *OnlySim()) {
  const Guest guest;
  const Pinned pinned(guest);
  CUcontext own = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  OK(RAW(cuCtxCreate)(&own, nullptr, 0, 0));
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  OK(RAW(cuMemAlloc)(&memory, 16));
  OK(RAW(cuMemsetD8)(memory, 2, 16));
  OK(Begin(stream));
  OK(RAW(cuMemcpyDtoHAsync)(pinned.bytes, memory, 16, stream));
  OK(RAW(cuStreamEndCapture)(stream, &graph));
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  const Scheduled scheduled(1, /*calls=*/1000000);
  OK(RAW(cuGraphLaunch)(executable, guest.stream));
  OK(RAW(cuCtxDestroy)(own));
  BOOST_TEST(pinned[0] == 2);
}

// Host functions.

BOOST_AUTO_TEST_CASE(a_host_function_does_not_hold_up_others, *OnlySim()) {
  const Guest guest;
  const Scheduled scheduled(1);
  Hold hold(guest.stream);
  OK(guest.Fill(guest.second));
  OK(RAW(cuStreamSynchronize)(guest.second));
  IS(RAW(cuStreamQuery)(guest.stream), NOT_READY);
  hold.Release();
  OK(RAW(cuStreamSynchronize)(guest.stream));
}

BOOST_AUTO_TEST_CASE(host_functions_are_in_the_order_of_the_seed, *OnlySim()) {
  struct Note {
    std::vector<int>* order;
    int stream;
  };
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::array<std::vector<int>, 2> order;
    for (std::vector<int>& one : order) {
      const Guest guest;
      const Scheduled scheduled(seed);
      Note notes[2] = {{&one, 0}, {&one, 1}};
      for (int i = 0; i < 6; ++i) {
        OK(RAW(cuLaunchHostFunc)(
            i % 2 == 0 ? guest.stream : guest.second,
            [](void* data) {
              const auto* note = static_cast<Note*>(data);
              note->order->push_back(note->stream);
            },
            &notes[i % 2]));
      }
      OK(RAW(cuCtxSynchronize)());
      BOOST_TEST(one.size() == 6u);
    }
    BOOST_TEST(order[0] == order[1]);
    orders.insert(order[0]);
  }
  BOOST_TEST(orders.size() > 3u);
}

// Errors, and the ends of processes: in processes of their own.

namespace {

constexpr char kFailing[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry failing() { ret; }\n";

struct Stream {
  Stream() {
    CUcontext context = nullptr;
    cudasim_test::Require(RAW(cuInit)(0), "cuInit");
    RAW(cuDevicePrimaryCtxRetain)(&context, 0);
    RAW(cuCtxPushCurrent)(context);
    RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  }
  CUstream stream = nullptr;
};

}  // namespace

CHILD(a_kernel_fails_later) {
  const Stream in;
  Sim::RegisterKernel("failing", [](const SimLaunch&) { return CUDA_ERROR_ILLEGAL_ADDRESS; });
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  RAW(cuModuleLoadData)(&module, kFailing);
  RAW(cuModuleGetFunction)(&function, module, "failing");
  RAW(cuMemAlloc)(&memory, 16);
  Sim::ScheduleWork(1, 1000000);
  CHECK(RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, in.stream, nullptr, nullptr) ==
        CUDA_SUCCESS);
  CHECK(RAW(cuMemsetD8Async)(memory, 1, 16, in.stream) == CUDA_SUCCESS);
  static bool was_called = false;
  static CUresult told = CUDA_SUCCESS;
  CHECK(RAW(cuLaunchHostFunc)(
            in.stream, [](void*) { was_called = true; }, nullptr) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamAddCallback)(
            in.stream, [](CUstream, CUresult code, void*) { told = code; }, nullptr, 0) ==
        CUDA_SUCCESS);
  CHECK(RAW(cuStreamQuery)(in.stream) == CUDA_ERROR_NOT_READY);
  CHECK(RAW(cuStreamSynchronize)(in.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(!was_called);
  CHECK(told == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(RAW(cuStreamQuery)(in.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(RAW(cuMemsetD8Async)(memory, 1, 16, in.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  return 0;
}

CHILD(ends_with_work) {
  const Stream in;
  static std::atomic<bool> was_called{false};
  RAW(cuLaunchHostFunc)
  (
      in.stream,
      [](void*) {
        was_called = true;
        for (;;) std::this_thread::yield();
      },
      nullptr);
  while (!was_called) std::this_thread::yield();
  return RAW(cuStreamQuery)(in.stream) == CUDA_ERROR_NOT_READY ? 0 : 1;
}

CHILD(ends_with_scheduled_work) {
  const Stream in;
  CUdeviceptr memory = 0;
  RAW(cuMemAlloc)(&memory, 16);
  Sim::ScheduleWork(1, 1000);
  for (int i = 0; i < 10; ++i) RAW(cuMemsetD8Async)(memory, 1, 16, in.stream);
  return 0;
}

CHILD(forks_with_work) {
  const Stream in;
  Sim::ScheduleWork(1, 2);
  static std::atomic<bool> may_return{false};
  RAW(cuLaunchHostFunc)
  (
      in.stream,
      [](void*) {
        while (!may_return) std::this_thread::yield();
      },
      nullptr);
  for (int i = 0; i < 10; ++i) RAW(cuStreamQuery)(in.stream);
  const pid_t child = fork();
  if (child == 0) {
    int version = 0;
    for (int i = 0; i < 10; ++i) RAW(cuDriverGetVersion)(&version);
    _exit(RAW(cuStreamQuery)(in.stream) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  may_return = true;
  return RAW(cuStreamSynchronize)(in.stream);
}

BOOST_AUTO_TEST_CASE(an_error_is_sticky_once_it_happened, *OnlySim()) {
  const Ended ended = RunChild("a_kernel_fails_later");
  BOOST_TEST(ended.code == 0, ended.output);
}

BOOST_AUTO_TEST_CASE(processes_that_end_with_work, *OnlySim()) {
  for (const char* child : {"ends_with_work", "ends_with_scheduled_work", "forks_with_work"}) {
    const Ended ended = RunChild(child);
    BOOST_TEST(ended.code == 0, child << ": " << ended.output);
  }
}

BOOST_AUTO_TEST_SUITE_END()
