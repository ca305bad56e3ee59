// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What keeps a shared context alive while something of it is ended.                    tier: 2

#ifndef CUGUEST_LIB_SHARE_CONTEXT_HOLD_H_
#define CUGUEST_LIB_SHARE_CONTEXT_HOLD_H_

#include <cuda.h>

#include <atomic>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/internal/compiler.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct Slot;

// ContextHold
//
// Around the end of what an owner has in a context, from the check that it lives to the last driver
// call. Where it is attached it has one holder more, so that the last SharedContext, which may end
// on another thread, does not destroy it meanwhile; if that one ends, the end of the hold destroys
// it. What nobody has attached is its owner's to destroy, and cannot be held. Where the driver
// refuses to destroy it, in a host function, what was let go meanwhile stays until it is destroyed.
//
// Cost: one load where this copy attaches nothing; else those of a copy of a SharedContext.
class ContextHold {
 public:
  explicit ContextHold(const ContextRef& context) noexcept {
    const Calls* const calls = g_calls.load(std::memory_order_acquire);
    if (CUGUEST_INTERNAL_UNLIKELY(calls != nullptr)) calls->begin(context, this);
  }
  ContextHold(const ContextHold&) = delete;
  ContextHold& operator=(const ContextHold&) = delete;
  ~ContextHold() {
    if (CUGUEST_INTERNAL_UNLIKELY(slot_ != nullptr)) {
      g_calls.load(std::memory_order_relaxed)->end(slot_, stripe_);
    }
  }

  // CUDA_ERROR_CONTEXT_IS_DESTROYED: its last holder is destroying it just now, so that the driver
  // cannot be asked.
  [[nodiscard]] CUresult result() const noexcept { return result_; }

  // From now on attached contexts are held: by those that attach one, so that nobody else links
  // what that needs.
  static void Begin() noexcept;

 private:
  struct Calls {
    void (*begin)(const ContextRef& context, ContextHold* hold);
    void (*end)(Slot* slot, int stripe);
  };
  static void BeginHold(const ContextRef& context, ContextHold* hold) noexcept;
  static void EndHold(Slot* slot, int stripe) noexcept;
  static std::atomic<const Calls*> g_calls;

  Slot* slot_ = nullptr;
  int stripe_ = 0;
  CUresult result_ = CUDA_SUCCESS;
};

// What `end` gives, called where the context is alive and while it is held; else why not.
template <typename End>
CUresult WhileAlive(const ContextRef& context, const End& end) noexcept {
  const ContextHold hold(context);
  CUresult code = hold.result();
  if (code == CUDA_SUCCESS) code = context.Check();
  return code == CUDA_SUCCESS ? end() : code;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_SHARE_CONTEXT_HOLD_H_
