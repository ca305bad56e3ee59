// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/green_context.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/core/driver_release.h"
#include "lib/core/settle_end.h"
#include "lib/share/owed.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

constexpr char kCreateGreen[] = "create a green context";
constexpr int kHasQueues = 13010;  // the driver's version

absl::StatusOr<CUdevResource> QueuesOf(const Driver& driver, Device device,
                                       const GreenContext::WorkQueues& queues,
                                       const std::string& text) {
  if (driver.version < kHasQueues) {
    return internal::RefusalStatus(internal::kCallRequiresNewerDriver, kCreateGreen,
                                   absl::StrCat(text, ", with work queues: they need driver ",
                                                internal::FloorOf(kHasQueues).driver, " (",
                                                internal::VersionText(kHasQueues), ") or newer"));
  }
  CUdevResourceType type;  // a value that the enumeration of older headers does not have
  std::memcpy(&type, &internal::kQueueConfig, sizeof(type));
  CUdevResource resource = {};
  CUGUEST_RETURN_IF_CUDA_ERROR(driver.DeviceGetDevResource(device.get(), &resource, type),
                               "ask for the work queues", text);
  internal::QueueConfig config;
  std::memcpy(&config, &resource.sm, sizeof(config));
  if (queues.concurrency != 0) config.limit = queues.concurrency;
  config.scope = queues.balanced ? internal::kBalancedQueues : 0;
  std::memcpy(&resource.sm, &config, sizeof(config));
  return resource;
}

}  // namespace

absl::StatusOr<GreenContext> GreenContext::Create(Device device, SmCount least) {
  CUGUEST_ASSIGN_OR_RETURN(const SmSplit split, SmSplit::Of(device, least, 1));
  return Create(split.parts.front());
}

absl::StatusOr<GreenContext> GreenContext::Create(const SmSplit::Part& partition) {
  return Make(partition, nullptr);
}

absl::StatusOr<GreenContext> GreenContext::Create(const SmSplit::Part& partition,
                                                  const WorkQueues& queues) {
  return Make(partition, &queues);
}

absl::StatusOr<GreenContext> GreenContext::Make(const SmSplit::Part& partition,
                                                const WorkQueues* queues) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  CUGUEST_ASSIGN_OR_RETURN(const auto describe, driver->Require(&Driver::DevResourceGenerateDesc));
  CUGUEST_ASSIGN_OR_RETURN(const auto create, driver->Require(&Driver::GreenCtxCreate));
  CUGUEST_ASSIGN_OR_RETURN(const auto destroy, driver->Require(&Driver::GreenCtxDestroy));
  CUGUEST_ASSIGN_OR_RETURN(const auto convert, driver->Require(&Driver::CtxFromGreenCtx));
  if (partition.count() == SmCount{0}) {
    return absl::InvalidArgumentError(absl::StrCat(
        kCreateGreen,
        ": its partition has no SMs: it is the rest of a device that was split evenly, or "
        "was not made by SmSplit"));
  }
  State state;
  state.device = partition.device();
  state.count = partition.count();
  const std::string text =
      absl::StrCat("device ", state.device.get(), ", ", static_cast<unsigned>(state.count), " SMs");
  std::vector<CUdevResource> resources(partition.resources_.size());
  std::memcpy(resources.data(), partition.resources_.data(),
              resources.size() * sizeof(CUdevResource));
  if (queues != nullptr) {
    CUGUEST_ASSIGN_OR_RETURN(resources.emplace_back(),
                             QueuesOf(*driver, state.device, *queues, text));
  }
  CUdevResourceDesc description = nullptr;
  CUGUEST_RETURN_IF_CUDA_ERROR(
      describe(&description, resources.data(), static_cast<unsigned>(resources.size())),
      "describe a partition", text);
  CUGUEST_RETURN_IF_CUDA_ERROR(
      create(&state.green, description, state.device.get(), internal::kGreenDefaultStream),
      kCreateGreen, text);
  CUcontext context = nullptr;
  CUresult code = convert(&context, state.green);
  if (code == CUDA_SUCCESS) {
    state.incarnation = ContextRef::Borrow(context);
    code = state.incarnation.result();
  }
  if (code != CUDA_SUCCESS) {
    static_cast<void>(destroy(state.green));
    return ToStatus(code, "identify a new green context", text);
  }
  return GreenContext(state);
}

GreenContext::~GreenContext() {
  internal::EndOrOwe(*this, "a GreenContext", &GreenContext::End, &GreenContext::Leak);
}

CUresult GreenContext::End() noexcept {
  if (state_.green == nullptr) return CUDA_SUCCESS;
  CUresult code = state_.incarnation.Check();
  if (code == CUDA_SUCCESS) code = internal::ResolvedDriver().GreenCtxDestroy(state_.green);
  return internal::SettleEnd(code, [this] { state_ = State(); });
}

absl::Status GreenContext::Release() {
  const CUcontext context = get();
  const CUresult code = End();
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  return ToStatus(code, "destroy a green context", internal::ContextText(context));
}

CUGUEST_END_NAMESPACE
