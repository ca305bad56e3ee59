// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table beneath PerContext.                                                        tier: 2
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
// Every change of state is made with the table's lock. The thread that makes or ends an entry (its
// `worker`) owns the storage meanwhile, without the lock. Nothing else is done with the lock
// held, but the fence of Close(), which waits for nobody of ours: no driver call, no allocation, no
// function of the value's.
//
// A pin is taken without the lock, and the entry may be closed, ended and opened for
// another context at any moment before. So:
//
//   who pins: (1) count up      who closes: (3) state = kClosed
//             (2) state, key?               (4) all counts zero? then end the value
//
// Each has a fence between its two (AsymmetricFence: pinning is what has to be fast). If (2) finds
// kReady, the closer sees the count at (4), until it is taken down again; otherwise the
// pin is undone and was no pin. The key is read after the pin holds the entry, so it is
// the key of the incarnation that (2) saw. A pin that is undone may make a closer believe that
// the entry is in use: it stays kClosed, and the next call that may end the value looks again.
// Where the kernel refuses the closer's fence, nobody knows of the pins, and the value stays.
//
// Note [Who waits for whom]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// A thread waits until a context has no entry that is being made (for its value), or none
// that is being ended (in Forget). It says so on every entry that it works on itself. What
// makes or ends a value may call the table again, so before each wait it is checked, with the
// lock held, that the wait does not lead back to the thread that would wait: then making
// fails, and Forget returns. So there is no circle of waits in one table.
//
// Note [What is asked of the driver]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Whether a context goes on is asked only where the answer cannot be read out of freed memory: the
// driver reads the context at its handle, and one that its owner has destroyed is freed. (On an
// H100 with driver 580.159.04 cuCtxGetId crashed in 1 of 8 runs where that memory was in use
// again.) The memory is there
//
//   (1) for a primary context, as long as the process (cudasim/test/primary_facts_test.cc):
//       whether it is one is found out while its value is made, when it is current and alive;
//   (2) for a context that is current on this thread, dead or alive: an entry of a stack keeps it
//       (cudasim/test/destroyed_facts_test.cc);
//   (3) where the caller says so: a context that is passed to GetOrMake() or Forget().
//
// So a value of any other context stays until its owner names it, or until its handle is seen
// again, alive, as another incarnation; and the destructor gives it up.
//
// Note [Entries of the parent]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A process that has an entry has used CUDA, so a child of it cannot, and has no use for the
// entries but to read a value. Any of its parent's threads may have had the lock at the fork, or
// waited for a change, and the child has none of them. So it uses neither: Lock(), which alone
// locks, does not do so there, and nothing changes, ends or waits without it. That is asked each
// time that the lock is wanted, because what makes or ends a value may fork, and returns in the
// child, too: what it has made is given up, and what is being ended stays as it is. The destructor
// needs neither.
//
// Where there is no entry there is nothing that the lock would guard, and it is not taken either:
// a table without entries is as new in every child, which may use CUDA if its parent has not. All
// entries of a table are of one process. So the lock is in the first of them, and a table that was
// never used is zeros.
//
// Note [Stripes]
// ~~~~~~~~~~~~~~
// The counts of an entry are striped over cache lines, and each thread keeps to one, so
// that threads that use one value do not share a line for writing. With one count for all
// sixteen threads would take turns at it, as they do at the driver's push
// (test/benchmark/cache_rows.cc).
//
// The first thread that counts in a stripe owns it: its count is its own, and needs no atomic
// operation but loads and stores. All others, and those that release what another thread has
// pinned, use a second count beside it. The sum of all is the number of pins, and one that is
// undone was counted in one place: so whatever the order in which they are read, the sum is not too
// small.
//
// Threads are given stripes in turn. In a process that starts and ends threads one comes to a
// stripe that another owns; after a few such meetings it takes the stripe over if the owner has
// ended, and else goes elsewhere at random. In an entry of the parent (see above) none is taken
// over: the thread that has forked still counts there as the owner, by its number in the parent.

#include "cuguest/internal/per_context_table.h"

#include <cstdint>
#include <cstdlib>
#include <new>

#include "cuguest/internal/compiler.h"
#include "cuguest/internal/primary.h"
#include "lib/core/concurrency.h"
#include "lib/core/driver_access.h"
#include "lib/core/failure.h"
#include "lib/guard/inner_guard.h"
#include "lib/guard/nesting.h"
#include "lib/share/context_hold.h"
#include "lib/share/ending.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr unsigned kStripes = Spread(32U, 2U);

}  // namespace

struct alignas(kCacheLine) PinStripe {
  [[nodiscard]] bool IsOwnedBy(std::uint64_t thread) const noexcept {
    return owner.load(std::memory_order_relaxed) == thread;
  }

  Atomic<std::uint64_t> owner{0};  // a PinningThread's id; 0: none yet
  Atomic<unsigned> own{0};         // written by the owner
  Atomic<unsigned> others{0};
};

namespace {

struct PinningThread {
  std::uint64_t id = 0;  // half of its number, and the kernel's; 0: none yet
  unsigned stripe = 0;
  unsigned meetings = 0;  // with others, on this stripe
  unsigned random = 0;
};
CUGUEST_THREAD_LOCAL(PinningThread) t_thread;

void Identify(PinningThread* thread) noexcept {
  const auto number = static_cast<unsigned>(ThreadNumber() + 1);
  thread->id = std::uint64_t{number} << 32 | static_cast<std::uint32_t>(KernelThread());
  thread->stripe = number % kStripes;
  thread->random = number;
}

// Another thread owns `stripe`, which is of an entry that `process` has made, or none does. Whether
// this one does now.
[[gnu::noinline]] bool Meet(PinningThread* thread, PinStripe* stripe, unsigned process) noexcept {
  constexpr unsigned kMeetings = Spread(8U, 1U);
  std::uint64_t owner = stripe->owner.load(std::memory_order_relaxed);
  if (owner != 0) {
    if (++thread->meetings < kMeetings) return false;
    thread->meetings = 0;
    if (process != Process::Number() || !HasEnded(static_cast<int>(owner & 0xFFFFFFFFU))) {
      thread->random = thread->random * 1664525U + 1013904223U;
      thread->stripe = (thread->random >> 16) % kStripes;
      return false;
    }
  }
  return stripe->owner.compare_exchange_strong(owner, thread->id);
}

// Where a pin of this thread is counted.
struct Count {
  PinStripe* stripe;
  bool is_own;

  void Up() const noexcept {
    if (CUGUEST_INTERNAL_LIKELY(is_own)) {
      stripe->own.store(stripe->own.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      stripe->others.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void Down() const noexcept {
    if (CUGUEST_INTERNAL_LIKELY(is_own)) {
      stripe->own.store(stripe->own.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    } else {
      stripe->others.fetch_sub(1, std::memory_order_release);
    }
  }
};

// See Note [Stripes].
inline Count CountIn(PinStripe* stripes, unsigned process) noexcept {
  PinningThread& thread = *AddressOnce(&static_cast<PinningThread&>(t_thread));
  if (CUGUEST_INTERNAL_UNLIKELY(thread.id == 0)) Identify(&thread);
  PinStripe* const stripe = &stripes[thread.stripe];
  const bool is_own = stripe->IsOwnedBy(thread.id);
  return {stripe, CUGUEST_INTERNAL_LIKELY(is_own) || Meet(&thread, stripe, process)};
}

// Ids are counted up by the driver, so their low bits differ; without ids, those of the
// handle do that are above its alignment.
std::size_t Hash(const ContextRef& context) noexcept {
  if (context.id() != 0) return static_cast<std::size_t>(context.id());
  const auto handle = reinterpret_cast<std::uintptr_t>(context.get());
  return static_cast<std::size_t>((handle >> 4) ^ (handle >> 12));
}

// Of Making.
Error RefusalInChild(const ContextRef& context) noexcept {
  return OfContext(
      Failure(CUDA_ERROR_NOT_INITIALIZED, "make the value of a context in a forked child"),
      context.get());
}
constexpr char kMake[] = "make a value";

// `place` or the next address that is aligned.
std::uintptr_t Aligned(std::uintptr_t place, std::size_t alignment) noexcept {
  return (place + alignment - 1) / alignment * alignment;
}

enum class Alive : unsigned char { kYes, kNo, kUnknown };

// See Note [What is asked of the driver].
Alive AskIfAlive(const ContextRef& context, bool is_primary) noexcept {
  if (!is_primary) {
    CUresult code = CUDA_SUCCESS;
    const DriverTable* const driver = TryDriver(&code);
    CUcontext current = nullptr;
    if (driver == nullptr || driver->CtxGetCurrent(&current) != CUDA_SUCCESS ||
        current != context.get()) {
      return Alive::kUnknown;
    }
  }
  const CUresult code = context.Check();
  if (code == CUDA_SUCCESS) return Alive::kYes;
  const bool is_over =
      code == CUDA_ERROR_CONTEXT_IS_DESTROYED || code == CUDA_ERROR_INVALID_CONTEXT;
  // Otherwise it cannot be asked: a stream callback, a forked child, a sticky error.
  return is_over ? Alive::kNo : Alive::kUnknown;
}

}  // namespace

enum class PerContextTable::EntryState : unsigned char {
  kFree,
  kMaking,  // by `worker`
  kReady,   // can be found and pinned
  kClosed,  // dropped
  kEnding,  // the value is being destroyed, by `worker`
};

// What those who change entries share, in the first entry of a table.
struct PerContextTable::Changes {
  SharedMutex mutex;
  SharedConditionVariable changed;  // an entry is no longer being made, or ended
};

// What changes entries, or waits for one to change, has this; it holds nothing where there is no
// entry to change or wait for: see Note [Entries of the parent].
class PerContextTable::Locked {
 public:
  Locked() noexcept = default;
  explicit Locked(Changes* changes) noexcept : changes_(changes) { changes_->mutex.lock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() {
    if (changes_ != nullptr) changes_->mutex.unlock();
  }

  explicit operator bool() const noexcept { return changes_ != nullptr; }
  // Until the next change; unlocked meanwhile.
  void Wait() const noexcept { changes_->changed.wait(changes_->mutex); }

 private:
  Changes* changes_ = nullptr;
};

struct PerContextTable::Entry {
  using State = EntryState;

  // With room for a value behind it; nullptr without memory.
  static Entry* Make(const Type& type) noexcept {
    const std::size_t alignment = type.alignment > alignof(Entry) ? type.alignment : alignof(Entry);
    const std::size_t value_at = Aligned(sizeof(Entry), alignment);
    if (type.size > SIZE_MAX / 2 || alignment > SIZE_MAX / 8) return nullptr;
    void* const memory = std::calloc(1, alignment + value_at + type.size);
    if (memory == nullptr) return nullptr;
    const std::uintptr_t place = Aligned(reinterpret_cast<std::uintptr_t>(memory), alignment);
    return new (reinterpret_cast<void*>(place))
        Entry(memory, reinterpret_cast<void*>(place + value_at));
  }
  void Free() noexcept {
    void* const begin = memory;
    this->~Entry();
    std::free(begin);
  }

  bool Names(const ContextRef& other) const noexcept {
    return id.load(std::memory_order_relaxed) == other.id() &&
           handle.load(std::memory_order_relaxed) == other.get();
  }
  bool Is(State wanted) const noexcept { return state.load(std::memory_order_acquire) == wanted; }
  // The value, if it is that of `wanted`: see Note [Pins and ends].
  Held Pin(const Count& count, const ContextRef& wanted) noexcept {
    count.Up();
    fence.Light();
    if (CUGUEST_INTERNAL_LIKELY(Is(State::kReady) && Names(wanted))) return {value, count.stripe};
    count.Down();
    return {};
  }

  // With the table's lock.

  bool IsOneOf(const Awaited& entries) const noexcept {
    return entries.context.get() != nullptr && Is(entries.state) && context == entries.context;
  }
  // Whether there is a value in it that is not known to be dead.
  bool IsKept() const noexcept { return Is(State::kReady) || (Is(State::kClosed) && !is_dead); }
  void Open(const ContextRef& of) noexcept {
    context = of;
    is_primary = false;
    is_dead = false;
    worker = ThisThreadId();
    id.store(of.id(), std::memory_order_relaxed);
    handle.store(of.get(), std::memory_order_relaxed);
    state.store(State::kMaking, std::memory_order_release);
  }
  void Close(bool dead) noexcept {
    is_dead = dead;
    state.store(State::kClosed, std::memory_order_release);
    knows_pins = fence.Heavy();
  }
  // Once it is closed; true if that is not known.
  bool IsPinned() const noexcept {
    unsigned pins = 0;
    for (const PinStripe& stripe : stripes) {
      pins += stripe.own.load(std::memory_order_acquire);
      pins += stripe.others.load(std::memory_order_acquire);
    }
    return pins != 0 || !knows_pins;
  }
  void BeginEnding() noexcept {
    worker = ThisThreadId();
    state.store(State::kEnding, std::memory_order_release);
  }

  // What is read without the lock, on a line that is written only when the entry changes.
  Atomic<State> state{State::kFree};
  Atomic<CUcontext> handle{nullptr};
  Atomic<unsigned long long> id{0};
  void* const value;
  Entry* next = nullptr;       // does not change once the entry is in the list
  Changes* changes = nullptr;  // the first entry's; nor does this
  const unsigned process = Process::Number();

  // What is read with the table's lock, or by the thread that makes or ends the entry.
  alignas(kCacheLine) ContextRef context;
  bool is_primary = false;  // from kReady on: `context` is a primary context
  ThreadId worker;          // while kMaking or kEnding
  Awaited awaited;          // then: what the worker waits for meanwhile
  bool is_dead = false;     // from kClosed on: the context is not to be entered
  bool knows_pins = false;  // then: whether the counts show every pin

  AsymmetricFence fence;
  PinStripe stripes[kStripes];

  Changes own_changes;
  void* const memory;

 private:
  Entry(void* begin, void* place) noexcept : value(place), memory(begin) {}
};

PerContextTable::~PerContextTable() {
  for (Entry* entry = Head(); entry != nullptr;) {
    Entry* const next = entry->next;
    if (entry->IsKept()) {
      entry->Close(/*dead=*/AskIfAlive(entry->context, entry->is_primary) != Alive::kYes);
    }
    // What somebody still pins, or makes, is leaked rather than freed while in use.
    const bool is_used =
        (entry->Is(EntryState::kClosed) && entry->IsPinned()) || entry->Is(EntryState::kMaking);
    if (!is_used && entry->Is(EntryState::kClosed) && !End(entry)) GiveUp(entry->value);
    if (!is_used) entry->Free();
    entry = next;
  }
}

// See Note [Entries of the parent].
bool PerContextTable::IsOfParent() const noexcept {
  const Entry* const first = Head();
  return first != nullptr && first->process != Process::Number();
}

PerContextTable::Locked PerContextTable::Lock() const noexcept {
  // In one order with AddEntry(): who sees no entry comes before all that is done with the first.
  if (head_.load(std::memory_order_seq_cst) == nullptr || IsOfParent()) return {};
  return Locked(Head()->changes);
}

// The first that is wanted; nullptr if there is none.
template <typename Predicate>
PerContextTable::Entry* PerContextTable::FindEntry(Predicate is_wanted) const noexcept {
  Entry* entry = Head();
  while (entry != nullptr && !is_wanted(*entry)) entry = entry->next;
  return entry;
}

PerContextTable::Held PerContextTable::TryPin(Entry* entry, const ContextRef& context) noexcept {
  return entry->Pin(CountIn(entry->stripes, entry->process), context);
}

void PerContextTable::Unpin(PinStripe* stripe) noexcept {
  // A stripe in which something is counted has an owner, so a thread without an id is not it.
  const PinningThread& thread = t_thread;
  Count{stripe, stripe->IsOwnedBy(thread.id)}.Down();
}

// Of a thread that owns its stripe of the value. It calls nothing, so that nothing is saved.
PerContextTable::Held PerContextTable::Find(const ContextRef& context) noexcept {
  auto& hints = hints_[Hash(context) % kHints];
  for (const Atomic<Entry*>& hint : hints) {
    Entry* const hinted = hint.load(std::memory_order_acquire);
    if (CUGUEST_INTERNAL_UNLIKELY(hinted == nullptr || !hinted->Names(context))) continue;
    const PinningThread& thread = *AddressOnce(&static_cast<PinningThread&>(t_thread));
    const Count count = {&hinted->stripes[thread.stripe], /*is_own=*/true};
    if (CUGUEST_INTERNAL_UNLIKELY(thread.id == 0 || !count.stripe->IsOwnedBy(thread.id))) break;
    const Held held = hinted->Pin(count, context);
    if (CUGUEST_INTERNAL_LIKELY(held.value != nullptr)) return held;
  }
  return FindSpecially(context, hints);
}

// As Find(), of any thread.
PerContextTable::Held PerContextTable::FindSpecially(const ContextRef& context,
                                                     Atomic<Entry*>* hints) noexcept {
  for (std::size_t i = 0; i < kOfAHash; ++i) {
    Entry* const hinted = hints[i].load(std::memory_order_acquire);
    if (hinted == nullptr || !hinted->Names(context)) continue;
    const Held held = TryPin(hinted, context);
    if (held.value != nullptr) return held;
  }
  return Search(context, hints);
}

// As Find(), without hints but to renew them: the one that was found last is the first.
PerContextTable::Held PerContextTable::Search(const ContextRef& context,
                                              Atomic<Entry*>* hints) const noexcept {
  for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (!entry->Names(context) || !entry->Is(EntryState::kReady)) continue;
    const Held held = TryPin(entry, context);
    if (held.value == nullptr) continue;
    Entry* const before = hints[0].load(std::memory_order_acquire);
    if (before != entry) hints[1].store(before, std::memory_order_release);
    hints[0].store(entry, std::memory_order_release);
    return held;
  }
  return {};
}

PerContextTable::Making::Making(PerContextTable* table, const ContextRef& context,
                                CUresult entered) noexcept
    : table_(table) {
  if (entered == CUDA_SUCCESS) {
    error_ = TakeOrPin(context);
  } else if (context.ok()) {
    error_ = MakeError(entered, "enter a context", Advice(entered));
  } else {
    error_ = MakeError(context.result(), context.doing(), context.advice());
  }
}

Error PerContextTable::Making::TakeOrPin(const ContextRef& context) noexcept {
  for (;;) {
    if (table_->IsOfParent()) return RefusalInChild(context);
    const std::optional<Turn> turn = table_->TakeTurn(context);
    if (!turn.has_value()) {
      return OfContext(Failure(Error::Reason::kBeingMade, CUDA_ERROR_ILLEGAL_STATE, kMake),
                       context.get());
    }
    held_ = turn->held;
    if (held_.value != nullptr) return {};
    if (turn->entry == nullptr) {
      if (table_->AddEntry()) continue;
      return OfContext(Failure(Error::Reason::kNoMemory, CUDA_ERROR_OUT_OF_MEMORY, kMake),
                       context.get());
    }
    if (turn->other.get() != nullptr) {
      // Ours was alive when its guard was built; but if it died meanwhile, the other one may be
      // the later. A handle has one incarnation at a time, so if ours lives, theirs are over.
      const CUresult code = context.Check();
      if (code != CUDA_SUCCESS) return Failure(code, context.doing());
      table_->CloseDead(turn->entry, turn->other);
      continue;
    }
    entry_ = turn->entry;
    const CUresult code = AskIfPrimary(context, &entry_->is_primary);
    if (code != CUDA_SUCCESS) {
      GiveBack();
      return OfContext(Failure(code, "make a value, asking whether its context is a primary one"),
                       context.get());
    }
    table_->EndDropped(ContextRef());
    return table_->IsOfParent() ? RefusalInChild(context) : Error();
  }
}

void* PerContextTable::Making::storage() const noexcept { return entry_->value; }

const Error& PerContextTable::Making::Publish() noexcept {
  Entry* const entry = std::exchange(entry_, nullptr);
  const Count count = CountIn(entry->stripes, entry->process);
  count.Up();
  if (table_->Finish(entry, EntryState::kReady)) {
    held_ = {entry->value, count.stripe};
    return error_;
  }
  table_->GiveUp(entry->value);
  error_ = RefusalInChild(entry->context);
  return error_;
}

void PerContextTable::Making::GiveBack() noexcept {
  static_cast<void>(table_->Finish(std::exchange(entry_, nullptr), EntryState::kFree));
}

bool PerContextTable::Forget(const ContextRef& context, bool is_dead) {
  if (context.get() == nullptr) return false;
  bool found = false;
  {
    const Locked lock = Lock();
    if (!lock) return false;
    for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
      if (!entry->Names(context)) continue;
      if (entry->Is(EntryState::kReady)) {
        entry->Close(is_dead);
        found = true;
      } else if (entry->Is(EntryState::kClosed)) {
        entry->is_dead = entry->is_dead || is_dead;
      }
    }
  }
  EndDropped(context);
  const Locked lock = Lock();
  if (lock) static_cast<void>(WaitWhile({EntryState::kEnding, context}, lock));
  return found;
}

std::size_t PerContextTable::ForgetAll() {
  std::size_t forgotten = 0;
  for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (Forget(KeptIn(*entry).first, /*is_dead=*/false)) ++forgotten;
  }
  return forgotten;
}

std::size_t PerContextTable::DropDead() {
  std::size_t dropped = 0;
  for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    const auto [context, is_primary] = KeptIn(*entry);
    if (context.get() == nullptr || AskIfAlive(context, is_primary) != Alive::kNo) continue;
    if (CloseDead(entry, context)) ++dropped;
  }
  EndDropped(ContextRef());
  return dropped;
}

std::size_t PerContextTable::size() const noexcept {
  std::size_t count = 0;
  for (const Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    if (entry->Is(EntryState::kReady)) ++count;
  }
  return count;
}

// The context of the value that is kept in `entry`, and whether it is a primary one; of none an
// empty ref.
std::pair<ContextRef, bool> PerContextTable::KeptIn(const Entry& entry) {
  const Locked lock = Lock();
  return lock && entry.IsKept() ? std::pair(entry.context, entry.is_primary)
                                : std::pair(ContextRef(), false);
}

// Pins the value of `context`, or claims an entry for it, or says what has to be done first
// without the lock. Waits while another thread makes it.
std::optional<PerContextTable::Turn> PerContextTable::TakeTurn(const ContextRef& context) {
  const Awaited made = {EntryState::kMaking, context};
  const Locked lock = Lock();
  if (!lock) return Turn{};  // there is no entry
  // Nobody closes what is ready while the lock is held.
  for (;;) {
    const Held held = Find(context);
    if (held.value != nullptr) return Turn{held};
    if (!Has(made)) break;
    if (!WaitWhile(made, lock)) return std::nullopt;
  }
  Entry* const other = FindEntry([&](const Entry& entry) {
    return entry.IsKept() && entry.context.get() == context.get() && entry.context != context;
  });
  if (other != nullptr) return Turn{{}, other, other->context};
  Entry* const free = FindEntry([](const Entry& entry) { return entry.Is(EntryState::kFree); });
  if (free != nullptr) free->Open(context);
  return Turn{{}, free};
}

bool PerContextTable::Has(const Awaited& entries) const noexcept {
  return FindEntry([&](const Entry& entry) { return entry.IsOneOf(entries); }) != nullptr;
}

// Waits while there are any of `entries`, with `lock` released; false, without waiting, if that
// would be for ever. See Note [Who waits for whom].
bool PerContextTable::WaitWhile(const Awaited& entries, const Locked& lock) {
  while (Has(entries)) {
    if (WaitsForThisThread(entries)) return false;
    SetAwaited(entries);
    lock.Wait();
    SetAwaited(Awaited());
  }
  return true;
}

// Whether `entries` change only after this thread has gone on: it works on one, or on something
// that the worker of one waits for. Every wait is checked, so the recursion ends.
bool PerContextTable::WaitsForThisThread(const Awaited& entries) const noexcept {
  const auto waits = [&](const Entry& entry) {
    return entry.IsOneOf(entries) &&
           (entry.worker == ThisThreadId() || WaitsForThisThread(entry.awaited));
  };
  return FindEntry(waits) != nullptr;
}

// Says what this thread waits for on everything that it works on; by key, because by the time it
// wakes the entry that it waited for may stand for something else.
void PerContextTable::SetAwaited(const Awaited& entries) noexcept {
  for (Entry* entry = Head(); entry != nullptr; entry = entry->next) {
    const bool is_worked_on = entry->Is(EntryState::kMaking) || entry->Is(EntryState::kEnding);
    if (is_worked_on && entry->worker == ThisThreadId()) entry->awaited = entries;
  }
}

// Closes `entry`, if it is still that of `context`, which is dead; whether it could be found.
bool PerContextTable::CloseDead(Entry* entry, const ContextRef& context) {
  const Locked lock = Lock();
  if (!lock || !entry->IsKept() || entry->context != context) return false;
  const bool was_ready = entry->Is(EntryState::kReady);
  entry->Close(/*dead=*/true);
  return was_ready;
}

// One more that is free; false if there is no memory.
bool PerContextTable::AddEntry() {
  AsymmetricFence::Prepare();
  Entry* const entry = Entry::Make(type_);
  if (entry == nullptr) return false;
  entry->next = Head();
  do {
    entry->changes = entry->next == nullptr ? &entry->own_changes : entry->next->changes;
  } while (!head_.compare_exchange_weak(entry->next, entry, std::memory_order_seq_cst));
  return true;
}

// Ends what was dropped and is no longer pinned, if it is dead, or of `context`. What lives ends
// only in a call that names its context: nobody else knows whether that invalidates a capture
// there.
void PerContextTable::EndDropped(const ContextRef& context) noexcept {
  const auto can_end = [&](const Entry& entry) {
    return entry.Is(EntryState::kClosed) && !entry.IsPinned() &&
           (entry.is_dead || entry.context == context);
  };
  for (;;) {
    Entry* ending = nullptr;
    {
      const Locked lock = Lock();
      if (lock) ending = FindEntry(can_end);
      if (ending == nullptr) return;
      ending->BeginEnding();
    }
    const bool is_ended = End(ending);
    static_cast<void>(Finish(ending, is_ended ? EntryState::kFree : EntryState::kClosed));
    if (!is_ended) return;
  }
}

// False if the driver takes nothing back here, in a stream callback: the value stays.
bool PerContextTable::End(Entry* entry) noexcept {
  const ContextHold hold(entry->context);
  std::optional<InnerGuard> guard;
  CUresult code = hold.result();
  if (!entry->is_dead && code == CUDA_SUCCESS) {
    guard.emplace(entry->context, Location::Here());
    code = guard->result();
  }
  if (!entry->is_dead && IsStillHeld(code)) return false;
  type_.end(type_, entry->value, /*is_inside=*/!entry->is_dead && code == CUDA_SUCCESS);
  return true;
}

void PerContextTable::GiveUp(void* value) const noexcept {
  type_.end(type_, value, /*is_inside=*/false);
}

// The making or the ending of `entry` is over. False in a child that was forked meanwhile, where it
// never is.
bool PerContextTable::Finish(Entry* entry, EntryState state) noexcept {
  {
    const Locked lock = Lock();
    if (!lock) return false;
    entry->state.store(state, std::memory_order_release);
  }
  Head()->changes->changed.notify_all();
  return true;
}

CUGUEST_END_INTERNAL_NAMESPACE
