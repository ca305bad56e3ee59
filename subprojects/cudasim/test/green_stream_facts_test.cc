// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams and events of green contexts.

#include "cudasim/sim.h"
#include "test/green.h"

BOOST_AUTO_TEST_SUITE(green_stream_facts)

using namespace cudasim_facts;

namespace {

void CheckStreamIsOf(CUstream stream, const Green& green) {
  CUcontext context = nullptr;
  OK(RAW(cuStreamGetCtx)(stream, &context));
  BOOST_CHECK(context == green.context);
  CUgreenCtx raw = nullptr;
  OK(RAW(cuStreamGetCtx_v2)(stream, &context, &raw));
  BOOST_CHECK(context == green.primary);
  BOOST_CHECK(raw == green.raw);
  raw = nullptr;
  OK(RAW(cuStreamGetGreenCtx)(stream, &raw));
  BOOST_CHECK(raw == green.raw);
  unsigned flags = 0;
  OK(RAW(cuStreamGetFlags)(stream, &flags));
  BOOST_TEST(flags == unsigned{CU_STREAM_NON_BLOCKING});
  CUdevice device = -1;
  OK(RAW(cuStreamGetDevice)(stream, &device));
  BOOST_TEST(device == 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stream_is_of_the_green_context) {
  const Green green;
  CUstream stream = nullptr;
  const auto create = RAW(cuGreenCtxStreamCreate);
  IS(create(nullptr, green.raw, CU_STREAM_NON_BLOCKING, 0), INVALID_VALUE);
  IS(create(&stream, nullptr, CU_STREAM_NON_BLOCKING, 0), INVALID_CONTEXT);
  IS(create(&stream, green.raw, CU_STREAM_DEFAULT, 0), INVALID_VALUE);
  OK(create(&stream, green.raw, CU_STREAM_NON_BLOCKING, -1000));
  int priority = 0;
  OK(RAW(cuStreamGetPriority)(stream, &priority));
  BOOST_TEST(priority == -5);
  CheckStreamIsOf(stream, green);
  IS(RAW(cuStreamGetGreenCtx)(stream, nullptr), INVALID_VALUE);
  const OwnContext other;
  SetStack({other.get()});
  CheckStreamIsOf(stream, green);
  OK(RAW(cuStreamSynchronize)(stream));
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(a_stream_created_while_it_is_current_is_non_blocking) {
  const Green green;
  SetStack({green.context});
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_DEFAULT));
  CheckStreamIsOf(stream, green);
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(stream_0_is_the_green_contexts) {
  const Green green;
  SetStack({green.context});
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY}) {
    CheckStreamIsOf(stream, green);
    OK(RAW(cuStreamSynchronize)(stream));
    IS(RAW(cuStreamDestroy)(stream), INVALID_HANDLE);
  }
}

BOOST_AUTO_TEST_CASE(there_is_no_per_thread_stream) {
  const Green green;
  SetStack({green.context});
  CUcontext context = nullptr;
  CUgreenCtx raw = nullptr;
  const CUstream stream = CU_STREAM_PER_THREAD;
  IS(RAW(cuStreamGetCtx)(stream, &context), INVALID_HANDLE);
  IS(RAW(cuStreamGetCtx_v2)(stream, &context, &raw), INVALID_HANDLE);
  IS(RAW(cuStreamGetGreenCtx)(stream, &raw), INVALID_HANDLE);
  IS(RAW(cuStreamSynchronize)(stream), INVALID_HANDLE);
  IS(RAW(cuStreamQuery)(stream), INVALID_HANDLE);
  IS(RAW(cuStreamDestroy)(stream), INVALID_HANDLE);
  using Synchronize = CUresult (*)(CUstream);
  IS(RAW_AS(Synchronize, "cuStreamSynchronize_ptsz")(nullptr), INVALID_HANDLE);
  CUdeviceptr pointer = 0;
  OK(RAW(cuMemAlloc)(&pointer, 64));
  using Memset = CUresult (*)(CUdeviceptr, unsigned char, size_t);
  IS(RAW_AS(Memset, "cuMemsetD8_v2_ptds")(pointer, 0, 64), INVALID_HANDLE);
  OK(RAW(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(other_streams_have_no_green_context) {
  const Green green;
  const OwnContext user;
  for (const CUcontext owner : {green.primary, user.get()}) {
    const CUstream created = CreateStreamIn(owner);
    SetStack({owner});
    for (const CUstream stream : {created, CUstream{nullptr}, CU_STREAM_PER_THREAD}) {
      CUgreenCtx raw = green.raw;
      CUcontext context = nullptr;
      OK(RAW(cuStreamGetCtx_v2)(stream, &context, &raw));
      BOOST_CHECK(context == owner);
      BOOST_CHECK(raw == nullptr);
      raw = green.raw;
      OK(RAW(cuStreamGetGreenCtx)(stream, &raw));
      BOOST_CHECK(raw == nullptr);
    }
    OK(RAW(cuStreamDestroy)(created));
  }
  SetStack({});
  CUgreenCtx raw = nullptr;
  IS(RAW(cuStreamGetGreenCtx)(nullptr, &raw), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(events_work_across_a_primary_and_its_green_contexts) {
  Green green;
  const CUgreenCtx second = Create();
  CUstream streams[] = {green.CreateStream(), CreateStreamIn(ContextOf(second)),
                        CreateStreamIn(green.primary)};
  CUevent events[] = {CreateEventIn(green.context), CreateEventIn(green.primary)};
  for (const CUevent event : events) {
    for (const CUstream stream : streams) {
      OK(RAW(cuEventRecord)(event, stream));
      OK(RAW(cuStreamWaitEvent)(stream, event, 0));
    }
    OK(RAW(cuGreenCtxRecordEvent)(green.raw, event));
    OK(RAW(cuGreenCtxWaitEvent)(second, event));
    OK(RAW(cuCtxRecordEvent)(green.primary, event));
    OK(RAW(cuCtxRecordEvent)(green.context, event));
    OK(RAW(cuCtxWaitEvent)(green.primary, event));
    OK(RAW(cuEventSynchronize)(event));
  }
  float milliseconds = 0;
  OK(RAW(cuEventElapsedTime)(&milliseconds, events[0], events[1]));
  for (const CUstream stream : streams) OK(RAW(cuStreamDestroy)(stream));
  OK(RAW(cuGreenCtxDestroy)(second));
  green.Destroy();
  OK(RAW(cuEventQuery)(events[0]));
  for (const CUevent event : events) OK(RAW(cuEventDestroy)(event));
}

BOOST_AUTO_TEST_CASE(events_of_other_contexts_are_only_waited_for) {
  const Green green;
  const OwnContext user;
  const CUstream stream = green.CreateStream();
  const CUstream users_stream = CreateStreamIn(user.get());
  const CUevent event = CreateEventIn(green.context);
  const CUevent users_event = CreateEventIn(user.get());
  IS(RAW(cuEventRecord)(users_event, stream), INVALID_HANDLE);
  IS(RAW(cuEventRecord)(event, users_stream), INVALID_HANDLE);
  IS(RAW(cuGreenCtxRecordEvent)(green.raw, users_event), INVALID_HANDLE);
  IS(RAW(cuCtxRecordEvent)(user.get(), event), INVALID_HANDLE);
  OK(RAW(cuCtxRecordEvent)(user.get(), users_event));
  OK(RAW(cuCtxWaitEvent)(user.get(), event));
  OK(RAW(cuGreenCtxWaitEvent)(green.raw, users_event));
  OK(RAW(cuEventDestroy)(event));
  OK(RAW(cuEventDestroy)(users_event));
  OK(RAW(cuStreamDestroy)(stream));
  OK(RAW(cuStreamDestroy)(users_stream));
}

BOOST_AUTO_TEST_CASE(record_and_wait_check_their_arguments) {
  const Green green;
  const CUevent event = CreateEventIn(green.primary);
  IS(RAW(cuGreenCtxRecordEvent)(green.raw, nullptr), INVALID_HANDLE);
  IS(RAW(cuGreenCtxRecordEvent)(nullptr, event), INVALID_CONTEXT);
  IS(RAW(cuGreenCtxWaitEvent)(green.raw, nullptr), INVALID_HANDLE);
  IS(RAW(cuGreenCtxWaitEvent)(nullptr, event), INVALID_CONTEXT);
  IS(RAW(cuCtxRecordEvent)(green.primary, nullptr), INVALID_HANDLE);
  IS(RAW(cuCtxRecordEvent)(nullptr, event), INVALID_CONTEXT);
  IS(RAW(cuCtxWaitEvent)(green.primary, nullptr), INVALID_HANDLE);
  IS(RAW(cuCtxWaitEvent)(nullptr, event), INVALID_CONTEXT);
  OK(RAW(cuEventDestroy)(event));
}

BOOST_AUTO_TEST_CASE(streams_of_a_destroyed_green_context_are_lost) {
  Green green;
  const CUstream stream = green.CreateStream();
  green.Destroy();
  CUcontext context = nullptr;
  CUgreenCtx raw = nullptr;
  IS(RAW(cuStreamGetCtx)(stream, &context), CONTEXT_IS_DESTROYED);
  BOOST_TEST(cudasim::Sim::Live().streams == 0u);  // a count puts it aside, and no more
  IS(RAW(cuStreamGetCtx_v2)(stream, &context, &raw), CONTEXT_IS_DESTROYED);
  IS(RAW(cuStreamGetGreenCtx)(stream, &raw), CONTEXT_IS_DESTROYED);
  IS(RAW(cuStreamQuery)(stream), CONTEXT_IS_DESTROYED);
  IS(RAW(cuStreamSynchronize)(stream), CONTEXT_IS_DESTROYED);
  unsigned long long id = 0;
  IS(RAW(cuStreamGetId)(stream, &id), CONTEXT_IS_DESTROYED);
  unsigned flags = 0;
  IS(RAW(cuStreamGetFlags)(stream, &flags), CONTEXT_IS_DESTROYED);
  CUstreamCaptureStatus status = {};
  IS(RAW(cuStreamIsCapturing)(stream, &status), CONTEXT_IS_DESTROYED);
  IS(RAW(cuStreamDestroy)(stream), CONTEXT_IS_DESTROYED);
}

BOOST_AUTO_TEST_SUITE_END()
