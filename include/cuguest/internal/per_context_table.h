// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
//
// Not for embedders. What PerContext<T> (per_context.h) is for every T, and cuguest_per_context
// (c.h): the table of contexts and their values, whose type it knows by size, alignment and a
// function. lib/cache/per_context_table.cc says how it works.

#ifndef CUGUEST_INTERNAL_PER_CONTEXT_TABLE_H_
#define CUGUEST_INTERNAL_PER_CONTEXT_TABLE_H_

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "cuguest/context_ref.h"
#include "cuguest/error.h"
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
    // Ends a value: destroys it with its context current, or gives up what it has there and
    // destroys the rest.
    void (*end)(const Type& type, void* value, bool is_inside);
  };

  // A value that is not destroyed before Unpin(stripe).
  struct Held {
    CUGUEST_HIDE Held() = default;
    CUGUEST_HIDE Held(void* at, PinStripe* counted_in) noexcept : value(at), stripe(counted_in) {}

    void* value = nullptr;
    PinStripe* stripe = nullptr;
  };
  static void Unpin(PinStripe* stripe) noexcept;

  // A thread in the context whose value it asks for: it has that, or the right, and the duty, to
  // make it. Without Publish() the right is given back, so that the next thread may try: also when
  // making throws.
  class CUGUEST_API Making {
   public:
    // Pins the value of `context`, waiting for it if it is being made. `held` stays empty if nobody
    // has made it, and then it is this one's to make, unless there is an error(): also that of
    // `context`, or `entered`, what the guard gave that is inside it until the value is published.
    Making(PerContextTable* table, const ContextRef& context, CUresult entered) noexcept;
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;
    CUGUEST_HIDE ~Making() {
      if (entry_ != nullptr) GiveBack();
    }

    [[nodiscard]] CUGUEST_HIDE const Error& error() const noexcept { return error_; }
    [[nodiscard]] CUGUEST_HIDE const Held& held() const noexcept { return held_; }
    // Where the value is to be constructed.
    [[nodiscard]] void* storage() const noexcept;
    // The value is there. It comes pinned; or, in a child that was forked since, it is given up,
    // and `held` stays empty.
    const Error& Publish() noexcept;

   private:
    Error TakeOrPin(const ContextRef& context) noexcept;
    void GiveBack() noexcept;

    PerContextTable* table_;
    Entry* entry_ = nullptr;
    Held held_;
    Error error_;
  };

  // `type` outlives the table.
  CUGUEST_HIDE explicit PerContextTable(const Type& type) noexcept : type_(type) {}
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

  [[nodiscard, gnu::noinline]] Held FindSpecially(const ContextRef& context,
                                                  Atomic<Entry*>* hints) noexcept;
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
  struct Changes;
  class Locked;
  [[nodiscard]] Locked Lock() const noexcept;

  // None of these is called with the lock, and none has it while it calls something else.
  // Nothing if the value is being made, by this thread or by one that waits for it.
  [[nodiscard]] std::optional<Turn> TakeTurn(const ContextRef& context);
  [[nodiscard]] std::pair<ContextRef, bool> KeptIn(const Entry& entry);
  bool CloseDead(Entry* entry, const ContextRef& context);
  [[nodiscard]] bool AddEntry();
  void EndDropped(const ContextRef& context) noexcept;
  [[nodiscard]] bool End(Entry* entry) noexcept;
  void GiveUp(void* value) const noexcept;
  [[nodiscard]] bool Finish(Entry* entry, EntryState state) noexcept;

  // These are.
  template <typename Predicate>
  [[nodiscard]] Entry* FindEntry(Predicate is_wanted) const noexcept;
  [[nodiscard]] bool Has(const Awaited& entries) const noexcept;
  bool WaitWhile(const Awaited& entries, const Locked& lock);
  [[nodiscard]] bool WaitsForThisThread(const Awaited& entries) const noexcept;
  void SetAwaited(const Awaited& entries) noexcept;

  const Type& type_;
  Atomic<Entry*> head_{nullptr};
  // Where values were. Contexts that are made at different times have ids that differ by anything,
  // so two of them often have one hash.
  Atomic<Entry*> hints_[kHints][kOfAHash] = {};
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_PER_CONTEXT_TABLE_H_
