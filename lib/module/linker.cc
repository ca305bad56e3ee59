// SPDX-License-Identifier: Apache-2.0

#include "cuguest/linker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/module/jit_call.h"
#include "lib/module/link.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

std::string InputsText(const std::vector<CodeImage>& inputs) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(inputs.size(), kNamed); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", inputs[i].name());
  }
  if (inputs.size() > kNamed) absl::StrAppend(&text, " and ", inputs.size() - kNamed, " more");
  return text;
}

std::string InputText(const std::vector<CodeImage>& inputs, std::size_t index) {
  return absl::StrCat("input ", index + 1, " of ", inputs.size(), ", ", inputs[index].name());
}

bool SaysError(std::string_view log) {
  return log.find("error   :") != std::string_view::npos ||
         log.find("fatal   :") != std::string_view::npos;
}

std::string LogText(std::string_view log) {
  std::string text(log);
  text.resize(text.find_last_not_of(" \n") + 1);
  return text.empty() ? text : "\n" + text;
}

namespace {

// What the driver says of linked code is that there is none for this device; nvJitLink
// leaves it out without a word.
absl::Status CheckInputs(const std::vector<CodeImage>& inputs) {
  if (inputs.empty()) return absl::InvalidArgumentError("link: nothing was added");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() != CodeKind::kCubin) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("link, ", InputText(inputs, i),
                     ": this cubin is linked already; compile it with nvcc -rdc=true"));
  }
  return absl::OkStatus();
}

}  // namespace

}  // namespace internal

absl::Status Linker::AddFile(const std::string& path) {
  absl::StatusOr<CodeImage> input = CodeImage::FromFile(path);
  if (!input.ok()) return input.status();
  Add(*std::move(input));
  return absl::OkStatus();
}

absl::StatusOr<CodeImage> Linker::Complete(JitReport* report) const {
  if (report != nullptr) *report = JitReport();
  const absl::Status valid = internal::CheckInputs(inputs_);
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
