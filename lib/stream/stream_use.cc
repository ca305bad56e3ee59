// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/stream/stream_use.h"

#include <unistd.h>

#include <mutex>
#include <new>

#include "cuguest/context_guard.h"
#include "cuguest/internal/concurrency.h"
#include "lib/core/driver_access.h"
#include "lib/guard/relaxed_scope.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// A stream that somebody uses, from the first use to the end of the last. One of the process that
// this one was forked from is left alone: CUDA does not work here then, and another thread of the
// parent's may have had the lock.
struct StreamLife {
  bool IsOfParent() const noexcept { return process != getpid(); }

  const pid_t process = getpid();
  StreamRef stream;
  unsigned users = 0;
  bool is_over = false;
  CUevent last = nullptr;
  StreamLife* next = nullptr;
};

namespace {

Mutex g_mutex;
StreamLife* g_first = nullptr;

// With g_mutex held. Of the streams with this handle, the one that is not over.
StreamLife* Find(const StreamRef& stream) noexcept {
  StreamLife* life = g_first;
  while (life != nullptr && (life->is_over || life->stream.get() != stream.get() ||
                             life->stream.context() != stream.context())) {
    life = life->next;
  }
  return life;
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
void Leave(StreamLife* life) noexcept {
  if (life->IsOfParent()) return;
  {
    const std::lock_guard<Mutex> lock(g_mutex);
    if (--life->users != 0) return;
    StreamLife** place = &g_first;
    while (*place != life) place = &(*place)->next;
    *place = life->next;
  }
  if (life->last != nullptr && life->stream.context().Check() == CUDA_SUCCESS) {
    static_cast<void>(ResolvedDriver().EventDestroy(life->last));
  }
  delete life;
}

}  // namespace

bool StreamUse::Begin(const StreamRef& stream) noexcept {
  auto* made = new (std::nothrow) StreamLife;  // not while the lock is held
  if (made == nullptr) return false;
  {
    const std::lock_guard<Mutex> lock(g_mutex);
    life_ = Find(stream);
    if (life_ == nullptr) {
      life_ = std::exchange(made, nullptr);
      life_->stream = stream;
      life_->next = std::exchange(g_first, life_);
    }
    ++life_->users;
  }
  delete made;
  return true;
}

bool StreamUse::is_over() const noexcept {
  if (life_ == nullptr || life_->IsOfParent()) return false;
  const std::lock_guard<Mutex> lock(g_mutex);
  return life_->is_over;
}

CUevent StreamUse::last() const noexcept {
  const std::lock_guard<Mutex> lock(g_mutex);
  return life_->last;
}

void StreamUse::End() noexcept { Leave(std::exchange(life_, nullptr)); }

EndOfStream::EndOfStream(const StreamRef& stream) noexcept
    : life_([&] {
        const std::lock_guard<Mutex> lock(g_mutex);
        StreamLife* const life = Find(stream);
        if (life == nullptr) return life;
        ++life->users;  // this one
        life->is_over = true;
        return life;
      }()) {
  if (life_ == nullptr) return;
  const CUevent last = RecordLast(stream);
  const std::lock_guard<Mutex> lock(g_mutex);
  life_->last = last;
}

EndOfStream::~EndOfStream() {
  if (life_ != nullptr) Leave(life_);
}

void EndOfStream::Undo() noexcept {
  if (life_ == nullptr) return;
  CUevent last = nullptr;
  {
    const std::lock_guard<Mutex> lock(g_mutex);
    life_->is_over = false;
    last = std::exchange(life_->last, nullptr);
  }
  if (last != nullptr) static_cast<void>(ResolvedDriver().EventDestroy(last));
}

CUGUEST_END_INTERNAL_NAMESPACE
