// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuCtxAttach and cuCtxDetach: the driver's own count, and why it is not to be used.

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(attach_facts)

using namespace cudasim_facts;

namespace {

// Types of our own: <cuda.h> marks the two as deprecated.
using AttachFunction = CUresult (*)(CUcontext*, unsigned);
using DetachFunction = CUresult (*)(CUcontext);

CUresult Attach(CUcontext* context, unsigned flags) {
  return RAW_AS(AttachFunction, "cuCtxAttach")(context, flags);
}

CUresult Detach(CUcontext context) { return RAW_AS(DetachFunction, "cuCtxDetach")(context); }

}  // namespace

BOOST_AUTO_TEST_CASE(attach_needs_a_current_context_and_no_flags) {
  CUcontext out = nullptr;
  IS(Attach(&out, 0), INVALID_CONTEXT);
  IS(Detach(nullptr), INVALID_CONTEXT);
  const OwnContext a;
  SetStack({a.get()});
  IS(Attach(&out, 1), INVALID_VALUE);
  IS(Attach(nullptr, 0), INVALID_VALUE);
  IS(Detach(nullptr), INVALID_CONTEXT);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(detach_only_of_the_current_context) {
  OwnContext a;
  const OwnContext b;
  IS(Detach(a.get()), INVALID_CONTEXT);
  SetStack({a.get(), b.get()});
  IS(Detach(a.get()), INVALID_CONTEXT);
  BOOST_CHECK((GetStack() == Entries{a.get(), b.get()}));
  IdOf(a.get());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(detach_of_nothing_where_a_dead_context_is_current) {
  const OwnContext a;
  OwnContext b;
  SetStack({a.get(), b.get(), b.get()});
  CUcontext out = nullptr;
  OK(RAW(cuCtxDestroy)(b.release()));
  IS(Attach(&out, 0), CONTEXT_IS_DESTROYED);
  IS(Detach(a.get()), CONTEXT_IS_DESTROYED);
  IS(Detach(CurrentContext()), CONTEXT_IS_DESTROYED);
  IS(Detach(nullptr), CONTEXT_IS_DESTROYED);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(detach_to_zero_destroys_and_pops) {
  OwnContext a;
  const CUcontext dead = a.release();
  SetStack({dead});
  CUcontext out = nullptr;
  OK(Attach(&out, 0));
  BOOST_CHECK(out == dead);
  OK(Attach(&out, 0));
  OK(Detach(dead));
  OK(Detach(dead));
  BOOST_CHECK(CurrentContext() == dead);
  IdOf(dead);
  OK(Detach(dead));
  BOOST_CHECK(CurrentContext() == nullptr);
  unsigned long long id = 0;
  IS(RAW(cuCtxGetId)(dead, &id), CONTEXT_IS_DESTROYED);
  IS(Detach(dead), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(detach_to_zero_pops_one_entry) {
  OwnContext a;
  const CUcontext dead = a.release();
  SetStack({dead, dead});
  OK(Detach(dead));
  BOOST_CHECK(CurrentContext() == dead);
  CUdeviceptr pointer = 0;
  IS(RAW(cuMemAlloc)(&pointer, 16), CONTEXT_IS_DESTROYED);
  OK(RAW(cuCtxPopCurrent)(nullptr));
  BOOST_CHECK(CurrentContext() == nullptr);
}

BOOST_AUTO_TEST_CASE(destroy_ignores_the_count) {
  OwnContext a;
  SetStack({a.get()});
  CUcontext out = nullptr;
  OK(Attach(&out, 0));
  OK(RAW(cuCtxDestroy)(a.release()));
  BOOST_CHECK(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(the_count_belongs_to_the_context_not_to_the_thread) {
  OwnContext a;
  const CUcontext context = a.release();
  SetStack({context});
  OnAnotherThread([=] {
    CUcontext out = nullptr;
    OK(RAW(cuCtxPushCurrent)(context));
    OK(Attach(&out, 0));
    OK(Detach(context));
    BOOST_CHECK(CurrentContext() == context);
    OK(RAW(cuCtxPopCurrent)(nullptr));
  });
  IdOf(context);
  OK(Detach(context));
  BOOST_CHECK(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(on_a_primary_context_the_count_means_nothing) {
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  CUcontext out = nullptr;
  OK(Attach(&out, 0));
  BOOST_CHECK(out == primary);
  for (int i = 0; i < 3; ++i) {
    OK(Detach(primary));
    BOOST_TEST(IsActive(0));
    BOOST_CHECK(CurrentContext() == primary);
  }
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
  BOOST_TEST(!IsActive(0));
}

BOOST_AUTO_TEST_SUITE_END()
