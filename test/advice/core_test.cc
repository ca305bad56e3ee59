// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What texts of the core, of the driver's codes and of versions advise is done.

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/compatibility.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/green_context.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/stream.h"
#include "cuguest/shared_context.h"
#include "cuguest/sm_split.h"
#include "cuguest/status.h"
#include "test/objects/memory/memories.h"
#include "test/support/advised.h"
#include "test/support/scenario.h"

BOOST_AUTO_TEST_SUITE(core)

namespace {

using cuguest::Device;
using cuguest::Driver;
using cuguest::IfInactive;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest::SmCount;
using cuguest::ToStatus;
using cuguest::Versions;
using namespace cuguest_test;

const Device kFirst = Device::Borrow(0);

Versions Of(int toolkit, int runtime, int driver) {
  Versions versions;
  versions.toolkit = toolkit;
  versions.runtime = runtime;
  versions.driver = driver;
  versions.devices = 1;
  versions.kernel_module = "535.104.05";
  versions.library = "/usr/lib/libcuda.so.535.104.05";
  return versions;
}

absl::Status Check(const Versions& versions) { return cuguest::CheckCompatibility(versions); }

}  // namespace

// vllm-project/vllm#20170, NVIDIA/TensorRT-LLM#448: whatever a library calls next is blamed.
BOOST_AUTO_TEST_CASE(sticky_codes_are_earlier_errors) {
  int sticky = 0;
  for (int code = 0; code < 1000; ++code) {
    const auto result = static_cast<CUresult>(code);
    const std::string text = cuguest::ErrorText(result);
    const bool says = absl::StartsWith(text, "an earlier error on this device: ");
    BOOST_TEST(says == cuguest::IsSticky(result), code << ": " << text);
    if (says) BOOST_TEST(absl::EndsWith(text, "; the device is lost, end the process"), text);
    sticky += says ? 1 : 0;
  }
  BOOST_TEST(sticky > 10);
}

// A layer in front of the driver has this call's name and not the call, as a stub or an older one.
BOOST_AUTO_TEST_CASE(call_that_the_loaded_driver_lacks) {
  const Driver* const driver = Driver::Get().value();
  REFUSES(driver->Find<CUresult(CUDAAPI*)()>("cuNoSuchCall", 12000).status(), kUnimplemented,
          "has no cuNoSuchCall", Advised("or look which libcuda was loaded"));
  BOOST_TEST(absl::StrContains(cuguest::QueryVersions().library, "libcuda"));
}

BOOST_AUTO_TEST_CASE(older_driver_is_updated, *OnlySim()) {
  Driver older;
  SUCCEEDS(Driver::Load("libcuda-11.4.so", &older));
  REFUSES(older.Require(&Driver::CtxGetId).status(), kUnimplemented, "or newer is needed",
          Advised("in front of the driver; update it"));
  Driver newer;
  SUCCEEDS(Driver::Load("libcuda-12.0.so", &newer));
  SUCCEEDS(newer.Require(&Driver::CtxGetId).status());
}

BOOST_AUTO_TEST_CASE(peer_access_stays_enabled, *NeedsPeers()) {
  const Owner owner;
  const Owner other(1);
  owner.Enter();
  OK(RAW(cuCtxEnablePeerAccess)(other.get(), 0));
  const CUresult again = RAW(cuCtxEnablePeerAccess)(other.get(), 0);
  REFUSES(ToStatus(again, "enable peer access"), kAlreadyExists,
          Advised("was enabled before: leave it"));
  OK(RAW(cuCtxDisablePeerAccess)(other.get()));  // it was there
  SetStack({});
}

BOOST_AUTO_TEST_CASE(built_again_in_a_new_context) {
  cuguest::ContextRef over;
  {
    const Owner owner;
    over = owner.ref();
  }
  OwnContext::DestroyIdle();
  const absl::Status refused = ToStatus(over.Check(), "use a context");
  if (!HasDriver(12000) && refused.ok()) return SayIsSkipped("only ids tell it, from CUDA 12.0 on");
  REFUSES(refused, kFailedPrecondition,
          Advised("everything in it is gone; build again in a new one"));
  const Owner again;
  SUCCEEDS(cuguest::Stream::Create(again.ref()).status());
}

BOOST_AUTO_TEST_CASE(affinity_without_mps, *NeedsDriver(12040, "green contexts") * OnlySim()) {
  SharedContext::Options options;
  options.execution_affinity = SmCount{16};
  const auto refusal = [&] { return ToStatus(SharedContext::Create(kFirst, options)); };
  REFUSES(refusal(), kUnimplemented, Advised("or use a GreenContext"));
  SUCCEEDS(cuguest::GreenContext::Create(kFirst, SmCount{16}).status());
}

// A process of its own, in which nothing has made the primary context.
CHILD(has_no_primary_context) {
  const CUcontext context = MakeContext();
  const auto acquired = [](IfInactive inactive) {
    return ToStatus(cuguest::AcquireOn(kFirst, inactive));
  };
  const std::string complaint =
      NoRefusal(acquired(IfInactive::kRefuse), absl::StatusCode::kFailedPrecondition,
                {Advised("creating it was not asked for. Make a context of device "),
                 Advised(" current, or ask with IfInactive::kCreate")});
  CHECK(complaint.empty());
  CHECK(RAW(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
  CHECK(acquired(IfInactive::kRefuse).ok());
  CHECK(RAW(cuCtxSetCurrent)(nullptr) == CUDA_SUCCESS);
  CHECK(acquired(IfInactive::kCreate).ok());
  return 0;
}

BOOST_AUTO_TEST_CASE(inactive_primary_context) { REQUIRE_CHILD_PASSES("has_no_primary_context"); }

BOOST_AUTO_TEST_CASE(parts_of_a_device, *NeedsDriver(12040, "green contexts")) {
  REFUSES(cuguest::SmSplit::Of(kFirst, SmCount{0}, 1).status(), kInvalidArgument,
          Advised("ask for at least one part of at least one SM"));
  SUCCEEDS(cuguest::SmSplit::Of(kFirst, SmCount{1}, 1).status());
}

BOOST_AUTO_TEST_CASE(runtime_newer_than_the_driver) {
  REFUSES(Check(Of(13000, 13000, 12020)), kUnimplemented,
          Advised(": update the driver, install cuda-compat-"),
          Advised("or use a runtime of CUDA "));
  SUCCEEDS(Check(Of(13000, 13000, 13000)));
  SUCCEEDS(Check(Of(12020, 12020, 12020)));
  Versions package = Of(13000, 13000, 13000);
  package.library = "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06";
  SUCCEEDS(Check(package));
}

BOOST_AUTO_TEST_CASE(package_that_does_not_fit) {
  Versions package = Of(13000, 13000, 13000);
  package.library = "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06";
  package.problem = ToStatus(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "initialise the CUDA driver");
  REFUSES(Check(package), kFailedPrecondition,
          Advised("take its directory out of LD_LIBRARY_PATH, or update the driver"));
  SUCCEEDS(Check(Of(12020, 12020, 12020)));  // without the package
  SUCCEEDS(Check(Of(13000, 13000, 13000)));  // with a newer driver
}

BOOST_AUTO_TEST_CASE(headers_of_another_major_version) {
  REFUSES(Check(Of(12040, 13000, 13000)), kFailedPrecondition,
          Advised("link the runtime of the toolkit that it is compiled with"));
  SUCCEEDS(Check(Of(12040, 12040, 13000)));
}

BOOST_AUTO_TEST_SUITE_END()
