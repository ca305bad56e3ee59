// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/channel_reader.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "audit/channel.h"

namespace cuguest::audit {
namespace {

constexpr std::uint64_t kStuckNs = 1'000'000'000;
constexpr std::size_t kMostAtOnce = 10000;     // then it is another process's turn
constexpr std::uint32_t kMaxNumber = 1 << 16;  // of names and objects: more is a broken record

std::uint64_t Now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

template <typename Record>
bool Take(const std::vector<std::uint8_t>& body, std::size_t at, Record* record) {
  if (body.size() < at + sizeof(Record)) return false;
  std::memcpy(record, body.data() + at, sizeof(Record));
  return true;
}

}  // namespace

// The memory of one, and what its records have defined so far.
class ChannelReader::Channel {
 public:
  // Null if it cannot be mapped.
  static std::unique_ptr<Channel> Open(int memory, int pid, const std::string& program) {
    struct stat status = {};
    void* mapped = MAP_FAILED;
    const auto bytes = fstat(memory, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
    if (bytes > sizeof(ChannelHeader)) {
      mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    }
    if (mapped == MAP_FAILED) return nullptr;
    std::unique_ptr<Channel> channel(new Channel(pid, program, mapped, bytes));
    return channel->count_ > 0 && bytes >= ChannelBytes(channel->count_) ? std::move(channel)
                                                                         : nullptr;
  }

  ~Channel() { munmap(header_, bytes_); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Of which the process has written the header, or never will.
  bool HasBegun() {
    return process_ != nullptr || header_->magic.load(std::memory_order_acquire) == kChannelMagic ||
           !running_;
  }
  void SetProcess(ChannelProcess* process) { process_ = process; }
  ChannelProcess* process() const { return process_; }
  int pid() const { return pid_; }
  void Freeze() { end_ = header_->head.load(std::memory_order_acquire); }

  ChannelProcess Describe() const {
    ChannelProcess process;
    process.pid = pid_;
    process.started = header_->magic.load(std::memory_order_acquire) == kChannelMagic;
    process.parent = header_->parent;
    process.forked = header_->forked != 0;
    process.start_ns = header_->start_ns;
    process.program =
        !process.started
            ? program_
            : std::string(header_->program, strnlen(header_->program, sizeof(header_->program)));
    process.objects.emplace_back();
    return process;
  }

  // The number of events passed on. Sets the process's `ended` with the last.
  std::size_t Poll(const OnEvent& on_event) {
    std::size_t count = Drain(on_event);
    if (count == 0 && !running_) {
      is_over_ = true;
      count = Drain(on_event);
      if (count == 0) count = End(on_event);
    }
    process_->lost = header_->lost.load(std::memory_order_relaxed);
    const std::uint64_t head = header_->head.load(std::memory_order_acquire);
    process_->unread = head > ticket_ ? head - ticket_ : 0;
    return count;
  }

 private:
  // A process that may end. A zombie has ended.
  class Running {
   public:
    explicit Running(int pid)
        : pid_(pid), file_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {
      // Before Linux 5.3, or in a sandbox: a zombie then counts as running.
      has_none_ = file_ < 0 && errno != ESRCH;
    }
    ~Running() {
      if (file_ >= 0) close(file_);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    explicit operator bool() const {
      if (has_none_) return kill(pid_, 0) == 0 || errno == EPERM;
      pollfd ended = {file_, POLLIN, 0};
      return file_ >= 0 && poll(&ended, 1, 0) == 0;
    }

   private:
    const int pid_;
    const int file_;
    bool has_none_;
  };

  struct ThreadChain {
    std::uint16_t generation = 0;
    std::shared_ptr<const Chain> chain;
  };

  Channel(int pid, const std::string& program, void* mapped, std::size_t bytes)
      : pid_(pid),
        program_(program),
        running_(pid),
        bytes_(bytes),
        header_(static_cast<ChannelHeader*>(mapped)),
        slots_(reinterpret_cast<ChannelSlot*>(static_cast<char*>(mapped) + sizeof(ChannelHeader))),
        no_chain_(std::make_shared<const Chain>()),
        count_(header_->slots) {}

  // No further than writers are now: to read what one has just written takes its cache lines away.
  std::size_t Drain(const OnEvent& on_event) {
    const std::uint64_t head = std::min(end_, header_->head.load(std::memory_order_acquire));
    std::size_t events = 0;
    while (events < kMostAtOnce && ticket_ < head && HasNext()) {
      const ChannelSlot& first = slots_[ticket_ % count_];
      const std::uint64_t end = ticket_ + std::max<std::uint64_t>(first.slots, 1);
      if (Gather(first) && Dispatch(first.kind, on_event, &events)) {
        ticket_ = end;
      } else {
        ++process_->broken;
        ++ticket_;
      }
      if (events % 64 == 0) Publish();
    }
    Publish();
    return events;
  }

  void Publish() { header_->tail.store(ticket_, std::memory_order_release); }

  // Moves over what will not be finished.
  bool HasNext() {
    while (slots_[ticket_ % count_].sequence.load(std::memory_order_acquire) != ticket_ + 1) {
      const std::uint64_t head = header_->head.load(std::memory_order_acquire);
      if (head <= ticket_) return false;
      if (head - ticket_ > count_) return Skip(head);
      if (!is_over_ && !IsStuck()) return false;
      if (broken_at_ != ticket_) ++process_->broken;
      broken_at_ = ++ticket_;
    }
    return true;
  }

  // To a `head` that no writer comes to: the process has overwritten it.
  bool Skip(std::uint64_t head) {
    ++process_->broken;
    ticket_ = head;
    return false;
  }

  bool IsStuck() {
    if (stuck_at_ != ticket_) {
      stuck_at_ = ticket_;
      stuck_since_ = Now();
    }
    return Now() - stuck_since_ > kStuckNs;
  }

  bool Gather(const ChannelSlot& first) {
    body_.clear();
    if (first.kind == RecordKind::kContinuation) return false;
    if (first.slots == 0 || first.slots > kMaxSlotsOfRecord) return false;
    if (first.size > first.slots * kSlotBody) return false;
    for (std::uint64_t i = 0; i < first.slots; ++i) {
      const ChannelSlot& slot = slots_[(ticket_ + i) % count_];
      if (slot.sequence.load(std::memory_order_acquire) != ticket_ + i + 1) return false;
      body_.insert(body_.end(), slot.body, slot.body + kSlotBody);
    }
    body_.resize(first.size);
    return true;
  }

  bool Dispatch(RecordKind kind, const OnEvent& on_event, std::size_t* events) {
    switch (kind) {
      case RecordKind::kEvent:
        *events += 1;
        return TakeEvent(on_event);
      case RecordKind::kChain:
        return TakeChain();
      case RecordKind::kObject:
      case RecordKind::kName:
      case RecordKind::kSource:
      case RecordKind::kNote:
      case RecordKind::kLimit:
        return TakeText(kind);
      case RecordKind::kThread:
        return TakeThread();
      case RecordKind::kContinuation:
        break;
    }
    return false;
  }

  bool TakeText(RecordKind kind) {
    TextRecord record = {};
    if (!Take(body_, 0, &record) || record.number >= kMaxNumber) return false;
    const std::string text(body_.begin() + sizeof(record), body_.end());
    if (kind == RecordKind::kSource) process_->source = text;
    if (kind == RecordKind::kNote) process_->notes.push_back(text);
    if (kind == RecordKind::kLimit) process_->limits.push_back(text);
    if (kind == RecordKind::kName) Put(&names_, record.number, text);
    if (kind == RecordKind::kObject) {
      std::string_view rest = text;
      Object object;
      std::string package;
      for (std::string* part :
           {&object.path, &object.build_id, &object.soname, &package, &object.function}) {
        const std::size_t zero = std::min(rest.find('\0'), rest.size());
        *part = rest.substr(0, zero);
        rest.remove_prefix(std::min(zero + 1, rest.size()));
      }
      object.package =
          std::min<std::size_t>(std::strtoul(package.c_str(), nullptr, 10), object.path.size());
      Put(&process_->objects, record.number, std::move(object));
    }
    return true;
  }

  bool TakeThread() {
    ThreadRecord record = {};
    if (!Take(body_, 0, &record)) return false;
    os_threads_[record.thread] = std::make_shared<const OsThread>(
        OsThread{record.id, std::string(body_.begin() + sizeof(record), body_.end())});
    return true;
  }

  template <typename Value, typename Text>
  static void Put(std::vector<Value>* values, std::uint32_t number, Text value) {
    if (values->size() <= number) values->resize(number + 1);
    (*values)[number] = std::move(value);
  }

  bool TakeChain() {
    ChainRecord record = {};
    if (!Take(body_, 0, &record) || (body_.size() - sizeof(record)) % sizeof(FrameRecord) != 0) {
      return false;
    }
    Chain chain;
    FrameRecord frame = {};
    for (std::size_t at = sizeof(record); Take(body_, at, &frame); at += sizeof(frame)) {
      if (frame.object >= kMaxNumber) return false;
      if (frame.object >= process_->objects.size()) process_->objects.resize(frame.object + 1);
      chain.push_back(Frame{frame.object, frame.offset, frame.address});
    }
    Put(&chains_[record.thread], record.chain,
        ThreadChain{record.generation, std::make_shared<const Chain>(std::move(chain))});
    return true;
  }

  bool TakeEvent(const OnEvent& on_event) {
    EventRecord record = {};
    if (!Take(body_, 0, &record)) return false;
    if (record.kind > static_cast<std::uint8_t>(EventKind::kStale)) return false;
    TellExit(record.time_ns, on_event);
    Event event;
    event.kind = static_cast<EventKind>(record.kind);
    event.time_ns = SinceStart(record.time_ns);
    event.thread = record.thread;
    if (record.name < names_.size()) event.name = names_[record.name];
    event.result = record.result;
    event.before = record.before;
    event.after = record.after;
    event.context = record.context;
    event.device = record.device;
    event.primary = record.primary != 0;
    event.runtime = record.runtime <= 2 ? static_cast<Runtime>(record.runtime) : Runtime::kNone;
    event.setting = record.setting;
    event.value = record.value;
    event.old_value = record.old_value;
    event.chain = FindChain(record);
    const auto os_thread = os_threads_.find(record.thread);
    if (os_thread != os_threads_.end()) event.os_thread = os_thread->second;
    on_event(*process_, event);
    if (event.kind == EventKind::kThreadEnd) {
      chains_.erase(record.thread);
      os_threads_.erase(record.thread);
    }
    return true;
  }

  std::shared_ptr<const Chain> FindChain(const EventRecord& record) {
    const std::vector<ThreadChain>& chains = chains_[record.thread];
    const bool is_known = record.chain_generation != 0 && record.chain < chains.size() &&
                          chains[record.chain].generation == record.chain_generation;
    return is_known ? chains[record.chain].chain : no_chain_;
  }

  std::uint64_t SinceStart(std::uint64_t time_ns) const {
    return time_ns > header_->start_ns ? time_ns - header_->start_ns : 0;
  }

  std::size_t End(const OnEvent& on_event) {
    process_->ended = true;
    return TellExit(~std::uint64_t{0}, on_event);
  }

  // Before what happened at `time_ns`, if exit() had been called by then; once.
  std::size_t TellExit(std::uint64_t time_ns, const OnEvent& on_event) {
    const std::uint64_t exit_ns = header_->exit_ns.load(std::memory_order_acquire);
    if (has_told_exit_ || exit_ns == 0 || exit_ns > time_ns) return 0;
    has_told_exit_ = true;
    Event event;
    event.kind = EventKind::kProcessEnd;
    event.time_ns = SinceStart(exit_ns);
    event.chain = no_chain_;
    on_event(*process_, event);
    return 1;
  }

  const int pid_;
  const std::string program_;
  const Running running_;
  const std::size_t bytes_;
  ChannelHeader* const header_;
  const ChannelSlot* const slots_;
  const std::shared_ptr<const Chain> no_chain_;
  const std::uint32_t count_;
  std::uint64_t ticket_ = 0;               // the first that is not read
  std::uint64_t end_ = ~std::uint64_t{0};  // tickets from here on are not read
  bool is_over_ = false;
  bool has_told_exit_ = false;
  std::uint64_t broken_at_ = ~std::uint64_t{0};
  std::uint64_t stuck_at_ = ~std::uint64_t{0};
  std::uint64_t stuck_since_ = 0;
  std::vector<std::uint8_t> body_;
  std::vector<std::string> names_;
  std::unordered_map<std::uint32_t, std::vector<ThreadChain>> chains_;
  std::unordered_map<std::uint32_t, std::shared_ptr<const OsThread>> os_threads_;
  ChannelProcess* process_ = nullptr;
};

ChannelReader::ChannelReader() = default;

ChannelReader::~ChannelReader() = default;

bool ChannelReader::Add(int memory, int pid, const std::string& program) {
  std::unique_ptr<Channel> channel = Channel::Open(memory, pid, program);
  if (channel == nullptr) return false;
  channels_.push_back(std::move(channel));
  return true;
}

std::size_t ChannelReader::Poll(const OnEvent& on_event) {
  std::size_t count = 0;
  for (std::unique_ptr<Channel>& channel : channels_) {
    if (!channel->HasBegun()) continue;
    if (channel->process() == nullptr) {
      processes_.push_back(std::make_unique<ChannelProcess>(channel->Describe()));
      channel->SetProcess(processes_.back().get());
    }
    count += channel->Poll(on_event);
    if (channel->process()->ended) channel = nullptr;
  }
  channels_.erase(std::remove(channels_.begin(), channels_.end(), nullptr), channels_.end());
  return count;
}

void ChannelReader::Freeze() {
  for (const auto& channel : channels_) channel->Freeze();
}

std::vector<int> ChannelReader::Unbegun() const {
  std::vector<int> pids;
  for (const auto& channel : channels_) {
    if (channel->process() == nullptr) pids.push_back(channel->pid());
  }
  return pids;
}

}  // namespace cuguest::audit
