// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
//
// Not for embedders. What the handles of cuBLAS, cuSOLVER and cuSPARSE and the plans of cuFFT
// (libraries/cublas.h and beside it) have in common: they belong to one incarnation of a context,
// are expensive to make, and carry settings, so that one user at a time must have one to itself.

#ifndef CUGUEST_LIBRARIES_INTERNAL_HANDLE_POOL_H_
#define CUGUEST_LIBRARIES_INTERNAL_HANDLE_POOL_H_

#include <cuda.h>

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/internal/concurrency.h"
#include "cuguest/internal/scope.h"
#include "cuguest/location.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/stream.h"
#include "cuguest/per_context.h"
#include "cuguest/status.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What a scope wants of a handle.
struct HandleRequest {
  const StreamRef& stream;
  const void* kind;                       // what HandleType::fits compares
  const MemoryRange* work_area;           // nullptr if none is brought
  const absl::Status* refusal = nullptr;  // why there is no stream
};

// One for a stream that somebody handed in, as StreamRef::Borrow() takes it: `ref` is what came of
// that.
CUGUEST_HIDE inline HandleRequest RequestFor(const absl::StatusOr<StreamRef>& ref,
                                             const void* kind) noexcept {
  static constexpr StreamRef kNone;
  if (!ref.ok()) return {kNone, kind, nullptr, &ref.status()};
  return {*ref, kind, nullptr};
}

// What became of a handle at the end of a scope.
enum class PutBack : unsigned char {
  kUnchanged,  // it is as it was made; the library was asked for its settings, if anything
  kChanged,    // it is as it was made, again
  kFailed,     // it is not to be used again
};

// How a pool deals with the handles of one library. A `handle` is an object of the library's
// header, made by `make` and ended by `destroy`. `make`, `begin`, and `destroy` where the context
// is not over, run with the handle's context current; these and `end` with the thread's capture
// mode relaxed.
struct HandleType {
  const char* what;  // "a cuBLAS handle"
  // Whether the call may end a capture in its context, also with the thread's mode relaxed.
  bool make_ends_captures;
  bool destroy_ends_captures;
  // Never null on success. `kind` is a request's.
  absl::StatusOr<void*> (*make)(const void* library, const ContextRef& context, const void* kind);
  // nullptr: every handle fits.
  bool (*fits)(const void* handle, const void* kind);
  // Gives it the stream and the work area. If this fails, `end` is called all the same.
  absl::Status (*begin)(const void* library, void* handle, const HandleRequest& request);
  // Puts it back as it was made. Where that fails `*why` says why. A destructor passes nullptr:
  // then no text is made, which needs memory.
  PutBack (*end)(const void* library, void* handle, absl::Status* why);
  // `is_over`: the library must not be called; only host memory is freed.
  void (*destroy)(const void* library, void* handle, bool is_over);
};

// A handle and who has it. Slots are freed with their pool, and the list only grows.
struct alignas(64) HandleSlot {
  enum class State : unsigned char { kIdle, kLent, kSpoiled };

  // For one that is lent and in an unknown state.
  struct Spoil {
    CUGUEST_HIDE void operator()(HandleSlot* slot) const noexcept {
      slot->state.store(State::kSpoiled, std::memory_order_release);
    }
  };

  CUGUEST_HIDE HandleSlot() = default;

  Atomic<State> state{State::kLent};
  void* handle = nullptr;  // this and `next` do not change once the slot is in the list
  HandleSlot* next = nullptr;
};

// The handles in one incarnation of one context.
class CUGUEST_API HandlePool {
 public:
  CUGUEST_HIDE HandlePool(const HandleType& type, const void* library, Device device) noexcept
      : type_(&type), library_(library), device_(device) {}
  // Only before anything is in it.
  CUGUEST_HIDE HandlePool(HandlePool&& other) noexcept
      : HandlePool(*other.type_, other.library_, other.device_) {}
  // Destroys the handles, unless that would end a capture that can be seen: then, as after
  // Leak(), it gives them up.
  ~HandlePool();

  // From now on its handles are given up, without a call.
  CUGUEST_HIDE void Leak() noexcept { is_over_ = true; }

  [[nodiscard]] CUGUEST_HIDE Device device() const noexcept { return device_; }

  // An idle handle that fits; nullptr if there is none.
  [[nodiscard]] HandleSlot* TakeIdle(const void* kind) noexcept;
  // A new one, unless making it would end a capture of `stream` or of a blocking stream. Its
  // context must be current, the capture mode relaxed.
  [[nodiscard]] absl::StatusOr<HandleSlot*> Make(const ContextRef& context, const void* kind,
                                                 CUstream stream);
  CUGUEST_HIDE static void GiveBack(HandleSlot* slot, bool is_good) noexcept {
    slot->state.store(is_good ? HandleSlot::State::kIdle : HandleSlot::State::kSpoiled,
                      std::memory_order_release);
  }

  // Those that fit and can be lent, now or later.
  [[nodiscard]] std::size_t Count(const void* kind) const noexcept;
  // One of them, in use or idle; nullptr if there is none.
  [[nodiscard]] const void* Any(const void* kind) const noexcept;
  // Makes them until there are so many. As Make().
  absl::Status Prepare(const ContextRef& context, const void* kind, std::size_t count);

 private:
  CUGUEST_HIDE static constexpr std::size_t kHints = 128;

  // What a thread takes if it can. See Note [Hints].
  struct Hint {
    Atomic<HandleSlot*> slot{nullptr};
    Atomic<unsigned> misses{0};
  };

  [[nodiscard]] CUGUEST_HIDE bool Fits(const HandleSlot& slot, const void* kind) const noexcept {
    return type_->fits == nullptr || type_->fits(slot.handle, kind);
  }
  [[nodiscard]] CUGUEST_HIDE inline bool Take(HandleSlot* slot, const void* kind) const noexcept;
  // Of the slots from `begin` to before `end`.
  [[nodiscard]] HandleSlot* TakeBetween(HandleSlot* begin, const HandleSlot* end,
                                        const void* kind) const noexcept;
  [[nodiscard]] HandleSlot* Search(const void* kind, Hint* hint) const noexcept;

  const HandleType* type_;
  const void* library_;
  Device device_;
  bool is_over_ = false;
  Atomic<HandleSlot*> head_{nullptr};
  Hint hints_[kHints] = {};  // by thread
};

// The pools of one library: one for each incarnation of a context.
class CUGUEST_API HandlePools : public PerContext<HandlePool> {
 public:
  // As the compiler declares them, but hidden.
  CUGUEST_HIDE ~HandlePools() = default;

  // Both must live as long as this.
  CUGUEST_HIDE HandlePools(const HandleType& type, const void* library) noexcept
      : type_(type), library_(library) {}

  // From now on the pool of `context` has so many handles that fit, idle or lent.
  absl::StatusOr<Pin> Prepare(const ContextRef& context, const void* kind, std::size_t count,
                              Location where);

 private:
  friend class HandleScope;

  // The caller has just checked that `context` lives.
  [[nodiscard]] absl::StatusOr<Pin> PoolOf(const ContextRef& context);

  const HandleType& type_;
  const void* library_;
};

// HandleScope
//
// Has a handle to itself, in the context of the request's stream, which it makes current, and in
// relaxed capture mode.
class CUGUEST_API HandleScope {
 public:
  // Not noexcept: to say why it failed needs memory.
  HandleScope(HandlePools& pools, const HandleRequest& request, Location where);
  HandleScope(const HandleScope&) = delete;
  HandleScope& operator=(const HandleScope&) = delete;
  ~HandleScope();

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept {
    unasked_ = CUDA_SUCCESS;
    return slot_ != nullptr;
  }
  [[nodiscard]] CUGUEST_HIDE const absl::Status& status() const noexcept {
    unasked_ = CUDA_SUCCESS;
    return failure_;
  }
  // nullptr unless ok().
  [[nodiscard]] CUGUEST_HIDE void* handle() const noexcept {
    return slot_ == nullptr ? nullptr : slot_->handle;
  }

  absl::Status Reassert();
  absl::Status Leave();
  [[nodiscard]] absl::Status CheckOperand(CUdeviceptr pointer, std::size_t bytes) const;

 private:
  // A context and a relaxed capture mode. To end what End() has ended costs a look at it; two
  // guards would each look their thread up for that.
  struct Scopes {
    [[gnu::always_inline]] CUGUEST_HIDE inline Scopes(const ContextRef& context,
                                                      Location where) noexcept;
    Scopes(const Scopes&) = delete;
    Scopes& operator=(const Scopes&) = delete;
    CUGUEST_HIDE ~Scopes() {
      if (Rarely(relaxed.IsInside())) {
        static_cast<void>(relaxed.LeaveCaptureMode(Reported::kByIncident));
      }
      if (Rarely(guard.IsInside())) static_cast<void>(guard.LeaveByCall(Reported::kByIncident));
    }

    Scope guard;
    Scope relaxed;
  };

  [[nodiscard]] absl::Status EnterSpecially(const HandleRequest& request);
  [[nodiscard]] absl::Status CheckEntered(const HandleRequest& request) const;
  [[nodiscard]] absl::Status Check(const HandleRequest& request) const;
  void Fail();
  [[gnu::always_inline]] CUGUEST_HIDE inline void End(absl::Status* why);
  void EndElsewhere(absl::Status* why);

  HandlePools& pools_;
  ContextRef context_;
  Scopes scopes_;
  HandlePools::Pin pool_;
  std::unique_ptr<HandleSlot, HandleSlot::Spoil> slot_;  // before pool_ is let go
  absl::Status failure_;
  Location where_;
  mutable CUresult unasked_ = CUDA_SUCCESS;  // why it failed, until somebody asks
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIBRARIES_INTERNAL_HANDLE_POOL_H_
