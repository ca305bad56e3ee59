// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/green_context.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/core/end_if_alive.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

constexpr char kCreateGreen[] = "create a green context";

}  // namespace

absl::StatusOr<GreenContext> GreenContext::Create(Device device, SmCount least) {
  CUGUEST_ASSIGN_OR_RETURN(const SmSplit split, SmSplit::Of(device, least, 1));
  return Create(split.parts.front());
}

absl::StatusOr<GreenContext> GreenContext::Create(const SmSplit::Part& partition) {
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
  CUdevResource resource;
  std::memcpy(&resource, partition.resource_, sizeof(resource));
  CUdevResourceDesc description = nullptr;
  CUGUEST_RETURN_IF_CUDA_ERROR(describe(&description, &resource, 1), "describe a partition", text);
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

GreenContext::~GreenContext() { static_cast<void>(End()); }

CUresult GreenContext::End() noexcept {
  if (state_.green == nullptr) return CUDA_SUCCESS;
  return internal::EndIfAlive(
      state_.incarnation.Check(),
      [this] { return internal::ResolvedDriver().GreenCtxDestroy(state_.green); },
      [this] { state_ = State(); });
}

absl::Status GreenContext::Release() {
  const CUcontext context = get();
  const CUresult code = End();
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  return ToStatus(code, "destroy a green context", internal::ContextText(context));
}

CUGUEST_END_NAMESPACE
