// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a green context is made of: multiprocessors of a device that is split, and, from CUDA 13.1
// on, work queues. What needs such a driver is documented (<cuda.h> of 13.1 to 13.5) and was not
// measured: it runs on the simulated driver of 13.5.

#include <algorithm>
#include <cstring>

#include "test/green.h"

BOOST_AUTO_TEST_SUITE(dev_resource_facts)

using namespace cudasim_facts;
using cudasim_test::NeedsDriver;
using cudasim_test::NeedsDriverBefore;

namespace {

constexpr char kSplit[] = "cuDevSmResourceSplit";
constexpr char kQueues[] = "work queues";

// CU_DEV_SM_RESOURCE_GROUP_PARAMS, which the headers have from 13.1 on.
struct Group {
  unsigned count;
  unsigned coscheduled;
  unsigned preferred;
  unsigned flags;
  unsigned reserved[12];
};
constexpr unsigned kBackfill = 1;

CUresult Split(CUdevResource* groups, unsigned count, const CUdevResource* input,
               CUdevResource* rest, unsigned flags, Group* wanted) {
  using Function = CUresult (*)(CUdevResource*, unsigned, const CUdevResource*, CUdevResource*,
                                unsigned, Group*);
  return reinterpret_cast<Function>(cudasim_test::FindRawSymbol(kSplit))(groups, count, input, rest,
                                                                         flags, wanted);
}

CUresult GetOfStream(CUstream stream, CUdevResource* resource, CUdevResourceType type) {
  using Function = CUresult (*)(CUstream, CUdevResource*, CUdevResourceType);
  return reinterpret_cast<Function>(cudasim_test::FindRawSymbol("cuStreamGetDevResource"))(
      stream, resource, type);
}

// CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG and CUdevWorkqueueConfigResource.
CUdevResourceType QueueConfig() { return OutOfRange<CUdevResourceType>(1000); }
struct Queues {
  CUdevice device;
  unsigned limit;
  unsigned scope;
};
Queues QueuesOf(const CUdevResource& resource) {
  Queues queues = {};
  std::memcpy(&queues, &resource.sm, sizeof(queues));
  return queues;
}

unsigned CountOf(CUgreenCtx green) {
  CUdevResource resource = {};
  OK(RAW(cuGreenCtxGetDevResource)(green, &resource, CU_DEV_RESOURCE_TYPE_SM));
  return resource.sm.smCount;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_devices_multiprocessors_are_a_resource) {
  CUdevResource resource = {};
  IS(RAW(cuDeviceGetDevResource)(0, nullptr, CU_DEV_RESOURCE_TYPE_SM), INVALID_VALUE);
  IS(RAW(cuDeviceGetDevResource)(77, &resource, CU_DEV_RESOURCE_TYPE_SM), INVALID_DEVICE);
  IS(RAW(cuDeviceGetDevResource)(0, &resource, CU_DEV_RESOURCE_TYPE_INVALID),
     INVALID_RESOURCE_TYPE);
  int count = 0;
  OK(RAW(cuDeviceGetAttribute)(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  BOOST_TEST(DeviceResource().sm.smCount == static_cast<unsigned>(count));
  BOOST_TEST(!IsActive(0));
}

BOOST_AUTO_TEST_CASE(a_split_makes_equal_groups_and_a_rest) {
  const CUdevResource whole = DeviceResource();
  constexpr unsigned kMost = 128;
  CUdevResource groups[kMost];
  for (const unsigned flags : {0u, unsigned{CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING}}) {
    for (const unsigned least : {0u, 1u, 8u, 9u, 17u, 60u, whole.sm.smCount}) {
      BOOST_TEST_CONTEXT("flags " << flags << ", at least " << least) {
        unsigned count = kMost;
        CUdevResource rest = {};
        OK(RAW(cuDevSmResourceSplitByCount)(groups, &count, &whole, &rest, flags, least));
        const unsigned size = groups[0].sm.smCount;
        BOOST_TEST(size >= std::max(least, 1u));
        BOOST_TEST(size % (flags == 0 && size < whole.sm.smCount ? 8 : 2) == 0u);
        BOOST_TEST(count * size + rest.sm.smCount == whole.sm.smCount);
        BOOST_TEST((rest.type == CU_DEV_RESOURCE_TYPE_INVALID) == (rest.sm.smCount == 0));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_split_counts_without_groups) {
  const CUdevResource whole = DeviceResource();
  unsigned count = 0;
  OK(RAW(cuDevSmResourceSplitByCount)(nullptr, &count, &whole, nullptr, 0, kPart));
  BOOST_TEST(count == whole.sm.smCount / kPart);
}

BOOST_AUTO_TEST_CASE(a_split_checks_its_arguments) {
  const CUdevResource whole = DeviceResource();
  CUdevResource part = {};
  CUdevResource rest = {};
  unsigned count = 1;
  const auto split = RAW(cuDevSmResourceSplitByCount);
  IS(split(&part, nullptr, &whole, &rest, 0, kPart), INVALID_VALUE);
  IS(split(&part, &count, nullptr, &rest, 0, kPart), INVALID_VALUE);
  IS(split(&part, &count, &whole, &rest, 0x77, kPart), INVALID_VALUE);
  IS(split(&part, &count, &whole, &rest, 0, whole.sm.smCount + 1), INVALID_RESOURCE_CONFIGURATION);
  const CUdevResource nothing = {};
  IS(split(&part, &count, &nothing, &rest, 0, kPart), INVALID_RESOURCE_TYPE);
  OK(split(&part, &count, &whole, &rest, 0, kPart));
  BOOST_TEST(part.sm.smCount == kPart);
  BOOST_TEST(rest.sm.smCount == whole.sm.smCount - kPart);
  CUdevResource again = {};
  IS(split(&again, &count, &part, nullptr, 0, 8), INVALID_RESOURCE_CONFIGURATION);
  IS(split(&again, &count, &rest, nullptr, 0, 8), INVALID_RESOURCE_CONFIGURATION);
  count = 0;
  IS(split(&part, &count, &whole, &rest, 0, kPart), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_description_checks_its_arguments) {
  CUdevResource whole = DeviceResource();
  CUdevResource nothing = {};
  CUdevResourceDesc description = nullptr;
  IS(RAW(cuDevResourceGenerateDesc)(nullptr, &whole, 1), INVALID_VALUE);
  IS(RAW(cuDevResourceGenerateDesc)(&description, nullptr, 1), INVALID_VALUE);
  IS(RAW(cuDevResourceGenerateDesc)(&description, &nothing, 1), INVALID_RESOURCE_TYPE);
  OK(RAW(cuDevResourceGenerateDesc)(&description, &whole, 1));
}

BOOST_AUTO_TEST_CASE(a_split_that_is_too_large_does_not_count) {
  const CUdevResource whole = DeviceResource();
  unsigned count = 1;
  IS(RAW(cuDevSmResourceSplitByCount)(nullptr, &count, &whole, nullptr, 0, whole.sm.smCount + 1),
     INVALID_RESOURCE_CONFIGURATION);
}

BOOST_AUTO_TEST_CASE(parts_of_one_split_are_described_together) {
  const CUdevResource whole = DeviceResource();
  CUdevResource groups[4] = {};
  unsigned count = 4;
  OK(RAW(cuDevSmResourceSplitByCount)(groups, &count, &whole, nullptr, 0, 8));
  BOOST_TEST(count == 4u);
  for (const unsigned parts : {1u, 3u}) {
    CUdevResourceDesc description = nullptr;
    CUgreenCtx green = nullptr;
    OK(RAW(cuDevResourceGenerateDesc)(&description, &groups[4 - parts], parts));
    OK(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    BOOST_TEST(CountOf(green) == 8 * parts);
    OK(RAW(cuGreenCtxDestroy)(green));
  }
}

// Driver 580 describes even the same part twice; that it is refused is documented in 13.5.
BOOST_AUTO_TEST_CASE(parts_of_two_splits_are_not_from_13_1_on) {
  const CUdevResource whole = DeviceResource();
  CUdevResource groups[2] = {};
  for (CUdevResource& group : groups) {
    unsigned count = 1;
    OK(RAW(cuDevSmResourceSplitByCount)(&group, &count, &whole, nullptr, 0, 8));
  }
  CUdevResourceDesc description = nullptr;
  const CUresult code = RAW(cuDevResourceGenerateDesc)(&description, groups, 2);
  BOOST_TEST(code == (cudasim_test::HasDriver(13010) ? CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
                                                     : CUDA_SUCCESS));
}

BOOST_AUTO_TEST_CASE(an_older_driver_has_no_work_queues, *NeedsDriverBefore(13010, kQueues)) {
  CUdevResource resource = {};
  IS(RAW(cuDeviceGetDevResource)(0, &resource, QueueConfig()), INVALID_RESOURCE_TYPE);
}

BOOST_AUTO_TEST_CASE(groups_of_unequal_size, *NeedsDriver(13010, kSplit)) {
  const CUdevResource whole = DeviceResource();
  CUdevResource groups[3] = {};
  CUdevResource rest = {};
  Group wanted[3] = {{16, 0, 0, 0, {}}, {10, 2, 0, 0, {}}, {0, 0, 0, 0, {}}};
  OK(Split(groups, 3, &whole, &rest, 0, wanted));
  BOOST_TEST(groups[0].sm.smCount == 16u);
  BOOST_TEST(groups[1].sm.smCount == 10u);
  BOOST_TEST(groups[2].sm.smCount == (whole.sm.smCount - 26) / 8 * 8);
  BOOST_TEST(wanted[2].count == groups[2].sm.smCount);
  BOOST_TEST(rest.sm.smCount == whole.sm.smCount - 26 - groups[2].sm.smCount);

  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  OK(RAW(cuDevResourceGenerateDesc)(&description, &groups[1], 1));
  OK(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  BOOST_TEST(CountOf(green) == 10u);
  OK(RAW(cuGreenCtxDestroy)(green));
}

BOOST_AUTO_TEST_CASE(a_group_without_a_count_is_told_one, *NeedsDriver(13010, kSplit)) {
  const CUdevResource whole = DeviceResource();
  Group wanted[2] = {{16, 0, 0, 0, {}}, {0, 2, 0, kBackfill, {}}};
  OK(Split(nullptr, 2, &whole, nullptr, 0, wanted));
  BOOST_TEST(wanted[1].count == whole.sm.smCount - 16);
  BOOST_TEST(wanted[1].coscheduled == 2u);
  // Nothing is left to tell of, which is nothing to make a group of.
  Group all[2] = {{whole.sm.smCount, 2, 0, 0, {}}, {0, 2, 0, 0, {}}};
  OK(Split(nullptr, 2, &whole, nullptr, 0, all));
  BOOST_TEST(all[1].count == 0u);
  CUdevResource groups[2] = {};
  IS(Split(groups, 2, &whole, nullptr, 0, all), INVALID_RESOURCE_CONFIGURATION);
}

BOOST_AUTO_TEST_CASE(groups_check_their_arguments, *NeedsDriver(13010, kSplit)) {
  const CUdevResource whole = DeviceResource();
  const CUdevResource nothing = {};
  CUdevResource groups[2] = {};
  Group wanted[2] = {{16, 0, 0, 0, {}}, {whole.sm.smCount / 2 * 2, 2, 0, 0, {}}};
  IS(Split(groups, 0, &whole, nullptr, 0, wanted), INVALID_VALUE);
  IS(Split(groups, 1, nullptr, nullptr, 0, wanted), INVALID_VALUE);
  IS(Split(groups, 1, &whole, nullptr, 1, wanted), INVALID_VALUE);
  IS(Split(groups, 1, &whole, nullptr, 0, nullptr), INVALID_VALUE);
  IS(Split(groups, 1, &nothing, nullptr, 0, wanted), INVALID_RESOURCE_TYPE);
  IS(Split(groups, 2, &whole, nullptr, 0, wanted), INVALID_RESOURCE_CONFIGURATION);
  for (const Group& bad : {Group{12, 0, 0, 0, {}}, Group{7, 0, 0, 0, {}}, Group{16, 64, 0, 0, {}},
                           Group{whole.sm.smCount + 2, 2, 0, 0, {}}, Group{16, 0, 0, 0x100, {}}}) {
    Group one = bad;
    IS(Split(groups, 1, &whole, nullptr, 0, &one), INVALID_VALUE);
  }
  Group loose = {12, 0, 0, kBackfill, {}};
  OK(Split(groups, 1, &whole, nullptr, 0, &loose));
  BOOST_TEST(groups[0].sm.smCount == 12u);
  Group again = {8, 0, 0, 0, {}};
  IS(Split(&groups[1], 1, &groups[0], nullptr, 0, &again), INVALID_RESOURCE_CONFIGURATION);
}

BOOST_AUTO_TEST_CASE(a_green_context_has_the_work_queues_it_was_given,
                     *NeedsDriver(13010, kQueues)) {
  CUdevResource resources[2] = {};
  const CUdevResource whole = DeviceResource();
  unsigned count = 1;
  OK(RAW(cuDevSmResourceSplitByCount)(&resources[0], &count, &whole, nullptr, 0, kPart));
  OK(RAW(cuDeviceGetDevResource)(0, &resources[1], QueueConfig()));
  Queues queues = QueuesOf(resources[1]);
  BOOST_TEST(queues.device == 0);
  BOOST_TEST(queues.limit > 0u);
  BOOST_TEST(queues.scope == 0u);
  queues.limit = 3;
  queues.scope = 1;  // CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED
  std::memcpy(&resources[1].sm, &queues, sizeof(queues));
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  OK(RAW(cuDevResourceGenerateDesc)(&description, resources, 2));
  OK(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  BOOST_TEST(CountOf(green) == kPart);
  CUdevResource of_green = {};
  OK(RAW(cuGreenCtxGetDevResource)(green, &of_green, QueueConfig()));
  BOOST_TEST(QueuesOf(of_green).limit == 3u);
  BOOST_TEST(QueuesOf(of_green).scope == 1u);
  OK(RAW(cuGreenCtxDestroy)(green));
}

BOOST_AUTO_TEST_CASE(a_stream_has_its_contexts_multiprocessors,
                     *NeedsDriver(13010, "cuStreamGetDevResource")) {
  const Green green;
  CUdevResource resource = {};
  const CUstream streams[] = {green.CreateStream(), CreateStreamIn(green.primary)};
  OK(GetOfStream(streams[0], &resource, CU_DEV_RESOURCE_TYPE_SM));
  BOOST_TEST(resource.sm.smCount == kPart);
  OK(GetOfStream(streams[1], &resource, CU_DEV_RESOURCE_TYPE_SM));
  BOOST_TEST(resource.sm.smCount == DeviceResource().sm.smCount);
  IS(GetOfStream(streams[0], nullptr, CU_DEV_RESOURCE_TYPE_SM), INVALID_VALUE);
  IS(GetOfStream(streams[0], &resource, QueueConfig()), INVALID_RESOURCE_TYPE);
  for (const CUstream stream : streams) OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_SUITE_END()
