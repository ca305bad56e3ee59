// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the copies of cuguest in this process count in one registry.

#include "cuguest/sharing.h"

#include <limits.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/core/driver_access.h"
#include "lib/share/registry.h"
#include "lib/share/system.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::EmbeddedCopy;

// A copy and the path of its object, which the copy itself may not keep.
struct NamedCopy {
  const char* name() const noexcept { return path[0] == '\0' ? "the main program" : path; }

  EmbeddedCopy copy;
  char path[PATH_MAX] = "";
};

// Whether the driver is resolved and works: then nobody who walked through the loaded objects was
// forked away in the middle.
bool IsDriverUsable() {
  const internal::DriverOutcome* const outcome = internal::DecidedDriver();
  int count = 0;
  return outcome != nullptr && outcome->ok() &&
         outcome->table.DeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED;
}

// Every copy, in load order. No memory is asked for during a walk, so one is made again if there
// are more of them than there was room for.
std::vector<NamedCopy> FindCopies() {
  struct Found {
    std::vector<NamedCopy> copies;
    std::size_t count;
  } found{std::vector<NamedCopy>(1), 0};
  const auto add = [](const EmbeddedCopy& copy, void* data) {
    auto& [copies, count] = *static_cast<Found*>(data);
    const std::size_t place = count++;
    if (place >= copies.size()) return false;
    copies[place].copy = copy;
    std::snprintf(copies[place].path, sizeof(copies[place].path), "%s", copy.path);
    return false;
  };
  internal::ForEachCopy(add, &found);
  while (found.count > found.copies.size()) {
    found.copies.resize(found.count);
    found.count = 0;
    internal::ForEachCopy(add, &found);
  }
  found.copies.resize(found.count);
  return std::move(found.copies);
}

// The one whose registry `copy` uses; nullptr if there is none.
const NamedCopy* FindHomeOf(const EmbeddedCopy& copy, const std::vector<NamedCopy>& copies) {
  for (const NamedCopy& other : copies) {
    if (copy.Understands(other.copy)) return &other;
  }
  return nullptr;
}

}  // namespace

absl::Status CheckSharing() {
  if (internal::IsForked() && !IsDriverUsable()) {
    return absl::FailedPreconditionError(
        "share one count of attached contexts: this process was forked, and CUDA does not work in "
        "it, or this copy has not initialised it yet: ask after this copy's "
        "Driver::GetInitialized()");
  }
  const std::vector<NamedCopy> copies = FindCopies();
  const EmbeddedCopy this_copy = internal::ThisCopy();
  const NamedCopy* home = FindHomeOf(this_copy, copies);
  std::vector<std::string> apart;
  for (const NamedCopy& named : copies) {
    const EmbeddedCopy& copy = named.copy;
    const char* const object = named.name();
    const NamedCopy* used = FindHomeOf(copy, copies);
    if (copy.door == nullptr) {
      apart.push_back(absl::StrCat(object, " has a registry that cannot be read, of layout ",
                                   copy.minimal_reader));
    } else if (used != home) {
      apart.push_back(absl::StrCat(object, ", of registry layout ", copy.numbers.layout,
                                   ", counts in the registry of ",
                                   used != nullptr ? used->name() : "none"));
    }
  }
  if (apart.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "share one count of attached contexts: ", absl::StrJoin(apart, "; "),
      "; this copy, of registry layout ", this_copy.numbers.layout, ", counts in the registry of ",
      home != nullptr ? home->name() : "the main program",
      ". Build all with the same minor version of cuguest"));
}

CUGUEST_END_NAMESPACE
