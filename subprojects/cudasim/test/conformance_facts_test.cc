// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What random sequences of calls have shown of a driver: conformance/.

#include "test/capture.h"
#include "test/green.h"
#include "test/runtime_facts.h"

BOOST_AUTO_TEST_SUITE(conformance_facts)

using namespace cudasim_facts;

BOOST_AUTO_TEST_CASE(green_handle_is_no_context_until_given_out) {
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  const CUgreenCtx green = Create();
  const auto raw = reinterpret_cast<CUcontext>(green);
  IS(RAW(cuCtxPushCurrent)(raw), INVALID_CONTEXT);
  CUstream stream = nullptr;
  OK(RAW(cuGreenCtxStreamCreate)(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  CUcontext context = nullptr;
  OK(RAW(cuStreamGetCtx)(stream, &context));
  OK(RAW(cuCtxPushCurrent)(raw));
  OK(RAW(cuCtxPopCurrent)(nullptr));
  OK(RAW(cuStreamDestroy)(stream));
  OK(RAW(cuGreenCtxDestroy)(green));
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(stream_0_of_a_green_context_captures) {
  const Green green;
  SetStack({green.context});
  OK(Begin(nullptr));
  OK(End(nullptr));
}

BOOST_AUTO_TEST_CASE(interprocess_event_is_refused_in_a_capture) {
  const Guest guest;
  CUevent shared = nullptr;
  OK(RAW(cuEventCreate)(&shared, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  OK(Begin(guest.stream));
  IS(guest.Record(shared, guest.stream), STREAM_CAPTURE_UNSUPPORTED);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
  IS(guest.Wait(guest.stream, shared), STREAM_CAPTURE_UNSUPPORTED);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kLost);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  OK(RAW(cuEventDestroy)(shared));
}

BOOST_AUTO_TEST_CASE(mode_that_is_none_is_like_thread_local) {
  const Guest guest;
  OnAnotherThread([&] { OK(Begin(guest.second, kGlobal)); });
  OK(InMode(OutOfRange<CUstreamCaptureMode>(7), [&] { return RAW(cuEventQuery)(guest.never); }));
  OnAnotherThread([&] { IS(RAW(cuStreamQuery)(guest.second), STREAM_CAPTURE_UNSUPPORTED); });
  IS(End(guest.second), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(first_reset_releases_a_reference) {
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  OK(RAW_AS(decltype(&::cuDevicePrimaryCtxReset), "cuDevicePrimaryCtxReset")(0));
  IS(RAW(cuDevicePrimaryCtxRelease)(0), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(sync_memops_is_shown_by_the_primary) {
  CUcontext primary = nullptr;
  unsigned flags = 0;
  int active = 0;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  OK(RAW(cuCtxSetFlags)(CU_CTX_SYNC_MEMOPS));
  OK(RAW(cuDevicePrimaryCtxGetState)(0, &flags, &active));
  BOOST_TEST(flags == unsigned{CU_CTX_SYNC_MEMOPS});
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(pending_launches_have_a_range) {
  const OwnContext own;
  SetStack({own.get()});
  size_t value = 0;
  OK(RAW(cuCtxSetLimit)(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 1));
  OK(RAW(cuCtxGetLimit)(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
  BOOST_TEST(value == 32u);
  OK(RAW(cuCtxSetLimit)(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(nothing_of_the_host_is_null) {
  const OwnContext own;
  SetStack({own.get()});
  void* pointer = &pointer;
  OK(RAW(cuMemAllocHost)(&pointer, 0));
  BOOST_TEST(pointer == nullptr);
  OK(RAW(cuMemFreeHost)(nullptr));
  RT_IS(cudaMalloc(&pointer, size_t{1} << 60), MemoryAllocation);
  BOOST_TEST(pointer == nullptr);
  cudaGetLastError();
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
