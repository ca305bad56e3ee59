// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams with work that is not done: what waits for it, and what it waits for.

#include <array>
#include <chrono>

#include "test/busy.h"
#include "test/capture.h"

BOOST_AUTO_TEST_SUITE(busy_facts)

using namespace cudasim_facts;

namespace {

CUevent Recorded(CUstream stream) {
  CUevent event = nullptr;
  OK(RAW(cuEventCreate)(&event, 0));
  OK(RAW(cuEventRecord)(event, stream));
  return event;
}

// Whether what is put into the stream now is done; what is not held up is, in a moment.
CUresult QueryOf(CUstream stream) {
  const CUevent event = Recorded(stream);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  CUresult code = CUDA_ERROR_NOT_READY;
  while (code == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < end) {
    code = RAW(cuEventQuery)(event);
  }
  return code;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_host_function_may_wait_for_the_host) {
  const Guest guest;
  Hold hold(guest.stream);
  const CUevent event = Recorded(guest.stream);
  IS(RAW(cuStreamQuery)(guest.stream), NOT_READY);
  IS(RAW(cuEventQuery)(event), NOT_READY);
  hold.Release();
  OK(RAW(cuEventSynchronize)(event));
  OK(RAW(cuEventQuery)(event));
  OK(RAW(cuStreamSynchronize)(guest.stream));
  OK(RAW(cuStreamQuery)(guest.stream));
}

BOOST_AUTO_TEST_CASE(work_of_a_stream_is_done_in_order) {
  const Guest guest;
  struct Seen {
    const volatile unsigned char* bytes;
    std::array<unsigned char, 2> values;
  } seen = {static_cast<unsigned char*>(guest.host), {}};
  const auto pinned = reinterpret_cast<CUdeviceptr>(guest.host);
  OK(RAW(cuMemsetD8)(pinned, 1, 16));
  Hold hold(guest.stream);
  OK(RAW(cuMemsetD8Async)(pinned, 2, 16, guest.stream));
  OK(RAW(cuLaunchHostFunc)(
      guest.stream,
      [](void* data) {
        auto* to = static_cast<Seen*>(data);
        to->values[0] = to->bytes[0];
      },
      &seen));
  OK(RAW(cuMemsetD8Async)(pinned, 3, 16, guest.stream));
  OK(RAW(cuStreamAddCallback)(
      guest.stream,
      [](CUstream, CUresult, void* data) {
        auto* to = static_cast<Seen*>(data);
        to->values[1] = to->bytes[0];
      },
      &seen, 0));
  OK(RAW(cuMemsetD8Async)(pinned, 4, 16, guest.stream));
  BOOST_TEST(seen.bytes[0] == 1);
  hold.Release();
  OK(RAW(cuStreamSynchronize)(guest.stream));
  BOOST_TEST(seen.values[0] == 2);
  BOOST_TEST(seen.values[1] == 3);
  BOOST_TEST(seen.bytes[0] == 4);
}

BOOST_AUTO_TEST_CASE(other_streams_go_on) {
  const Guest guest;
  const Hold hold(guest.stream);
  for (const CUstream other : {guest.second, guest.blocking, guest.other_stream}) {
    OK(RAW(cuStreamQuery)(other));
    OK(RAW(cuStreamSynchronize)(other));
  }
  OK(guest.Fill(guest.second));
  OK(RAW(cuStreamSynchronize)(guest.second));
}

BOOST_AUTO_TEST_CASE(the_legacy_stream_waits_for_blocking_streams) {
  const Guest guest;
  const Hold hold(guest.blocking);
  IS(QueryOf(CU_STREAM_LEGACY), NOT_READY);
  IS(QueryOf(CU_STREAM_PER_THREAD), NOT_READY);  // which waits for the legacy stream
  OK(QueryOf(guest.second));
}

BOOST_AUTO_TEST_CASE(blocking_streams_wait_for_the_legacy_stream) {
  const Guest guest;
  const Hold hold(CU_STREAM_LEGACY);
  IS(QueryOf(guest.blocking), NOT_READY);
  IS(QueryOf(CU_STREAM_PER_THREAD), NOT_READY);
  OK(QueryOf(guest.second));
}

BOOST_AUTO_TEST_CASE(blocking_streams_do_not_wait_for_each_other) {
  const Guest guest;
  const Hold hold(guest.blocking);
  OK(QueryOf(CU_STREAM_PER_THREAD));
}

BOOST_AUTO_TEST_CASE(legacy_streams_of_two_contexts_are_apart) {
  const Guest guest;
  const Hold hold(CU_STREAM_LEGACY);
  SetStack({guest.other.get()});
  OK(QueryOf(CU_STREAM_LEGACY));
  SetStack({guest.context.get()});
}

BOOST_AUTO_TEST_CASE(a_stream_waits_for_an_event_of_another) {
  const Guest guest;
  Hold hold(guest.stream);
  const CUevent event = Recorded(guest.stream);
  for (const CUstream waiting : {guest.second, guest.other_stream}) {
    OK(RAW(cuStreamWaitEvent)(waiting, event, 0));
    IS(RAW(cuStreamQuery)(waiting), NOT_READY);
  }
  // It waits for the record that there was.
  OK(RAW(cuEventRecord)(event, guest.blocking));
  OK(RAW(cuEventSynchronize)(event));
  IS(RAW(cuStreamQuery)(guest.second), NOT_READY);
  hold.Release();
  OK(RAW(cuStreamSynchronize)(guest.second));
  OK(RAW(cuStreamSynchronize)(guest.other_stream));
}

BOOST_AUTO_TEST_CASE(a_context_waits_for_an_event) {
  const Guest guest;
  Hold hold(guest.other_stream);
  SetStack({guest.other.get()});
  const CUevent event = Recorded(guest.other_stream);
  SetStack({guest.context.get()});
  OK(RAW(cuCtxWaitEvent)(guest.context.get(), event));
  IS(QueryOf(guest.second), NOT_READY);
  IS(QueryOf(guest.blocking), NOT_READY);
  hold.Release();
  OK(RAW(cuCtxSynchronize)());
  OK(QueryOf(guest.second));
}

BOOST_AUTO_TEST_CASE(an_event_of_a_context_is_behind_its_streams) {
  const Guest guest;
  Hold hold(guest.second);
  CUevent event = nullptr;
  OK(RAW(cuEventCreate)(&event, 0));
  OK(RAW(cuCtxRecordEvent)(guest.context.get(), event));
  IS(RAW(cuEventQuery)(event), NOT_READY);
  OK(RAW(cuStreamQuery)(guest.blocking));
  hold.Release();
  OK(RAW(cuEventSynchronize)(event));
}

BOOST_AUTO_TEST_CASE(elapsed_time_of_what_has_not_happened) {
  const Guest guest;
  const CUevent before = Recorded(guest.stream);
  OK(RAW(cuEventSynchronize)(before));
  Hold hold(guest.stream);
  const CUevent after = Recorded(guest.stream);
  float milliseconds = -1;
  IS(RAW(cuEventElapsedTime)(&milliseconds, before, after), NOT_READY);
  hold.Release();
  OK(RAW(cuEventSynchronize)(after));
  OK(RAW(cuEventElapsedTime)(&milliseconds, before, after));
  BOOST_TEST(milliseconds >= 0);
}

BOOST_AUTO_TEST_CASE(a_destroyed_stream_does_its_work) {
  const Guest guest;
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  Hold hold(stream);
  const auto pinned = reinterpret_cast<CUdeviceptr>(guest.host);
  OK(RAW(cuMemsetD8)(pinned, 1, 16));
  OK(RAW(cuMemsetD8Async)(pinned, 2, 16, stream));
  const CUevent event = Recorded(stream);
  OK(RAW(cuStreamDestroy)(stream));
  IS(RAW(cuEventQuery)(event), NOT_READY);
  hold.Release();
  OK(RAW(cuEventSynchronize)(event));
  BOOST_TEST(*static_cast<unsigned char*>(guest.host) == 2);
}

BOOST_AUTO_TEST_CASE(what_waits_for_a_stream) {
  const Guest guest;
  unsigned char byte = 0;
  CUdeviceptr memory = 0;
  OK(RAW(cuMemAlloc)(&memory, 16));
  const CUevent event = Recorded(guest.second);
  BOOST_TEST(WaitsFor(guest.blocking, true, [] { OK(RAW(cuCtxSynchronize)()); }));
  BOOST_TEST(WaitsFor(guest.blocking, true, [&] { OK(RAW(cuStreamSynchronize)(guest.blocking)); }));
  BOOST_TEST(WaitsFor(guest.blocking, true,
                      [&] { OK(RAW(cuMemcpyDtoH)(&byte, guest.memory, sizeof(byte))); }));
  BOOST_TEST(WaitsFor(guest.blocking, true, [&] { OK(RAW(cuMemFree)(memory)); }));
  BOOST_TEST(WaitsFor(guest.blocking, true, [&] {
    OK(RAW(cuMemcpyDtoHAsync)(&byte, guest.memory, sizeof(byte), guest.blocking));
  }));
  BOOST_TEST(!WaitsFor(guest.blocking, false, [&] {
    OK(RAW(cuMemcpyDtoHAsync)(guest.host, guest.memory, 16, guest.blocking));
  }));
  BOOST_TEST(!WaitsFor(guest.blocking, false, [&] { OK(RAW(cuEventSynchronize)(event)); }));
}

BOOST_AUTO_TEST_CASE(stream_ordered_memory_does_not_wait) {
  const Guest guest;
  CUdeviceptr memory = 0;
  Hold hold(guest.stream);
  OK(RAW(cuMemAllocAsync)(&memory, 16, guest.stream));
  OK(RAW(cuMemsetD8Async)(memory, 1, 16, guest.stream));
  OK(RAW(cuMemcpyDtoHAsync)(guest.host, memory, 16, guest.stream));
  OK(RAW(cuMemFreeAsync)(memory, guest.stream));
  IS(RAW(cuMemFreeAsync)(memory, guest.stream), INVALID_VALUE);
  IS(RAW(cuStreamQuery)(guest.stream), NOT_READY);
  hold.Release();
  OK(RAW(cuStreamSynchronize)(guest.stream));
  BOOST_TEST(*static_cast<unsigned char*>(guest.host) == 1);
}

BOOST_AUTO_TEST_CASE(a_graph_waits_for_its_stream_and_its_host_functions) {
  const Guest guest;
  const auto pinned = reinterpret_cast<CUdeviceptr>(guest.host);
  std::array<std::atomic<bool>, 2> flags = {};  // it was called; it may return
  OK(Begin(guest.stream));
  OK(RAW(cuMemsetD8Async)(pinned, 2, 16, guest.stream));
  OK(RAW(cuLaunchHostFunc)(
      guest.stream,
      [](void* data) {
        auto& to = *static_cast<std::array<std::atomic<bool>, 2>*>(data);
        to[0] = true;
        while (!to[1]) std::this_thread::yield();
      },
      &flags));
  OK(RAW(cuMemsetD8Async)(pinned, 3, 16, guest.stream));
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  OK(RAW(cuStreamEndCapture)(guest.stream, &graph));
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  OK(RAW(cuMemsetD8)(pinned, 1, 16));
  const auto* seen = static_cast<volatile unsigned char*>(guest.host);
  {
    const Hold hold(guest.second);
    OK(RAW(cuGraphLaunch)(executable, guest.second));
    BOOST_TEST(seen[0] == 1);
  }
  while (!flags[0]) std::this_thread::yield();
  BOOST_TEST(seen[0] == 2);
  IS(RAW(cuStreamQuery)(guest.second), NOT_READY);
  flags[1] = true;
  OK(RAW(cuStreamSynchronize)(guest.second));
  BOOST_TEST(seen[0] == 3);
  OK(RAW(cuGraphExecDestroy)(executable));
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_SUITE_END()
