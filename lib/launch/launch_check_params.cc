// SPDX-License-Identifier: Apache-2.0

#include "lib/launch/launch_check.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "lib/core/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

// The kernel's own parameters. The driver needs no context for that, and invalidates no capture
// (cudasim/test/library_facts_test.cc).
absl::StatusOr<std::vector<ParamPlace>> AskParams(const CheckedKernel& checked) {
  std::vector<ParamPlace> places;
  for (;;) {
    ParamPlace place;
    const CUresult code = checked.driver.FuncGetParamInfo(checked.function, places.size(),
                                                          &place.offset, &place.size);
    if (code == CUDA_ERROR_INVALID_VALUE) return places;  // past the last
    if (code != CUDA_SUCCESS) {
      return ToStatus(code, LaunchText(checked.kernel),
                      absl::StrCat("what its parameter ", places.size(), " is"));
    }
    places.push_back(place);
  }
}

absl::Status WrongCount(const KernelState& kernel, std::size_t takes, std::size_t given) {
  return absl::InvalidArgumentError(absl::StrCat(
      LaunchText(kernel), ": the kernel takes ", takes, takes == 1 ? " parameter" : " parameters",
      ", and ", given, given == 1 ? " is" : " are", " given"));
}

std::string PlaceText(const ParamPlace& place) {
  return absl::StrCat(place.size, place.size == 1 ? " byte" : " bytes", " at offset ",
                      place.offset);
}

absl::Status WrongPlace(const KernelState& kernel, std::size_t index, const ParamPlace& takes,
                        const ParamPlace& given) {
  return absl::InvalidArgumentError(absl::StrCat(
      LaunchText(kernel), ": parameter ", index, " is ", PlaceText(takes), " in the kernel, and ",
      PlaceText(given),
      " is given: it is of another type there, or a struct that is laid out differently on the "
      "device; declare its members as there (a float4 with alignas(16)), or say its alignment by "
      "ParamTraits"));
}

using IsRight = bool (*)(const ParamPlace& takes, const ParamPlace& given);

absl::Status Compare(const KernelState& kernel, const std::vector<ParamPlace>& takes,
                     const ParamLayoutView& layout, IsRight is_right) {
  if (takes.size() != layout.count) return WrongCount(kernel, takes.size(), layout.count);
  for (std::size_t i = 0; i < layout.count; ++i) {
    if (!is_right(takes[i], layout.places[i])) {
      return WrongPlace(kernel, i, takes[i], layout.places[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLayout(const CheckedKernel& checked, const ParamLayoutView& layout,
                         IsRight is_right) {
  if (checked.driver.FuncGetParamInfo == nullptr) return absl::OkStatus();
  CUGUEST_ASSIGN_OR_RETURN(std::vector<ParamPlace> takes, AskParams(checked));
  absl::Status status = Compare(checked.kernel, takes, layout, is_right);
  checked.kernel.params.Keep(std::move(takes));
  return status;
}

}  // namespace

absl::Status CheckValues(const CheckedKernel& checked, const ParamLayoutView& layout) {
  return CheckLayout(checked, layout, [](const ParamPlace& takes, const ParamPlace& given) {
    return takes.size == given.size;
  });
}

absl::Status CheckPacked(const CheckedKernel& checked, const ParamLayoutView& layout) {
  return CheckLayout(checked, layout, [](const ParamPlace& takes, const ParamPlace& given) {
    return takes.size == given.size && takes.offset == given.offset;
  });
}

absl::Status CheckCount(const CheckedKernel& checked, std::size_t count) {
  if (checked.driver.FuncGetParamInfo == nullptr) return absl::OkStatus();
  CUGUEST_ASSIGN_OR_RETURN(std::vector<ParamPlace> takes, AskParams(checked));
  const std::size_t taken = takes.size();
  checked.kernel.params.Keep(std::move(takes));
  return taken == count ? absl::OkStatus() : WrongCount(checked.kernel, taken, count);
}

}  // namespace internal
CUGUEST_END_NAMESPACE
