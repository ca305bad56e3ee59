// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contexts that were destroyed: what is left on stacks, what their handles answer.

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(destroyed_facts)

using namespace cudasim_facts;

namespace {

// Destroys a fresh A on the stack that `shape` describes ("BAA", bottom first), and
// compares the stack afterwards, and whether its top is dead.
void CheckDestroy(const char* shape, const char* after, bool top_is_dead) {
  BOOST_TEST_CONTEXT("Destroy(A) on " << shape) {
    OwnContext a;
    const OwnContext b;
    const auto entries = [&](const char* letters) {
      Entries all;
      for (; *letters != '\0'; ++letters) all.push_back(*letters == 'A' ? a.get() : b.get());
      return all;
    };
    SetStack(entries(shape));
    const Entries expected = entries(after);
    OK(RAW(cuCtxDestroy)(a.release()));
    BOOST_CHECK((CurrentContext() == (expected.empty() ? nullptr : expected.back())));
    CUdeviceptr pointer = 0;
    BOOST_CHECK_EQUAL(RAW(cuMemAlloc)(&pointer, 16), expected.empty() ? CUDA_ERROR_INVALID_CONTEXT
                                                     : top_is_dead ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                   : CUDA_SUCCESS);
    if (pointer != 0) OK(RAW(cuMemFree)(pointer));
    for (size_t i = expected.size(); i > 0; --i) {
      CUcontext popped = nullptr;
      OK(RAW(cuCtxPopCurrent)(&popped));
      BOOST_CHECK(popped == expected[i - 1]);
    }
    IS(RAW(cuCtxPopCurrent)(nullptr), INVALID_CONTEXT);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(destroy_pops_one_entry_and_only_from_the_top) {
  CheckDestroy("A", "", false);
  CheckDestroy("BA", "B", false);
  CheckDestroy("AB", "AB", false);
  CheckDestroy("AAB", "AAB", false);
  CheckDestroy("ABA", "AB", false);
  CheckDestroy("AA", "A", true);
  CheckDestroy("AAA", "AA", true);
  CheckDestroy("BAA", "BA", true);
}

BOOST_AUTO_TEST_CASE(destroy_on_another_thread_leaves_the_entry) {
  const OwnContext b;
  OwnContext a;
  const CUcontext dead = a.release();
  SetStack({b.get(), dead});
  OnAnotherThread([=] { OK(RAW(cuCtxDestroy)(dead)); });
  BOOST_CHECK(CurrentContext() == dead);
  CUcontext popped = nullptr;
  OK(RAW(cuCtxPopCurrent)(&popped));
  BOOST_CHECK(popped == dead);
  BOOST_CHECK(GetStack() == Entries{b.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_dead_current_context_answers_who_it_was) {
  const CUcontext dead = PushDeadContext();
  BOOST_CHECK(CurrentContext() == dead);
  CUdevice device = -1;
  OK(RAW(cuCtxGetDevice)(&device));
  BOOST_TEST(device == 0);
  OK(RAW(cuCtxGetDevice_v2)(&device, nullptr));
  OK(RAW(cuCtxGetDevice_v2)(&device, dead));  // its memory lives while it is on a stack
  unsigned flags = 77;
  OK(RAW(cuCtxGetFlags)(&flags));
  BOOST_TEST(flags == 0u);
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

BOOST_AUTO_TEST_CASE(a_dead_current_context_is_destroyed_for_everything_else) {
  PushDeadContext();
  size_t size = 77;
  IS(RAW(cuCtxGetLimit)(&size, CU_LIMIT_STACK_SIZE), CONTEXT_IS_DESTROYED);
  IS(RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 2048), CONTEXT_IS_DESTROYED);
  CUfunc_cache cache = {};
  IS(RAW(cuCtxGetCacheConfig)(&cache), CONTEXT_IS_DESTROYED);
  IS(RAW(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_L1), CONTEXT_IS_DESTROYED);
  int least = 77;
  IS(RAW(cuCtxGetStreamPriorityRange)(&least, &least), CONTEXT_IS_DESTROYED);
  BOOST_TEST(least == 77);
  CUexecAffinityParam affinity = {};
  IS(RAW(cuCtxGetExecAffinity)(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT), CONTEXT_IS_DESTROYED);
  IS(RAW(cuCtxResetPersistingL2Cache)(), CONTEXT_IS_DESTROYED);
  unsigned version = 0;
  IS(RAW(cuCtxGetApiVersion)(nullptr, &version), CONTEXT_IS_DESTROYED);
  unsigned long long id = 77;
  IS(RAW(cuCtxGetId)(nullptr, &id), CONTEXT_IS_DESTROYED);
  BOOST_TEST(id == 77u);
  IS(RAW(cuCtxSynchronize)(), CONTEXT_IS_DESTROYED);
  CUcontext context = nullptr;
  using Attach = CUresult (*)(CUcontext*, unsigned);  // cuda.h's is marked deprecated
  IS(RAW_AS(Attach, "cuCtxAttach")(&context, 0), CONTEXT_IS_DESTROYED);
  CUdeviceptr pointer = 0;
  IS(RAW(cuMemAlloc)(&pointer, 16), CONTEXT_IS_DESTROYED);
  void* host = nullptr;
  IS(RAW(cuMemAllocHost)(&host, 16), CONTEXT_IS_DESTROYED);
  IS(RAW(cuMemGetInfo)(&size, &size), CONTEXT_IS_DESTROYED);
  CUmodule module = nullptr;
  IS(RAW(cuModuleLoadData)(&module, kPtx), CONTEXT_IS_DESTROYED);
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

BOOST_AUTO_TEST_CASE(a_dead_current_context_has_no_streams_and_events) {
  PushDeadContext();
  CUcontext context = nullptr;
  IS(RAW(cuStreamGetCtx)(nullptr, &context), CONTEXT_IS_DESTROYED);
  CUstream stream = nullptr;
  IS(RAW(cuStreamCreate)(&stream, 0), CONTEXT_IS_DESTROYED);
  IS(RAW(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, 0), CONTEXT_IS_DESTROYED);
  IS(RAW(cuStreamSynchronize)(nullptr), CONTEXT_IS_DESTROYED);
  IS(RAW(cuStreamQuery)(nullptr), CONTEXT_IS_DESTROYED);
  CUstreamCaptureStatus status = {};
  IS(RAW(cuStreamIsCapturing)(nullptr, &status), CONTEXT_IS_DESTROYED);
  CUevent event = nullptr;
  IS(RAW(cuEventCreate)(&event, 0), CONTEXT_IS_DESTROYED);
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

BOOST_AUTO_TEST_CASE(over_a_dead_context_others_work) {
  const OwnContext b;
  const CUcontext dead = PushDeadContext();
  OK(RAW(cuCtxPushCurrent)(b.get()));
  CUdeviceptr pointer = 0;
  OK(RAW(cuMemAlloc)(&pointer, 16));
  OK(RAW(cuCtxPopCurrent)(nullptr));
  BOOST_CHECK(CurrentContext() == dead);
  char bytes[16] = {};
  IS(RAW(cuMemcpyDtoH)(bytes, pointer, 16), CONTEXT_IS_DESTROYED);
  IS(RAW(cuMemFree)(pointer), CONTEXT_IS_DESTROYED);  // with nothing current it would work
  CUcontext owner = nullptr;
  OK(RAW(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer));
  BOOST_CHECK(owner == b.get());
  CUcontext created = nullptr;
  OK(RAW(cuCtxCreate)(&created, nullptr, 0, 0));
  OK(RAW(cuCtxDestroy)(created));
  BOOST_CHECK(CurrentContext() == dead);
  OK(RAW(cuCtxSetCurrent)(b.get()));
  BOOST_CHECK(GetStack() == Entries{b.get()});
  SetStack({});
  OK(RAW(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(a_destroyed_handle_answers_for_itself) {
  OwnContext a;
  const CUcontext dead = a.release();
  OK(RAW(cuCtxDestroy)(dead));
  unsigned long long id = 77;
  IS(RAW(cuCtxGetId)(dead, &id), CONTEXT_IS_DESTROYED);
  BOOST_TEST(id == 77u);
  unsigned version = 77;
  IS(RAW(cuCtxGetApiVersion)(dead, &version), INVALID_CONTEXT);
  BOOST_TEST(version == 77u);
}

BOOST_AUTO_TEST_CASE(destroying_twice_fails) {
  const CUcontext dead = PushDeadContext();
  IS(RAW(cuCtxDestroy)(dead), CONTEXT_IS_DESTROYED);  // while it is on a stack
  OK(RAW(cuCtxPopCurrent)(nullptr));
  const CUresult code = RAW(cuCtxDestroy)(dead);  // either, once its memory is gone
  BOOST_TEST((code == CUDA_ERROR_INVALID_CONTEXT || code == CUDA_ERROR_CONTEXT_IS_DESTROYED));
}

BOOST_AUTO_TEST_CASE(a_dead_entry_may_be_pushed_again_while_it_is_on_a_stack) {
  const CUcontext dead = PushDeadContext();
  OK(RAW(cuCtxPushCurrent)(dead));
  BOOST_CHECK((CurrentContext() == dead));
  OK(RAW(cuCtxPopCurrent)(nullptr));
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

BOOST_AUTO_TEST_CASE(a_handle_is_not_used_again_while_it_is_on_a_stack) {
  const CUcontext dead = PushDeadContext();
  {
    const OwnContext first;
    const OwnContext second;
    BOOST_CHECK(first.get() != dead);
    BOOST_CHECK(second.get() != dead);
    BOOST_CHECK(CurrentContext() == dead);
  }
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

// On a real driver it is the allocator's choice, and was seen to happen or not; the
// simulation always takes the worse one.
BOOST_AUTO_TEST_CASE(a_handle_is_used_again_once_it_is_on_no_stack, *cudasim_test::OnlySim()) {
  const CUcontext dead = PushDeadContext();
  OK(RAW(cuCtxPopCurrent)(nullptr));
  const OwnContext later;
  BOOST_CHECK(later.get() == dead);
}

BOOST_AUTO_TEST_SUITE_END()
