// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
//
// Not for embedders. What PerContext<T> (per_context.h) is for every T: the table of
// contexts and their values, whose type it knows by size, alignment and two functions.
// lib/cache/per_context_table.cc says how it works.

#ifndef CUGUEST_INTERNAL_PER_CONTEXT_TABLE_H_
#define CUGUEST_INTERNAL_PER_CONTEXT_TABLE_H_

#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/internal/concurrency.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct PinStripe;

class CUGUEST_API PerContextTable {
 private:
  enum class EntryState : unsigned char;
  struct Entry;

 public:
  struct Type {
    std::size_t size;
    std::size_t alignment;
    void (*leak)(void* value);  // nullptr if it has nothing to leak
    void (*destroy)(void* value);
  };

  // A value that is not destroyed before Unpin(stripe).
  struct Held {
    CUGUEST_HIDE Held() = default;
    CUGUEST_HIDE Held(void* at, PinStripe* counted_in) noexcept : value(at), stripe(counted_in) {}

    void* value = nullptr;
    PinStripe* stripe = nullptr;
  };
  static void Unpin(PinStripe* stripe) noexcept;

  // The right, and the duty, of one thread to make the value of one context. Without
  // Publish() it is given back, so that the next thread may try: also when making throws.
  class CUGUEST_API Claim {
   public:
    CUGUEST_HIDE explicit Claim(PerContextTable* table) noexcept : table_(table) {}
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    CUGUEST_HIDE ~Claim() {
      if (entry_ != nullptr) GiveBack();
    }

    // Pins the value of `context`, which is current, waiting for it if it is being made; or, if
    // nobody has made it, takes the claim and leaves `held` empty.
    absl::Status TakeOrPin(const ContextRef& context, Held* held);
    // Where the value is to be constructed.
    [[nodiscard]] void* storage() const noexcept;
    // The value is there. It comes pinned; or, in a child that was forked since the claim was
    // taken, it is given up, and `held` stays empty.
    absl::Status Publish(Held* held);

   private:
    void GiveBack() noexcept;

    PerContextTable* table_;
    Entry* entry_ = nullptr;
  };

  CUGUEST_HIDE explicit PerContextTable(const Type& type) noexcept : type_(type), changed_() {}
  PerContextTable(const PerContextTable&) = delete;
  PerContextTable& operator=(const PerContextTable&) = delete;
  ~PerContextTable();

  [[nodiscard]] Held Find(const ContextRef& context) noexcept;
  // `is_dead`: the caller knows it, and the driver is not asked. When it returns no other thread
  // is ending a value of `context`, unless that one waits for this thread.
  bool Forget(const ContextRef& context, bool is_dead);
  // Forget() of every context, alive; how many values there were to find.
  std::size_t ForgetAll();
  std::size_t DropDead();
  [[nodiscard]] std::size_t size() const noexcept;

 private:
  CUGUEST_HIDE static constexpr std::size_t kHints = 128;
  CUGUEST_HIDE static constexpr std::size_t kOfAHash = 2;

  [[nodiscard]] static Held TryPin(Entry* entry, const ContextRef& context) noexcept;
  [[nodiscard, gnu::noinline]] Held Search(const ContextRef& context,
                                           Atomic<Entry*>* hints) const noexcept;
  [[nodiscard]] CUGUEST_HIDE Entry* Head() const noexcept {
    return head_.load(std::memory_order_acquire);
  }

  // What comes next for a thread that asks for a value: nothing, it is there (`held`), or the
  // thread has claimed `entry`. Or first the value in `entry`, which is of `other`, another
  // incarnation of the handle, is to be closed; or one more entry is needed (nullptr).
  struct Turn {
    Held held;
    Entry* entry = nullptr;
    ContextRef other = {};
  };

  // All entries of `context` that are in `state`; of no context: none.
  struct Awaited {
    EntryState state = {};
    ContextRef context;
  };

  [[nodiscard]] bool IsOfParent() const noexcept;
  [[nodiscard]] std::unique_lock<Mutex> Lock() const;

  // None of these is called with the lock, and none has it while it calls something else.
  // Nothing if the value is being made, by this thread or by one that waits for it.
  [[nodiscard]] std::optional<Turn> TakeTurn(const ContextRef& context);
  [[nodiscard]] std::pair<ContextRef, bool> KeptIn(const Entry& entry);
  bool CloseDead(Entry* entry, const ContextRef& context);
  [[nodiscard]] bool AddEntry();
  void EndDropped(const ContextRef& context) noexcept;
  void End(Entry* entry) noexcept;
  void GiveUp(void* value) const noexcept;
  [[nodiscard]] bool Finish(Entry* entry, EntryState state) noexcept;

  // These are.
  template <typename Predicate>
  [[nodiscard]] Entry* FindEntry(Predicate is_wanted) const noexcept;
  [[nodiscard]] bool Has(const Awaited& entries) const noexcept;
  bool WaitWhile(const Awaited& entries, std::unique_lock<Mutex>* lock);
  [[nodiscard]] bool WaitsForThisThread(const Awaited& entries) const noexcept;
  void SetAwaited(const Awaited& entries) noexcept;

  const Type type_;
  Atomic<Entry*> head_{nullptr};
  // Where values were. Contexts that are made at different times have ids that differ by anything,
  // so two of them often have one hash.
  Atomic<Entry*> hints_[kHints][kOfAHash] = {};
  mutable Mutex mutex_;  // see Lock()
  // An entry is no longer being made, or ended. Not destroyed in a child of a fork.
  union {
    ConditionVariable changed_;
  };
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_PER_CONTEXT_TABLE_H_
