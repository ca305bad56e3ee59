// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/stream/stream_use.h"

#include <mutex>
#include <new>

#include "cuguest/context_guard.h"
#include "cuguest/internal/concurrency.h"
#include "lib/core/concurrency.h"
#include "lib/core/driver_access.h"
#include "lib/guard/relaxed_scope.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// A stream that somebody uses, from the first use to the end of the last. One of the process that
// this one was forked from is left alone: CUDA does not work here then.
struct UsedStream {
  bool IsOfParent() const noexcept { return process != Process::Number(); }

  const unsigned process = Process::Number();
  StreamRef stream;
  unsigned users = 0;
  Atomic<bool> is_over{false};  // written with g_mutex held
  CUevent last = nullptr;
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
         (used->is_over.load(std::memory_order_relaxed) || used->stream.get() != stream.get() ||
          used->stream.context() != stream.context())) {
    used = used->next;
  }
  return used;
}

// An event behind the work of `stream`. What captures is not finished by a stream's end.
CUevent RecordLast(const StreamRef& stream) noexcept {
  const DriverTable& driver = ResolvedDriver();
  const ContextGuard guard(stream.context());
  const RelaxedScope relaxed;
  if (!guard.ok() || !relaxed.ok() ||
      CheckNotCapturing(stream.get(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) != CUDA_SUCCESS) {
    return nullptr;
  }
  CUevent event = nullptr;
  if (driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return nullptr;
  if (driver.EventRecord(event, stream.get()) == CUDA_SUCCESS) return event;
  static_cast<void>(driver.EventDestroy(event));
  return nullptr;
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
  if (used->last != nullptr && used->stream.context().Check() == CUDA_SUCCESS) {
    static_cast<void>(ResolvedDriver().EventDestroy(used->last));
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

bool StreamUse::is_over() const noexcept {
  return used_ != nullptr && !used_->IsOfParent() && used_->is_over.load(std::memory_order_acquire);
}

CUevent StreamUse::last() const noexcept {
  const Lock lock = Locked();
  return used_->last;
}

void StreamUse::End() noexcept { Leave(std::exchange(used_, nullptr)); }

EndOfStream::EndOfStream(const StreamRef& stream) noexcept
    : used_([&] {
        const Lock lock = Locked();
        UsedStream* const used = Find(stream);
        if (used == nullptr) return used;
        ++used->users;  // this one
        used->is_over.store(true, std::memory_order_release);
        return used;
      }()) {
  if (used_ == nullptr) return;
  const CUevent last = RecordLast(stream);
  const Lock lock = Locked();
  used_->last = last;
}

EndOfStream::~EndOfStream() {
  if (used_ != nullptr) Leave(used_);
}

void EndOfStream::Undo() noexcept {
  if (used_ == nullptr) return;
  CUevent last = nullptr;
  {
    const Lock lock = Locked();
    used_->is_over.store(false, std::memory_order_release);
    last = std::exchange(used_->last, nullptr);
  }
  if (last != nullptr) static_cast<void>(ResolvedDriver().EventDestroy(last));
}

CUGUEST_END_INTERNAL_NAMESPACE
