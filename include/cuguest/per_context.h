// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file `PerContext<T>` is a cache of what a library makes once for every context that it is
/// called in: a module, a stream, a cuBLAS handle. It is keyed by one incarnation of a context
/// (ContextRef): after a cudaDeviceReset the same handle gets a new value, and that of the old
/// incarnation is given up: T::Leak(), if T has it, then ~T(), without a driver call of the cache.
///
///   CUresult Blur(CUcontext context, CUdeviceptr image) {
///     static auto& kernels = *new cuguest::PerContext<Kernels>;  // never destroyed
///     auto mine = kernels.GetOrMake(context, &Load);  // returns a cuguest::ErrorOr<Kernels>
///     if (!mine.ok()) return mine.error().code;
///     return (*mine)->Blur(image);       // pinned: not destroyed while `mine` is held
///   }

#ifndef CUGUEST_PER_CONTEXT_H_
#define CUGUEST_PER_CONTEXT_H_

#include <cuda.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/error_or.h"
#include "cuguest/export.h"
#include "cuguest/internal/per_context_table.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

/// Requires: T whose destructor calls the driver has a member Leak() that throws nothing and makes
///           it forget what it owns there: see Note [How a value ends].
/// Stack:   net 0 in every call. `make` runs with the value's context current, and so does ~T()
///          unless the value is given up.
/// Count:   none; it keeps no context alive. Call Forget() before destroying a context, or
///          ForgetDestroyed() afterwards. Primary contexts need neither.
/// Threads: any; the destructor not at the same time as another member. All that pin a T share it;
///          making that safe is up to T. No lock of the cache is held while the driver is called,
///          host memory is allocated, or `make`, Leak() or ~T() run: they may call it.
/// Fork:    a child of a process that has used CUDA may call all members, whatever other threads
///          were doing at the fork: it finds the values that are there, waits for nothing, makes
///          and drops none, and the destructor gives all up that is not pinned. If `make` or ~T()
///          forks, the call returns in the child, too: GetOrMake() gives up what it has just made.
/// Cost:    a value that is there: no lock, no allocation, no driver call by ContextRef, one
///          (cuCtxGetId, contention-free) by CUcontext. Of atomic operations only loads and stores,
///          where the kernel has membarrier (Linux 4.14) and the thread has one of the value's 32
///          counts to itself; else two operations on a cache line that few threads share. Dropping
///          a value takes a membarrier: on a machine with two processors 0.1 us, and 16 us while
///          another thread ran. 2 KiB of host memory for each value.
/// Needs:   CUDA 12.0 to tell incarnations apart. Below that the handle alone is the key: a value
///          outlives the reset of its primary context, unless it is forgotten.
template <typename T>
class PerContext {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>);
  static_assert(std::is_nothrow_destructible_v<T>);

 public:
  /// Keeps a value from ending while it is held, also after it was dropped: it can be read, but in
  /// a dead context its driver objects are dead too. May be released on another thread than it was
  /// taken on.
  /// Requires: the pin does not outlive the cache.
  class [[nodiscard]] Pin {
   public:
    CUGUEST_HIDE Pin() noexcept = default;  // holds nothing
    CUGUEST_HIDE Pin(Pin&& other) noexcept
        : value_(std::exchange(other.value_, nullptr)), stripe_(other.stripe_) {}
    CUGUEST_HIDE Pin& operator=(Pin&& other) noexcept {
      T* const value = std::exchange(other.value_, nullptr);
      internal::PinStripe* const stripe = other.stripe_;
      Release();
      value_ = value;
      stripe_ = stripe;
      return *this;
    }
    CUGUEST_HIDE ~Pin() { Release(); }

    [[nodiscard]] CUGUEST_HIDE explicit operator bool() const noexcept { return value_ != nullptr; }
    [[nodiscard]] CUGUEST_HIDE T* get() const noexcept { return value_; }
    [[nodiscard]] CUGUEST_HIDE T& operator*() const noexcept { return *value_; }
    [[nodiscard]] CUGUEST_HIDE T* operator->() const noexcept { return value_; }

   private:
    friend class PerContext;
    CUGUEST_HIDE explicit Pin(internal::PerContextTable::Held held) noexcept
        : value_(static_cast<T*>(held.value)), stripe_(held.stripe) {}
    CUGUEST_HIDE void Release() noexcept {
      if (value_ != nullptr) internal::PerContextTable::Unpin(stripe_);
    }

    T* value_ = nullptr;
    internal::PinStripe* stripe_ = nullptr;  // where this one is counted
  };

  CUGUEST_HIDE PerContext() noexcept : table_(kType) {}
  PerContext(const PerContext&) = delete;
  PerContext& operator=(const PerContext&) = delete;

  /// Drops all values: destroys those of primary contexts and of the current context, and gives up
  /// all others; see Note [Which contexts are asked about]. No pin should be held: a value that is
  /// still pinned is leaked, with its memory. Safe wherever destructors run, but a cache that lives
  /// to the end is better never destroyed: see Note [No driver calls after main].
  /// Requires: no other call is running.
  /// Cost: one or two driver calls for each value, and of those that are destroyed as Forget().
  CUGUEST_HIDE ~PerContext() = default;

  /// The value of `context`; empty if there is none, or it is only being made. No driver call.
  /// Requires: the incarnation that `context` names is alive: the caller knows it from a guard, for
  ///           example.
  [[nodiscard]] CUGUEST_HIDE Pin Find(const ContextRef& context) noexcept {
    return Pin(table_.Find(context));
  }

  /// The same for the handle's present incarnation; empty also if that was destroyed or reset.
  /// Cost: one driver call.
  [[nodiscard]] CUGUEST_HIDE Pin Find(CUcontext context) noexcept {
    return Find(ContextRef::Borrow(context));
  }

  /// The value of `context`, made now if there is none: make(context) runs inside a ContextGuard
  /// built from `context` (`where` is that guard's). Threads that ask for one context at the same
  /// time wait for the one that makes its value. If `make` fails, its caller gets the error; if it
  /// fails or throws, each of the others tries for itself.
  ///
  /// Where `make` returns T or an ErrorOr<T>, this is an ErrorOr<Pin>; where it returns an
  /// absl::StatusOr<T>, this is an absl::StatusOr<Pin>, and status.h must be included.
  /// Errors: those of `make`; and, if there is no value yet, as follows; none is left then. In
  ///         brackets the code of a status.
  ///         those of a guard               `context` is empty or was destroyed or reset, and
  ///         others kBeingMade: CUDA_ERROR_ILLEGAL_STATE [kFailedPrecondition]
  ///                                        called from a `make` of this cache for the same
  ///                                        context, or one that waits for this thread (two caches
  ///                                        that wait for each other hang)
  ///         kNoMemory: CUDA_ERROR_OUT_OF_MEMORY [kResourceExhausted]
  ///                                        of the host
  ///         CUDA_ERROR_NOT_INITIALIZED [kFailedPrecondition]
  ///                                        `make` has forked, and this is the child
  ///         the driver's                   it does not say whether `context` is a primary one
  /// Cost:   as Find(), if there is one. Otherwise at most six driver calls beside those of `make`,
  ///         and what dropping needs; three more, once for each device, where this copy of cuguest
  ///         never had a reference to the primary context (which is retained and released, if it is
  ///         active, to see whether `context` is it).
  template <typename Make, CUGUEST_HIDE_TEMPLATE>
  [[nodiscard]] CUGUEST_HIDE auto GetOrMake(const ContextRef& context, Make&& make,
                                            Location where = Location::Here()) {
    using Made = MadeBy<std::invoke_result_t<Make, const ContextRef&>>;
    static_assert(Made::kIsOfT,
                  "make(const ContextRef&) must return absl::StatusOr<T>, for which include "
                  "cuguest/status.h, or ErrorOr<T>, or T");
    using Result = typename Made::template Or<Pin>;
    const internal::PerContextTable::Held found = table_.Find(context);
    if (found.value != nullptr) return Result(Pin(found));
    return MakeNow<Made>(context, std::forward<Make>(make), where);
  }

  /// The same for the handle's present incarnation.
  /// Requires: the handle is alive, as for ContextRef::Borrow().
  /// Errors: also those of ContextRef::Borrow().
  /// Cost:   one driver call more.
  template <typename Make, CUGUEST_HIDE_TEMPLATE>
  [[nodiscard]] CUGUEST_HIDE auto GetOrMake(CUcontext context, Make&& make,
                                            Location where = Location::Here()) {
    return GetOrMake(ContextRef::Borrow(context), std::forward<Make>(make), where);
  }

  /// Drops the value of exactly this incarnation of `context`, and destroys it and what was dropped
  /// of it before, unless it is pinned, or this is a stream callback, where the driver takes
  /// nothing back: the next Forget() of the context destroys it then. Returns whether there was one
  /// to drop (one that is only being made is not there yet, and is not stopped). Call it before
  /// destroying the context: when it returns, no other thread is ending a value of the context,
  /// unless that thread waits for this one, as in a Forget() that ~T() calls. If a value was
  /// pinned, call Forget() again when the pin is released, or ForgetDestroyed() when the context is
  /// destroyed.
  /// Cost: three driver calls for each value that ends, five if the context is not current, and
  ///       those of ~T(); waits for other threads' ~T() of values of the context.
  CUGUEST_HIDE bool Forget(const ContextRef& context) {
    return table_.Forget(context, /*is_dead=*/false);
  }

  /// The same for an incarnation that the caller knows to be destroyed or reset: gives up its
  /// value, and one that was dropped before, without a driver call.
  CUGUEST_HIDE bool ForgetDestroyed(const ContextRef& context) {
    return table_.Forget(context, /*is_dead=*/true);
  }

  /// Forget() of every context that has a value, except dead ones that were given to
  /// ForgetDestroyed(). Returns how many values there were to drop. Cost as Forget() of each.
  /// Requires: each of these contexts goes on, or is a primary context.
  CUGUEST_HIDE std::size_t ForgetAll() { return table_.ForgetAll(); }

  /// Drops every value whose context is known to be dead, and returns how many those were: of a
  /// primary context that was reset, or of the current context; see Note [Which contexts are asked
  /// about]. Where the driver cannot be asked (a stream callback, a forked child) no context is
  /// treated as dead.
  /// Cost: one driver call for each value, and one more for that of the current context.
  CUGUEST_HIDE std::size_t DropDead() { return table_.DropDead(); }

  /// The values that Find() can find.
  [[nodiscard]] CUGUEST_HIDE std::size_t size() const noexcept { return table_.size(); }

 private:
  template <typename U, typename = void>
  struct HasLeak : std::false_type {};
  template <typename U>
  struct HasLeak<U, std::void_t<decltype(std::declval<U&>().Leak())>> : std::true_type {};

  CUGUEST_HIDE static void End(const internal::PerContextTable::Type& /*type*/, void* value,
                               [[maybe_unused]] bool is_inside) noexcept {
    T* const ending = static_cast<T*>(value);
    if constexpr (HasLeak<T>::value) {
      if (!is_inside) static_cast<void>(ending->Leak());
    }
    ending->~T();
  }

  // What a `make` returns that returns an `R`: that, or of a T an ErrorOr<T>.
  template <typename R, bool = internal::ResultTraits<R>::kIsResult>
  struct MadeBy : internal::ResultTraits<R> {
    using Result = R;
    CUGUEST_HIDE static constexpr bool kIsOfT =
        std::is_convertible_v<typename internal::ResultTraits<R>::Value, T>;
  };
  template <typename R>
  struct MadeBy<R, false> : internal::ResultTraits<ErrorOr<T>> {
    using Result = ErrorOr<T>;
    CUGUEST_HIDE static constexpr bool kIsOfT = std::is_convertible_v<R, T>;
  };

  template <typename Made, typename Make, CUGUEST_HIDE_TEMPLATE>
  [[gnu::noinline]] CUGUEST_HIDE typename Made::template Or<Pin> MakeNow(const ContextRef& context,
                                                                         Make&& make,
                                                                         Location where) {
    const ContextGuard guard(context, GuardMode::kElide, where);
    internal::PerContextTable::Making making(&table_, context, guard.result());
    if (!making.error().ok()) return Made::Of(making.error());
    if (making.held().value != nullptr) return Pin(making.held());
    typename Made::Result made = std::forward<Make>(make)(context);
    if (!made.ok()) return Made::WhyNot(made);
    ::new (making.storage()) T(*std::move(made));
    if (!making.Publish().ok()) return Made::Of(making.error());
    return Pin(making.held());
  }

  CUGUEST_HIDE static constexpr internal::PerContextTable::Type kType = {sizeof(T), alignof(T),
                                                                         &End};

  internal::PerContextTable table_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_PER_CONTEXT_H_
