// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/sm_count.h"

#include <string>

#include "cudasim/sim.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(sm_count)

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::PrimaryContext;
using cuguest::SmCount;
using cuguest::SmCountOf;
using cuguest_test::GetStack;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);

SmCount All() {
  int count = 0;
  BOOST_TEST(RAW(cuDeviceGetAttribute)(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) ==
             CUDA_SUCCESS);
  return SmCount{static_cast<unsigned>(count)};
}

bool HasGreenContexts() { return cuguest_test::FindRawSymbol("cuGreenCtxCreate") != nullptr; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_device_has_all_of_them) {
  BOOST_TEST((SmCountOf(kFirst).value() == All()));
  BOOST_TEST(!PrimaryContext::Query(kFirst).active);
  const absl::Status status = SmCountOf(Device::Borrow(77)).status();
  BOOST_TEST((status.code() == absl::StatusCode::kNotFound), status.ToString());
}

BOOST_AUTO_TEST_CASE(plain_context_has_all_sms) {
  const OwnContext own;
  const OwnContext callers;
  SetStack({callers.get()});
  BOOST_TEST((SmCountOf(ContextRef::Borrow(own.get())).value() == All()));
  BOOST_TEST((SmCountOf(ContextRef::Borrow(callers.get())).value() == All()));
  BOOST_TEST(GetStack() == (Stack{callers.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_green_context_has_its_part,
                     *cuguest_test::OnlyIf(&HasGreenContexts, "needs green contexts")) {
  CUdevResource all = {};
  CUdevResource part = {};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  unsigned groups = 1;
  BOOST_TEST(RAW(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuDevSmResourceSplitByCount)(&part, &groups, &all, nullptr, 0, 1) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuDevResourceGenerateDesc)(&description, &part, 1) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
             CUDA_SUCCESS);
  BOOST_TEST(RAW(cuCtxFromGreenCtx)(&context, green) == CUDA_SUCCESS);
  BOOST_TEST((SmCountOf(ContextRef::Borrow(context)).value() == SmCount{part.sm.smCount}));
  BOOST_TEST(part.sm.smCount < all.sm.smCount);
  BOOST_TEST(RAW(cuGreenCtxDestroy)(green) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(empty_and_destroyed_contexts_are_refused) {
  BOOST_TEST(!SmCountOf(ContextRef()).ok());
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  const ContextRef before = primary.context();
  BOOST_TEST(primary.Release().ok());
  const absl::Status status = SmCountOf(before).status();
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_CONTEXT_IS_DESTROYED));
}

BOOST_AUTO_TEST_CASE(it_costs_what_the_header_says, *OnlySim()) {
  const OwnContext own;
  const ContextRef ref = ContextRef::Borrow(own.get());
  for (const bool is_current : {false, true}) {
    SetStack(is_current ? Stack{own.get()} : Stack{});
    cuguest_test::BeginCount();
    BOOST_TEST(SmCountOf(ref).ok());
    BOOST_TEST(Sim::TotalCalls() == (is_current ? 4u : 6u));
  }
  SetStack({});
  Sim::ResetCalls();
  BOOST_TEST(SmCountOf(kFirst).ok());
  BOOST_TEST(Sim::TotalCalls() == 1u);
}

BOOST_AUTO_TEST_CASE(what_the_driver_refuses_is_returned, *OnlySim()) {
  const OwnContext own;
  const ContextRef ref = ContextRef::Borrow(own.get());
  Sim::FailCall("cuCtxGetExecAffinity", 1, CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST((cuguest::CodeOf(SmCountOf(ref).status()) == CUDA_ERROR_OPERATING_SYSTEM));
  // A driver that has no affinities at all.
  for (const CUresult code : {CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, CUDA_ERROR_INVALID_CONTEXT}) {
    Sim::FailCall("cuCtxGetExecAffinity", 1, code);
    BOOST_TEST((SmCountOf(ref).value() == All()));
  }
  for (const char* asked : {"cuCtxGetDevResource", "cuCtxGetDevice", "cuDeviceGetAttribute"}) {
    if (cuguest_test::HasDriver(12040) != (asked == std::string("cuCtxGetDevResource"))) continue;
    Sim::FailCall("cuCtxGetExecAffinity", 1, CUDA_ERROR_INVALID_CONTEXT);
    Sim::FailCall(asked, 1, CUDA_ERROR_OPERATING_SYSTEM);
    BOOST_TEST((cuguest::CodeOf(SmCountOf(ref).status()) == CUDA_ERROR_OPERATING_SYSTEM), asked);
  }
  Sim::FailCall("cuDeviceGetAttribute", 1, CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST((cuguest::CodeOf(SmCountOf(kFirst).status()) == CUDA_ERROR_OPERATING_SYSTEM));
  Sim::ClearFaults();
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_SUITE_END()
