// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Settings of a context.

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(limits_and_flags_facts)

using namespace cudasim_facts;

namespace {

// A context that is current while the object lives. No other case has it after its settings
// changed.
struct Current {
  Current() { SetStack({context.get()}); }
  ~Current() {
    SetStack({});
    OK(RAW(cuCtxDestroy)(context.release()));
  }
  OwnContext context;
};

size_t Limit(CUlimit limit) {
  size_t value = 77;
  OK(RAW(cuCtxGetLimit)(&value, limit));
  return value;
}

size_t SetLimit(CUlimit limit, size_t value) {
  OK(RAW(cuCtxSetLimit)(limit, value));
  return Limit(limit);
}

unsigned Flags() {
  unsigned flags = 77;
  OK(RAW(cuCtxGetFlags)(&flags));
  return flags;
}

// What the device sets aside of its L2 cache comes in tenths of the most it can.
size_t TenthOfL2() {
  int most = 0;
  OK(RAW(cuDeviceGetAttribute)(&most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0));
  return static_cast<size_t>(most) / 10;
}

void CheckDefaults() {
  size_t value = 0;
  BOOST_TEST(Limit(CU_LIMIT_STACK_SIZE) == 1024u);
  BOOST_TEST(Limit(CU_LIMIT_MALLOC_HEAP_SIZE) == size_t{8} << 20);
  BOOST_TEST(Limit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) == 2048u);
  BOOST_TEST(Limit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY) == 64u);
  BOOST_TEST(Limit(CU_LIMIT_CIG_ENABLED) == 0u);
  BOOST_TEST(Limit(CU_LIMIT_PRINTF_FIFO_SIZE) == 8650752u);
  BOOST_TEST(Limit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE) == 3 * TenthOfL2());
  BOOST_TEST(Limit(CU_LIMIT_SHMEM_SIZE) == 232448u);
  IS(RAW(cuCtxGetLimit)(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH), UNSUPPORTED_LIMIT);
  IS(RAW(cuCtxGetLimit)(&value, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED), UNSUPPORTED_LIMIT);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_fresh_context_has_these_limits) {
  const Current current;
  CheckDefaults();
}

BOOST_AUTO_TEST_CASE(limits_are_rounded_and_checked) {
  const Current current;
  BOOST_TEST(SetLimit(CU_LIMIT_STACK_SIZE, 4096) == 4096u);
  BOOST_TEST(SetLimit(CU_LIMIT_STACK_SIZE, 5000) == 5008u);
  BOOST_TEST(SetLimit(CU_LIMIT_STACK_SIZE, 1) == 16u);
  BOOST_TEST(SetLimit(CU_LIMIT_STACK_SIZE, 0) == 0u);
  IS(RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, size_t{1} << 30), INVALID_VALUE);
  BOOST_TEST(Limit(CU_LIMIT_STACK_SIZE) == 0u);
  BOOST_TEST(SetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 2097152) == 2097152u);
  BOOST_TEST(SetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 12345) == 524288u);
  BOOST_TEST(SetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16777216) == 16777216u);
  BOOST_TEST(SetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 12345) == 4194304u);
  BOOST_TEST(SetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 4096) == 4096u);
  BOOST_TEST(SetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 100) == 100u);
  IS(RAW(cuCtxSetLimit)(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 500), INVALID_VALUE);
  BOOST_TEST(SetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1 << 20) == TenthOfL2());
  BOOST_TEST(SetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0) == 0u);
  IS(RAW(cuCtxSetLimit)(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, size_t{1} << 40), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(some_limits_cannot_be_set) {
  const Current current;
  size_t value = 0;
  IS(RAW(cuCtxSetLimit)(CU_LIMIT_SHMEM_SIZE, 1), NOT_PERMITTED);
  IS(RAW(cuCtxSetLimit)(CU_LIMIT_CIG_ENABLED, 1), NOT_PERMITTED);
  IS(RAW(cuCtxSetLimit)(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 3), UNSUPPORTED_LIMIT);
  IS(RAW(cuCtxSetLimit)(OutOfRange<CUlimit>(0x77), 1), INVALID_VALUE);
  IS(RAW(cuCtxGetLimit)(&value, CU_LIMIT_MAX), INVALID_VALUE);
  IS(RAW(cuCtxGetLimit)(nullptr, CU_LIMIT_STACK_SIZE), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(limits_belong_to_one_context) {
  const Current first;
  OK(RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
  const OwnContext second;
  OK(RAW(cuCtxPushCurrent)(second.get()));
  CheckDefaults();
  OK(RAW(cuCtxPopCurrent)(nullptr));
  BOOST_TEST(Limit(CU_LIMIT_STACK_SIZE) == 4096u);
}

BOOST_AUTO_TEST_CASE(set_flags_replaces_all) {
  const Current current;
  BOOST_TEST(Flags() == 0u);
  for (const unsigned flags : {4u, 1u, 0x80u, 0x10u, 0u}) {
    OK(RAW(cuCtxSetFlags)(flags));
    BOOST_TEST(Flags() == flags);
  }
  OK(RAW(cuCtxSetFlags)(CU_CTX_MAP_HOST));
  BOOST_TEST(Flags() == 0u);
  OK(RAW(cuCtxSetFlags)(CU_CTX_SCHED_SPIN));
  IS(RAW(cuCtxSetFlags)(CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD), INVALID_VALUE);
  IS(RAW(cuCtxSetFlags)(0x4000), INVALID_VALUE);
  BOOST_TEST(Flags() == unsigned{CU_CTX_SCHED_SPIN});
  IS(RAW(cuCtxGetFlags)(nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(set_flags_leaves_map_host_as_it_was_made) {
  CUcontext context = nullptr;
  OK(RAW(cuCtxCreate)(&context, nullptr, CU_CTX_MAP_HOST, 0));
  for (const unsigned flags : {2u, 8u, 0u}) {
    OK(RAW(cuCtxSetFlags)(flags));
    BOOST_TEST(Flags() == (flags | CU_CTX_MAP_HOST));
  }
  OK(RAW(cuCtxDestroy)(context));
}

BOOST_AUTO_TEST_CASE(create_keeps_its_flags) {
  for (const unsigned flags : {2u, 8u, 4u, 0x10u, 0x80u, 0x18u}) {
    CUcontext context = nullptr;
    OK(RAW(cuCtxCreate)(&context, nullptr, flags, 0));
    BOOST_TEST(Flags() == flags);
    OK(RAW(cuCtxDestroy)(context));
  }
}

BOOST_AUTO_TEST_CASE(create_checks_its_flags_and_device) {
  auto context = reinterpret_cast<CUcontext>(0x77);
  for (const unsigned flags : {3u, 5u, 6u, 7u, 0x100u, 0x1000u, 0x40000000u}) {
    IS(RAW(cuCtxCreate)(&context, nullptr, flags, 0), INVALID_VALUE);
  }
  for (const CUdevice device : {99, -1}) {
    IS(RAW(cuCtxCreate)(&context, nullptr, 0, device), INVALID_DEVICE);
  }
  IS(RAW(cuCtxCreate)(nullptr, nullptr, 0, 0), INVALID_VALUE);
  BOOST_CHECK(context == reinterpret_cast<CUcontext>(0x77));
  BOOST_CHECK(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(cache_and_bank_configuration) {
  const Current current;
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_EQUAL;
  OK(RAW(cuCtxGetCacheConfig)(&cache));
  BOOST_CHECK_EQUAL(cache, CU_FUNC_CACHE_PREFER_NONE);
  OK(RAW(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_L1));
  IS(RAW(cuCtxSetCacheConfig)(OutOfRange<CUfunc_cache>(9)), INVALID_VALUE);
  OK(RAW(cuCtxGetCacheConfig)(&cache));
  BOOST_CHECK_EQUAL(cache, CU_FUNC_CACHE_PREFER_L1);
  IS(RAW(cuCtxGetCacheConfig)(nullptr), INVALID_VALUE);
  using Get = CUresult (*)(CUsharedconfig*);
  using Set = CUresult (*)(CUsharedconfig);
  CUsharedconfig banks = {};
  OK(RAW_AS(Set, "cuCtxSetSharedMemConfig")(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
  OK(RAW_AS(Get, "cuCtxGetSharedMemConfig")(&banks));
  BOOST_CHECK_EQUAL(banks, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);  // without effect
}

BOOST_AUTO_TEST_CASE(priorities_and_affinity) {
  const Current current;
  int least = 77;
  int greatest = 77;
  OK(RAW(cuCtxGetStreamPriorityRange)(&least, &greatest));
  BOOST_TEST(least == 0);
  BOOST_TEST(greatest == -5);
  OK(RAW(cuCtxGetStreamPriorityRange)(nullptr, nullptr));
  CUexecAffinityParam affinity = {};
  OK(RAW(cuCtxGetExecAffinity)(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  BOOST_TEST(affinity.param.smCount.val == 132u);
  IS(RAW(cuCtxGetExecAffinity)(&affinity, OutOfRange<CUexecAffinityType>(9)),
     UNSUPPORTED_EXEC_AFFINITY);
}

BOOST_AUTO_TEST_CASE(with_nothing_current_all_are_invalid_context) {
  size_t value = 0;
  CUfunc_cache cache = {};
  IS(RAW(cuCtxGetLimit)(&value, CU_LIMIT_STACK_SIZE), INVALID_CONTEXT);
  IS(RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 2048), INVALID_CONTEXT);
  IS(RAW(cuCtxSetFlags)(0), INVALID_CONTEXT);
  IS(RAW(cuCtxGetCacheConfig)(&cache), INVALID_CONTEXT);
  IS(RAW(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_L1), INVALID_CONTEXT);
  IS(RAW(cuCtxResetPersistingL2Cache)(), INVALID_CONTEXT);
  int least = 0;
  IS(RAW(cuCtxGetStreamPriorityRange)(&least, &least), INVALID_CONTEXT);
  CUexecAffinityParam affinity = {};
  IS(RAW(cuCtxGetExecAffinity)(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_SUITE_END()
