// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// `ContextRef` names one incarnation of a context: its handle and the id the driver gave it. A
/// handle alone does not: a primary context that was reset comes back at the same handle with all
/// its contents gone, and the handle of a destroyed context is given to the next one that is
/// created. The id is never reused. A ContextRef owns nothing and keeps nothing alive.
///
///   const ContextRef home = ContextRef::Current();   // while it is known alive
///   ...                                              // host code, maybe a reset
///   if (!home.IsAlive()) return RebuildEverything();

#ifndef CUGUEST_CONTEXT_REF_H_
#define CUGUEST_CONTEXT_REF_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

class ContextRef;

namespace internal {
struct Incarnation;

// Well-formed for what has a context().
void TakeRef(const ContextRef& context);
template <typename Holder>
using ContextOf = decltype(internal::TakeRef(static_cast<Holder*>(nullptr)->context()));
}  // namespace internal

/// Stack:   never touched.
/// Threads: value.
/// Needs:   cuCtxGetId, CUDA 12.0 (driver 525). Below that the id is 0, two refs are equal if their
///          handles are, and IsAlive() asks cuCtxGetApiVersion, which cannot tell a reused handle
///          from the old one.
/// Source:  CUDA Driver API, cuCtxGetId; docs/guarantees.md (reset and reuse of handles).
class CUGUEST_API ContextRef {
 public:
  CUGUEST_HIDE constexpr ContextRef() noexcept = default;  // names no context

  /// That of an object which has a context(): a SharedContext, a Stream, a DeviceBuffer. So what
  /// takes a ContextRef takes these. Not of a temporary, which might release it.
  template <typename Holder, typename = internal::ContextOf<Holder>>
  CUGUEST_HIDE ContextRef(Holder& holder) noexcept : ContextRef(holder.context()) {}

  /// Names the present incarnation of `context`.
  /// Requires: the handle is alive: the driver reads its memory to answer.
  /// Errors: result() is CUDA_ERROR_INVALID_CONTEXT for nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED
  ///         for a reset primary context (exact) or a destroyed one (best effort), or the code of a
  ///         missing driver; the ref is then empty.
  /// Cost:   one driver call (cuCtxGetId), contention-free.
  [[nodiscard]] static ContextRef Borrow(CUcontext context) noexcept;

  /// Names the calling thread's current context; empty if there is none or it is destroyed.
  /// Cost:   two driver calls, contention-free.
  [[nodiscard]] static ContextRef Current() noexcept;

  /// The same again from what get() and id() gave, which an object without this header has kept.
  /// Nothing is asked: whether the incarnation exists, IsAlive() says. Empty if `context` is
  /// nullptr.
  [[nodiscard]] CUGUEST_HIDE static ContextRef Of(CUcontext context,
                                                  unsigned long long id) noexcept {
    return context != nullptr ? ContextRef(context, id) : ContextRef();
  }

  /// Not owned, and not by itself proof that the context is alive. nullptr if empty.
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const noexcept { return context_; }

  /// The driver's id; 0 if empty or below CUDA 12.0.
  [[nodiscard]] CUGUEST_HIDE unsigned long long id() const noexcept { return id_; }

  /// Whether the handle still names the same incarnation of the same context. Exact for a primary
  /// context (the driver keeps its handle readable for the life of the process) and for a context
  /// that the caller knows not to have been destroyed. For a foreign context that may have been
  /// destroyed it is best effort, because the driver reads the handle's freed memory: on an H100
  /// with driver 580 it mostly answered CUDA_ERROR_CONTEXT_IS_DESTROYED, once did not, and once
  /// crashed, where the memory had been used again. Nothing documents it. So do not ask about
  /// contexts that others destroy without notice.
  /// Cost:   one driver call, contention-free.
  [[nodiscard]] CUGUEST_HIDE bool IsAlive() const noexcept { return Check() == CUDA_SUCCESS; }

  /// The same, with the reason: CUDA_ERROR_CONTEXT_IS_DESTROYED when the incarnation that this ref
  /// names was destroyed or reset (even if the handle names another one now),
  /// CUDA_ERROR_INVALID_CONTEXT when the ref is empty.
  [[nodiscard]] CUresult Check() const noexcept;

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return result_ == CUDA_SUCCESS; }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return result_; }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept { return "identify a context"; }
  [[nodiscard]] const char* advice() const noexcept;

  CUGUEST_HIDE friend bool operator==(const ContextRef& a, const ContextRef& b) noexcept {
    return a.context_ == b.context_ && a.id_ == b.id_;
  }
  CUGUEST_HIDE friend bool operator!=(const ContextRef& a, const ContextRef& b) noexcept {
    return !(a == b);
  }
  /// An order for containers, by handle and id; of no other meaning.
  CUGUEST_HIDE friend bool operator<(const ContextRef& a, const ContextRef& b) noexcept {
    const auto address_a = a.Address();
    const auto address_b = b.Address();
    return address_a != address_b ? address_a < address_b : a.id_ < b.id_;
  }

  /// For std::unordered_map<ContextRef, T, ContextRef::Hash>; Abseil's containers need none.
  struct Hash {
    CUGUEST_HIDE std::size_t operator()(const ContextRef& ref) const noexcept {
      constexpr auto kGolden = static_cast<unsigned long long>(0x9e3779b97f4a7c15U);
      const auto mixed = (ref.Address() ^ ref.id_) * kGolden;
      return static_cast<std::size_t>(mixed ^ (mixed >> 32));
    }
  };
  template <typename State>
  CUGUEST_HIDE friend State AbslHashValue(State state, const ContextRef& ref) {
    return State::combine(static_cast<State&&>(state), ref.context_, ref.id_);
  }

 private:
  friend struct internal::Incarnation;
  CUGUEST_HIDE ContextRef(CUcontext context, unsigned long long id) noexcept
      : context_(context), id_(id), result_(CUDA_SUCCESS) {}

  // By way of a pointer: a handle need not be one (lib/no_cuda).
  [[nodiscard]] CUGUEST_HIDE std::uintptr_t Address() const noexcept {
    return reinterpret_cast<std::uintptr_t>(static_cast<const void*>(context_));
  }

  CUcontext context_ = nullptr;
  unsigned long long id_ = 0;
  CUresult result_ = CUDA_ERROR_INVALID_CONTEXT;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CONTEXT_REF_H_
