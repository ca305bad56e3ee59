// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The status of an Error: its text, and what only the rest of the library knows.

#include "cuguest/status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/driver.h"
#include "lib/core/driver_release.h"
#include "lib/core/failure.h"
#include "lib/status/driver_status.h"
#include "lib/status/driver_words.h"
#include "lib/status/error_status.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using Reason = Error::Reason;

std::string TextOf(const Error& error) {
  std::string text(error.Write(nullptr, 0), '\0');
  error.Write(text.data(), text.size() + 1);
  return text;
}

// The driver lacks cuStreamGetCtx, or the signature of cuCtxCreate that the options need.
absl::Status TooOldStatus(const Error& error) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  if (error.subject != Error::Subject::kCreation) {
    return driver->Require(&Driver::StreamGetCtx).status();
  }
  const int version = error.cig_type != 0 ? internal::kCigVersion : internal::kAffinityVersion;
  // For its payloads.
  const absl::Status status = driver->Find<CUresult(CUDAAPI*)()>("cuCtxCreate", version).status();
  return internal::Reworded(
      status, absl::StatusCode::kUnimplemented,
      absl::StrCat(TextOf(error), ": this driver (", internal::VersionText(driver->version),
                   ") has no cuCtxCreate of ", internal::VersionText(version), "; ",
                   internal::NeededFor(version, driver->version)));
}

}  // namespace

absl::Status ToStatus(const Error& error) {
  if (error.ok()) return absl::OkStatus();
  switch (error.reason) {
    case Reason::kNotInitialized:
      return internal::InitStatus(error.code);
    case Reason::kNoDriver: {
      absl::Status status = Driver::Get().status();  // ok where one has come meanwhile
      return status.ok() ? internal::TextStatus(error.code, TextOf(error)) : status;
    }
    case Reason::kNoDevice:
      return internal::NoDeviceStatus(error.code, error.device);
    case Reason::kTooOld:
      return TooOldStatus(error);
    case Reason::kDriver:
      return internal::TextStatus(error.code,
                                  TextOf(error) + internal::WordsText(error.code, error.doing));
    default:
      return internal::TextStatus(error.code, TextOf(error));
  }
}

CUGUEST_END_NAMESPACE
