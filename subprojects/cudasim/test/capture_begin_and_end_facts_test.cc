// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How captures begin, spread to other streams, are lost and end.

#include <atomic>
#include <thread>
#include <vector>

#include "test/capture.h"

BOOST_AUTO_TEST_SUITE(capture_begin_and_end_facts)

using namespace cudasim_facts;

BOOST_AUTO_TEST_CASE(contexts_are_destroyed_and_reset_freely) {
  const Guest guest;
  for (const CUstreamCaptureMode mode : kModes) {
    OK(Begin(guest.stream, mode));
    { const OwnContext made; }
    CUcontext primary = nullptr;
    OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(RAW(cuDevicePrimaryCtxReset)(0));
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
    OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
    BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
    OK(End(guest.stream));
  }
}

BOOST_AUTO_TEST_CASE(without_a_context_a_call_is_refused_before_that) {
  const Guest guest;
  OK(Begin(guest.stream, kGlobal));
  SetStack({});
  CUdeviceptr pointer = 0;
  IS(RAW(cuMemAlloc)(&pointer, 16), INVALID_CONTEXT);
  IS(RAW(cuCtxSynchronize)(), INVALID_CONTEXT);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
  IS(RAW(cuMemFree)(guest.memory), STREAM_CAPTURE_UNSUPPORTED);  // it needs none
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(the_threads_mode_decides_what_is_forbidden) {
  const Guest guest;
  for (const CUstreamCaptureMode capture : kModes) {
    for (const CUstreamCaptureMode mine : kModes) {
      for (const bool other_thread : {false, true}) {
        OK(Begin(guest.stream, capture));
        const auto query = [&] {
          return InMode(mine, [&] { return RAW(cuEventQuery)(guest.never); });
        };
        CUresult code = CUDA_ERROR_UNKNOWN;
        other_thread ? OnAnotherThread([&] { code = query(); }) : void(code = query());
        const bool of_mine = mine != kRelaxed && capture != kRelaxed && !other_thread;
        const bool of_others = mine == kGlobal && capture == kGlobal && other_thread;
        BOOST_CHECK_EQUAL(
            code, of_mine || of_others ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
        BOOST_CHECK_EQUAL(StatusOf(guest.stream), of_mine || of_others ? kLost : kActive);
        End(guest.stream);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(only_captures_that_forbid_a_call_are_lost) {
  const Guest guest;
  OK(Begin(guest.stream, kRelaxed));
  OnAnotherThread([&] { OK(Begin(guest.second, kGlobal)); });
  OnAnotherThread([&] { OK(Begin(guest.blocking, kThreadLocal)); });
  IS(RAW(cuEventQuery)(guest.never), STREAM_CAPTURE_UNSUPPORTED);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
  BOOST_CHECK_EQUAL(StatusOf(guest.second), kLost);
  BOOST_CHECK_EQUAL(StatusOf(guest.blocking), kActive);
  IS(RAW(cuEventQuery)(guest.never), STREAM_CAPTURE_UNSUPPORTED);  // until it is ended
  IS(End(guest.second), STREAM_CAPTURE_INVALIDATED);               // on any thread
  OK(RAW(cuEventQuery)(guest.never));
  IS(guest.FillNow(), STREAM_CAPTURE_IMPLICIT);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
  BOOST_CHECK_EQUAL(StatusOf(guest.blocking), kLost);
  IS(End(guest.blocking), STREAM_CAPTURE_INVALIDATED);
  OK(Begin(guest.other_stream));
  IS(RAW(cuCtxSynchronize)(), STREAM_CAPTURE_UNSUPPORTED);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kLost);
  BOOST_CHECK_EQUAL(StatusOf(guest.other_stream), kActive);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  OK(End(guest.other_stream));
}

BOOST_AUTO_TEST_CASE(the_mode_of_the_thread_that_begins_plays_no_part) {
  const Guest guest;
  OK(InMode(kRelaxed, [&] { return Begin(guest.stream, kGlobal); }));
  IS(RAW(cuEventQuery)(guest.never), STREAM_CAPTURE_UNSUPPORTED);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  auto mode = kRelaxed;
  OK(Begin(guest.stream, kThreadLocal));
  OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
  BOOST_CHECK_EQUAL(mode, kGlobal);
  OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
  OK(End(guest.stream));
}

BOOST_AUTO_TEST_CASE(a_capture_begins_in_any_stream_but_the_legacy_one) {
  const Guest guest;
  IS(Begin(nullptr), STREAM_CAPTURE_UNSUPPORTED);
  IS(Begin(CU_STREAM_LEGACY), STREAM_CAPTURE_UNSUPPORTED);
  IS(Begin(guest.stream, OutOfRange<CUstreamCaptureMode>(7)), INVALID_VALUE);
  OK(Begin(CU_STREAM_PER_THREAD));
  OnAnotherThread([&] {
    OK(RAW(cuCtxPushCurrent)(guest.context.get()));
    BOOST_CHECK_EQUAL(StatusOf(CU_STREAM_PER_THREAD), kNone);
    OK(RAW(cuCtxPopCurrent)(nullptr));
  });
  BOOST_CHECK_EQUAL(StatusOf(CU_STREAM_PER_THREAD), kActive);
  IS(guest.Fill(nullptr), STREAM_CAPTURE_IMPLICIT);  // it blocks
  IS(End(CU_STREAM_PER_THREAD), STREAM_CAPTURE_INVALIDATED);
  SetStack({});
  IS(Begin(nullptr), INVALID_CONTEXT);
  IS(End(nullptr), INVALID_CONTEXT);
  OK(Begin(guest.stream));
  OK(End(guest.stream));
}

BOOST_AUTO_TEST_CASE(synchronous_work_in_a_capturing_per_thread_stream_is_refused) {
  const Guest guest;
  using Fill = decltype(&::cuMemsetD8);
  OK(RAW_AS(decltype(&::cuStreamBeginCapture), "cuStreamBeginCapture_v2_ptsz")(nullptr, kRelaxed));
  BOOST_CHECK_EQUAL(StatusOf(CU_STREAM_PER_THREAD), kActive);
  IS(RAW_AS(Fill, "cuMemsetD8_v2_ptds")(guest.memory, 1, 16), STREAM_CAPTURE_UNSUPPORTED);
  IS(End(CU_STREAM_PER_THREAD), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(the_first_begin_is_relaxed) {
  const Guest guest;
  using First = CUresult (*)(CUstream);
  OK(RAW_AS(First, "cuStreamBeginCapture")(guest.stream));
  OK(RAW(cuEventQuery)(guest.never));
  OnAnotherThread([&] {
    OK(RAW(cuEventQuery)(guest.never));
    OK(End(guest.stream));
  });
}

BOOST_AUTO_TEST_CASE(a_capture_ends_once) {
  const Guest guest;
  for (const CUstream stream : {guest.stream, CUstream{nullptr}, CU_STREAM_PER_THREAD}) {
    IS(End(stream), ILLEGAL_STATE);
  }
  IS(RAW(cuStreamEndCapture)(guest.stream, nullptr), ILLEGAL_STATE);
  OK(Begin(guest.stream));
  OK(RAW(cuStreamEndCapture)(guest.stream, nullptr));  // the graph is thrown away
  IS(End(guest.stream), ILLEGAL_STATE);
}

BOOST_AUTO_TEST_CASE(the_wrong_thread_ends_a_capture_for_good) {
  const Guest guest;
  for (const CUstreamCaptureMode mode : kModes) {
    OK(Begin(guest.stream, mode));
    const auto expected = mode == kRelaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    OnAnotherThread([&] { BOOST_CHECK_EQUAL(End(guest.stream), expected); });
    BOOST_CHECK_EQUAL(StatusOf(guest.stream), kNone);
    IS(End(guest.stream), ILLEGAL_STATE);
  }
}

BOOST_AUTO_TEST_CASE(a_capture_outlives_its_thread) {
  const Guest guest;
  for (const CUstreamCaptureMode mode : kModes) {
    OnAnotherThread([&] { OK(Begin(guest.stream, mode)); });
    BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
    const bool forbids = mode == kGlobal;
    BOOST_CHECK_EQUAL(RAW(cuEventQuery)(guest.never),
                      forbids ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
    const CUresult ends[] = {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                             CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, CUDA_SUCCESS};
    BOOST_CHECK_EQUAL(End(guest.stream), ends[mode]);
    OK(RAW(cuEventQuery)(guest.never));
  }
}

BOOST_AUTO_TEST_CASE(a_lost_capture_takes_no_work_until_it_is_ended) {
  const Guest guest;
  OK(Begin(guest.stream, kGlobal));
  IS(RAW(cuEventQuery)(guest.never), STREAM_CAPTURE_UNSUPPORTED);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kLost);
  IS(guest.Fill(guest.stream), STREAM_CAPTURE_INVALIDATED);
  IS(guest.Record(guest.captured, guest.stream), STREAM_CAPTURE_INVALIDATED);
  IS(guest.Wait(guest.stream, guest.recorded), STREAM_CAPTURE_INVALIDATED);
  CUcontext context = nullptr;
  IS(RAW(cuStreamGetCtx)(guest.stream, &context), STREAM_CAPTURE_INVALIDATED);
  int priority = 0;
  IS(RAW(cuStreamGetPriority)(guest.stream, &priority), STREAM_CAPTURE_INVALIDATED);
  unsigned flags = 0;
  IS(RAW(cuStreamGetFlags)(guest.stream, &flags), STREAM_CAPTURE_UNSUPPORTED);
  IS(RAW(cuStreamSynchronize)(guest.stream), STREAM_CAPTURE_UNSUPPORTED);
  IS(RAW(cuCtxSynchronize)(), STREAM_CAPTURE_UNSUPPORTED);
  IS(Begin(guest.stream), ILLEGAL_STATE);
  IS(RAW(cuStreamEndCapture)(guest.stream, nullptr), STREAM_CAPTURE_INVALIDATED);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kNone);
  OK(RAW(cuStreamSynchronize)(guest.stream));
}

BOOST_AUTO_TEST_CASE(a_lost_capture_in_a_blocking_stream_still_blocks_stream_0) {
  const Guest guest(CU_STREAM_DEFAULT);
  OK(Begin(guest.stream, kGlobal));
  IS(RAW(cuEventQuery)(guest.never), STREAM_CAPTURE_UNSUPPORTED);
  IS(guest.Fill(nullptr), STREAM_CAPTURE_IMPLICIT);
  auto status = kNone;
  IS(RAW(cuStreamIsCapturing)(nullptr, &status), STREAM_CAPTURE_IMPLICIT);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  OK(RAW(cuStreamIsCapturing)(nullptr, &status));
}

BOOST_AUTO_TEST_CASE(a_stream_that_waits_for_a_captured_event_captures) {
  const Guest guest;
  OK(Begin(guest.stream));
  guest.Fork(guest.blocking);
  BOOST_CHECK_EQUAL(StatusOf(guest.blocking), kActive);
  auto status = kNone;
  IS(RAW(cuStreamIsCapturing)(nullptr, &status), STREAM_CAPTURE_IMPLICIT);
  OK(End(guest.stream));  // nothing was done there: nothing to wait for
  BOOST_CHECK_EQUAL(StatusOf(guest.blocking), kNone);
  OK(Begin(guest.stream));
  guest.Fork(guest.second);
  IS(RAW(cuStreamQuery)(guest.second), STREAM_CAPTURE_UNSUPPORTED);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kLost);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(what_was_forked_must_be_joined) {
  const Guest guest;
  OK(Begin(guest.stream));
  guest.Fork(guest.second);
  OK(guest.Fill(guest.second));
  IS(End(guest.stream), STREAM_CAPTURE_UNJOINED);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kNone);
  BOOST_CHECK_EQUAL(StatusOf(guest.second), kNone);
  OK(Begin(guest.stream));
  guest.Fork(guest.second);
  OK(guest.Fill(guest.second));
  OK(guest.Record(guest.recorded, guest.second));
  OK(guest.Wait(guest.stream, guest.recorded));
  OK(End(guest.stream));
  OK(Begin(guest.stream));
  guest.Fork(guest.second);
  OK(guest.Record(guest.recorded, guest.second));
  OK(guest.Wait(guest.stream, guest.recorded));
  OK(guest.Fill(guest.second));  // after the join
  IS(End(guest.stream), STREAM_CAPTURE_UNJOINED);
}

BOOST_AUTO_TEST_CASE(unjoined_work_outlives_its_stream) {
  const Guest guest;
  OK(Begin(guest.stream, kGlobal));
  guest.Fork(guest.second);
  OK(guest.Fill(guest.second));
  OK(RAW(cuStreamDestroy)(guest.second));
  OnAnotherThread([&] { IS(End(guest.stream), STREAM_CAPTURE_UNJOINED); });
}

BOOST_AUTO_TEST_CASE(a_branch_in_another_context_ties_that_context) {
  const Guest guest;
  OK(Begin(guest.stream));
  guest.Fork(guest.other_stream);
  IS(RAW(cuCtxSynchronize_v2)(guest.other.get()), STREAM_CAPTURE_UNSUPPORTED);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(an_external_event_is_for_captures_only) {
  const Guest guest;
  IS(RAW(cuStreamWaitEvent)(guest.stream, guest.recorded, CU_EVENT_WAIT_EXTERNAL), ILLEGAL_STATE);
  // Also for a stream that waits outside of the capture in which the event was recorded.
  OK(Begin(guest.stream, kRelaxed));
  OK(guest.Record(guest.captured, guest.stream));
  IS(RAW(cuStreamWaitEvent)(guest.second, guest.captured, CU_EVENT_WAIT_EXTERNAL), ILLEGAL_STATE);
  OK(RAW(cuStreamWaitEvent)(guest.stream, guest.captured, CU_EVENT_WAIT_EXTERNAL));
  OK(End(guest.stream));
}

BOOST_AUTO_TEST_CASE(an_event_of_a_capture_that_is_over_is_not_external) {
  const Guest guest;
  const auto wait = [&](CUstream stream) {
    return RAW(cuStreamWaitEvent)(stream, guest.captured, CU_EVENT_WAIT_EXTERNAL);
  };
  OK(Begin(guest.stream));
  OK(guest.Record(guest.captured, guest.stream));
  OK(End(guest.stream));
  IS(wait(guest.second), INVALID_VALUE);
  OK(Begin(guest.stream));
  IS(wait(guest.stream), INVALID_VALUE);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kLost);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  // Nor one of a capture that is invalidated.
  OK(Begin(guest.stream, kGlobal));
  OK(guest.Record(guest.captured, guest.stream));
  IS(RAW(cuEventQuery)(guest.never), STREAM_CAPTURE_UNSUPPORTED);
  IS(wait(guest.second), INVALID_VALUE);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(an_event_of_a_lost_capture_is_good_for_nothing) {
  const Guest guest;
  OK(Begin(guest.stream, kGlobal));
  OK(guest.Record(guest.captured, guest.stream));
  IS(RAW(cuEventQuery)(guest.never), STREAM_CAPTURE_UNSUPPORTED);
  IS(RAW(cuEventQuery)(guest.captured), INVALID_VALUE);
  IS(guest.Wait(guest.second, guest.captured), INVALID_VALUE);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(a_host_function_may_capture) {
  const Guest guest;
  struct Captured {
    CUstream stream;
    CUresult begun;
    CUresult ended;
  } captured{guest.stream, CUDA_ERROR_UNKNOWN, CUDA_ERROR_UNKNOWN};
  OK(RAW(cuLaunchHostFunc)(
      guest.second,
      [](void* data) {
        auto* const it = static_cast<Captured*>(data);
        it->begun = Begin(it->stream);
        it->ended = RAW(cuStreamEndCapture)(it->stream, nullptr);
      },
      &captured));
  OK(RAW(cuStreamSynchronize)(guest.second));
  OK(captured.begun);
  OK(captured.ended);
}

BOOST_AUTO_TEST_CASE(a_capture_ends_where_it_began) {
  const Guest guest;
  OK(Begin(guest.stream));
  guest.Fork(guest.second);
  IS(End(guest.second), STREAM_CAPTURE_UNMATCHED);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kLost);
  BOOST_CHECK_EQUAL(StatusOf(guest.second), kLost);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  BOOST_CHECK_EQUAL(StatusOf(guest.second), kNone);
}

BOOST_AUTO_TEST_CASE(captures_do_not_merge) {
  const Guest guest;
  OK(Begin(guest.stream));
  OK(Begin(guest.second));
  OK(guest.Record(guest.captured, guest.stream));
  IS(guest.Wait(guest.second, guest.captured), STREAM_CAPTURE_MERGE);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  IS(End(guest.second), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(stream_0_cannot_join) {
  const Guest guest;
  OK(Begin(guest.stream));
  OK(guest.Record(guest.captured, guest.stream));
  IS(guest.Wait(nullptr, guest.captured), STREAM_CAPTURE_IMPLICIT);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(a_captured_event_is_good_for_nothing_afterwards) {
  const Guest guest;
  OK(Begin(guest.stream));
  OK(guest.Record(guest.captured, guest.stream));
  OK(End(guest.stream));
  IS(RAW(cuEventQuery)(guest.captured), INVALID_VALUE);
  IS(RAW(cuEventSynchronize)(guest.captured), INVALID_VALUE);
  IS(guest.Wait(guest.second, guest.captured), INVALID_VALUE);
  float time = 0;
  IS(RAW(cuEventElapsedTime)(&time, guest.captured, guest.captured), INVALID_VALUE);
  OK(Begin(guest.stream));
  IS(guest.Wait(guest.stream, guest.captured), INVALID_VALUE);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  OK(guest.Record(guest.captured, guest.second));
  OK(RAW(cuEventSynchronize)(guest.captured));
}

BOOST_AUTO_TEST_CASE(a_capture_goes_with_its_stream) {
  Guest guest;
  OK(Begin(guest.stream, kGlobal));
  OK(guest.Record(guest.captured, guest.stream));
  OK(RAW(cuStreamDestroy)(guest.stream));
  OK(RAW(cuEventQuery)(guest.never));
  OK(RAW(cuCtxSynchronize)());
  IS(RAW(cuEventQuery)(guest.captured), INVALID_VALUE);
  OK(Begin(guest.second));
  OK(guest.Record(guest.captured, guest.second));
  OK(guest.Wait(guest.blocking, guest.captured));
  OK(RAW(cuStreamDestroy)(guest.blocking));  // a branch without work
  OK(End(guest.second));
}

BOOST_AUTO_TEST_CASE(a_capture_goes_with_its_context) {
  Guest guest;
  OK(Begin(guest.stream, kGlobal));
  const CUcontext context = guest.context.release();  // stays on this thread's stack
  OnAnotherThread([=] { OK(RAW(cuCtxDestroy)(context)); });
  SetStack({guest.other.get()});
  OK(RAW(cuMemFree)(guest.other_memory));
  OK(RAW(cuCtxSynchronize)());
}

namespace {

// Boost's checks are not for several threads at once: the number of wrong codes.
int CaptureManyTimes(const Guest& guest) {
  int wrong = 0;
  const auto check = [&](CUresult code) { wrong += code != CUDA_SUCCESS ? 1 : 0; };
  CUstream stream = nullptr;
  check(RAW(cuCtxPushCurrent)(guest.context.get()));
  check(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  for (int round = 0; round < 50; ++round) {
    CUgraph graph = nullptr;
    check(Begin(stream, kThreadLocal));
    check(guest.Fill(stream));
    check(RAW(cuStreamEndCapture)(stream, &graph));
    check(RAW(cuGraphDestroy)(graph));
    check(RAW(cuEventQuery)(guest.never));
  }
  check(RAW(cuStreamDestroy)(stream));
  check(RAW(cuCtxPopCurrent)(nullptr));
  return wrong;
}

}  // namespace

BOOST_AUTO_TEST_CASE(threads_capture_side_by_side) {
  const Guest guest;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { wrong += CaptureManyTimes(guest); });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
