// SPDX-License-Identifier: Apache-2.0
//
// Note [Pins and ends]
// ~~~~~~~~~~~~~~~~~~~~
// Entries are never freed while the table lives, and the list of them only grows, so any
// thread may walk it and touch what it finds without a lock. What an entry stands for
// does change:
//
//   kFree --> kMaking --> kReady --> kClosed --> kEnding --> kFree
//                 `--> kFree
//
// Only a thread that holds mutex_ opens (kFree to kMaking), closes (kReady to kClosed) and
// ends (kClosed to kEnding) an entry; the thread that makes or ends it then owns the
// storage, without the lock.
//
// A pin is taken without the lock, and the entry may be closed, ended and opened for
// another context at any moment before. So:
//
//   who pins: (1) count up      who closes: (3) state = kClosed
//             (2) state, key?               (4) all counts zero? then end it
//
// All four are sequentially consistent. If (2) finds kReady, then (1) and (2) come before
// (3) and the closer sees the count at (4), until it is taken down again; otherwise the
// pin is undone and was no pin. The key is read after the pin holds the entry, so it is
// the key of the life that (2) saw. A pin that is undone may make a closer believe that
// the entry is in use: it stays kClosed, and the next slow call looks again.
//
// Note [Stripes]
// ~~~~~~~~~~~~~~
// The counts of an entry are striped over cache lines, and each thread keeps to one, so
// that threads that use one value do not share a line for writing. With one count for all
// sixteen threads would take turns at it, as they do at the driver's push
// (test/benchmark/per_context_benchmark.cc).
//
// Threads are given stripes in turn. In a process that starts and ends threads two that run
// at the same time come to share one after all; they see it by the line's last user, and
// after a few such meetings go elsewhere at random.

#include <cstdint>
#include <new>
#include <thread>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/error.h"
#include "cuguest/internal/per_context_table.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr unsigned kStripes = 32;

}  // namespace

struct alignas(kCacheLine) PinStripe {
  std::atomic<unsigned> pins{0};
  std::atomic<unsigned> last_user{0};  // a thread's number; only a hint
};

namespace {

struct ThisThread {
  unsigned number = 0;  // from 1; 0: none yet
  unsigned stripe = 0;
  unsigned meetings = 0;  // with others, on this stripe
  unsigned random = 0;
};
thread_local ThisThread t_thread;
std::atomic<unsigned> g_threads{0};

void GiveNumber(ThisThread* thread) noexcept {
  do {
    thread->number = g_threads.fetch_add(1, std::memory_order_relaxed) + 1;
  } while (thread->number == 0);
  thread->stripe = thread->number % kStripes;
  thread->random = thread->number;
}

// Another thread has used `stripe` since this one did.
[[gnu::noinline]] void Meet(ThisThread* thread, PinStripe* stripe) noexcept {
  constexpr unsigned kMeetings = 8;
  stripe->last_user.store(thread->number, std::memory_order_relaxed);
  if (++thread->meetings < kMeetings) return;
  thread->meetings = 0;
  thread->random = thread->random * 1664525U + 1013904223U;
  thread->stripe = (thread->random >> 16) % kStripes;
}

// Counts one pin up, and returns where. See Note [Stripes].
inline std::atomic<unsigned>* CountUp(PinStripe* stripes) noexcept {
  ThisThread& thread = t_thread;
  if (__builtin_expect(thread.number == 0, 0)) GiveNumber(&thread);
  PinStripe& stripe = stripes[thread.stripe];
  stripe.pins.fetch_add(1, std::memory_order_seq_cst);
  if (__builtin_expect(stripe.last_user.load(std::memory_order_relaxed) != thread.number, 0)) {
    Meet(&thread, &stripe);
  }
  return &stripe.pins;
}

// Ids are counted up by the driver, so their low bits differ; without ids, those of the
// handle do that are above its alignment.
std::size_t Hash(const ContextRef& context) noexcept {
  if (context.id() != 0) return static_cast<std::size_t>(context.id());
  const auto handle = reinterpret_cast<std::uintptr_t>(context.get());
  return static_cast<std::size_t>((handle >> 4) ^ (handle >> 12));
}

// The driver says so, rather than that it cannot be asked.
bool IsOver(const ContextRef& context) noexcept {
  const CUresult code = context.Check();
  return code == CUDA_ERROR_CONTEXT_IS_DESTROYED || code == CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

struct PerContextTable::Entry {
  enum class State : unsigned char {
    kFree,
    kMaking,  // claimed by `maker`
    kReady,   // can be found and pinned
    kClosed,  // dropped, and was pinned when that was last looked at
    kEnding,  // the value is being destroyed
  };
  static std::size_t ValueOffset(const Type& type) noexcept {
    return (sizeof(Entry) + type.alignment - 1) / type.alignment * type.alignment;
  }
  static std::align_val_t Alignment(const Type& type) noexcept {
    return std::align_val_t(type.alignment > alignof(Entry) ? type.alignment : alignof(Entry));
  }
  // nullptr if there is no memory.
  static Entry* New(const Type& type) noexcept {
    const std::size_t offset = ValueOffset(type);
    void* memory = ::operator new(offset + type.size, Alignment(type), std::nothrow);
    if (memory == nullptr) return nullptr;
    auto* entry = ::new (memory) Entry;
    entry->value = static_cast<unsigned char*>(memory) + offset;
    return entry;
  }
  static void Delete(const Type& type, Entry* entry) noexcept {
    entry->~Entry();
    ::operator delete(entry, Alignment(type));
  }

  bool Names(const ContextRef& other) const noexcept {
    return id.load(std::memory_order_relaxed) == other.id() &&
           handle.load(std::memory_order_relaxed) == other.get();
  }
  bool Is(State wanted) const noexcept { return state.load(std::memory_order_seq_cst) == wanted; }
  bool IsPinned() const noexcept {
    for (const PinStripe& stripe : stripes) {
      if (stripe.pins.load(std::memory_order_seq_cst) != 0) return true;
    }
    return false;
  }

  // With mutex_ held.
  void Open(const ContextRef& of) noexcept {
    context = of;
    maker = std::this_thread::get_id();
    is_dead = false;
    id.store(of.id(), std::memory_order_relaxed);
    handle.store(of.get(), std::memory_order_relaxed);
    state.store(State::kMaking, std::memory_order_seq_cst);
  }
  void Close(bool dead) noexcept {
    is_dead = dead;
    state.store(State::kClosed, std::memory_order_seq_cst);
  }

  // What is read without the lock, on a line that is written only when the entry changes.
  std::atomic<State> state{State::kFree};
  std::atomic<CUcontext> handle{nullptr};
  std::atomic<unsigned long long> id{0};
  void* value = nullptr;  // this and `next` do not change once the entry is in the list
  Entry* next = nullptr;

  // What is read with mutex_ held, or by the thread that makes or ends the entry.
  alignas(kCacheLine) ContextRef context;
  std::thread::id maker;         // while kMaking
  ContextRef awaited;            // while kMaking: what the maker waits for meanwhile
  bool is_dead = false;          // from kClosed on: the context is known to be dead
  Entry* next_ending = nullptr;  // while kEnding

  PinStripe stripes[kStripes];
};

PerContextTable::~PerContextTable() {
  for (Entry* entry = Head(); entry != nullptr;) {
    Entry* const next = entry->next;
    if (entry->Is(Entry::State::kReady)) entry->Close(/*dead=*/false);
    // What somebody still pins, or makes, is leaked rather than freed under his hands.
    const bool is_used = entry->IsPinned() || entry->Is(Entry::State::kMaking);
    if (!is_used && entry->Is(Entry::State::kClosed)) {
      entry->next_ending = nullptr;
      End(entry);
    }
    if (!is_used) Entry::Delete(type_, entry);
    entry = next;
  }
}

// See Note [Pins and ends].
inline PerContextTable::Held PerContextTable::TryPin(Entry* entry,
                                                     const ContextRef& context) noexcept {
  PinCount* const pins = CountUp(entry->stripes);
  if (__builtin_expect(entry->Is(Entry::State::kReady) && entry->Names(context), 1)) {
    return {entry->value, pins};
  }
  pins->fetch_sub(1, std::memory_order_release);
  return {};
}

PerContextTable::Held PerContextTable::Find(const ContextRef& context) noexcept {
  std::atomic<Entry*>& hint = hints_[Hash(context) % kHints];
  Entry* const hinted = hint.load(std::memory_order_acquire);
  if (__builtin_expect(hinted != nullptr && hinted->Names(context), 1)) {
    const Held held = TryPin(hinted, context);
    if (__builtin_expect(held.value != nullptr, 1)) return held;
  }
  return Search(context, &hint);
}

// As Find(), without a hint but to renew it.
PerContextTable::Held PerContextTable::Search(const ContextRef& context,
                                              std::atomic<Entry*>* hint) const noexcept {
  for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (!entry->Names(context) || !entry->Is(Entry::State::kReady)) continue;
    const Held held = TryPin(entry, context);
    if (held.value == nullptr) continue;
    hint->store(entry, std::memory_order_release);
    return held;
  }
  return {};
}

absl::Status PerContextTable::Claim::TakeOrPin(const ContextRef& context, Held* held) {
  std::unique_lock<std::mutex> lock(table_->mutex_);
  for (;;) {
    // Nobody closes what is ready while the lock is held.
    *held = table_->Find(context);
    if (held->value != nullptr) return absl::OkStatus();
    if (table_->FindMaking(context) == nullptr) break;
    if (table_->WaitsForThisThread(context)) {
      return absl::FailedPreconditionError(
          absl::StrCat("make the value of context 0x",
                       absl::Hex(reinterpret_cast<std::uintptr_t>(context.get())),
                       ": it is already being made, by this thread or by one that waits for it"));
    }
    table_->SetAwaited(context);
    table_->changed_.wait(lock);
    table_->SetAwaited(ContextRef());
  }
  absl::Status status = table_->CloseOutlived(context);
  if (!status.ok()) return status;
  entry_ = table_->FreeEntry();
  if (entry_ == nullptr) {
    return absl::ResourceExhaustedError("make the value of a context: no host memory");
  }
  entry_->Open(context);
  Entry* const ending = table_->TakeUnpinned();
  lock.unlock();
  table_->End(ending);
  return absl::OkStatus();
}

void* PerContextTable::Claim::storage() const noexcept { return entry_->value; }

PerContextTable::Held PerContextTable::Claim::Publish() noexcept {
  const Held held{entry_->value, CountUp(entry_->stripes)};
  {
    const std::lock_guard<std::mutex> lock(table_->mutex_);
    entry_->state.store(Entry::State::kReady, std::memory_order_seq_cst);
  }
  entry_ = nullptr;
  table_->changed_.notify_all();
  return held;
}

void PerContextTable::Claim::GiveBack() noexcept {
  {
    const std::lock_guard<std::mutex> lock(table_->mutex_);
    entry_->state.store(Entry::State::kFree, std::memory_order_seq_cst);
  }
  entry_ = nullptr;
  table_->changed_.notify_all();
}

bool PerContextTable::Forget(const ContextRef& context, bool is_dead) {
  if (context.get() == nullptr) return false;
  bool found = false;
  Entry* ending = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
      if (!entry->Names(context)) continue;
      if (entry->Is(Entry::State::kReady)) {
        entry->Close(is_dead);
        found = true;
      } else if (entry->Is(Entry::State::kClosed)) {
        entry->is_dead = entry->is_dead || is_dead;
      }
    }
    ending = TakeUnpinned();
  }
  End(ending);
  return found;
}

std::size_t PerContextTable::DropDead() {
  std::size_t dropped = 0;
  Entry* ending = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
      if (!entry->Is(Entry::State::kReady) || !IsOver(entry->context)) continue;
      entry->Close(/*dead=*/true);
      ++dropped;
    }
    ending = TakeUnpinned();
  }
  End(ending);
  return dropped;
}

std::size_t PerContextTable::size() const noexcept {
  std::size_t count = 0;
  for (const Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (entry->Is(Entry::State::kReady)) ++count;
  }
  return count;
}

PerContextTable::Entry* PerContextTable::FindMaking(const ContextRef& context) const noexcept {
  for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (entry->Is(Entry::State::kMaking) && entry->context == context) return entry;
  }
  return nullptr;
}

// Whether the making of `context` can end only after this thread has gone on: it makes it,
// or something that its maker waits for. Every wait is checked, so there is no other circle.
bool PerContextTable::WaitsForThisThread(ContextRef context) const noexcept {
  for (;;) {
    const Entry* const making = FindMaking(context);
    if (making == nullptr) return false;
    if (making->maker == std::this_thread::get_id()) return true;
    context = making->awaited;
  }
}

// Says what this thread waits for on everything that it makes itself; by key, because by
// the time it wakes the entry may stand for something else.
void PerContextTable::SetAwaited(const ContextRef& context) noexcept {
  for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (entry->Is(Entry::State::kMaking) && entry->maker == std::this_thread::get_id()) {
      entry->awaited = context;
    }
  }
}

// Closes what has to make room for the value of `context`.
absl::Status PerContextTable::CloseOutlived(const ContextRef& context) {
  const auto is_another_life = [&context](const Entry& entry) {
    return (entry.Is(Entry::State::kReady) || entry.Is(Entry::State::kClosed)) &&
           entry.context.get() == context.get() && entry.context != context;
  };
  std::size_t in_use = 0;
  bool has_another_life = false;
  for (const Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (!entry->Is(Entry::State::kFree)) ++in_use;
    has_another_life = has_another_life || is_another_life(*entry);
  }
  if (has_another_life) {
    // It was alive when its guard was built; but if it died meanwhile, the other life may
    // be the later one. A handle has one life at a time, so if ours goes on theirs are over.
    const CUresult code = context.Check();
    if (code != CUDA_SUCCESS) return ToStatus(code, context.doing());
    for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
      if (is_another_life(*entry)) entry->Close(/*dead=*/true);
    }
  }
  if (in_use < kSoftBound) return absl::OkStatus();
  for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (entry->Is(Entry::State::kReady) && IsOver(entry->context)) entry->Close(/*dead=*/true);
  }
  return absl::OkStatus();
}

PerContextTable::Entry* PerContextTable::FreeEntry() noexcept {
  for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (entry->Is(Entry::State::kFree)) return entry;
  }
  Entry* const entry = Entry::New(type_);
  if (entry == nullptr) return nullptr;
  entry->next = Head();
  head_.store(entry, std::memory_order_release);
  return entry;
}

// What is dropped and no longer pinned, for End().
PerContextTable::Entry* PerContextTable::TakeUnpinned() noexcept {
  Entry* taken = nullptr;
  for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (!entry->Is(Entry::State::kClosed) || entry->IsPinned()) continue;
    entry->state.store(Entry::State::kEnding, std::memory_order_seq_cst);
    entry->next_ending = taken;
    taken = entry;
  }
  return taken;
}

void PerContextTable::End(Entry* entries) noexcept {
  while (entries != nullptr) {
    Entry* const entry = entries;
    entries = entry->next_ending;
    bool is_destroyed = false;
    if (!entry->is_dead) {
      const ContextGuard guard(entry->context);
      is_destroyed = guard.ok();
      if (is_destroyed) type_.destroy(entry->value);
    }
    if (!is_destroyed) {
      if (type_.leak != nullptr) type_.leak(entry->value);
      type_.destroy(entry->value);
    }
    entry->state.store(Entry::State::kFree, std::memory_order_seq_cst);
  }
}

}  // namespace internal
CUGUEST_END_NAMESPACE
