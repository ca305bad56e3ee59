// SPDX-License-Identifier: Apache-2.0

#include "lib/link/link_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

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

}  // namespace internal
CUGUEST_END_NAMESPACE
