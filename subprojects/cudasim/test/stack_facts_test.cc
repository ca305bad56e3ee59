// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stack of contexts.

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(stack_facts)

using namespace cudasim_facts;

BOOST_AUTO_TEST_CASE(push_of_null_is_invalid_and_changes_nothing) {
  const OwnContext a;
  SetStack({a.get()});
  IS(RAW(cuCtxPushCurrent)(nullptr), INVALID_VALUE);
  BOOST_CHECK(GetStack() == Entries{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(pop_of_empty_stack_writes_nothing) {
  auto out = reinterpret_cast<CUcontext>(0x77);
  IS(RAW(cuCtxPopCurrent)(&out), INVALID_CONTEXT);
  BOOST_CHECK(out == reinterpret_cast<CUcontext>(0x77));
}

BOOST_AUTO_TEST_CASE(pop_gives_the_top_and_may_be_given_null) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get(), b.get()});
  CUcontext out = nullptr;
  OK(RAW(cuCtxPopCurrent)(&out));
  BOOST_CHECK(out == b.get());
  OK(RAW(cuCtxPopCurrent)(nullptr));
  BOOST_CHECK(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(set_current_replaces_the_top) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get(), b.get()});
  OK(RAW(cuCtxSetCurrent)(c.get()));
  BOOST_CHECK((GetStack() == Entries{a.get(), c.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(set_current_on_empty_stack_pushes) {
  const OwnContext a;
  OK(RAW(cuCtxSetCurrent)(a.get()));
  BOOST_CHECK(GetStack() == Entries{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(set_current_of_null_pops_one_entry) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get(), b.get()});
  OK(RAW(cuCtxSetCurrent)(nullptr));
  BOOST_CHECK(GetStack() == Entries{a.get()});
  OK(RAW(cuCtxSetCurrent)(nullptr));
  OK(RAW(cuCtxSetCurrent)(nullptr));  // on the empty stack: nothing
  BOOST_CHECK(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(the_same_context_may_be_pushed_many_times) {
  constexpr int kTimes = 100000;
  const OwnContext a;
  for (int i = 0; i < kTimes; ++i) BOOST_REQUIRE(RAW(cuCtxPushCurrent)(a.get()) == CUDA_SUCCESS);
  int pops = 0;
  while (RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS) ++pops;
  BOOST_TEST(pops == kTimes);
}

BOOST_AUTO_TEST_CASE(create_pushes) {
  CUcontext a = nullptr;
  OK(RAW(cuCtxCreate)(&a, nullptr, 0, 0));
  BOOST_CHECK(GetStack() == Entries{a});
  OK(RAW(cuCtxDestroy)(a));
  BOOST_CHECK(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(create_accepts_zeroed_parameters) {
  CUctxCreateParams parameters = {};
  CUcontext a = nullptr;
  OK(RAW(cuCtxCreate)(&a, &parameters, 0, 0));
  OK(RAW(cuCtxDestroy)(a));
}

BOOST_AUTO_TEST_CASE(each_thread_has_its_own_stack) {
  const OwnContext a;
  SetStack({a.get()});
  OnAnotherThread([&] {
    BOOST_CHECK(CurrentContext() == nullptr);
    OK(RAW(cuCtxPushCurrent)(a.get()));
    OK(RAW(cuCtxPopCurrent)(nullptr));
  });
  BOOST_CHECK(GetStack() == Entries{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_thread_may_end_with_contexts_on_its_stack) {
  OwnContext a;
  OnAnotherThread([&] {
    OK(RAW(cuCtxPushCurrent)(a.get()));
    OK(RAW(cuCtxPushCurrent)(a.get()));
  });
  OK(RAW(cuCtxPushCurrent)(a.get()));
  CUdeviceptr pointer = 0;
  OK(RAW(cuMemAlloc)(&pointer, 16));
  OK(RAW(cuMemFree)(pointer));
  OK(RAW(cuCtxPopCurrent)(nullptr));
  OK(RAW(cuCtxDestroy)(a.release()));
}

BOOST_AUTO_TEST_CASE(get_current_of_null_is_invalid) {
  IS(RAW(cuCtxGetCurrent)(nullptr), INVALID_VALUE);
  CUcontext out = reinterpret_cast<CUcontext>(0x77);
  OK(RAW(cuCtxGetCurrent)(&out));
  BOOST_CHECK(out == nullptr);
}

BOOST_AUTO_TEST_CASE(identity_is_the_same_on_every_thread) {
  const OwnContext a;
  const auto id = IdOf(a.get());
  OnAnotherThread([&] {
    BOOST_TEST(IdOf(a.get()) == id);
    OK(RAW(cuCtxPushCurrent)(a.get()));
    BOOST_TEST(IdOf(nullptr) == id);
    OK(RAW(cuCtxPopCurrent)(nullptr));
  });
}

BOOST_AUTO_TEST_CASE(ids_are_never_used_again) {
  unsigned long long last = 0;
  for (int i = 0; i < 4; ++i) {
    OwnContext::DestroyIdle();
    const OwnContext a;
    const auto id = IdOf(a.get());
    BOOST_TEST(id > last);
    last = id;
  }
}

BOOST_AUTO_TEST_CASE(nothing_current_is_invalid_context) {
  CUdevice device = 77;
  IS(RAW(cuCtxGetDevice)(&device), INVALID_CONTEXT);
  BOOST_TEST(device == 77);
  IS(RAW(cuCtxGetDevice)(nullptr), INVALID_VALUE);
  unsigned long long id = 77;
  IS(RAW(cuCtxGetId)(nullptr, &id), INVALID_CONTEXT);
  BOOST_TEST(id == 77u);
  IS(RAW(cuCtxGetId)(nullptr, nullptr), INVALID_VALUE);
  unsigned value = 0;
  IS(RAW(cuCtxGetFlags)(&value), INVALID_CONTEXT);
  IS(RAW(cuCtxGetApiVersion)(nullptr, &value), INVALID_CONTEXT);
  IS(RAW(cuCtxGetApiVersion)(nullptr, nullptr), INVALID_CONTEXT);
  IS(RAW(cuCtxGetDevice_v2)(&device, nullptr), INVALID_CONTEXT);
  IS(RAW(cuCtxSynchronize)(), INVALID_CONTEXT);
  IS(RAW(cuCtxSynchronize_v2)(nullptr), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(one_current_answers_for_null) {
  const OwnContext a;
  SetStack({a.get()});
  unsigned version = 0;
  OK(RAW(cuCtxGetApiVersion)(nullptr, &version));
  BOOST_TEST(version == 3020u);
  IS(RAW(cuCtxGetApiVersion)(a.get(), nullptr), INVALID_VALUE);
  IS(RAW(cuCtxGetApiVersion)(nullptr, nullptr), INVALID_VALUE);
  IS(RAW(cuCtxGetId)(a.get(), nullptr), INVALID_VALUE);
  BOOST_TEST(IdOf(nullptr) == IdOf(a.get()));
  CUdevice device = -1;
  OK(RAW(cuCtxGetDevice)(&device));
  BOOST_TEST(device == 0);
  OK(RAW(cuCtxGetDevice_v2)(&device, nullptr));
  IS(RAW(cuCtxGetDevice_v2)(nullptr, a.get()), INVALID_VALUE);
  IS(RAW(cuCtxCreate)(nullptr, nullptr, 0, 0), INVALID_VALUE);
  IS(RAW(cuCtxDestroy)(nullptr), INVALID_VALUE);
  BOOST_CHECK(GetStack() == Entries{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
