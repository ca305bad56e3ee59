// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/channel_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace cuguest::audit {
namespace {

constexpr std::size_t kBytes = sizeof(ChannelHeader) + kChannelSlots * sizeof(ChannelSlot);
constexpr int kMostPrograms = 10000;  // of one process id

// As /proc/PID/stat has it.
std::uint64_t StartTime() {
  char line[1024] = {};
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = read(file, line, sizeof(line) - 1);
  close(file);
  const char* rest = size > 0 ? std::strrchr(line, ')') : nullptr;
  if (rest == nullptr) return 0;
  for (int field = 2; field < 22 && rest != nullptr; ++field) rest = std::strchr(rest + 1, ' ');
  return rest != nullptr ? std::strtoull(rest + 1, nullptr, 10) : 0;
}

// The file under a name that no reader looks for, and its mapping.
ChannelHeader* MakeFile(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  void* mapped = MAP_FAILED;
  // Not ftruncate: on a full disk a write to the mapping would end the process.
  if (posix_fallocate(file, 0, static_cast<off_t>(kBytes)) == 0) {
    mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return mapped != MAP_FAILED ? static_cast<ChannelHeader*>(mapped) : nullptr;
}

// Under the first name that is free.
bool Publish(const char* directory, const char* hidden) {
  char path[4096];
  for (int number = 0; number < kMostPrograms; ++number) {
    std::snprintf(path, sizeof(path), "%s/%d.%d", directory, getpid(), number);
    if (link(hidden, path) == 0) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

void Fill(ChannelHeader* header, bool forked) {
  header->slots = kChannelSlots;
  header->pid = getpid();
  header->parent = getppid();
  header->forked = forked ? 1 : 0;
  header->start_time = StartTime();
  header->start_ns = MonotonicNs();
  const ssize_t size = readlink("/proc/self/exe", header->program, sizeof(header->program) - 1);
  header->program[std::max<ssize_t>(size, 0)] = '\0';
  header->magic.store(kChannelMagic, std::memory_order_release);
}

// The reader may be past `end` by now, if others have written since: then the ticket is taken anew.
bool HasRoom(std::uint64_t end, std::uint64_t tail) { return end <= tail + kChannelSlots; }

constexpr long kShortestPauseNs = 50'000;
constexpr long kLongestPauseNs = 5'000'000;

// Not nanosleep(), at which a guest may cancel the thread.
void Pause(long nanoseconds) {
  const timespec time = {0, nanoseconds};
  syscall(SYS_nanosleep, &time, nullptr);
}

}  // namespace

std::uint64_t MonotonicNs() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

bool ChannelWriter::Open(const char* directory, bool forked) {
  char hidden[4096];
  const int size = std::snprintf(hidden, sizeof(hidden), "%s/.%d", directory, getpid());
  if (size < 0 || static_cast<std::size_t>(size) >= sizeof(hidden) - 16) return false;
  unlink(hidden);  // of one with our process id that ended in here
  ChannelHeader* header = MakeFile(hidden);
  if (header != nullptr) Fill(header, forked);
  const bool is_there = header != nullptr && Publish(directory, hidden);
  unlink(hidden);
  if (!is_there) return false;
  slots_ = reinterpret_cast<ChannelSlot*>(reinterpret_cast<char*>(header) + sizeof(ChannelHeader));
  known_tail_.store(0);
  stalled_at_.store(~std::uint64_t{0});
  header_.store(header, std::memory_order_release);
  return true;
}

void ChannelWriter::Suspend() {
  ChannelHeader* header = header_.exchange(nullptr, std::memory_order_acq_rel);
  if (header != nullptr) paused_ = header;
}

void ChannelWriter::Resume() {
  if (paused_ != nullptr) header_.store(std::exchange(paused_, nullptr), std::memory_order_release);
}

bool ChannelWriter::IsStalled() const {
  const ChannelHeader* header = header_.load(std::memory_order_acquire);
  return header != nullptr && stalled_at_.load(std::memory_order_relaxed) ==
                                  header->tail.load(std::memory_order_relaxed);
}

void ChannelWriter::NoteLost() {
  ChannelHeader* header = header_.load(std::memory_order_acquire);
  if (header != nullptr) header->lost.fetch_add(1, std::memory_order_relaxed);
}

bool ChannelWriter::WriteEvent(const EventRecord& event) {
  ChannelHeader* header = header_.load(std::memory_order_acquire);
  std::uint64_t ticket = 0;
  if (header == nullptr || !Reserve(header, 1, &ticket)) return false;
  ChannelSlot* slot = SlotOf(ticket);
  slot->kind = RecordKind::kEvent;
  slot->slots = 1;
  slot->size = sizeof(event);
  std::memcpy(slot->body, &event, sizeof(event));
  slot->sequence.store(ticket + 1, std::memory_order_release);
  return true;
}

bool ChannelWriter::Write(RecordKind kind, const void* head, std::size_t head_size,
                          const void* body, std::size_t body_size) {
  const std::size_t size = head_size + body_size;
  const std::size_t count = (size + kSlotBody - 1) / kSlotBody;
  ChannelHeader* header = header_.load(std::memory_order_acquire);
  std::uint64_t ticket = 0;
  if (header == nullptr || count > kMaxSlotsOfRecord) return false;
  if (!Reserve(header, count, &ticket)) return false;
  for (std::size_t i = count; i-- > 0;) {
    ChannelSlot* slot = SlotOf(ticket + i);
    slot->kind = i == 0 ? kind : RecordKind::kContinuation;
    slot->slots = static_cast<std::uint16_t>(count);
    slot->size = static_cast<std::uint32_t>(size);
    for (std::size_t at = i * kSlotBody; at < std::min(size, (i + 1) * kSlotBody);) {
      const bool in_head = at < head_size;
      const std::size_t end = std::min((i + 1) * kSlotBody, in_head ? head_size : size);
      const auto* from = static_cast<const std::uint8_t*>(in_head ? head : body);
      std::memcpy(slot->body + at % kSlotBody, from + (in_head ? at : at - head_size), end - at);
      at = end;
    }
    slot->sequence.store(ticket + i + 1, std::memory_order_release);
  }
  return true;
}

bool ChannelWriter::WriteText(RecordKind kind, std::uint32_t number, const char* text,
                              std::size_t size) {
  const TextRecord record = {number, 0};
  return Write(kind, &record, sizeof(record), text, size);
}

bool ChannelWriter::WriteNote(RecordKind kind, const char* text) {
  return WriteText(kind, 0, text, std::strlen(text));
}

void ChannelWriter::NoteExit(std::uint64_t time_ns) {
  ChannelHeader* header = header_.load(std::memory_order_acquire);
  std::uint64_t none = 0;
  if (header != nullptr) header->exit_ns.compare_exchange_strong(none, time_ns);
}

bool ChannelWriter::Reserve(ChannelHeader* header, std::uint64_t count, std::uint64_t* ticket) {
  std::uint64_t head = header->head.load(std::memory_order_relaxed);
  do {
    const std::uint64_t end = head + count;
    if (!HasRoom(end, known_tail_.load(std::memory_order_relaxed)) && !WaitForRoom(header, end)) {
      header->lost.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
  } while (!header->head.compare_exchange_weak(head, head + count, std::memory_order_relaxed));
  *ticket = head;
  return true;
}

bool ChannelWriter::WaitForRoom(ChannelHeader* header, std::uint64_t end) {
  const std::uint64_t started = MonotonicNs();
  // Longer and longer: many waiting threads must leave the reader its share of the processors.
  for (long pause = kShortestPauseNs;; pause = std::min(2 * pause, kLongestPauseNs)) {
    const std::uint64_t tail = header->tail.load(std::memory_order_acquire);
    known_tail_.store(tail, std::memory_order_release);
    if (HasRoom(end, tail)) return true;
    if (tail == stalled_at_.load(std::memory_order_relaxed)) return false;
    if (MonotonicNs() - started > kChannelPatienceNs) {
      stalled_at_.store(tail, std::memory_order_relaxed);
      return false;
    }
    Pause(pause);
  }
}

}  // namespace cuguest::audit
