// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/shared_context.h"

#include <limits.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_release.h"
#include "lib/share/attach_call.h"
#include "lib/share/registry.h"
#include "lib/status/call_status.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::Attachment;
using internal::CallOutcome;
using internal::ContextText;
using internal::EmbeddedCopy;
using internal::Ending;
using internal::Reference;
using internal::Registry;
using Why = CallOutcome::Why;

absl::Status NoMemory(CUcontext context) {
  return absl::ResourceExhaustedError(
      absl::StrCat("attach ", ContextText(context), ": no memory to count it"));
}

absl::Status AttachStatus(const CallOutcome& outcome, CUcontext context) {
  switch (outcome.why) {
    case Why::kNull:
      return absl::InvalidArgumentError("attach a context: it is null");
    case Why::kNoContext:
      return absl::InvalidArgumentError(
          absl::StrCat("attach ", ContextText(context), ": there is no context at this address"));
    case Why::kNoMemory:
      return NoMemory(context);
    case Why::kClosing:
      return absl::FailedPreconditionError(
          absl::StrCat("attach ", ContextText(context),
                       ": its last holder is destroying it. Keep a SharedContext of your own for "
                       "as long as the context is needed"));
    default:
      return internal::CallStatus(outcome, ContextText(context));
  }
}

std::string CreationText(Device device, const SharedContext::Options& options) {
  std::string text = absl::StrCat("device ", device.get(), ", flags 0x", absl::Hex(options.flags));
  if (options.execution_affinity.has_value()) {
    absl::StrAppend(&text, ", with an execution affinity of ",
                    static_cast<unsigned>(*options.execution_affinity), " SMs");
  }
  if (options.cig.has_value()) {
    absl::StrAppend(&text, ", for CUDA in Graphics with data of type ",
                    static_cast<unsigned>(options.cig->sharedDataType));
  }
  return text;
}

const char* CreationAdvice(CUresult code) {
  switch (code) {
    case CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY:
      return ", which only a client of an MPS server can have, on compute capability 7.0 or newer, "
             "and of no more SMs than the device has: start nvidia-cuda-mps-control, ask for fewer "
             "SMs, or use a GreenContext";
    case CUDA_ERROR_NOT_SUPPORTED:
      return ": ask cuDeviceGetAttribute for CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED or "
             "CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED first";
    default:
      return "";
  }
}

absl::Status CheckOptions(Device device, const SharedContext::Options& options) {
  const char* wrong = nullptr;
  if (options.execution_affinity == SmCount{0}) wrong = "a context needs at least one SM";
  if (options.cig.has_value() && options.cig->sharedData == nullptr) wrong = "the data is null";
  if (options.execution_affinity.has_value() && options.cig.has_value()) {
    wrong = "a context can have one of the two, not both";
  }
  if (wrong == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("create a shared context, ", CreationText(device, options), ": ", wrong));
}

// The driver lacks the signature of cuCtxCreate that `options` need.
absl::Status TooOldStatus(const CallOutcome& outcome, Device device,
                          const SharedContext::Options& options) {
  const int version = options.cig.has_value() ? internal::kCigVersion : internal::kAffinityVersion;
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  // For its payloads.
  const absl::Status status = driver->Find<CUresult(CUDAAPI*)()>("cuCtxCreate", version).status();
  return internal::Reworded(
      status, absl::StatusCode::kUnimplemented,
      absl::StrCat(outcome.doing, ", ", CreationText(device, options), ": this driver (",
                   internal::VersionText(driver->version), ") has no cuCtxCreate of ",
                   internal::VersionText(version), "; driver ", internal::FloorOf(version).driver,
                   " or newer is needed"));
}

// A copy and the path of its object, which the copy itself may not keep.
struct NamedCopy {
  const char* name() const noexcept { return path[0] == '\0' ? "the main program" : path; }

  EmbeddedCopy copy;
  char path[PATH_MAX] = "";
};

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

absl::StatusOr<SharedContext> SharedContext::Create(Device device, unsigned flags) {
  SharedContext::Options options;
  options.flags = flags;
  return Create(device, options);
}

absl::StatusOr<SharedContext> SharedContext::Create(Device device,
                                                    const SharedContext::Options& options) {
  CUGUEST_RETURN_IF_ERROR(CheckOptions(device, options));
  Attachment made;
  const CallOutcome outcome = internal::CreateShared(
      device.get(),
      {options.flags, static_cast<unsigned>(options.execution_affinity.value_or(SmCount{0})),
       options.cig.has_value() ? &*options.cig : nullptr},
      &made);
  if (outcome.ok()) return SharedContext(made.incarnation, made.reference);
  if (outcome.why == Why::kNoMemory) return NoMemory(outcome.context);
  if (outcome.why == Why::kNoEntry) return TooOldStatus(outcome, device, options);
  return internal::CallStatus(
      outcome, absl::StrCat(CreationText(device, options), CreationAdvice(outcome.code)));
}

absl::StatusOr<SharedContext> SharedContext::Attach(CUcontext context) {
  Attachment attached;
  const CallOutcome outcome = internal::Attach(context, &attached);
  if (!outcome.ok()) return AttachStatus(outcome, context);
  return SharedContext(attached.incarnation, attached.reference);
}

absl::StatusOr<SharedContext> SharedContext::Attach(const ContextRef& context) {
  Attachment attached;
  const CallOutcome outcome = internal::Attach(context, &attached);
  if (!outcome.ok()) return AttachStatus(outcome, context.get());
  return SharedContext(attached.incarnation, attached.reference);
}

SharedContext::SharedContext(const ContextRef& incarnation, const Reference& reference) noexcept
    : incarnation_(incarnation), slot_(reference.slot), stripe_(reference.stripe) {}

SharedContext::SharedContext(const SharedContext& other) noexcept
    : SharedContext(other.incarnation_,
                    other.slot_ != nullptr ? Registry::Copy(other.slot_) : Reference()) {}

SharedContext& SharedContext::operator=(SharedContext other) noexcept {
  std::swap(incarnation_, other.incarnation_);
  std::swap(slot_, other.slot_);
  std::swap(stripe_, other.stripe_);
  return *this;
}

SharedContext::~SharedContext() { static_cast<void>(Leave()); }

CUresult SharedContext::Leave() noexcept {
  incarnation_ = ContextRef();
  const Reference reference{std::exchange(slot_, nullptr), stripe_};
  return reference.slot != nullptr ? Registry::Leave(reference) : CUDA_SUCCESS;
}

SharedContext::Owner SharedContext::owner() const noexcept {
  if (slot_ == nullptr) return Owner::kNobody;
  const Ending ending = slot_->GetEnding();
  if (ending == Ending::kDestroy) return Owner::kShared;
  return ending == Ending::kReleasePrimary ? Owner::kPrimary : Owner::kOther;
}

std::uint64_t SharedContext::use_count() const noexcept {
  return slot_ != nullptr ? Registry::Count(*slot_) : 0;
}

absl::Status SharedContext::Release() {
  if (slot_ == nullptr) {
    return absl::FailedPreconditionError("detach a shared context: it is attached to nothing");
  }
  const CUcontext context = get();
  Attachment left{std::exchange(incarnation_, ContextRef()),
                  {std::exchange(slot_, nullptr), stripe_}};
  const CallOutcome outcome = internal::Detach(&left);
  if (outcome.ok()) return absl::OkStatus();
  if (outcome.code == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    return ToStatus(
        CUDA_ERROR_CONTEXT_IS_DESTROYED, "detach",
        absl::StrCat(ContextText(context), ", which was destroyed or reset while it was attached"));
  }
  return internal::CallStatus(outcome, ContextText(context));
}

absl::Status SharedContext::CheckSharing() {
  const Registry* ours = &Registry::OfProcess();
  const std::vector<NamedCopy> copies = FindCopies();
  const EmbeddedCopy this_copy = internal::ThisCopy();
  const NamedCopy* home = FindHomeOf(this_copy, copies);
  std::vector<std::string> apart;
  for (const NamedCopy& named : copies) {
    const EmbeddedCopy& copy = named.copy;
    const char* const object = named.name();
    const NamedCopy* used = FindHomeOf(copy, copies);
    if (copy.registry == nullptr) {
      apart.push_back(absl::StrCat(object, " has a registry that cannot be read, of layout ",
                                   copy.minimal_reader));
    } else if (used != home) {
      apart.push_back(absl::StrCat(object, ", of registry layout ", copy.numbers.layout,
                                   ", counts in the registry of ",
                                   used != nullptr ? used->name() : "none"));
    } else if (&named == home && copy.registry != ours) {
      apart.push_back(absl::StrCat(object, " could not be kept from being unloaded"));
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
