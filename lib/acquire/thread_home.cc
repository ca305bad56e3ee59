// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/thread_home.h"

#include <utility>

#include "lib/core/failure.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::Failure;

constexpr char kBind[] = "bind a thread to its home";

Error OfHome(CUresult code, const ContextRef& context) {
  return internal::OfContext(Failure(code, kBind), context.get());
}

}  // namespace

ThreadHome::ThreadHome(Acquired home, Keep keep, IfOver if_over, Location where) noexcept
    : where_(where), keep_(keep), if_over_(if_over) {
  error_ = Bind(&home);
}

ThreadHome::~ThreadHome() {
  static_cast<void>(scope_.LeaveByCall(internal::Reported::kByIncident));
  // Taken out first: in C a listener of what is reported here may end the home, too, in the same
  // storage.
  const Acquired gone = std::move(held_);
}

CUresult ThreadHome::Place(const ContextRef& context) noexcept {
  const bool is_first = context_.get() == nullptr;
  const auto place = internal::Incarnation::Of(context);
  if (!is_first) return scope_.MoveTo(place, where_);
  scope_.EnterByCall(place, /*always_pushes=*/true, where_);
  return scope_.JustEntered();
}

// A reference says that a context is primary, and on which device, and so what its next incarnation
// is; so does what refused a device whose primary context is not active.
Error ThreadHome::Bind(Acquired* home) noexcept {
  const bool is_first = context_.get() == nullptr && !has_next_;
  if (!home->ok()) {
    const Error why_not = home->error();
    if (is_first && why_not.reason == Error::Reason::kInactive) {
      has_next_ = true;
      device_ = Device::Borrow(why_not.device);
    }
    return why_not;
  }
  const bool wants_reference = keep_ == Keep::kReference || if_over_ == IfOver::kReenter;
  const Error held = wants_reference ? home->Hold() : Error();
  // A home that need not hold works in any context; but where that is not known, it says so.
  const bool is_told =
      held.code == CUDA_ERROR_NOT_SUPPORTED || held.code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!held.ok() && (keep_ == Keep::kReference || !is_told)) return held;
  const CUresult code = Place(home->context());
  if (code != CUDA_SUCCESS && !is_first) return OfHome(code, home->context());
  context_ = home->context();
  has_next_ = home->holds();
  if (has_next_) static_cast<void>(home->GetDevice(&device_));  // which it knows
  held_ = keep_ == Keep::kReference ? std::move(*home) : Acquired();
  return code == CUDA_SUCCESS ? Error() : Follow(code);
}

// Entering or reasserting has given `why`; the thread has what it had before.
Error ThreadHome::Follow(CUresult why) noexcept {
  const bool is_over =
      context_.get() == nullptr || context_.Check() == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!is_over || !has_next_ || if_over_ == IfOver::kRefuse) return OfHome(why, context_);
  PrimaryContext next = PrimaryContext::RetainIfActive(device_);
  if (!next.ok()) return next.error();
  const CUresult code = Place(next.context());
  if (code != CUDA_SUCCESS) return OfHome(code, next.context());
  context_ = next.context();
  if (keep_ == Keep::kReference) held_ = Acquired(std::move(next), Acquired::Source::kPrimary);
  return {};
}

Error ThreadHome::Check() noexcept {
  if (has_ended_ || !thread_.IsThis()) return OfHome(CUDA_ERROR_ILLEGAL_STATE, context_);
  const bool has_been = context_.get() != nullptr;
  if (!has_been && (!has_next_ || if_over_ == IfOver::kRefuse)) return error_;
  const CUresult code = has_been ? scope_.Reassert() : CUDA_ERROR_INVALID_CONTEXT;
  if (code == CUDA_ERROR_ILLEGAL_STATE) return OfHome(code, context_);
  error_ = code == CUDA_SUCCESS ? Error() : Follow(code);
  return error_;
}

Error ThreadHome::MoveTo(Acquired home) noexcept {
  if (has_ended_ || !thread_.IsThis()) return OfHome(CUDA_ERROR_ILLEGAL_STATE, context_);
  const Error moved = Bind(&home);
  if (moved.ok()) error_ = moved;
  return moved;
}

Error ThreadHome::Leave() noexcept {
  if (has_ended_) return {};
  has_ended_ = true;
  const CUresult code = scope_.LeaveByCall(internal::Reported::kByResult);
  const Error released = held_.Release();
  const bool has_left = code == CUDA_SUCCESS || code == CUDA_ERROR_ILLEGAL_STATE;
  return has_left ? released : OfHome(code, context_);
}

CUGUEST_END_NAMESPACE
