// SPDX-License-Identifier: Apache-2.0

#include "cuguest/internal/handle_pool.h"

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/capture.h"
#include "cuguest/device_view.h"
#include "cuguest/error.h"
#include "lib/context/context_text.h"
#include "lib/context/stream_text.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

using State = HandleSlot::State;

// Different for threads that run at the same time, mostly; a new thread likes what one that
// is gone had.
std::size_t ThreadHash() noexcept {
  static thread_local char t_anchor;
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&t_anchor));
  return static_cast<std::size_t>((address * 0x9E3779B97F4A7C15U) >> 32);
}

absl::Status RefuseToMake(const char* what, const ContextRef& context, CUstream stream) {
  return ToStatus(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, absl::StrCat("make ", what),
                  absl::StrCat("in ", ContextText(context.get()), " for ", StreamText(stream),
                               ", while it or a blocking stream of the context captures: it would "
                               "end the capture. Call Prepare() before the capture begins"));
}

}  // namespace

HandlePool::~HandlePool() {
  if (head_.load(std::memory_order_relaxed) == nullptr) return;
  const bool is_over = is_over_ || !HousekeepingIsSafe(CU_STREAM_LEGACY);
  for (HandleSlot* slot = head_.load(std::memory_order_acquire); slot != nullptr;) {
    const std::unique_ptr<HandleSlot> ending(slot);
    slot = slot->next;
    type_->destroy(library_, ending->handle, is_over);
  }
}

bool HandlePool::Take(HandleSlot* slot, const void* kind) const noexcept {
  State idle = State::kIdle;
  return Fits(*slot, kind) &&
         slot->state.compare_exchange_strong(idle, State::kLent, std::memory_order_acquire,
                                             std::memory_order_relaxed);
}

HandleSlot* HandlePool::TakeIdle(const void* kind) noexcept {
  std::atomic<HandleSlot*>& hint = hints_[ThreadHash() % kHints];
  HandleSlot* const hinted = hint.load(std::memory_order_acquire);
  if (hinted != nullptr && Take(hinted, kind)) return hinted;
  for (HandleSlot* slot = head_.load(std::memory_order_acquire); slot != nullptr;
       slot = slot->next) {
    if (slot == hinted || !Take(slot, kind)) continue;
    hint.store(slot, std::memory_order_release);
    return slot;
  }
  return nullptr;
}

absl::StatusOr<HandleSlot*> HandlePool::Make(const ContextRef& context, const void* kind,
                                             CUstream stream) {
  if (!HousekeepingIsSafe(stream)) return RefuseToMake(type_->what, context, stream);
  std::unique_ptr<HandleSlot> slot(new (std::nothrow) HandleSlot);
  if (slot == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("make ", type_->what, ": no host memory"));
  }
  // The library is foreign code: what it leaves on the stack stays inside.
  const ContextGuard guard(context.get(), GuardMode::kAlwaysPush);
  if (!guard.ok()) return ToStatus(guard);
  const CaptureModeGuard relaxed;
  const absl::StatusOr<void*> made = type_->make(library_, context, kind);
  if (!made.ok()) return made.status();
  slot->handle = *made;
  slot->next = head_.load(std::memory_order_relaxed);
  while (!head_.compare_exchange_weak(slot->next, slot.get(), std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
  return slot.release();
}

void HandlePool::GiveBack(HandleSlot* slot, bool is_good) noexcept {
  slot->state.store(is_good ? State::kIdle : State::kSpoiled, std::memory_order_release);
}

std::size_t HandlePool::Count(const void* kind) const noexcept {
  std::size_t count = 0;
  for (const HandleSlot* slot = head_.load(std::memory_order_acquire); slot != nullptr;
       slot = slot->next) {
    const bool is_good = slot->state.load(std::memory_order_relaxed) != State::kSpoiled;
    if (is_good && Fits(*slot, kind)) ++count;
  }
  return count;
}

absl::StatusOr<HandlePools::Pin> HandlePools::PoolOf(const ContextRef& context) {
  return pools_.GetOrMake(context, [this](const ContextRef&) -> absl::StatusOr<HandlePool> {
    const absl::StatusOr<Device> device = Device::OfCurrentContext();
    if (!device.ok()) return device.status();
    return HandlePool(type_, library_, *device);
  });
}

absl::Status HandlePools::Prepare(const ContextRef& context, const void* kind, std::size_t count,
                                  const char* file, int line) {
  const ContextGuard guard(context, GuardMode::kElide, file, line);
  if (!guard.ok()) return ToStatus(guard);
  const absl::StatusOr<Pin> pool = PoolOf(context);
  if (!pool.ok()) return pool.status();
  while ((*pool)->Count(kind) < count) {
    const absl::StatusOr<HandleSlot*> made = (*pool)->Make(context, kind, CU_STREAM_LEGACY);
    if (!made.ok()) return made.status();
    (*pool)->GiveBack(*made, /*is_good=*/true);
  }
  return absl::OkStatus();
}

HandleScope::HandleScope(HandlePools& pools, const HandleRequest& request, const char* file,
                         int line) noexcept
    : pools_(pools),
      context_(request.stream.context()),
      guard_(context_, GuardMode::kElide, file, line) {
  status_ = Enter(request);
  if (!status_.ok()) static_cast<void>(guard_.Restore());
}

absl::Status HandleScope::Enter(const HandleRequest& request) {
  if (context_.get() == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "borrow ", pools_.type_.what, ": the stream is empty: moved from, or never set"));
  }
  if (!guard_.ok()) return ToStatus(guard_);
  absl::StatusOr<HandlePools::Pin> pool = pools_.PoolOf(context_);
  if (!pool.ok()) return pool.status();
  pool_ = *std::move(pool);
  if (request.brings_work_area && request.work_area.bytes != 0 &&
      request.work_area.device != pool_->device()) {
    return absl::InvalidArgumentError(
        absl::StrCat("borrow ", pools_.type_.what, " on device ", pool_->device().get(),
                     ": the work area is memory of device ", request.work_area.device.get()));
  }
  slot_ = pool_->TakeIdle(request.kind);
  if (slot_ == nullptr) {
    const absl::StatusOr<HandleSlot*> made =
        pool_->Make(context_, request.kind, request.stream.get());
    if (!made.ok()) return made.status();
    slot_ = *made;
  }
  absl::Status status = pools_.type_.begin(pools_.library_, slot_->handle, request);
  if (!status.ok()) static_cast<void>(End());
  return status;
}

// Gives the handle back, as it was made; or given up, if its context has ended.
absl::Status HandleScope::End() {
  HandleSlot* const slot = std::exchange(slot_, nullptr);
  absl::Status status = Reassert();
  const CUresult life = status.ok() ? context_.Check() : CUDA_SUCCESS;
  if (life != CUDA_SUCCESS) status = ToStatus(life, absl::StrCat("give back ", pools_.type_.what));
  if (status.ok()) status = pools_.type_.end(pools_.library_, slot->handle);
  pool_->GiveBack(slot, status.ok());
  return status;
}

absl::Status HandleScope::Reassert() {
  return ToStatus(guard_.Reassert(), "re-enter the context of a scope");
}

absl::Status HandleScope::Restore() {
  absl::Status status = slot_ == nullptr ? absl::OkStatus() : End();
  const CUresult code = guard_.Restore();
  if (status.ok()) status = ToStatus(code, "leave the context of a scope");
  return status;
}

absl::Status HandleScope::CheckOperand(CUdeviceptr pointer, std::size_t bytes) const {
  if (slot_ == nullptr) {
    return absl::FailedPreconditionError("check an operand: the scope is not open");
  }
  const auto view = DeviceView<const std::byte>::Borrow(pointer, bytes);
  if (!view.ok()) return view.status();
  if (view->empty() || view->device() == pool_->device()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "check an operand: 0x", absl::Hex(pointer), " is memory of device ", view->device().get(),
      ", and the scope works on device ", pool_->device().get(), ": copy it there first"));
}

}  // namespace internal
CUGUEST_END_NAMESPACE
