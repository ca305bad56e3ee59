// SPDX-License-Identifier: Apache-2.0

#include "cuguest/driver.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "lib/core/driver_access.h"
#include "lib/core/driver_release.h"
#include "lib/core/resolver.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::DriverEntry;
using internal::DriverFailure;
using internal::FloorOf;
using internal::kCallRequiresNewerDriver;
using internal::VersionText;

constexpr char kProblemPayload[] = "cuguest/DriverProblem";

absl::Status WithProblem(DriverProblem problem, absl::Status status) {
  status.SetPayload(kProblemPayload, absl::Cord(absl::StrCat(static_cast<int>(problem))));
  return status;
}

absl::Status ProblemStatus(DriverProblem problem, CUresult code, std::string_view doing,
                           std::string_view detail) {
  return WithProblem(problem, internal::MakeStatus(code, doing, detail));
}

std::string MissingText(const DriverFailure& failure) {
  const DriverEntry& missing = *failure.missing;
  const std::string found =
      failure.version == 0 ? "of unknown version" : VersionText(failure.version);
  return absl::StrCat(failure.text, " (", found, ") has no ", missing.name, " of ",
                      VersionText(missing.version), "; driver ", FloorOf(missing.version).driver,
                      " or newer is needed");
}

absl::Status ToStatus(const DriverFailure& failure, std::string_view doing) {
  return ProblemStatus(failure.problem, failure.code, doing,
                       failure.missing == nullptr ? failure.text : MissingText(failure));
}

constexpr char kLoad[] = "load the CUDA driver";
constexpr char kAdopt[] = "adopt the CUDA driver of a lookup";

absl::Status InitStatus(CUresult code) {
  constexpr char kDoing[] = "initialise the CUDA driver";
  switch (code) {
    case CUDA_ERROR_NOT_INITIALIZED:  // the only way cuInit itself says this
      return ProblemStatus(
          DriverProblem::kForkedChild, code, kDoing,
          absl::StrCat("process ", getpid(), " was forked from one that had initialised CUDA"));
    case CUDA_ERROR_NO_DEVICE:
      return ProblemStatus(DriverProblem::kNoDevice, code, kDoing, "no device");
    case CUDA_ERROR_STUB_LIBRARY:
      return ProblemStatus(DriverProblem::kStub, code, kDoing, "");
    default:
      return ProblemStatus(DriverProblem::kOther, code, kDoing, "");
  }
}

}  // namespace

namespace internal {

const Driver* ResolveDriver(CUresult* code) noexcept {
  const DriverOutcome& outcome = ProcessDriver();
  *code = outcome.failure.code;
  return outcome.ok() ? AsDriver(&outcome.table) : nullptr;
}

}  // namespace internal

absl::StatusOr<const Driver*> Driver::Get() {
  const DriverTable* const known = internal::g_driver.load(std::memory_order_acquire);
  if (known != nullptr) return internal::AsDriver(known);
  const internal::DriverOutcome& outcome = internal::ProcessDriver();
  if (outcome.ok()) return internal::AsDriver(&outcome.table);
  return ToStatus(outcome.failure, kLoad);
}

absl::StatusOr<const Driver*> Driver::GetInitialized() {
  absl::StatusOr<const Driver*> driver = Get();
  if (!driver.ok()) return driver;
  const CUresult code = internal::InitializeDriver(**driver);
  if (code != CUDA_SUCCESS) return InitStatus(code);
  return driver;
}

absl::Status Driver::Adopt(DriverLookup lookup, void* user) {
  if (lookup == nullptr) return absl::InvalidArgumentError(absl::StrCat(kAdopt, ": it is null"));
  const DriverFailure failure = internal::AdoptDriver(lookup, user);
  switch (failure.problem) {
    case DriverProblem::kNone:
      return absl::OkStatus();
    case DriverProblem::kInUse:
      return WithProblem(
          failure.problem,
          absl::FailedPreconditionError(absl::StrCat(
              kAdopt,
              ": this copy of cuguest has its driver already, from an earlier Adopt or from "
              "its first use; call Driver::Adopt before anything else of cuguest")));
    default:
      return ToStatus(failure, kAdopt);
  }
}

absl::Status Driver::Load(const char* path, Driver* driver) {
  const internal::DriverOutcome outcome = internal::LoadDriver(path);
  if (!outcome.ok()) return ToStatus(outcome.failure, kLoad);
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
  return ProblemStatus(DriverProblem::kEntryMissing, kCallRequiresNewerDriver,
                       absl::StrCat("look up ", name),
                       absl::StrCat("this driver (", VersionText(version), ") has no ", name,
                                    " of ", VersionText(api_version)));
}

absl::Status Driver::MissingEntry(std::size_t offset) const {
  const DriverEntry* const entry = internal::EntryAt(offset);
  if (entry == nullptr) {
    return absl::InternalError("the offset names no entry of the driver table");
  }
  return ProblemStatus(DriverProblem::kEntryMissing, kCallRequiresNewerDriver,
                       absl::StrCat("look up ", entry->name),
                       absl::StrCat("it needs driver ", FloorOf(entry->version).driver, " (",
                                    VersionText(entry->version), ") or newer, and this one is of ",
                                    VersionText(version)));
}

DriverProblem ProblemOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kProblemPayload);
  if (!payload.has_value()) return DriverProblem::kNone;
  return static_cast<DriverProblem>(std::atoi(std::string(*payload).c_str()));
}

CUGUEST_END_NAMESPACE
