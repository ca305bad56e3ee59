// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/linker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "lib/objects/code/jit.h"
#include "lib/objects/code/link.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

// What the driver says of linked code is that there is none for this device; nvJitLink
// leaves it out without a word.
absl::Status CheckInputs(const std::vector<CodeImage>& inputs) {
  if (inputs.empty()) return absl::InvalidArgumentError("link: nothing was added");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() != CodeImage::Kind::kCubin) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("link, ", internal::InputText(inputs, i),
                     ": this cubin is linked already; compile it with nvcc -rdc=true"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Linker::AddFile(const std::string& path) {
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage input, CodeImage::FromFile(path));
  Add(input);
  return absl::OkStatus();
}

absl::StatusOr<CodeImage> Linker::Complete(JitReport* report) const {
  if (report != nullptr) *report = JitReport();
  CUGUEST_RETURN_IF_ERROR(CheckInputs(inputs_));
  CUGUEST_RETURN_IF_ERROR(internal::CheckJitOptions(options_));
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  const bool lto = std::any_of(inputs_.begin(), inputs_.end(),
                               [](const CodeImage& input) { return input.has_lto_ir(); });
  if (!lto) {
    CUGUEST_RETURN_IF_ERROR(internal::CheckDriverKnows(options_, driver->version));
  }
  const ContextGuard guard(context_);
  if (!guard.ok()) return ToStatus(guard);
  const internal::LinkJob job{*driver, inputs_, options_};
  return lto ? internal::LinkByNvJitLink(job, report) : internal::LinkByDriver(job, report);
}

CUGUEST_END_NAMESPACE
