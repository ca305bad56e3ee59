// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/channel_writer.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "audit/collect/clock.h"

namespace cuguest::audit {
namespace {

// Between what is done here and the guest, which may cancel its thread and look at errno.
class Unnoticed {
 public:
  Unnoticed() : errno_(errno) { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_); }
  ~Unnoticed() {
    pthread_setcancelstate(state_, nullptr);
    errno = errno_;
  }
  Unnoticed(const Unnoticed&) = delete;
  Unnoticed& operator=(const Unnoticed&) = delete;

 private:
  const int errno_;
  int state_ = PTHREAD_CANCEL_ENABLE;
};

// A connection to the reader, or -1 and errno.
int Connect(const char* address, int flags) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::size_t length = std::strcspn(address, ":");
  if (length >= sizeof(name.sun_path) - 1) return -1;
  std::memcpy(name.sun_path + 1, address, length);
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
  if (connection < 0) return -1;
  const timeval patience = {kChannelPatienceNs / 1'000'000'000, 0};
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (connect(connection, reinterpret_cast<sockaddr*>(&name), size) == 0) return connection;
  const int error = errno;
  close(connection);
  errno = error;
  return -1;
}

// The descriptor that the reader sends, or -1.
int Receive(int connection) {
  char byte = 0;
  iovec text = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const std::uint64_t end = MonotonicNs() + kChannelPatienceNs;
  ssize_t size = 0;
  do {  // each time for the whole patience
    size = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR && MonotonicNs() < end);
  const cmsghdr* header = size == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  int memory = -1;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&memory, CMSG_DATA(header), sizeof(memory));
  }
  return memory;
}

int AskForMemory(const char* address) {
  const char* key = std::strchr(address, ':');
  const int connection = key != nullptr ? Connect(address, 0) : -1;
  if (connection < 0) return -1;
  const auto length = static_cast<ssize_t>(std::strlen(key + 1));
  const bool has_asked =
      send(connection, key + 1, static_cast<std::size_t>(length), MSG_NOSIGNAL) == length;
  const int memory = has_asked ? Receive(connection) : -1;
  close(connection);
  return memory;
}

// Whether its process has ended: one that is stopped or busy lets connections wait.
bool IsGone(const char* address) {
  const int connection = Connect(address, SOCK_NONBLOCK);
  if (connection < 0) return errno == ECONNREFUSED;
  close(connection);
  return false;
}

void Fill(ChannelHeader* header, bool forked) {
  header->parent = getppid();
  header->forked = forked ? 1 : 0;
  header->start_ns = MonotonicNs();
  const ssize_t size = readlink("/proc/self/exe", header->program, sizeof(header->program) - 1);
  header->program[std::max<ssize_t>(size, 0)] = '\0';
  header->magic.store(kChannelMagic, std::memory_order_release);
}

constexpr std::uint64_t kFirstLookNs = 10'000'000;  // whether the reader is there
constexpr std::uint64_t kNextLookNs = 100'000'000;
constexpr long kShortestPauseNs = 50'000;
constexpr long kLongestPauseNs = 5'000'000;

constexpr std::uint64_t kFetchedAhead = 2;

// A slot that is written soon and that the reader's processor has. It is to be this one's alone:
// were it shared, as __builtin_prefetch() leaves it for a processor of any age, the stores would
// wait for the other one, and the next locked instruction for the stores.
void Fetch(const ChannelSlot* slot) {
  const auto* lines = reinterpret_cast<const char*>(slot);
  for (std::size_t at = 0; at < sizeof(*slot); at += 64) {
#ifdef __x86_64__  // all of which have the instruction, the oldest as one that does nothing
    asm volatile("prefetchw %0" : : "m"(lines[at]));
#else
    __builtin_prefetch(lines + at, /*rw=*/1);
#endif
  }
}

// Not nanosleep(), at which a guest may cancel the thread.
void Pause(long nanoseconds) {
  const timespec time = {0, nanoseconds};
  syscall(SYS_nanosleep, &time, nullptr);
}

}  // namespace

bool ChannelWriter::Open(const char* address, bool forked) {
  const Unnoticed unnoticed;
  address_ = address;
  const int memory = AskForMemory(address);
  if (memory < 0) return false;
  const bool is_there = Use(memory, forked);
  close(memory);
  return is_there;
}

bool ChannelWriter::Use(int memory, bool forked) {
  std::uint32_t slots = 0;
  struct stat status = {};
  const bool is_channel = pread(memory, &slots, sizeof(slots), offsetof(ChannelHeader, slots)) ==
                              static_cast<ssize_t>(sizeof(slots)) &&
                          slots > kMaxSlotsOfRecord && (slots & (slots - 1)) == 0 &&
                          fstat(memory, &status) == 0 &&
                          static_cast<std::size_t>(status.st_size) >= ChannelBytes(slots);
  if (!is_channel) return false;
  void* mapped = mmap(nullptr, ChannelBytes(slots), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) return false;
  auto* header = static_cast<ChannelHeader*>(mapped);
  Fill(header, forked);
  slots_ = reinterpret_cast<ChannelSlot*>(reinterpret_cast<char*>(header) + sizeof(ChannelHeader));
  count_ = slots;
  known_tail_.store(0);
  stalled_at_.store(kNeverStalled);
  header_.store(header, std::memory_order_release);
  return true;
}

void ChannelWriter::Forget() {
  ChannelHeader* header = header_.exchange(nullptr, std::memory_order_acq_rel);
  if (header != nullptr) forgotten_ = header;
}

void ChannelWriter::Unmap() {
  if (forgotten_ != nullptr)
    munmap(std::exchange(forgotten_, nullptr), ChannelBytes(static_cast<std::uint32_t>(count_)));
}

void ChannelWriter::Suspend() {
  ChannelHeader* header = header_.exchange(nullptr, std::memory_order_acq_rel);
  if (header != nullptr) paused_ = header;
}

void ChannelWriter::Resume() {
  if (paused_ != nullptr) header_.store(std::exchange(paused_, nullptr), std::memory_order_release);
}

bool ChannelWriter::IsStalled() const {
  // `tail` is on the reader's processor: to be looked at only if there was something.
  const std::uint64_t stalled_at = stalled_at_.load(std::memory_order_relaxed);
  if (stalled_at == kNeverStalled) return false;
  const ChannelHeader* header = header_.load(std::memory_order_acquire);
  return header != nullptr && stalled_at == header->tail.load(std::memory_order_relaxed);
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
  Fetch(SlotOf(ticket + kFetchedAhead));
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
  const Unnoticed unnoticed;
  const std::uint64_t started = MonotonicNs();
  std::uint64_t next_look = kFirstLookNs;
  // Longer and longer: many waiting threads must leave the reader its share of the processors.
  for (long pause = kShortestPauseNs;; pause = std::min(2 * pause, kLongestPauseNs)) {
    const std::uint64_t tail = header->tail.load(std::memory_order_acquire);
    known_tail_.store(tail, std::memory_order_release);
    if (HasRoom(end, tail)) return true;
    if (tail == stalled_at_.load(std::memory_order_relaxed)) return false;
    const std::uint64_t waited = MonotonicNs() - started;
    const bool looks = waited > next_look && address_ != nullptr;
    if (looks) next_look = waited + kNextLookNs;
    if (waited > kChannelPatienceNs || (looks && IsGone(address_))) {
      stalled_at_.store(tail, std::memory_order_relaxed);
      return false;
    }
    Pause(pause);
  }
}

}  // namespace cuguest::audit
