// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Note [Holds and the end of a stream]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A Stream and what is freed in its order end on two threads, and neither can wait: the other one
// may be stopped in a driver call. So a caller of the driver holds the stream if another object
// owns it (StreamHold), and the holds and the end meet in one word:
//
//   calls      how many holds there are: a look at the stream, and the call
//   kIsOver    no more begin
//   kHasLast   and `last` is behind all of the stream's work
//
// The end of a Stream records `last` while the stream is still there for everybody, and then sets
// kIsOver and kHasLast in one step, which tells it the calls. If there are none it destroys the
// stream. If there are, the last of them destroys it, as that hold ends. Thus a holder has the
// stream until it ends its hold, and a user that finds the stream over has the event.
//
// If the driver refuses to destroy it, the stream is there again, in one step. A user that has
// found it over meanwhile frees behind the event, which is right: the event stays, and the next end
// records it anew. It cannot stay over: more work may come, and the event would not be behind that.

#include "lib/objects/stream/stream_use.h"

#include <mutex>
#include <new>

#include "cuguest/context_guard.h"
#include "cuguest/internal/concurrency.h"
#include "lib/core/concurrency.h"
#include "lib/core/driver_access.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/object_driver.h"
#include "lib/share/context_hold.h"
#include "lib/share/owed.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// A stream that somebody uses, from the first use to the end of the last. One of the process that
// this one was forked from is left alone: CUDA does not work here then.
struct UsedStream {
  static constexpr unsigned kIsOver = 1U << 31;
  static constexpr unsigned kHasLast = 1U << 30;
  static constexpr unsigned kCalls = kHasLast - 1;

  bool IsOfParent() const noexcept { return process != Process::Number(); }

  const unsigned process = Process::Number();
  StreamRef stream;
  unsigned users = 0;             // with g_mutex held
  Atomic<unsigned> state{0};      // see Note [Holds and the end of a stream]
  Atomic<CUevent> last{nullptr};  // made by the first end, destroyed after the last use
  UsedStream* next = nullptr;
};

namespace {

Mutex g_mutex;
UsedStream* g_first = nullptr;

// Another thread of the parent's may have had the lock, in the middle of a change.
void BeginAgainInChild() {
  g_first = nullptr;
  new (&g_mutex) Mutex;
}

using Lock = std::lock_guard<Mutex>;
Lock Locked() noexcept {
  WatchForks<&BeginAgainInChild>();
  return Lock(g_mutex);
}

// With g_mutex held. Of the streams with this handle, the one that is not over.
UsedStream* Find(const StreamRef& stream) noexcept {
  UsedStream* used = g_first;
  while (used != nullptr &&
         ((used->state.load(std::memory_order_relaxed) & UsedStream::kIsOver) != 0 ||
          used->stream.get() != stream.get() || used->stream.context() != stream.context())) {
    used = used->next;
  }
  return used;
}

// Records `last` behind the work of the stream. What captures is not finished by a stream's end.
bool RecordLast(UsedStream* used) noexcept {
  const ObjectDriver& driver = ResolvedObjectDriver();
  const StreamRef& stream = used->stream;
  const ContextGuard guard(stream.context());
  const RelaxedScope relaxed;
  if (!guard.ok() || !relaxed.ok() ||
      CheckNotCapturing(stream.get(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) != CUDA_SUCCESS) {
    return false;
  }
  CUevent event = used->last.load(std::memory_order_relaxed);
  if (event == nullptr) {
    if (driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return false;
    used->last.store(event, std::memory_order_relaxed);
  }
  return driver.EventRecord(event, stream.get()) == CUDA_SUCCESS;
}

// Destroys a stream whose Stream has ended.
CUresult DestroyHandedOver(StreamRef& stream) noexcept {
  return WhileAlive(stream.context(),
                    [&] { return ResolvedObjectDriver().StreamDestroy(stream.get()); });
}

// One user less.
void Leave(UsedStream* used) noexcept {
  if (used->IsOfParent()) return;
  {
    const Lock lock = Locked();
    if (--used->users != 0) return;
    UsedStream** place = &g_first;
    while (*place != used) place = &(*place)->next;
    *place = used->next;
  }
  const CUevent last = used->last.load(std::memory_order_relaxed);
  if (last != nullptr) {
    static_cast<void>(WhileAlive(used->stream.context(),
                                 [&] { return ResolvedObjectDriver().EventDestroy(last); }));
  }
  delete used;
}

}  // namespace

bool StreamUse::Begin(const StreamRef& stream) noexcept {
  auto* made = new (std::nothrow) UsedStream;  // not while the lock is held
  if (made == nullptr) return false;
  {
    const Lock lock = Locked();
    used_ = Find(stream);
    if (used_ == nullptr) {
      used_ = std::exchange(made, nullptr);
      used_->stream = stream;
      used_->next = std::exchange(g_first, used_);
    }
    ++used_->users;
  }
  delete made;
  return true;
}

void StreamUse::End() noexcept { Leave(std::exchange(used_, nullptr)); }

StreamHold::StreamHold(const StreamUse& use) noexcept {
  UsedStream* const used = use.used_;
  if (used == nullptr) return;
  unsigned state = used->state.load(std::memory_order_acquire);
  while ((state & UsedStream::kIsOver) == 0) {
    if (used->state.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) {
      held_ = used;
      return;
    }
  }
  is_over_ = true;
  if ((state & UsedStream::kHasLast) != 0) last_ = used->last.load(std::memory_order_relaxed);
}

StreamHold::~StreamHold() {
  if (held_ == nullptr) return;
  const unsigned before = held_->state.fetch_sub(1, std::memory_order_acq_rel);
  const bool was_last = (before & UsedStream::kCalls) == 1;
  if (was_last && (before & UsedStream::kIsOver) != 0) {
    StreamRef stream = held_->stream;
    GiveBackOrOwe(stream, "a Stream", &DestroyHandedOver);
  }
}

CUresult EndStream(const StreamRef& stream) noexcept {
  UsedStream* const used = [&] {
    const Lock lock = Locked();
    UsedStream* const found = Find(stream);
    if (found != nullptr) ++found->users;  // this function, too
    return found;
  }();
  const auto destroy = [&] { return ResolvedObjectDriver().StreamDestroy(stream.get()); };
  if (used == nullptr) return destroy();
  const unsigned over = UsedStream::kIsOver | (RecordLast(used) ? UsedStream::kHasLast : 0);
  CUresult code = CUDA_SUCCESS;
  const unsigned calls = used->state.fetch_add(over, std::memory_order_acq_rel);
  if (calls == 0) {
    code = destroy();
    if (code != CUDA_SUCCESS) used->state.fetch_sub(over, std::memory_order_release);
  }
  Leave(used);
  return code;
}

CUGUEST_END_INTERNAL_NAMESPACE
