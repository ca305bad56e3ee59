// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Green contexts: their own handle and id; memory, modules and settings are the primary's.
// Their streams and events: green_stream_facts_test.cc.

#include <algorithm>

#include "cudasim/sim.h"
#include "test/green.h"

BOOST_AUTO_TEST_SUITE(green_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

struct Nothing {
  explicit Nothing(CUcontext context) {
    Sim::RegisterKernel("nothing", [](const SimLaunch&) { return CUDA_SUCCESS; });
    SetStack({context});
    OK(RAW(cuModuleLoadData)(&module, kPtx));
    OK(RAW(cuModuleGetFunction)(&function, module, "nothing"));
    SetStack({});
  }
  CUresult LaunchOn(CUstream stream) const {
    return RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  }

  CUmodule module = nullptr;
  CUfunction function = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(create_checks_its_arguments) {
  CUgreenCtx green = nullptr;
  const CUdevResourceDesc description = Description();
  IS(RAW(cuGreenCtxCreate)(nullptr, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), INVALID_VALUE);
  IS(RAW(cuGreenCtxCreate)(&green, description, 0, 0), INVALID_VALUE);
  IS(RAW(cuGreenCtxCreate)(&green, description, 77, CU_GREEN_CTX_DEFAULT_STREAM), INVALID_DEVICE);
  BOOST_TEST(!IsActive(0));
  IS(RAW(cuGreenCtxDestroy)(nullptr), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(no_description_means_the_whole_device) {
  CUgreenCtx green = nullptr;
  OK(RAW(cuGreenCtxCreate)(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  CUdevResource resource = {};
  OK(RAW(cuGreenCtxGetDevResource)(green, &resource, CU_DEV_RESOURCE_TYPE_SM));
  BOOST_TEST(resource.sm.smCount == DeviceResource().sm.smCount);
  OK(RAW(cuGreenCtxDestroy)(green));
}

BOOST_AUTO_TEST_CASE(a_context_knows_its_resource) {
  const Green green;
  const OwnContext user;
  CUdevResource resource = {};
  OK(RAW(cuGreenCtxGetDevResource)(green.raw, &resource, CU_DEV_RESOURCE_TYPE_SM));
  BOOST_TEST(resource.sm.smCount == kPart);
  OK(RAW(cuCtxGetDevResource)(green.context, &resource, CU_DEV_RESOURCE_TYPE_SM));
  BOOST_TEST(resource.sm.smCount == kPart);
  for (const CUcontext context : {green.primary, user.get()}) {
    OK(RAW(cuCtxGetDevResource)(context, &resource, CU_DEV_RESOURCE_TYPE_SM));
    BOOST_TEST(resource.sm.smCount == DeviceResource().sm.smCount);
  }
  SetStack({green.context});
  IS(RAW(cuCtxGetDevResource)(nullptr, &resource, CU_DEV_RESOURCE_TYPE_SM), INVALID_CONTEXT);
  IS(RAW(cuGreenCtxGetDevResource)(nullptr, &resource, CU_DEV_RESOURCE_TYPE_SM), INVALID_CONTEXT);
  IS(RAW(cuGreenCtxGetDevResource)(green.raw, nullptr, CU_DEV_RESOURCE_TYPE_SM), INVALID_VALUE);
  IS(RAW(cuGreenCtxGetDevResource)(green.raw, &resource, CU_DEV_RESOURCE_TYPE_INVALID),
     INVALID_RESOURCE_TYPE);
}

BOOST_AUTO_TEST_CASE(a_part_and_the_rest_make_green_contexts) {
  const CUdevResource whole = DeviceResource();
  CUdevResource part = {};
  CUdevResource rest = {};
  unsigned count = 1;
  OK(RAW(cuDevSmResourceSplitByCount)(&part, &count, &whole, &rest, 0, kPart));
  CUgreenCtx greens[3] = {};
  CUdevResource resources[] = {part, part, rest};
  for (int i = 0; i < 3; ++i) {
    CUdevResourceDesc description = nullptr;
    OK(RAW(cuDevResourceGenerateDesc)(&description, &resources[i], 1));
    OK(RAW(cuGreenCtxCreate)(&greens[i], description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    CUdevResource resource = {};
    OK(RAW(cuGreenCtxGetDevResource)(greens[i], &resource, CU_DEV_RESOURCE_TYPE_SM));
    BOOST_TEST(resource.sm.smCount == resources[i].sm.smCount);
  }
  for (const CUgreenCtx green : greens) OK(RAW(cuGreenCtxDestroy)(green));
}

BOOST_AUTO_TEST_CASE(it_retains_the_primary_and_makes_nothing_current) {
  const CUgreenCtx a = Create();
  BOOST_TEST(IsActive(0));
  BOOST_CHECK(CurrentContext() == nullptr);
  const CUgreenCtx b = Create();
  OK(RAW(cuGreenCtxDestroy)(a));
  BOOST_TEST(IsActive(0));
  OK(RAW(cuGreenCtxDestroy)(b));
  BOOST_TEST(!IsActive(0));
  IS(RAW(cuDevicePrimaryCtxRelease)(0), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(the_green_handle_is_the_context) {
  const Green green;
  BOOST_CHECK(reinterpret_cast<CUcontext>(green.raw) == green.context);
  BOOST_CHECK(ContextOf(green.raw) == green.context);
  unsigned long long id = 0;
  OK(RAW(cuGreenCtxGetId)(green.raw, &id));
  BOOST_TEST(id == IdOf(green.context));
  BOOST_TEST(id != IdOf(green.primary));
  CUcontext context = nullptr;
  IS(RAW(cuCtxFromGreenCtx)(nullptr, green.raw), INVALID_VALUE);
  IS(RAW(cuCtxFromGreenCtx)(&context, nullptr), INVALID_CONTEXT);
  IS(RAW(cuGreenCtxGetId)(nullptr, &id), INVALID_CONTEXT);
  IS(RAW(cuGreenCtxGetId)(green.raw, nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(an_id_is_never_used_again) {
  const CUgreenCtx first = Create();
  const auto first_id = IdOf(ContextOf(first));
  OK(RAW(cuGreenCtxDestroy)(first));
  const CUgreenCtx second = Create();
  BOOST_TEST(IdOf(ContextOf(second)) > first_id);
  OK(RAW(cuGreenCtxDestroy)(second));
}

BOOST_AUTO_TEST_CASE(an_ordinary_context_is_no_green_one) {
  const OwnContext user;
  const auto raw = reinterpret_cast<CUgreenCtx>(user.get());
  unsigned long long id = 0;
  CUcontext context = nullptr;
  IS(RAW(cuGreenCtxGetId)(raw, &id), INVALID_CONTEXT);
  IS(RAW(cuCtxFromGreenCtx)(&context, raw), INVALID_CONTEXT);
  IS(RAW(cuGreenCtxDestroy)(raw), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(it_becomes_current_like_any_context) {
  const Green green;
  SetStack({green.context});
  BOOST_CHECK(CurrentContext() == green.context);
  CUdevice device = -1;
  OK(RAW(cuCtxGetDevice)(&device));
  BOOST_TEST(device == 0);
  OK(RAW(cuCtxGetDevice_v2)(&device, green.context));
  unsigned long long id = 0;
  OK(RAW(cuCtxGetId)(nullptr, &id));
  BOOST_TEST(id == IdOf(green.context));
  unsigned version = 0;
  OK(RAW(cuCtxGetApiVersion)(nullptr, &version));
  BOOST_TEST(version == 3020u);
  OK(RAW(cuCtxSynchronize)());
  OK(RAW(cuCtxSynchronize_v2)(green.context));
  size_t bytes = 0;
  OK(RAW(cuMemGetInfo)(&bytes, &bytes));
}

BOOST_AUTO_TEST_CASE(two_threads_may_have_it_current) {
  const Green green;
  SetStack({green.context});
  OnAnotherThread([&] {
    OK(RAW(cuCtxPushCurrent)(green.context));
    CUdeviceptr pointer = 0;
    OK(RAW(cuMemAlloc)(&pointer, 64));
    OK(RAW(cuMemsetD8)(pointer, 0, 64));
    OK(RAW(cuMemFree)(pointer));
    OK(RAW(cuCtxPopCurrent)(nullptr));
  });
}

BOOST_AUTO_TEST_CASE(only_its_own_destroy_call_destroys) {
  const Green green;
  IS(RAW(cuCtxDestroy)(green.context), INVALID_CONTEXT);
  SetStack({green.context});
  IS(RAW(cuCtxDestroy)(green.context), INVALID_CONTEXT);
  CUcontext attached = nullptr;
  OK(RAW(cuCtxAttach)(&attached, 0));
  BOOST_CHECK(attached == green.primary);
  IS(RAW(cuCtxDetach)(green.context), INVALID_CONTEXT);
  BOOST_CHECK(CurrentContext() == green.context);
  OK(RAW(cuCtxSynchronize)());
}

BOOST_AUTO_TEST_CASE(flags_limits_and_cache_are_the_primarys) {
  const Green green;
  unsigned flags = 0;
  size_t limit = 0;
  CUfunc_cache cache = {};
  SetStack({green.context});
  OK(RAW(cuCtxSetFlags)(CU_CTX_SCHED_YIELD));
  OK(RAW(cuCtxGetFlags)(&flags));
  BOOST_TEST(flags == unsigned{CU_CTX_SCHED_YIELD | CU_CTX_MAP_HOST});
  OK(RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
  OK(RAW(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_L1));
  SetStack({green.primary});
  OK(RAW(cuCtxGetFlags)(&flags));
  BOOST_TEST(flags == unsigned{CU_CTX_SCHED_YIELD | CU_CTX_MAP_HOST});
  OK(RAW(cuCtxGetLimit)(&limit, CU_LIMIT_STACK_SIZE));
  BOOST_TEST(limit == 4096u);
  OK(RAW(cuCtxGetCacheConfig)(&cache));
  BOOST_TEST(cache == CU_FUNC_CACHE_PREFER_L1);
  OK(RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 8192));
  SetStack({green.context});
  OK(RAW(cuCtxGetLimit)(&limit, CU_LIMIT_STACK_SIZE));
  BOOST_TEST(limit == 8192u);
  OK(RAW(cuDevicePrimaryCtxSetFlags)(0, CU_CTX_SCHED_SPIN));
  OK(RAW(cuCtxGetFlags)(&flags));
  BOOST_TEST(flags == unsigned{CU_CTX_SCHED_SPIN | CU_CTX_MAP_HOST});
  CUexecAffinityParam affinity = {};
  IS(RAW(cuCtxGetExecAffinity)(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(setting_flags_in_a_primary_leaves_its_state_alone) {
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  OK(RAW(cuCtxSetFlags)(CU_CTX_SCHED_YIELD));
  unsigned flags = 0;
  int active = 0;
  OK(RAW(cuCtxGetFlags)(&flags));
  BOOST_TEST(flags == unsigned{CU_CTX_SCHED_YIELD | CU_CTX_MAP_HOST});
  OK(RAW(cuDevicePrimaryCtxGetState)(0, &flags, &active));
  BOOST_TEST(flags == 0u);
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(memory_is_the_primarys) {
  Green green;
  SetStack({green.context});
  CUdeviceptr pointers[2] = {};
  void* host = nullptr;
  OK(RAW(cuMemAlloc)(&pointers[0], 4096));
  OK(RAW(cuMemAllocManaged)(&pointers[1], 4096, CU_MEM_ATTACH_GLOBAL));
  OK(RAW(cuMemHostAlloc)(&host, 4096, 0));
  for (const CUdeviceptr pointer :
       {pointers[0], pointers[1], reinterpret_cast<CUdeviceptr>(host)}) {
    CUcontext context = nullptr;
    OK(RAW(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer));
    BOOST_CHECK(context == green.primary);
  }
  SetStack({});
  green.Destroy();
  SetStack({green.primary});
  OK(RAW(cuMemsetD8)(pointers[0], 1, 4096));
  OK(RAW(cuMemFree)(pointers[0]));
  OK(RAW(cuMemFree)(pointers[1]));
  OK(RAW(cuMemFreeHost)(host));
}

BOOST_AUTO_TEST_CASE(memory_goes_with_the_primary) {
  const CUgreenCtx green = Create();
  SetStack({ContextOf(green)});
  CUdeviceptr pointer = 0;
  OK(RAW(cuMemAlloc)(&pointer, 4096));
  SetStack({});
  OK(RAW(cuGreenCtxDestroy)(green));
  CUcontext context = nullptr;
  IS(RAW(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(modules_are_the_primarys) {
  Green green;
  const OwnContext user;
  const Nothing greens(green.context);
  const Nothing primarys(green.primary);
  const Nothing users(user.get());
  const CUstream stream = green.CreateStream();
  const CUstream primarys_stream = CreateStreamIn(green.primary);
  OK(greens.LaunchOn(stream));
  OK(primarys.LaunchOn(stream));
  IS(users.LaunchOn(stream), INVALID_HANDLE);
  OK(greens.LaunchOn(primarys_stream));
  SetStack({green.context});
  OK(primarys.LaunchOn(nullptr));
  OK(greens.LaunchOn(nullptr));
  IS(greens.LaunchOn(CU_STREAM_PER_THREAD), INVALID_HANDLE);
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
  OK(RAW(cuStreamDestroy)(stream));
  green.Destroy();
  OK(greens.LaunchOn(primarys_stream));
  OK(RAW(cuModuleUnload)(greens.module));
  OK(RAW(cuModuleUnload)(primarys.module));
  OK(RAW(cuStreamDestroy)(primarys_stream));
}

BOOST_AUTO_TEST_CASE(destroyed_while_current_it_stays_current_and_dead) {
  for (const bool elsewhere : {false, true}) {
    Green green;
    const CUcontext context = green.context;
    const CUevent event = CreateEventIn(green.primary);
    SetStack({green.primary, context});
    if (elsewhere) OnAnotherThread([&] { green.Destroy(); });
    if (!elsewhere) green.Destroy();
    BOOST_CHECK(CurrentContext() == context);
    CUdeviceptr pointer = 0;
    IS(RAW(cuMemAlloc)(&pointer, 16), CONTEXT_IS_DESTROYED);
    IS(RAW(cuCtxSynchronize)(), CONTEXT_IS_DESTROYED);
    CUstream stream = nullptr;
    IS(RAW(cuStreamCreate)(&stream, 0), CONTEXT_IS_DESTROYED);
    CUcontext untouched = green.primary;
    IS(RAW(cuStreamGetCtx)(nullptr, &untouched), CONTEXT_IS_DESTROYED);
    BOOST_CHECK(untouched == green.primary);
    IS(RAW(cuCtxAttach)(&untouched, 0), CONTEXT_IS_DESTROYED);
    IS(RAW(cuCtxDetach)(context), CONTEXT_IS_DESTROYED);
    IS(RAW(cuCtxDestroy)(context), INVALID_CONTEXT);
    size_t limit = 0;
    IS(RAW(cuCtxGetLimit)(&limit, CU_LIMIT_STACK_SIZE), CONTEXT_IS_DESTROYED);
    unsigned long long id = 0;
    IS(RAW(cuCtxGetId)(nullptr, &id), CONTEXT_IS_DESTROYED);
    IS(RAW(cuCtxGetId)(context, &id), CONTEXT_IS_DESTROYED);
    unsigned value = 0;
    IS(RAW(cuCtxGetApiVersion)(nullptr, &value), CONTEXT_IS_DESTROYED);
    IS(RAW(cuCtxGetApiVersion)(context, &value), INVALID_CONTEXT);
    IS(RAW(cuCtxRecordEvent)(context, event), CONTEXT_IS_DESTROYED);
    IS(RAW(cuCtxWaitEvent)(context, event), CONTEXT_IS_DESTROYED);
    CUdevResource resource = {};
    IS(RAW(cuCtxGetDevResource)(context, &resource, CU_DEV_RESOURCE_TYPE_SM), CONTEXT_IS_DESTROYED);
    OK(RAW(cuCtxGetFlags)(&value));
    CUdevice device = -1;
    OK(RAW(cuCtxGetDevice)(&device));
    OK(RAW(cuCtxGetDevice_v2)(&device, context));
    OK(RAW(cuCtxPushCurrent)(context));
    OK(RAW(cuCtxPopCurrent)(nullptr));
    OK(RAW(cuCtxPopCurrent)(nullptr));
    OK(RAW(cuMemAlloc)(&pointer, 16));
    OK(RAW(cuMemFree)(pointer));
    OK(RAW(cuEventDestroy)(event));
  }
}

BOOST_AUTO_TEST_CASE(a_destroyed_green_handle_gives_an_error) {
  Green green;
  const CUgreenCtx raw = green.raw;
  const CUevent event = CreateEventIn(green.primary);
  SetStack({green.context});
  green.Destroy();
  IS(RAW(cuGreenCtxDestroy)(raw), CONTEXT_IS_DESTROYED);
  CUcontext context = nullptr;
  IS(RAW(cuCtxFromGreenCtx)(&context, raw), CONTEXT_IS_DESTROYED);
  unsigned long long id = 0;
  IS(RAW(cuGreenCtxGetId)(raw, &id), CONTEXT_IS_DESTROYED);
  CUstream stream = nullptr;
  IS(RAW(cuGreenCtxStreamCreate)(&stream, raw, CU_STREAM_NON_BLOCKING, 0), CONTEXT_IS_DESTROYED);
  CUdevResource resource = {};
  IS(RAW(cuGreenCtxGetDevResource)(raw, &resource, CU_DEV_RESOURCE_TYPE_SM), CONTEXT_IS_DESTROYED);
  IS(RAW(cuGreenCtxRecordEvent)(raw, event), CONTEXT_IS_DESTROYED);
  IS(RAW(cuGreenCtxWaitEvent)(raw, event), CONTEXT_IS_DESTROYED);
  SetStack({});
  OK(RAW(cuEventDestroy)(event));
}

BOOST_AUTO_TEST_CASE(the_primary_is_not_reset_under_a_green_context) {
  {
    const Green green;
    const auto id = IdOf(green.primary);
    IS(RAW(cuDevicePrimaryCtxReset)(0), NOT_PERMITTED);
    BOOST_TEST(IsActive(0));
    BOOST_TEST(IdOf(green.primary) == id);
    SetStack({green.context});
    OK(RAW(cuCtxSynchronize)());
  }
  IS(RAW(cuDevicePrimaryCtxRelease)(0), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(a_release_too_many_leaves_the_primary_active_for_good) {
  const CUgreenCtx green = Create();
  const CUcontext context = ContextOf(green);
  IS(RAW(cuDevicePrimaryCtxRelease)(0), NOT_PERMITTED);
  IS(RAW(cuDevicePrimaryCtxRelease)(0), INVALID_CONTEXT);
  BOOST_TEST(IsActive(0));
  SetStack({context});
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
  OK(RAW(cuGreenCtxDestroy)(green));
  BOOST_TEST(IsActive(0));
  IS(RAW(cuDevicePrimaryCtxRelease)(0), INVALID_CONTEXT);
  BOOST_TEST(IsActive(0));
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
  BOOST_TEST(!IsActive(0));
}

BOOST_AUTO_TEST_CASE(a_reset_clears_what_a_release_too_many_left) {
  const CUgreenCtx green = Create();
  IS(RAW(cuDevicePrimaryCtxRelease)(0), NOT_PERMITTED);
  OK(RAW(cuGreenCtxDestroy)(green));
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  BOOST_TEST(!IsActive(0));
  IS(RAW(cuDevicePrimaryCtxRelease)(0), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(the_next_retain_pays_for_the_stolen_reference) {
  const CUgreenCtx green = Create();
  IS(RAW(cuDevicePrimaryCtxRelease)(0), NOT_PERMITTED);
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  OK(RAW(cuGreenCtxDestroy)(green));
  BOOST_TEST(!IsActive(0));
  IS(RAW(cuDevicePrimaryCtxRelease)(0), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_SUITE_END()
