// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/compatibility.h"

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_release.h"
#include "test/support/scenario.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(compatibility)

namespace {

using absl::StatusCode;
using cudasim::Sim;
using cuguest::CheckCompatibility;
using cuguest::Driver;
using cuguest::Explain;
using cuguest::QueryVersions;
using cuguest::Versions;
using cuguest::internal::IsNewer;
using cuguest::internal::ReleaseOfFile;

constexpr char kPackage[] = "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06";

Versions Of(int toolkit, int runtime, int driver, const std::string& kernel_module = "580.159.04",
            const std::string& library = "/usr/lib/libcuda.so.580.159.04") {
  Versions versions;
  versions.toolkit = toolkit;
  versions.runtime = runtime;
  versions.driver = driver;
  versions.devices = 1;
  versions.kernel_module = kernel_module;
  versions.library = library;
  return versions;
}

// As the driver's own statuses are.
Versions With(Versions versions, Driver::Problem problem, CUresult code) {
  versions.problem = cuguest::ToStatus(code, "initialise the CUDA driver");
  versions.problem.SetPayload("cuguest/Driver::Problem",
                              absl::Cord(std::to_string(static_cast<int>(problem))));
  return versions;
}

struct Case {
  const char* what;
  Versions versions;
  StatusCode code;
  std::optional<CUresult> driver_code;
  std::vector<std::string> says;
};

std::vector<Case> Cases() {
  const Versions nothing = Of(13000, 0, 0, "", "");
  std::vector<Case> cases = {
      {"all of one version",
       Of(13000, 13000, 13000),
       StatusCode::kOk,
       CUDA_SUCCESS,
       {"CUDA can work here: driver 580.159.04 (CUDA 13.0), runtime of CUDA 13.0, 1 device"}},
      {"no runtime",
       Of(13000, 0, 13000),
       StatusCode::kOk,
       CUDA_SUCCESS,
       {"CUDA can work here: driver 580.159.04 (CUDA 13.0), 1 device"}},
      {"unknown module",
       Of(13000, 0, 13000, ""),
       StatusCode::kOk,
       CUDA_SUCCESS,
       {"CUDA can work here: a driver of CUDA 13.0, 1 device"}},
      {"a newer driver",
       Of(12040, 12040, 13010),
       StatusCode::kOk,
       CUDA_SUCCESS,
       {"CUDA can work here: driver 580.159.04 (CUDA 13.1), runtime of CUDA 12.4"}},
      {"a patch is no minor version",
       Of(13002, 13002, 13000),
       StatusCode::kOk,
       CUDA_SUCCESS,
       {"CUDA can work here: driver "}},
      {"an older minor driver",
       Of(12040, 12040, 12000, "525.60.13", "/usr/lib/libcuda.so.525.60.13"),
       StatusCode::kOk,
       CUDA_SUCCESS,
       {"CUDA can work here, by minor-version compatibility: driver 525.60.13 (CUDA 12.0), "
        "runtime of CUDA 12.4, 1 device; PTX of CUDA 12.4 may not load "
        "(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222), and calls newer than CUDA 12.0 are missing"}},
      {"an older major driver, no runtime",
       Of(13000, 0, 12020, "535.104.05", ""),
       StatusCode::kOk,
       CUDA_SUCCESS,
       {"CUDA can work here, with what the older driver has: driver 535.104.05 (CUDA 12.2), 1 "
        "device",
        "calls newer than CUDA 12.2 are missing"}},
      {"an older major driver",
       Of(13000, 13000, 12020, "535.104.05", ""),
       StatusCode::kUnimplemented,
       CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
       {"CUDA cannot work here: the runtime is of CUDA 13.0 and needs driver 580.65.06 or newer, "
        "and "
        "there is driver 535.104.05 (CUDA 12.2): update the driver, install cuda-compat-13-0 on a "
        "data-centre GPU, or use a runtime of CUDA 12"}},
      {"12.x needs 525",
       Of(12080, 12080, 11080, "520.61.05", ""),
       StatusCode::kUnimplemented,
       CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
       {"needs driver 525.60.13", "cuda-compat-12-8"}},
      {"11.x has minor versions",
       Of(11080, 11080, 11000, "450.80.02", ""),
       StatusCode::kOk,
       CUDA_SUCCESS,
       {"by minor-version compatibility"}},
      {"10.x has none",
       Of(10020, 10020, 10010, "418.39", ""),
       StatusCode::kUnimplemented,
       CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
       {"the runtime is of CUDA 10.2"}},
      {"the headers of another major version",
       Of(12040, 13000, 13000),
       StatusCode::kFailedPrecondition,
       std::nullopt,
       {"compiled with the headers of CUDA 12.4 and runs with the runtime of CUDA 13.0"}},
      {"a package over an older module",
       Of(13000, 13000, 13000, "535.104.05", kPackage),
       StatusCode::kOk,
       CUDA_SUCCESS,
       {std::string("CUDA can work here, by a forward-compatibility package: ") + kPackage +
        " (CUDA 13.0) over kernel module 535.104.05, runtime of CUDA 13.0, 1 device"}},
      {"a package of an older major version",
       Of(13000, 13000, 12080, "535.104.05", kPackage),
       StatusCode::kUnimplemented,
       CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
       {kPackage}},
      {"no device",
       [] {
         Versions v = Of(13000, 0, 13000);
         v.devices = 0;
         return v;
       }(),
       StatusCode::kNotFound,
       CUDA_ERROR_NO_DEVICE,
       {"CUDA_VISIBLE_DEVICES"}},
      {"no version",
       Of(13000, 0, 0),
       StatusCode::kUnknown,
       CUDA_ERROR_UNKNOWN,
       {"the driver does not tell its version"}},
      {"nothing at all", Versions(), StatusCode::kUnknown, CUDA_ERROR_UNKNOWN, {}},
      {"no library",
       With(nothing, Driver::Problem::kNoLibrary, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED),
       StatusCode::kUnavailable,
       CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
       {"libcuda.so.1 cannot be loaded and no NVIDIA kernel module is to be seen: install the "
        "driver"}},
      {"no library over a module",
       With(Of(13000, 0, 0), Driver::Problem::kNoLibrary, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED),
       StatusCode::kUnavailable,
       CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
       {"kernel module 580.159.04 is loaded but libcuda.so.1 cannot be: let the container"}},
      {"the stub",
       With(nothing, Driver::Problem::kStub, CUDA_ERROR_STUB_LIBRARY),
       StatusCode::kFailedPrecondition,
       CUDA_ERROR_STUB_LIBRARY,
       {"link-time stub"}},
      {"a forked child",
       With(Of(13000, 0, 13000), Driver::Problem::kForkedChild, CUDA_ERROR_NOT_INITIALIZED),
       StatusCode::kFailedPrecondition,
       CUDA_ERROR_NOT_INITIALIZED,
       {"start it with exec or spawn"}},
      {"a package that does not fit",
       With(Of(13000, 0, 13000, "470.57.02", kPackage), Driver::Problem::kOther,
            CUDA_ERROR_SYSTEM_DRIVER_MISMATCH),
       StatusCode::kFailedPrecondition,
       CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
       {"does not fit kernel module 470.57.02: take its directory out of LD_LIBRARY_PATH"}},
      {"an update without a reboot",
       With(Of(13000, 0, 13000, "580.159.04", "/usr/lib/libcuda.so.580.65.06"),
            Driver::Problem::kOther, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH),
       StatusCode::kFailedPrecondition,
       CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
       {"an update without a reboot"}},
      {"a package on another GPU",
       With(Of(13000, 0, 13000, "535.104.05", kPackage), Driver::Problem::kOther,
            CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE),
       StatusCode::kFailedPrecondition,
       CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
       {kPackage, "supports data-centre GPUs only, and not this one: take its directory"}},
      {"something else",
       With(Of(13000, 0, 13000), Driver::Problem::kOther, CUDA_ERROR_SYSTEM_NOT_READY),
       StatusCode::kUnavailable,
       CUDA_ERROR_SYSTEM_NOT_READY,
       {"initialise the CUDA driver: CUDA_ERROR_SYSTEM_NOT_READY (802)", "nvidia-fabricmanager"}},
  };
  Versions foreign = Of(13000, 0, 13000);
  foreign.problem = absl::InternalError("theirs");
  cases.push_back({"a foreign status", foreign, StatusCode::kInternal, std::nullopt, {"theirs"}});
  return cases;
}

std::string FindRelease(const char* words) {
  std::istringstream stream(words);
  return cuguest::internal::FindRelease(stream);
}

bool Says(const Versions& versions, const char* words) {
  return absl::StrContains(Explain(versions), words);
}

// Whether QueryVersions() here ends in `code`, and CheckCompatibility() with it.
bool Ends(CUresult code) {
  const Versions versions = QueryVersions();
  return cuguest::CodeOf(versions.problem) == code && versions.devices == 0 &&
         cuguest::CodeOf(CheckCompatibility(versions)) == code;
}

CHILD(finds_no_device) {
  Sim::SetDeviceCount(0);
  CHECK(Ends(CUDA_ERROR_NO_DEVICE));
  return 0;
}

CHILD(fails_to_initialise) {
  for (const CUresult code : {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
                              CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, CUDA_ERROR_UNKNOWN}) {
    Sim::FailCall("cuInit", 1, code);
    CHECK(Ends(code));
  }
  CHECK(CheckCompatibility(QueryVersions()).ok());
  return 0;
}

CHILD(meets_an_older_driver) {
  Sim::SetDriverVersion(12020);
  const Versions without = QueryVersions(13000);
  CHECK(without.driver == 12020);
  CHECK(CheckCompatibility(without).ok());
  CHECK(Says(without, ", with what the older driver has: "));
  CHECK(cuguest::CodeOf(CheckCompatibility(QueryVersions(13000, 13000))) ==
        CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
  CHECK(Says(QueryVersions(12040, 12040), ", by minor-version compatibility: "));
  return 0;
}

CHILD(asks_first) {
  const Versions versions = QueryVersions();
  CHECK(versions.problem.ok());
  unsigned flags = 0;
  int active = 1;
  CHECK((*Driver::Get())->DevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 0);
  CHECK(CheckCompatibility(versions).ok());
  return 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_table_of_what_fits_what) {
  for (const Case& each : Cases()) {
    BOOST_TEST_CONTEXT(each.what) {
      const absl::Status status = CheckCompatibility(each.versions);
      const std::string sentence = Explain(each.versions);
      BOOST_TEST((status.code() == each.code), status);
      BOOST_TEST((cuguest::CodeOf(status) == each.driver_code), status);
      const bool can = each.code == StatusCode::kOk;
      BOOST_TEST(
          absl::StartsWith(sentence, can ? "CUDA can work here" : "CUDA cannot work here: "));
      BOOST_TEST((can || sentence == status.message()));
      BOOST_TEST((cuguest::ProblemOf(status) == cuguest::ProblemOf(each.versions.problem)));
      for (const std::string& words : each.says) {
        BOOST_TEST(absl::StrContains(sentence, words),
                   "\"" << sentence << "\" does not say \"" << words << '"');
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_compatibility_package_is_known_by_its_directory_or_its_release) {
  const auto uses = [](const char* module, const char* library) {
    return Of(0, 0, 13000, module, library).uses_forward_compatibility();
  };
  BOOST_TEST(uses("535.104.05", kPackage));
  BOOST_TEST(uses("", kPackage));
  BOOST_TEST(uses("580.159.04", "/usr/local/cuda/compat/lib.real/libcuda.so.1"));
  BOOST_TEST(uses("535.104.05", "/opt/driver/libcuda.so.580.65.06"));
  BOOST_TEST(!uses("580.159.04", "/usr/lib/libcuda.so.580.159.04"));
  BOOST_TEST(!uses("580.159.04", "/usr/lib/libcuda.so.580.65.06"));
  BOOST_TEST(!uses("535.104.05", "/usr/lib/libcuda.so.1"));
  BOOST_TEST(!uses("535.104.05", "/home/compatible/libcuda.so.1"));
  BOOST_TEST(!uses("", "/usr/lib/libcuda.so.580.65.06"));
  BOOST_TEST(!uses("", ""));
}

BOOST_AUTO_TEST_CASE(the_kernel_modules_release_is_found_in_its_own_words) {
  BOOST_TEST(FindRelease("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 "
                         "01:15:15 UTC 2023\nGCC version:  gcc version 12.3.0\n") == "535.104.05");
  BOOST_TEST(FindRelease("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  "
                         "Release Build  (dvs-builder@U22)\n") == "580.159.04");
  for (const char* none : {"", " ", "NVRM version:", "12", "12.", ".5", "1..2", "v1.2", "a b"}) {
    BOOST_TEST(FindRelease(none) == "", none);
  }
}

BOOST_AUTO_TEST_CASE(a_librarys_release_is_the_end_of_its_name) {
  BOOST_TEST(ReleaseOfFile("/usr/lib/libcuda.so.580.65.06") == "580.65.06");
  BOOST_TEST(ReleaseOfFile("libcuda.so.570.26") == "570.26");
  for (const char* none :
       {"", "/usr/lib/libcuda.so", "/usr/lib/libcuda.so.1", "/lib/libcudart.so.13.0"}) {
    BOOST_TEST(ReleaseOfFile(none) == "", none);
  }
}

BOOST_AUTO_TEST_CASE(releases_are_compared_number_by_number) {
  BOOST_TEST(IsNewer("580.65.06", "535.104.05"));
  BOOST_TEST(IsNewer("580.159.04", "580.65.06"));
  BOOST_TEST(IsNewer("1000.1", "999.9"));
  BOOST_TEST(IsNewer("570.26.01", "570.26"));
  BOOST_TEST(!IsNewer("570.26", "570.26"));
  BOOST_TEST(!IsNewer("570.26", "570.26.01"));
  BOOST_TEST(!IsNewer("535.104.05", "580.65.06"));
}

BOOST_AUTO_TEST_CASE(the_query_finds_what_is_here) {
  const Versions versions = QueryVersions();
  BOOST_TEST(versions.problem.ok(), versions.problem);
  BOOST_TEST(versions.toolkit == CUDA_VERSION);
  BOOST_TEST(versions.runtime == 0);
  BOOST_TEST(versions.driver == cuguest_test::TheDriver().version);
  BOOST_TEST(versions.devices == cuguest::CountDevices().value());
  BOOST_TEST(absl::StrContains(versions.library, "libcuda.so"));
  BOOST_TEST(versions.library.front() == '/');
  const absl::Status status = CheckCompatibility(versions);
  BOOST_TEST(status.ok(), status);
  BOOST_TEST_MESSAGE(Explain(versions));
}

// Where the module can be seen, the driver's library has a release too; the two are the
// same unless a compatibility package is between them.
BOOST_AUTO_TEST_CASE(the_query_finds_the_real_drivers_release, *cuguest_test::OnlyReal()) {
  const Versions versions = QueryVersions();
  BOOST_TEST_MESSAGE("kernel module " << versions.kernel_module << ", library "
                                      << versions.library);
  const std::string release = ReleaseOfFile(versions.library);
  BOOST_TEST((versions.kernel_module.empty() || release.empty() ||
              versions.uses_forward_compatibility() || release == versions.kernel_module));
  BOOST_TEST((!versions.kernel_module.empty() || !release.empty()));
}

BOOST_AUTO_TEST_CASE(the_query_disturbs_nothing) {
  const cuguest_test::OwnContext own;
  cuguest_test::SetStack({own.get(), own.get()});
  const cudasim::SimLive before = Sim::Live();
  BOOST_TEST(QueryVersions().problem.ok());
  BOOST_TEST((cuguest_test::GetStack() == std::vector<CUcontext>{own.get(), own.get()}));
  BOOST_TEST((Sim::Live() == before));
  cuguest_test::SetStack({});
}

BOOST_AUTO_TEST_CASE(the_query_makes_one_driver_call, *cuguest_test::OnlySim()) {
  Sim::ResetCalls();
  BOOST_TEST(QueryVersions().problem.ok());
  BOOST_TEST(Sim::TotalCalls() == 1);
  BOOST_TEST(Sim::Calls("cuDeviceGetCount") == 1);
}

BOOST_AUTO_TEST_CASE(a_failed_count_is_the_problem, *cuguest_test::OnlySim()) {
  Sim::FailCall("cuDeviceGetCount", 1, CUDA_ERROR_UNKNOWN);
  BOOST_TEST(Ends(CUDA_ERROR_UNKNOWN));
  BOOST_TEST(CheckCompatibility(QueryVersions()).ok());
}

BOOST_AUTO_TEST_CASE(the_first_question_creates_no_context) { REQUIRE_CHILD_PASSES("asks_first"); }

BOOST_AUTO_TEST_CASE(what_stands_in_the_way_is_found, *cuguest_test::OnlySim()) {
  REQUIRE_CHILD_PASSES("finds_no_device");
  REQUIRE_CHILD_PASSES("fails_to_initialise");
  REQUIRE_CHILD_PASSES("meets_an_older_driver");
}

BOOST_AUTO_TEST_SUITE_END()
