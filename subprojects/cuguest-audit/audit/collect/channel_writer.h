// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The writing end of this process's channel (audit/channel.h).
//
// Threads: any; no locks. A writer waits for the reader only when the ring is full, and then not
// for longer than kChannelPatience, nor if the reader's process is gone; no more at all once it has
// waited in vain, until the reader reads again. errno stays as it is.

#ifndef CUGUEST_AUDIT_COLLECT_CHANNEL_WRITER_H_
#define CUGUEST_AUDIT_COLLECT_CHANNEL_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "audit/channel.h"

namespace cuguest::audit {

class ChannelWriter {
 public:
  constexpr ChannelWriter() = default;

  // Asks for a channel at `address`, the value of kChannelVariable, which must outlive it. False
  // where none can be had; nothing is written then.
  bool Open(const char* address, bool forked);
  // Takes the channel in `memory`, which the caller closes.
  bool Use(int memory, bool forked);

  // For a forked child: the channel is the parent's. It stays mapped until Unmap(), which tells
  // who looks at the child's memory that the child has not asked for one of its own.
  void Forget();
  // What was forgotten.
  void Unmap();

  // Until Resume() there is no channel. Of one thread at a time.
  void Suspend();
  void Resume();

  bool IsOpen() const { return header_.load(std::memory_order_acquire) != nullptr; }

  // Whether the reader has stopped reading: a record would be dropped.
  bool IsStalled() const;
  // Counts a record that was not even made.
  void NoteLost();

  // False if the record was dropped: there is no channel, or no room in it.
  bool WriteEvent(const EventRecord& event);
  // A record of `head`, then `body`. Dropped as well if it is too large.
  bool Write(RecordKind kind, const void* head, std::size_t head_size, const void* body,
             std::size_t body_size);
  bool WriteText(RecordKind kind, std::uint32_t number, const char* text, std::size_t size);
  bool WriteNote(RecordKind kind, const char* text);

  // exit() was called. The first time counts.
  void NoteExit(std::uint64_t time_ns);

 private:
  static constexpr std::uint64_t kNeverStalled = ~std::uint64_t{0};

  ChannelSlot* SlotOf(std::uint64_t ticket) const { return &slots_[ticket & (count_ - 1)]; }
  // The reader may be past `end` by now, if others have written since: then the ticket is taken
  // anew.
  bool HasRoom(std::uint64_t end, std::uint64_t tail) const { return end <= tail + count_; }
  bool Reserve(ChannelHeader* header, std::uint64_t count, std::uint64_t* ticket);
  bool WaitForRoom(ChannelHeader* header, std::uint64_t end);

  std::atomic<ChannelHeader*> header_{nullptr};
  ChannelHeader* paused_ = nullptr;
  ChannelHeader* forgotten_ = nullptr;
  ChannelSlot* slots_ = nullptr;
  std::uint64_t count_ = kChannelSlots;
  const char* address_ = nullptr;  // of the reader; null: it is in this process
  std::atomic<std::uint64_t> known_tail_{0};
  std::atomic<std::uint64_t> stalled_at_{kNeverStalled};  // a tail that was waited for in vain
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_CHANNEL_WRITER_H_
