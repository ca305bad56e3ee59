// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/support/house.h"

#include <utility>

#include "cuguest/copy.h"
#include "cuguest/status.h"
#include "examples/support/check.h"

namespace support {

absl::StatusOr<House> House::Create(const cuguest::Driver& driver, cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(HostContext x, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(HostContext a, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const CUcontext p, HandleOfPrimary(device));
  House house{driver, device, std::move(x), std::move(a), p, {}};
  house.cast.Name("X", house.x.get());
  house.cast.Name("A", house.a.get());
  house.cast.Name("P", p);
  return house;
}

void House::Show(const std::string& when, const std::string& remark) const {
  PrintRow(when, cast.Draw(), remark.empty() ? Activity(device) : remark);
}

bool Holds(const cuguest::DeviceView<const float>& view, const std::vector<float>& expected) {
  const absl::StatusOr<std::vector<float>> read = cuguest::Download(view);
  return CHECK_OK(read.status()) && *read == expected;
}

bool IsRefused(const std::string& what, const absl::Status& status, absl::StatusCode code,
               const std::string& words) {
  const std::string message(status.message());
  PrintRow(what, status.ok() ? "NOT REFUSED" : "refused");
  PrintLines(message);
  return status.code() == code && message.find(words) != std::string::npos;
}

}  // namespace support
