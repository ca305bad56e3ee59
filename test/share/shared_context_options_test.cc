// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contexts with an execution affinity and for CUDA in Graphics. Both work on the simulation where
// a case says so; on a GPU an affinity needs an MPS server, and the data of a graphics client are
// refused.

#include "cuguest/shared_context.h"
#include "cuguest/sm_count.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(shared_context_options)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::SharedContext;
using cuguest::SmCount;
using cuguest::SmCountOf;
using cuguest_test::GetStack;
using cuguest_test::NeedsDriver;
using cuguest_test::NeedsDriverBefore;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);

// Makes the simulation support both.
struct Supported {
  Supported() { Set(true); }
  ~Supported() { Set(false); }
  static void Set(bool supported) {
    Sim::SupportExecAffinity(supported);
    Sim::SupportCig(supported);
  }
};

SharedContext::Options Affinity(unsigned count) {
  SharedContext::Options options;
  options.execution_affinity = SmCount{count};
  return options;
}

char blob[64];

const CUctxCigParam kCig = {CIG_DATA_TYPE_NV_BLOB, blob};
const CUctxCigParam kNoCig = {CIG_DATA_TYPE_NV_BLOB, nullptr};

SharedContext::Options Cig(const CUctxCigParam& cig = kCig) {
  SharedContext::Options options;
  options.cig = &cig;
  return options;
}

// Which must fail.
absl::Status Refusal(const SharedContext::Options& options, Device device = kFirst,
                     const char* failing = nullptr) {
  const OwnContext callers;
  SetStack({callers.get()});
  const auto before = Sim::Live();
  if (failing != nullptr) Sim::FailCall(failing, 1, CUDA_ERROR_OPERATING_SYSTEM);
  const absl::Status status = ToStatus(SharedContext::Create(device, options));
  Sim::ClearFaults();
  BOOST_TEST(!status.ok());
  BOOST_TEST(GetStack() == (Stack{callers.get()}));
  SetStack({});
  BOOST_TEST((Sim::Live() == before), "leaked");
  return status;
}

bool Says(const absl::Status& status, const char* words) {
  return absl::StrContains(std::string(status.message()), words);
}

bool HasExecAffinity() {
  const auto supports = RAW(cuDeviceGetExecAffinitySupport);
  int has = 0;
  BOOST_TEST(supports(&has, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0) == CUDA_SUCCESS);
  return has != 0;
}
bool HasNoExecAffinity() { return !HasExecAffinity(); }
bool MayHaveExecAffinity() { return Sim::IsActive() || HasExecAffinity(); }

size_t CigLimitOf(const SharedContext& context) {
  const ContextGuard guard(context.context());
  size_t enabled = 77;
  BOOST_TEST(RAW(cuCtxGetLimit)(&enabled, CU_LIMIT_CIG_ENABLED) == CUDA_SUCCESS);
  return enabled;
}

unsigned FlagsOf(const SharedContext& context) {
  const ContextGuard guard(context.context());
  unsigned flags = 0;
  BOOST_TEST(RAW(cuCtxGetFlags)(&flags) == CUDA_SUCCESS);
  return flags & CU_CTX_SCHED_MASK;
}

}  // namespace

BOOST_AUTO_TEST_CASE(flags_alone_make_a_plain_context) {
  SharedContext::Options options;
  options.flags = CU_CTX_SCHED_YIELD;
  BOOST_TEST(SmCountOf(kFirst).ok());  // the driver is found, and initialised
  Sim::ResetCalls();
  SharedContext shared = SharedContext::Create(kFirst, options);
  if (Sim::IsActive()) BOOST_TEST(Sim::TotalCalls() == 3u);
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(FlagsOf(shared) == CU_CTX_SCHED_YIELD);
  BOOST_TEST((SmCountOf(shared.context()).value() == SmCountOf(kFirst).value()));
  BOOST_TEST(shared.Release().ok());
}

BOOST_AUTO_TEST_CASE(an_affinity_reaches_the_driver,
                     *NeedsDriver(11040, "cuCtxCreate_v3") *
                         cuguest_test::OnlyIf(&MayHaveExecAffinity, "needs a client of MPS")) {
  const Supported supported;
  const OwnContext callers;
  SetStack({callers.get()});
  const auto before = Sim::Live();
  for (const unsigned count : {1u, 7u, 16u, 132u}) {
    SharedContext::Options options = Affinity(count);
    options.flags = CU_CTX_SCHED_BLOCKING_SYNC;
    Sim::ResetCalls();
    SharedContext shared = SharedContext::Create(kFirst, options);
    if (Sim::IsActive()) BOOST_TEST(Sim::TotalCalls() == 4u);
    BOOST_TEST(GetStack() == (Stack{callers.get()}));
    const SmCount given = SmCountOf(shared.context()).value();
    BOOST_TEST_MESSAGE(count << " SMs asked for, " << static_cast<unsigned>(given) << " given");
    BOOST_TEST((given == SmCount{std::max(8u, (count + 1) / 2 * 2)}));
    BOOST_TEST(FlagsOf(shared) == CU_CTX_SCHED_BLOCKING_SYNC);
    BOOST_TEST((shared.owner() == SharedContext::Owner::kShared));
    {
      const ContextGuard guard(shared.context());
      BOOST_TEST(GetStack() == (Stack{callers.get(), shared.get()}));
    }
    BOOST_TEST(GetStack() == (Stack{callers.get()}));
    BOOST_TEST(shared.Release().ok());
  }
  BOOST_TEST((Sim::Live() == before));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(too_many_sms_are_refused,
                     *NeedsDriver(11040, "cuCtxCreate_v3") *
                         cuguest_test::OnlyIf(&MayHaveExecAffinity, "needs a client of MPS")) {
  const Supported supported;
  const absl::Status status = Refusal(Affinity(100000));
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY));
  BOOST_TEST(Says(status, "an execution affinity of 100000 SMs"), status.ToString());
  BOOST_TEST(Says(status, "of no more SMs than the device has"), status.ToString());
}

BOOST_AUTO_TEST_CASE(cig_data_reaches_the_driver,
                     *OnlySim() * NeedsDriver(12050, "cuCtxCreate_v4")) {
  const Supported supported;
  SharedContext shared = SharedContext::Create(kFirst, Cig());
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(CigLimitOf(shared) == 1u);
  SharedContext plain = SharedContext::Create(kFirst);
  BOOST_TEST(CigLimitOf(plain) == 0u);
  BOOST_TEST(shared.Release().ok());
  BOOST_TEST(plain.Release().ok());
  BOOST_TEST(Sim::Live().contexts == 0u);
}

BOOST_AUTO_TEST_CASE(an_affinity_without_mps_is_refused,
                     *NeedsDriver(11040, "cuCtxCreate_v3") *
                         cuguest_test::OnlyIf(&HasNoExecAffinity, "needs a process without MPS")) {
  const absl::Status status = Refusal(Affinity(16));
  BOOST_TEST((status.code() == absl::StatusCode::kUnimplemented), status.ToString());
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY));
  BOOST_TEST(Says(status,
                  "create a shared context, device 0, flags 0x0, with an execution "
                  "affinity of 16 SMs, which only a client of an MPS server can have"));
}

BOOST_AUTO_TEST_CASE(cig_without_support_is_refused, *NeedsDriver(12050, "cuCtxCreate_v4")) {
  const absl::Status status = Refusal(Cig());
  BOOST_TEST((status.code() == absl::StatusCode::kUnimplemented), status.ToString());
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_NOT_SUPPORTED));
  BOOST_TEST(Says(status, "for CUDA in Graphics with data of type 2: ask cuDeviceGetAttribute"),
             status.ToString());
}

BOOST_AUTO_TEST_CASE(an_older_driver_is_named, *NeedsDriverBefore(12050, "cuCtxCreate_v4")) {
  const absl::Status status = Refusal(Cig());
  BOOST_TEST((status.code() == absl::StatusCode::kUnimplemented), status.ToString());
  BOOST_TEST(Says(status, "has no cuCtxCreate of CUDA 12.5; driver 555.42 or newer is needed"),
             status.ToString());
  BOOST_TEST((cuguest::ProblemOf(status) == cuguest::Driver::Problem::kEntryMissing));
}

BOOST_AUTO_TEST_CASE(a_missing_signature_is_named, *OnlySim()) {
  const Supported supported;
  Sim::HideEntry("cuCtxCreate");
  const absl::Status status = Refusal(Affinity(16));
  Sim::HideEntry(nullptr);
  BOOST_TEST((status.code() == absl::StatusCode::kUnimplemented), status.ToString());
  BOOST_TEST(Says(status,
                  "with an execution affinity of 16 SMs: the driver does not give a function that "
                  "this needs: this driver (CUDA"));
  BOOST_TEST(Says(status, "has no cuCtxCreate of CUDA 11.4; a driver of CUDA"), status.ToString());
}

BOOST_AUTO_TEST_CASE(invalid_options_never_reach_the_driver) {
  const Supported supported;
  SharedContext::Options both = Affinity(16);
  both.cig = &kCig;
  const struct {
    SharedContext::Options options;
    const char* words;
  } kRows[] = {
      {Affinity(0), "an execution affinity of 0 SMs: a context needs at least one SM"},
      {Cig(kNoCig), "data of type 2: the data is null"},
      {both, "one of the two, not both"},
  };
  for (const auto& row : kRows) {
    Sim::ResetCalls();
    const absl::Status status = ToStatus(SharedContext::Create(kFirst, row.options));
    BOOST_TEST(Sim::TotalCalls() == 0u);
    BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument), status.ToString());
    BOOST_TEST(Says(status, row.words), status.ToString());
  }
}

BOOST_AUTO_TEST_CASE(driver_refusal_names_the_device,
                     *OnlySim() * NeedsDriver(11040, "cuCtxCreate_v3")) {
  const Supported supported;
  BOOST_TEST((cuguest::CodeOf(Refusal(Affinity(1000))) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY));
  SharedContext::Options unknown_flags = Affinity(16);
  unknown_flags.flags = 0x7;
  BOOST_TEST((cuguest::CodeOf(Refusal(unknown_flags)) == CUDA_ERROR_INVALID_VALUE));
  const absl::Status status = Refusal(Affinity(16), Device::Borrow(77));
  BOOST_TEST((status.code() == absl::StatusCode::kNotFound), status.ToString());
  BOOST_TEST(Says(status, "device 77, flags 0x0, with an execution affinity of 16 SMs"),
             status.ToString());
}

BOOST_AUTO_TEST_CASE(failing_driver_calls_leak_nothing,
                     *OnlySim() * NeedsDriver(12050, "cuCtxCreate_v4")) {
  const Supported supported;
  for (const char* entry : {"cuCtxCreate", "cuCtxPopCurrent", "cuCtxGetId", "cuGetProcAddress"}) {
    for (const SharedContext::Options& options : {Affinity(16), Cig()}) {
      BOOST_TEST_CONTEXT(entry) {
        const absl::Status status = Refusal(options, kFirst, entry);
        const bool is_lookup = entry == std::string("cuGetProcAddress");
        BOOST_TEST((status.code() ==
                    (is_lookup ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInternal)),
                   status.ToString());
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
