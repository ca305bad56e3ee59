// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an object could not give back where it ended.                                   tier: 2
//
// Note [What is owed]
// ~~~~~~~~~~~~~~~~~~~
// In a host function the driver takes nothing back (CUDA_ERROR_NOT_PERMITTED, IsStillHeld()), and
// the same call succeeds on another thread or later. Release() says so, and the object keeps what
// it holds. A destructor and an assignment cannot: what was held goes on in a list of this copy's,
// and is released again by the next call here that makes or ends one of the objects which may owe
// something: a SharedContext, a PrimaryContext, an Acquired, a Stream, an Event, a DeviceBuffer, a
// PinnedBuffer, an ImportedBuffer. That is reported once, as Incident::Kind::kOwed. In a child of a
// fork the list is as its parent's; what is in it is the parent's, too, so that the child's driver
// refuses, and it is dropped there.

#ifndef CUGUEST_LIB_SHARE_OWED_H_
#define CUGUEST_LIB_SHARE_OWED_H_

#include <cuda.h>

#include <atomic>
#include <cstdlib>
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
// `what`: "a SharedContext". Without a place for it, it is lost.
void ReportOwed(const char* what, bool is_lost) noexcept;

// Releases what is owed, where there is something. On a thread that holds no lock.
inline void EndOwed() noexcept {
  if (CUGUEST_INTERNAL_UNLIKELY(g_owed.load(std::memory_order_relaxed) != nullptr)) EndAllOwed();
}

// Gives back what is `held`, now or later: then it is moved from. `kGiveBack` returns the driver's
// code; after any other than that of IsStillHeld() there is nothing to give back any more.
template <typename Held, CUresult (*kGiveBack)(Held&) noexcept>
void GiveBackOrOwe(Held& held, const char* what) noexcept {
  if (!IsStillHeld(kGiveBack(held))) return;
  struct Node : Owed {
    Held held;
  };
  const auto end = [](Owed* owed) noexcept {
    auto* const node = static_cast<Node*>(owed);
    if (IsStillHeld(kGiveBack(node->held))) return false;
    node->~Node();
    std::free(node);
    return true;
  };
  void* const place = std::malloc(sizeof(Node));
  if (place != nullptr) Add(new (place) Node{{end, nullptr}, std::move(held)});
  ReportOwed(what, place == nullptr);
}

// One of the driver's references to a primary context.
void ReleasePrimaryOrOwe(CUdevice device, const char* what) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_SHARE_OWED_H_
