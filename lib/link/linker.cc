// SPDX-License-Identifier: Apache-2.0

#include "cuguest/linker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/link/driver_link.h"
#include "lib/link/link_job.h"
#include "lib/link/lto_link.h"
#include "lib/module/jit.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

// What the driver says of linked code is that there is none for this device; nvJitLink
// leaves it out without a word.
absl::Status CheckInputs(const std::vector<CodeImage>& inputs) {
  if (inputs.empty()) return absl::InvalidArgumentError("link: nothing was added");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() != CodeKind::kCubin) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("link, ", internal::InputText(inputs, i),
                     ": this cubin is linked already; compile it with nvcc -rdc=true"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Linker::AddFile(const std::string& path) {
  absl::StatusOr<CodeImage> input = CodeImage::FromFile(path);
  if (!input.ok()) return input.status();
  Add(*std::move(input));
  return absl::OkStatus();
}

absl::StatusOr<CodeImage> Linker::Complete(JitReport* report) const {
  if (report != nullptr) *report = JitReport();
  const absl::Status valid = CheckInputs(inputs_);
  if (!valid.ok()) return valid;
  const absl::Status settable = internal::CheckJitOptions(options_);
  if (!settable.ok()) return settable;
  const absl::StatusOr<const Driver*> driver = Driver::Get();
  if (!driver.ok()) return driver.status();
  const bool lto = std::any_of(inputs_.begin(), inputs_.end(),
                               [](const CodeImage& input) { return input.has_lto_ir(); });
  if (!lto) {
    const absl::Status known = internal::CheckDriverKnows(options_, (*driver)->version);
    if (!known.ok()) return known;
  }
  const ContextGuard guard(context_);
  if (!guard.ok()) return ToStatus(guard);
  const internal::LinkJob job{**driver, inputs_, options_};
  return lto ? internal::LinkByNvJitLink(job, report) : internal::LinkByDriver(job, report);
}

CUGUEST_END_NAMESPACE
