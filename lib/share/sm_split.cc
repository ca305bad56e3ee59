// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/sm_split.h"

#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuguest/driver.h"
#include "cuguest/internal/toolkit.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

constexpr char kSplitSms[] = "split the SMs";

std::string SplitText(Device device, SmCount least, unsigned parts) {
  return absl::StrCat(
      "device ", device.get(), ", into ",
      parts == SmSplit::kAsManyAsFit ? "as many parts as fit" : absl::StrCat(parts, " parts"),
      " of at least ", static_cast<unsigned>(least), " SMs");
}

}  // namespace

absl::StatusOr<SmSplit> SmSplit::Of(Device device, SmCount least, unsigned count, unsigned flags) {
  static_assert(sizeof(CUdevResource) == sizeof(SmSplit::Part::resource_) &&
                alignof(CUdevResource) <= 8);
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  CUGUEST_ASSIGN_OR_RETURN(const auto get, driver->Require(&Driver::DeviceGetDevResource));
  CUGUEST_ASSIGN_OR_RETURN(const auto split, driver->Require(&Driver::DevSmResourceSplitByCount));
  const std::string text = SplitText(device, least, count);
  if (least == SmCount{0} || count == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kSplitSms, ", ", text, ": ask for at least one part of at least one SM"));
  }
  CUdevResource all = {};
  const CUresult code = internal::AskOf(
      device.get(), [&] { return get(device.get(), &all, CU_DEV_RESOURCE_TYPE_SM); });
  CUGUEST_RETURN_IF_CUDA_ERROR(code, kSplitSms, text);
  const std::string of_all = absl::StrCat(text, " of its ", all.sm.smCount);
  unsigned fit = 0;
  if (static_cast<unsigned>(least) <= all.sm.smCount) {  // else the call would fail
    CUGUEST_RETURN_IF_CUDA_ERROR(
        split(nullptr, &fit, &all, nullptr, flags, static_cast<unsigned>(least)), kSplitSms,
        of_all);
  }
  const unsigned wanted = count == kAsManyAsFit ? std::max(fit, 1U) : count;
  std::vector<CUdevResource> groups;
  CUdevResource rest = {};
  unsigned made = fit;
  if (wanted <= fit) {
    groups.resize(wanted);
    made = wanted;
    CUGUEST_RETURN_IF_CUDA_ERROR(
        split(groups.data(), &made, &all, &rest, flags, static_cast<unsigned>(least)), kSplitSms,
        of_all);
  }
  if (made < wanted) {
    return ToStatus(internal::kInvalidResourceConfiguration, kSplitSms,
                    absl::StrCat(of_all, ", of which ", made, " fit"));
  }
  const auto partition = [&](const CUdevResource& resource) {
    SmSplit::Part named;
    named.device_ = device;
    if (resource.type == CU_DEV_RESOURCE_TYPE_SM) named.count_ = SmCount{resource.sm.smCount};
    std::memcpy(named.resource_, &resource, sizeof(resource));
    return named;
  };
  SmSplit result;
  std::transform(groups.begin(), groups.end(), std::back_inserter(result.parts), partition);
  result.rest = partition(rest);
  return result;
}

CUGUEST_END_NAMESPACE
