// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/libraries/internal/handle_pool.h"

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/devices.h"
#include "cuguest/incident.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/report.h"
#include "cuguest/internal/stream_kind.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/memory.h"
#include "cuguest/status.h"
#include "lib/core/concurrency.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/guard/scope_relaxed.h"
#include "lib/objects/stream/stream_call.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using State = HandleSlot::State;

constexpr CUdeviceptr kWorkAreaAlignment = 256;

// What HousekeepingIsSafe() asks, and why it is not.
absl::Status CheckMake(const char* what, const ContextRef& context, CUstream stream) {
  constexpr CUresult kRefusal = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  CUresult code = CheckNotCapturing(stream, kRefusal);
  if (code == CUDA_SUCCESS && !IsLegacy(stream)) {
    code = CheckNotCapturing(CU_STREAM_LEGACY, kRefusal);
  }
  CUGUEST_RETURN_IF_CUDA_ERROR(
      code, absl::StrCat("make ", what),
      absl::StrCat("in ", ContextText(context.get()), " for ", StreamText(stream),
                   code == kRefusal
                       ? ", while it or a blocking stream of the context captures: it would end "
                         "the capture. Call Prepare() before the capture begins"
                       : ""));
  return absl::OkStatus();
}

}  // namespace

HandlePool::~HandlePool() {
  HandleSlot* slot = head_.load(std::memory_order_acquire);
  if (slot == nullptr) return;
  std::optional<RelaxedScope> relaxed;
  if (!is_over_) {
    is_over_ = !relaxed.emplace().ok() ||
               (type_->destroy_ends_captures && !HousekeepingIsSafe(CU_STREAM_LEGACY));
  }
  while (slot != nullptr) {
    const std::unique_ptr<const HandleSlot> ending(slot);
    slot = slot->next;
    type_->destroy(library_, ending->handle, is_over_);
  }
}

inline bool HandlePool::Take(HandleSlot* slot, const void* kind) const noexcept {
  State idle = State::kIdle;
  // Looked at first, so as not to take the line from its holder.
  return slot->state.load(std::memory_order_relaxed) == idle && Fits(*slot, kind) &&
         slot->state.compare_exchange_strong(idle, State::kLent, std::memory_order_acquire,
                                             std::memory_order_relaxed);
}

HandleSlot* HandlePool::TakeIdle(const void* kind) noexcept {
  // Threads that began one after the other have hints of their own.
  Hint& hint = hints_[ThreadNumber() % kHints];
  HandleSlot* const hinted = hint.slot.load(std::memory_order_acquire);
  if (Mostly(hinted != nullptr && Take(hinted, kind))) return hinted;
  return Search(kind, &hint);
}

HandleSlot* HandlePool::TakeBetween(HandleSlot* begin, const HandleSlot* end,
                                    const void* kind) const noexcept {
  HandleSlot* slot = begin;
  while (slot != end && !Take(slot, kind)) slot = slot->next;
  return slot == end ? nullptr : slot;
}

// Note [Hints]
// ~~~~~~~~~~~~
// A thread that finds the slot of its hint lent takes the next idle one, in the order of the list
// and from its beginning again. Its hint moves to that slot each eighth time only. If it moved each
// time, the thread whose slot was taken would take a third thread's, and so on without end. As it
// is, of two threads with one hint one moves on until its hint is no other thread's; so where there
// is a handle for each thread each comes to have its own, whose line stays in its cache.

// As TakeIdle(), where the hint was of no use.
HandleSlot* HandlePool::Search(const void* kind, Hint* hint) const noexcept {
  constexpr unsigned kMisses = Spread(8U, 2U);
  HandleSlot* const hinted = hint->slot.load(std::memory_order_acquire);
  HandleSlot* const next = hinted == nullptr ? nullptr : hinted->next;
  HandleSlot* found = TakeBetween(next, nullptr, kind);
  if (found == nullptr) found = TakeBetween(head_.load(std::memory_order_acquire), next, kind);
  if (found == nullptr || found == hinted) return found;
  const bool moves = hint->misses.fetch_add(1, std::memory_order_relaxed) % kMisses == kMisses - 1;
  if (hinted == nullptr || moves) hint->slot.store(found, std::memory_order_release);
  return found;
}

absl::StatusOr<HandleSlot*> HandlePool::Make(const ContextRef& context, const void* kind,
                                             CUstream stream) {
  if (type_->make_ends_captures) {
    CUGUEST_RETURN_IF_ERROR(CheckMake(type_->what, context, stream));
  }
  std::unique_ptr<HandleSlot> slot(new (std::nothrow) HandleSlot);
  if (slot == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("make ", type_->what, ": no host memory"));
  }
  // The library is foreign code: what it leaves on the stack stays inside.
  const ContextGuard guard(context.get(), GuardMode::kAlwaysPush);
  if (!guard.ok()) return ToStatus(guard);
  CUGUEST_ASSIGN_OR_RETURN(void* const made, type_->make(library_, context, kind));
  slot->handle = made;
  slot->next = head_.load(std::memory_order_relaxed);
  while (!head_.compare_exchange_weak(slot->next, slot.get(), std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
  return slot.release();
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

const void* HandlePool::Any(const void* kind) const noexcept {
  const HandleSlot* slot = head_.load(std::memory_order_acquire);
  while (slot != nullptr && !Fits(*slot, kind)) slot = slot->next;
  return slot == nullptr ? nullptr : slot->handle;
}

absl::Status HandlePool::Prepare(const ContextRef& context, const void* kind, std::size_t count) {
  while (Count(kind) < count) {
    CUGUEST_ASSIGN_OR_RETURN(HandleSlot* const made, Make(context, kind, CU_STREAM_LEGACY));
    GiveBack(made, /*is_good=*/true);
  }
  return absl::OkStatus();
}

absl::StatusOr<HandlePools::Pin> HandlePools::PoolOf(const ContextRef& context) {
  return GetOrMake(context, [this](const ContextRef&) -> absl::StatusOr<HandlePool> {
    CUGUEST_ASSIGN_OR_RETURN(const Device device, CurrentDevice());
    return HandlePool(type_, library_, device);
  });
}

absl::StatusOr<HandlePools::Pin> HandlePools::Prepare(const ContextRef& context, const void* kind,
                                                      std::size_t count, Location where) {
  const ContextGuard guard(context, GuardMode::kElide, where);
  if (!guard.ok()) return ToStatus(guard);
  const CaptureModeGuard relaxed(CU_STREAM_CAPTURE_MODE_RELAXED, where);
  if (!IsRelaxed(relaxed)) return ToStatus(relaxed);
  CUGUEST_ASSIGN_OR_RETURN(Pin pool, PoolOf(context));
  CUGUEST_RETURN_IF_ERROR(pool->Prepare(context, kind, count));
  return pool;
}

// Whether nothing is to be checked before it can have a handle.
inline bool IsSimple(const HandleRequest& request) {
  return !MeansCurrent(request.stream.get()) && request.work_area == nullptr;
}

inline HandleScope::Scopes::Scopes(const ContextRef& context, Location where) noexcept
    : guard(Scope::kNotSet), relaxed(Scope::kNotSet) {
  Scope::EnterRelaxed(Incarnation::Of(context), &guard, &relaxed, where);
}

HandleScope::HandleScope(HandlePools& pools, const HandleRequest& request, Location where)
    : pools_(pools),
      context_(request.stream.context()),
      scopes_(context_, where),
      pool_(Mostly(scopes_.relaxed.IsInside()) ? pools.Find(context_) : HandlePools::Pin()),
      slot_(Mostly(pool_ && IsSimple(request)) ? pool_->TakeIdle(request.kind) : nullptr),
      failure_(Mostly(slot_ != nullptr) ? pools.type_.begin(pools.library_, slot_->handle, request)
                                        : EnterSpecially(request)),
      where_(where) {
  if (Rarely(!failure_.ok())) Fail();
}

void HandleScope::Fail() {
  static_cast<void>(Leave());
  unasked_ = CodeOf(failure_).value_or(CUDA_ERROR_UNKNOWN);
}

// Gives the handle back as it was made; or gives it up, if its context has ended. Why it could not
// be put back, unless nobody asks. One question says whether the context is alive and still
// current; where nothing but questions came after it, the guard needs none of its own.
inline void HandleScope::End(absl::Status* why) {
  if (Rarely(slot_ == nullptr)) return;
  unsigned long long id = 0;
  const bool is_current =
      context_.id() != 0 && GetId(nullptr, &id) == CUDA_SUCCESS && id == context_.id();
  if (Rarely(!is_current)) return EndElsewhere(why);
  const PutBack put_back = pools_.type_.end(pools_.library_, slot_->handle, why);
  HandlePool::GiveBack(slot_.release(), put_back != PutBack::kFailed);
  if (Rarely(put_back != PutBack::kUnchanged)) return;
  const CUresult code = Scope::LeaveRelaxedSeen(&scopes_.guard, &scopes_.relaxed);
  if (Rarely(code != CUDA_SUCCESS) && why != nullptr) {
    why->Update(ToStatus(code, "restore the stream-capture mode"));
  }
}

// As End(), where the context is not current, or not for certain; the scopes do not end.
void HandleScope::EndElsewhere(absl::Status* why) {
  const CUresult alive = CheckIncarnation(Incarnation::Of(context_));
  PutBack put_back = PutBack::kFailed;
  if (alive == CUDA_SUCCESS) {
    put_back = pools_.type_.end(pools_.library_, slot_->handle, why);
  } else if (why != nullptr) {
    *why = ToStatus(alive, "put back", pools_.type_.what);
  }
  HandlePool::GiveBack(slot_.release(), put_back != PutBack::kFailed);
}

HandleScope::~HandleScope() {
  End(nullptr);
  if (Mostly(unasked_ == CUDA_SUCCESS)) return;
  ReportIncident(Incident::Kind::kUnasked, Incident::Repair::kUnrepaired, unasked_, where_);
}

// What the constructor does where the scopes failed, or no handle was at hand.
absl::Status HandleScope::EnterSpecially(const HandleRequest& request) {
  CUGUEST_RETURN_IF_ERROR(CheckEntered(request));
  if (!pool_) {
    CUGUEST_ASSIGN_OR_RETURN(pool_, pools_.PoolOf(context_));
  }
  if (!IsSimple(request)) CUGUEST_RETURN_IF_ERROR(Check(request));
  slot_.reset(pool_->TakeIdle(request.kind));
  if (slot_ == nullptr) {
    CUGUEST_ASSIGN_OR_RETURN(HandleSlot* const made,
                             pool_->Make(context_, request.kind, request.stream.get()));
    slot_.reset(made);
  }
  return pools_.type_.begin(pools_.library_, slot_->handle, request);
}

// Whether both scopes are as they should be.
absl::Status HandleScope::CheckEntered(const HandleRequest& request) const {
  if (scopes_.guard.JustEntered() != CUDA_SUCCESS) {
    if (request.refusal != nullptr) return *request.refusal;
    if (context_.get() != nullptr) {
      return MakeStatus(scopes_.guard.result(), "enter a context", scopes_.guard.advice());
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "borrow ", pools_.type_.what, ": the stream is empty: moved from, or never set"));
  }
  if (IsRelaxed(scopes_.relaxed.JustEntered())) return absl::OkStatus();
  return MakeStatus(scopes_.relaxed.result(), "set the stream-capture mode",
                    scopes_.relaxed.advice());
}

// What the libraries do not check, or not without harm.
absl::Status HandleScope::Check(const HandleRequest& request) const {
  const CUstream stream = request.stream.get();
  if (IsLegacy(stream)) {
    constexpr CUresult kRefusal = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    const CUresult code = CheckNotCapturing(stream, kRefusal);
    CUGUEST_RETURN_IF_CUDA_ERROR(
        code, absl::StrCat("borrow ", pools_.type_.what),
        absl::StrCat("for ", StreamText(stream), " of ", ContextText(context_.get()),
                     code == kRefusal ? ", while a blocking stream of it captures" : ""));
  }
  // There is none in a green context.
  if (stream == CU_STREAM_PER_THREAD) {
    CUGUEST_RETURN_IF_ERROR(StreamStatus(CheckNotCapturing(stream, CUDA_SUCCESS),
                                         absl::StrCat("borrow ", pools_.type_.what).c_str(),
                                         request.stream));
  }
  if (request.work_area == nullptr || request.work_area->bytes == 0) return absl::OkStatus();
  const MemoryRange& area = *request.work_area;
  if (area.device != pool_->device()) {
    return absl::InvalidArgumentError(
        absl::StrCat("borrow ", pools_.type_.what, " on device ", pool_->device().get(),
                     ": the work area is memory of device ", area.device.get()));
  }
  if (area.context.get() != nullptr && area.context != context_) {  // which is current, and alive
    CUGUEST_RETURN_IF_CUDA_ERROR(area.context.Check(), absl::StrCat("borrow ", pools_.type_.what),
                                 absl::StrCat("the work area is memory of ",
                                              ContextText(area.context.get()), ", which is over"));
  }
  if (area.pointer % kWorkAreaAlignment != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "borrow ", pools_.type_.what, ": the work area, at 0x", absl::Hex(area.pointer),
        ", must be aligned to ", kWorkAreaAlignment, " bytes, which the library does not check"));
  }
  return absl::OkStatus();
}

absl::Status HandleScope::Reassert() {
  const CUresult code = slot_ == nullptr ? CUDA_ERROR_ILLEGAL_STATE : scopes_.guard.Reassert();
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  absl::Status status = ToStatus(code, "re-enter the context of a scope");
  if (slot_ != nullptr) failure_ = status;
  static_cast<void>(Leave());
  return status;
}

absl::Status HandleScope::Leave() {
  absl::Status status;
  End(&status);
  pool_ = HandlePools::Pin();
  status.Update(ToStatus(scopes_.relaxed.LeaveCaptureMode(Reported::kByResult),
                         "restore the stream-capture mode"));
  status.Update(ToStatus(scopes_.guard.Leave(Reported::kByResult), "leave the context of a scope"));
  return status;
}

absl::Status HandleScope::CheckOperand(CUdeviceptr pointer, std::size_t bytes) const {
  if (slot_ == nullptr) {
    return absl::FailedPreconditionError("check an operand: the scope is not open");
  }
  const auto view = DeviceView<const std::byte>::Borrow(pointer, bytes);
  if (!view.ok()) return view.status();
  if (view->empty() || view->device() == pool_->device()) return absl::OkStatus();
  CUGUEST_ASSIGN_OR_RETURN(const MemoryDescription memory, Describe(pointer));
  if (memory.is_for_all_devices()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "check an operand: 0x", absl::Hex(pointer), " is memory of device ", view->device().get(),
      ", and the scope works on device ", pool_->device().get(), ": copy it there first"));
}

CUGUEST_END_INTERNAL_NAMESPACE
