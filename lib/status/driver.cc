// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/driver.h"

#include <unistd.h>

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/core/driver_release.h"
#include "lib/status/driver_status.h"
#include "lib/status/error_status.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::AsDriver;
using internal::DriverEntry;
using internal::DriverOutcome;
using internal::kCallRequiresNewerDriver;
using internal::NeededFor;
using internal::VersionText;

constexpr char kProblemPayload[] = "cuguest/Driver::Problem";
constexpr char kLoad[] = "load the CUDA driver";
constexpr char kAdopt[] = "adopt the CUDA driver of a lookup";
constexpr char kInitialise[] = "initialise the CUDA driver";

absl::Status WithProblem(Driver::Problem problem, absl::Status status) {
  internal::SetNumber(kProblemPayload, static_cast<int>(problem), &status);
  return status;
}

absl::Status ProblemStatus(Driver::Problem problem, CUresult code, std::string_view doing,
                           std::string_view detail) {
  return WithProblem(problem, internal::MakeStatus(code, doing, detail));
}

std::string LacksText(int version, const DriverEntry& missing) {
  return absl::StrCat(" (", version == 0 ? "of unknown version" : VersionText(version), ") has no ",
                      missing.name, " of ", VersionText(missing.version), "; ",
                      NeededFor(missing.version, version));
}

// What is mostly behind a code of cuInit that says nothing itself, by what users have reported.
const char* SetUpText(CUresult code) {
  switch (code) {
    case CUDA_ERROR_OPERATING_SYSTEM:
      return "mostly a system call that a sandbox forbids (memfd_create in a container's seccomp "
             "profile), or a device file /dev/nvidia* that this user may not open: try it outside "
             "of the container, or with --security-opt seccomp=unconfined";
    case CUDA_ERROR_UNKNOWN:
      return "mostly the kernel module nvidia_uvm is not loaded, was broken by a suspend, or "
             "/dev/nvidia-uvm is missing in the container: load it by nvidia-modprobe -u, after "
             "rmmod nvidia_uvm where it is broken";
    default:
      return "";
  }
}

absl::Status OutcomeStatus(const DriverOutcome& outcome, std::string_view doing) {
  std::string text = outcome.text;
  if (outcome.missing.name != nullptr) text += LacksText(outcome.table.version, outcome.missing);
  if (outcome.problem == Driver::Problem::kNoLibrary) text += internal::kElsewhereText;
  return ProblemStatus(outcome.problem, outcome.code, doing, text);
}

}  // namespace

namespace internal {

absl::Status MissingEntryStatus(const Driver& driver, const DriverEntry& missing) {
  return ProblemStatus(Driver::Problem::kTooOld, kCallRequiresNewerDriver, kLoad,
                       "the driver" + LacksText(driver.version, missing));
}

absl::Status EntryNeedsNewer(const Driver& driver, const DriverEntry& entry) {
  if (entry.name == nullptr) {
    return absl::InternalError("the offset names no entry of the driver table");
  }
  return ProblemStatus(
      Driver::Problem::kEntryMissing, kCallRequiresNewerDriver,
      absl::StrCat("look up ", entry.name),
      absl::StrCat("this driver (", VersionText(driver.version), ") has no ", entry.name, " of ",
                   VersionText(entry.version), "; ", NeededFor(entry.version, driver.version)));
}

absl::Status NoTableStatus(CUresult code) {
  return ProblemStatus(Driver::Problem::kOther, code, kLoad, "the table");
}

absl::Status InitStatus(CUresult code) {
  if (code == CUDA_ERROR_NOT_INITIALIZED) {
    return ProblemStatus(
        Driver::Problem::kForkedChild, code, kInitialise,
        absl::StrCat("process ", getpid(),
                     " was forked from one that had initialised CUDA; if it was not, the kernel "
                     "module says in dmesg (NVRM) what it lacks"));
  }
  if (code == CUDA_ERROR_NO_DEVICE) {
    return ProblemStatus(Driver::Problem::kNoDevice, code, kInitialise, "no device");
  }
  const bool is_stub = code == CUDA_ERROR_STUB_LIBRARY;
  return ProblemStatus(is_stub ? Driver::Problem::kStub : Driver::Problem::kOther, code,
                       kInitialise, SetUpText(code));
}

}  // namespace internal

absl::StatusOr<const Driver*> Driver::Get() {
  const DriverTable* const known = internal::g_driver.load(std::memory_order_acquire);
  if (known != nullptr) return AsDriver(known);
  DriverOutcome refused;
  const DriverOutcome* const outcome = internal::ProcessDriver(&refused);
  if (outcome == nullptr) return OutcomeStatus(refused, kLoad);
  if (outcome->ok()) return AsDriver(&outcome->table);
  return OutcomeStatus(*outcome, kLoad);
}

absl::StatusOr<const Driver*> Driver::GetInitialized() {
  absl::StatusOr<const Driver*> driver = Get();
  if (!driver.ok()) return driver;
  const CUresult code = internal::InitializeDriver(**driver);
  if (code != CUDA_SUCCESS) return internal::InitStatus(code);
  return driver;
}

bool Driver::IsInitialized() noexcept { return internal::IsDriverInitialized(); }

absl::Status Driver::Adopt(DriverLookup lookup, void* user) {
  if (lookup == nullptr) return absl::InvalidArgumentError(absl::StrCat(kAdopt, ": it is null"));
  const DriverOutcome outcome = internal::AdoptDriver(lookup, user);
  if (outcome.ok()) return absl::OkStatus();
  if (outcome.problem != Driver::Problem::kInUse) return OutcomeStatus(outcome, kAdopt);
  return WithProblem(
      outcome.problem,
      absl::FailedPreconditionError(absl::StrCat(
          kAdopt,
          ": this copy of cuguest has its driver already, from an earlier Adopt or from "
          "its first use; call Driver::Adopt before anything else of cuguest")));
}

absl::Status Driver::Load(const char* path, Driver* driver) {
  const DriverOutcome outcome = internal::LoadDriver(path);
  if (!outcome.ok()) return OutcomeStatus(outcome, kLoad);
  static_cast<DriverTable&>(*driver) = outcome.table;
  return absl::OkStatus();
}

absl::StatusOr<void*> Driver::FindAddress(const char* name, int api_version) const {
  if (name == nullptr || api_version <= 0 || lookup == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "look up ", name != nullptr ? name : "a null name", " of version ", api_version, ": ",
        lookup == nullptr ? "the table is empty"
                          : "needed are the name of a driver function and the API version of its "
                            "signature, such as 12040"));
  }
  if (void* const function = lookup(name, api_version, lookup_user)) return function;
  return ProblemStatus(Driver::Problem::kEntryMissing, kCallRequiresNewerDriver,
                       absl::StrCat("look up ", name),
                       absl::StrCat("this driver (", VersionText(version), ") has no ", name,
                                    " of ", VersionText(api_version)));
}

absl::Status Driver::MissingEntry(std::size_t offset) const {
  return internal::EntryNeedsNewer(*this, internal::kDriverEntries.At(offset));
}

Driver::Problem ProblemOf(const absl::Status& status) {
  return static_cast<Driver::Problem>(internal::NumberOf(kProblemPayload, status).value_or(0));
}

CUGUEST_END_NAMESPACE
