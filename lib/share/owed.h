// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an object could not give back where it ended.                                   tier: 2
//
// Note [What is owed]
// ~~~~~~~~~~~~~~~~~~~
// In a host function the driver takes nothing back (CUDA_ERROR_NOT_PERMITTED, IsStillHeld()), and
// the same call succeeds on another thread or later. So it is of what has taken a turn
// (OneAtATime), in a tool's callback out of the call that has it. Release() says so, and the object
// keeps what it holds. A destructor and an assignment cannot: what was held goes on in a list of
// this copy's, and is released again by the next call here that makes a Module or ends one of the
// objects which may owe something (docs/limits.md has them), and by Module::Once::Close(). That is
// reported once, as Incident::Kind::kOwed. What the driver refuses for another reason is reported
// likewise, with its code, and is never given back: nobody knows what another try would do. Nothing
// is reported of what went with its context, or with the process, or is the parent's in a forked
// child. There the list is as its parent's, and is dropped, because the child's driver refuses.

#ifndef CUGUEST_LIB_SHARE_OWED_H_
#define CUGUEST_LIB_SHARE_OWED_H_

#include <cuda.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <utility>

#include "cuguest/export.h"
#include "cuguest/internal/compiler.h"
#include "lib/share/ending.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct Owed {
  // False if it is still held; else it is over and deleted.
  bool (*end)(Owed* owed) noexcept;
  Owed* next;
};

// The last one that was owed.
extern std::atomic<Owed*> g_owed;

void Add(Owed* owed) noexcept;
void EndAllOwed() noexcept;
// `what`: "a SharedContext". `code`: why it was not given back.
void ReportOwed(const char* what, CUresult code) noexcept;

// Whether nothing is left of what was held, or nothing that is this process's.
inline bool IsNothingLeft(CUresult code) noexcept {
  return code == CUDA_SUCCESS || code == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
         code == CUDA_ERROR_DEINITIALIZED || code == CUDA_ERROR_NOT_INITIALIZED;
}

// What the end of a reference to a primary context answered: after a reset by the first version of
// cuDevicePrimaryCtxReset the driver has no reference of ours.
inline CUresult OfReference(CUresult code) noexcept {
  return code == CUDA_ERROR_INVALID_CONTEXT ? CUDA_ERROR_CONTEXT_IS_DESTROYED : code;
}

// Releases what is owed, where there is something. On a thread that holds no lock.
inline void EndOwed() noexcept {
  if (CUGUEST_INTERNAL_UNLIKELY(g_owed.load(std::memory_order_relaxed) != nullptr)) EndAllOwed();
}

// Gives back what is `held`, now or later: then it is moved from. give_back(held) returns the
// driver's code; after any other than those of IsStillHeld() nothing is held any more.
template <typename Held, typename GiveBack>
void GiveBackOrOwe(Held& held, const char* what, GiveBack give_back) noexcept {
  const CUresult refusal = give_back(held);
  if (IsNothingLeft(refusal)) return;
  if (!IsStillHeld(refusal)) return ReportOwed(what, refusal);
  struct Node : Owed {
    Held held;
    const char* what;
    GiveBack give_back;
  };
  const auto end = [](Owed* owed) noexcept {
    auto* const node = static_cast<Node*>(owed);
    const CUresult code = node->give_back(node->held);
    if (IsStillHeld(code)) return false;
    if (!IsNothingLeft(code)) ReportOwed(node->what, code);
    node->~Node();
    std::free(node);
    return true;
  };
  void* const place = std::malloc(sizeof(Node));
  if (place != nullptr) Add(new (place) Node{{end, nullptr}, std::move(held), what, give_back});
  ReportOwed(what, place != nullptr ? refusal : CUDA_ERROR_OUT_OF_MEMORY);
}

// The end of an owner: releases what is owed, and gives back what is `held`, now or later. Of an
// empty one, too: end(held) returns CUDA_SUCCESS of it.
template <typename Held, typename End>
void EndOrOwe(Held& held, const char* what, End end) noexcept {
  EndOwed();
  GiveBackOrOwe(held, what, end);
}

// The same of an owner whose destructor would give it back once more: let_go(owner) empties it.
template <typename Owner, typename End, typename LetGo>
void EndOrOwe(Owner& owner, const char* what, End end, LetGo let_go) noexcept {
  EndOrOwe(owner, what, [end, let_go](Owner& ending) noexcept -> CUresult {
    const CUresult code = std::invoke(end, ending);
    if (!IsStillHeld(code)) static_cast<void>(std::invoke(let_go, ending));
    return code;
  });
}

// One of the driver's references to a primary context.
void ReleasePrimaryOrOwe(CUdevice device, const char* what) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_SHARE_OWED_H_
