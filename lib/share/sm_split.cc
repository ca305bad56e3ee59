// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/sm_split.h"

#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cuguest/driver.h"
#include "cuguest/internal/toolkit.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/status/error_status.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

constexpr char kSplitSms[] = "split the SMs";

using Resources = std::vector<CUdevResource>;

std::string SplitText(Device device, SmCount least, unsigned parts) {
  return absl::StrCat(
      "device ", device.get(), ", into ",
      parts == SmSplit::kAsManyAsFit ? "as many parts as fit" : absl::StrCat(parts, " parts"),
      " of at least ", static_cast<unsigned>(least), " SMs");
}

std::string SplitText(Device device, const std::vector<SmCount>& sizes) {
  const auto number = [](std::string* text, SmCount size) {
    absl::StrAppend(text, static_cast<unsigned>(size));
  };
  return absl::StrCat("device ", device.get(), ", into parts of at least ",
                      absl::StrJoin(sizes, ", ", number), " SMs");
}

absl::Status RefuseNothing(const std::string& text) {
  return absl::InvalidArgumentError(
      absl::StrCat(kSplitSms, ", ", text, ": ask for at least one part of at least one SM"));
}

absl::StatusOr<CUdevResource> AllSms(const Driver& driver, Device device, const std::string& text) {
  CUGUEST_ASSIGN_OR_RETURN(const auto get, driver.Require(&Driver::DeviceGetDevResource));
  CUdevResource all = {};
  const CUresult code = internal::AskOf(
      device.get(), [&] { return get(device.get(), &all, CU_DEV_RESOURCE_TYPE_SM); });
  CUGUEST_RETURN_IF_CUDA_ERROR(code, kSplitSms, text);
  return all;
}

// `units` smallest parts for each part; or, where the driver has such a call, one group, and
// `units` are 1 then.
absl::StatusOr<Resources> SplitInto(const Driver& driver, const CUdevResource& all, unsigned unit,
                                    std::vector<unsigned>* units, CUdevResource* rest,
                                    const std::string& text) {
  if (driver.DevSmResourceSplit == nullptr) {
    const unsigned wanted = std::accumulate(units->begin(), units->end(), 0U);
    unsigned made = wanted;
    Resources groups(wanted);
    CUGUEST_RETURN_IF_CUDA_ERROR(
        driver.DevSmResourceSplitByCount(groups.data(), &made, &all, rest, 0, unit), kSplitSms,
        text);
    if (made == wanted) return groups;
    return internal::RefusalStatus(
        internal::kInvalidResourceConfiguration, kSplitSms,
        absl::StrCat(text, ", of which ", made, " parts of ", unit, " fit"));
  }
  std::vector<CU_DEV_SM_RESOURCE_GROUP_PARAMS> parameters(units->size());
  for (std::size_t i = 0; i < units->size(); ++i) {
    parameters[i].smCount = std::exchange((*units)[i], 1) * unit;
  }
  Resources groups(parameters.size());
  const CUresult code = driver.DevSmResourceSplit(
      groups.data(), static_cast<unsigned>(groups.size()), &all, rest, 0, parameters.data());
  CUGUEST_RETURN_IF_CUDA_ERROR(code, kSplitSms, text);
  return groups;
}

}  // namespace

SmSplit::Part SmSplit::MakePart(Device device, const void* resources, std::size_t count) {
  static_assert(sizeof(CUdevResource) == sizeof(Part::Resource) && alignof(CUdevResource) <= 8);
  Part part;
  part.device_ = device;
  unsigned sms = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const CUdevResource& resource = static_cast<const CUdevResource*>(resources)[i];
    if (resource.type != CU_DEV_RESOURCE_TYPE_SM) continue;  // no rest
    sms += resource.sm.smCount;
    std::memcpy(&part.resources_.emplace_back(), &resource, sizeof(resource));
  }
  part.count_ = SmCount{sms};
  return part;
}

absl::StatusOr<SmSplit> SmSplit::Of(Device device, SmCount least, unsigned count, unsigned flags) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  CUGUEST_ASSIGN_OR_RETURN(const auto split, driver->Require(&Driver::DevSmResourceSplitByCount));
  const std::string text = SplitText(device, least, count);
  if (least == SmCount{0} || count == 0) return RefuseNothing(text);
  CUGUEST_ASSIGN_OR_RETURN(const CUdevResource all, AllSms(*driver, device, text));
  const std::string of_all = absl::StrCat(text, " of its ", all.sm.smCount);
  unsigned fit = 0;
  if (static_cast<unsigned>(least) <= all.sm.smCount) {  // else the call would fail
    CUGUEST_RETURN_IF_CUDA_ERROR(
        split(nullptr, &fit, &all, nullptr, flags, static_cast<unsigned>(least)), kSplitSms,
        of_all);
  }
  const unsigned wanted = count == kAsManyAsFit ? std::max(fit, 1U) : count;
  Resources groups;
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
    return internal::RefusalStatus(internal::kInvalidResourceConfiguration, kSplitSms,
                                   absl::StrCat(of_all, ", of which ", made, " fit"));
  }
  SmSplit result;
  for (const CUdevResource& group : groups) result.parts.push_back(MakePart(device, &group, 1));
  result.rest = MakePart(device, &rest, 1);
  return result;
}

absl::StatusOr<SmSplit> SmSplit::OfSizes(Device device, const std::vector<SmCount>& sizes) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  CUGUEST_ASSIGN_OR_RETURN(const auto split, driver->Require(&Driver::DevSmResourceSplitByCount));
  const std::string text = SplitText(device, sizes);
  if (sizes.empty() || std::count(sizes.begin(), sizes.end(), SmCount{0}) != 0) {
    return RefuseNothing(text);
  }
  CUGUEST_ASSIGN_OR_RETURN(const CUdevResource all, AllSms(*driver, device, text));
  const std::string of_all = absl::StrCat(text, " of its ", all.sm.smCount);
  CUdevResource smallest = {};
  unsigned made = 1;
  CUGUEST_RETURN_IF_CUDA_ERROR(split(&smallest, &made, &all, nullptr, 0, 1), kSplitSms, of_all);
  const unsigned unit = smallest.sm.smCount;
  std::vector<unsigned> units;  // of each part
  std::size_t wanted = 0;
  for (const SmCount size : sizes) {
    units.push_back((static_cast<unsigned>(size) - 1) / unit + 1);
    wanted += units.back();
  }
  if (wanted > all.sm.smCount / unit) {
    return internal::RefusalStatus(internal::kInvalidResourceConfiguration, kSplitSms, of_all);
  }
  CUdevResource rest = {};
  CUGUEST_ASSIGN_OR_RETURN(const Resources groups,
                           SplitInto(*driver, all, unit, &units, &rest, of_all));
  SmSplit result;
  const CUdevResource* group = groups.data();
  for (const unsigned count : units) {
    result.parts.push_back(MakePart(device, group, count));
    group += count;
  }
  result.rest = MakePart(device, &rest, 1);
  return result;
}

CUGUEST_END_NAMESPACE
