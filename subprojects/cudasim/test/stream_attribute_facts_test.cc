// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of streams.

#include "test/capture.h"

BOOST_AUTO_TEST_SUITE(stream_attribute_facts)

using namespace cudasim_facts;

namespace {

// Until one is set.
const auto kNoPolicy = OutOfRange<CUsynchronizationPolicy>(-1);

CUstreamAttrValue Get(CUstream stream, CUstreamAttrID id) {
  CUstreamAttrValue value = {};
  OK(RAW(cuStreamGetAttribute)(stream, id, &value));
  return value;
}

CUsynchronizationPolicy PolicyOf(CUstream stream) {
  return Get(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy;
}

CUresult SetPolicy(CUstream stream, CUsynchronizationPolicy policy) {
  CUstreamAttrValue value = {};
  value.syncPolicy = policy;
  return RAW(cuStreamSetAttribute)(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
}

CUstreamAttrValue Window(CUdeviceptr base, float ratio) {
  CUstreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(base);
  value.accessPolicyWindow.num_bytes = 1024;
  value.accessPolicyWindow.hitRatio = ratio;
  value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
  value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
  return value;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_attribute_is_its_streams_own) {
  const Guest guest;
  BOOST_CHECK_EQUAL(PolicyOf(guest.stream), kNoPolicy);
  OK(SetPolicy(guest.stream, CU_SYNC_POLICY_SPIN));
  OK(SetPolicy(guest.other_stream, CU_SYNC_POLICY_YIELD));
  BOOST_CHECK_EQUAL(PolicyOf(guest.stream), CU_SYNC_POLICY_SPIN);
  BOOST_CHECK_EQUAL(PolicyOf(guest.second), kNoPolicy);
  BOOST_CHECK_EQUAL(PolicyOf(guest.other_stream), CU_SYNC_POLICY_YIELD);
}

BOOST_AUTO_TEST_CASE(an_access_window_is_kept) {
  const Guest guest;
  const CUstreamAttrValue set = Window(guest.memory, 0.5f);
  OK(RAW(cuStreamSetAttribute)(guest.stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &set));
  const auto window =
      Get(guest.stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow;
  BOOST_TEST(window.base_ptr == reinterpret_cast<void*>(guest.memory));
  BOOST_TEST(window.num_bytes == 1024u);
  BOOST_TEST(window.hitRatio == 0.5f);
  BOOST_CHECK_EQUAL(window.hitProp, CU_ACCESS_PROPERTY_PERSISTING);
}

BOOST_AUTO_TEST_CASE(attributes_are_copied_within_a_context) {
  const Guest guest;
  OK(SetPolicy(guest.stream, CU_SYNC_POLICY_BLOCKING_SYNC));
  OK(RAW(cuStreamCopyAttributes)(guest.second, guest.stream));
  BOOST_CHECK_EQUAL(PolicyOf(guest.second), CU_SYNC_POLICY_BLOCKING_SYNC);
  OK(SetPolicy(guest.stream, CU_SYNC_POLICY_SPIN));
  BOOST_CHECK_EQUAL(PolicyOf(guest.second), CU_SYNC_POLICY_BLOCKING_SYNC);
  IS(RAW(cuStreamCopyAttributes)(guest.other_stream, guest.stream), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(the_priority_is_that_of_creation) {
  const Guest guest;
  CUstream urgent = nullptr;
  int least = 0;
  int greatest = 0;
  OK(RAW(cuCtxGetStreamPriorityRange)(&least, &greatest));
  OK(RAW(cuStreamCreateWithPriority)(&urgent, CU_STREAM_NON_BLOCKING, greatest));
  BOOST_TEST(Get(urgent, CU_STREAM_ATTRIBUTE_PRIORITY).priority == greatest);
  BOOST_TEST(Get(guest.stream, CU_STREAM_ATTRIBUTE_PRIORITY).priority == 0);
  OK(RAW(cuStreamDestroy)(urgent));
}

BOOST_AUTO_TEST_CASE(values_are_checked) {
  const Guest guest;
  IS(SetPolicy(guest.stream, OutOfRange<CUsynchronizationPolicy>(0)), INVALID_VALUE);
  IS(SetPolicy(guest.stream, OutOfRange<CUsynchronizationPolicy>(99)), INVALID_VALUE);
  const CUstreamAttrValue window = Window(guest.memory, 1.5f);
  constexpr auto kWindow = CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW;
  IS(RAW(cuStreamSetAttribute)(guest.stream, kWindow, &window), INVALID_VALUE);
  CUstreamAttrValue value = {};
  IS(RAW(cuStreamGetAttribute)(guest.stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value),
     INVALID_VALUE);
}

BOOST_AUTO_TEST_SUITE_END()
