// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/channel_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
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

// Whether the process of that pid that was started then still runs. A zombie does not.
bool IsRunning(int pid, std::uint64_t start_time) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  char line[1024] = {};
  const bool is_read = std::fgets(line, sizeof(line), file) != nullptr;
  std::fclose(file);
  const char* rest = std::strrchr(line, ')');  // the name before it may hold anything
  if (!is_read || rest == nullptr) return false;
  char state = 0;
  unsigned long long started = 0;
  const int count = std::sscanf(rest,
                                ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                                "%*d %*d %*d %*d %llu",
                                &state, &started);
  return count == 2 && state != 'Z' && state != 'X' && started == start_time;
}

// "4711.0".
bool IsChannelName(const char* name) {
  int length = 0;
  return std::sscanf(name, "%*u.%*u%n", &length) == 0 && length > 0 && name[length] == '\0';
}

template <typename Record>
bool Take(const std::vector<std::uint8_t>& body, std::size_t at, Record* record) {
  if (body.size() < at + sizeof(Record)) return false;
  std::memcpy(record, body.data() + at, sizeof(Record));
  return true;
}

}  // namespace

// One file, and what its records have defined so far.
class ChannelReader::Channel {
 public:
  // Null where there is no channel yet, or no complete one.
  static std::unique_ptr<Channel> Open(const std::string& path, const std::string& name) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return nullptr;
    struct stat status = {};
    void* mapped = MAP_FAILED;
    const auto bytes = fstat(file, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
    if (bytes > sizeof(ChannelHeader)) {
      mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    close(file);
    if (mapped == MAP_FAILED) return nullptr;
    std::unique_ptr<Channel> channel(new Channel(path, name, mapped, bytes));
    return channel->IsComplete() ? std::move(channel) : nullptr;
  }

  ~Channel() { munmap(header_, bytes_); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const std::string& name() const { return name_; }

  ChannelProcess Describe() const {
    ChannelProcess process;
    process.pid = header_->pid;
    process.parent = header_->parent;
    process.forked = header_->forked != 0;
    process.start_ns = header_->start_ns;
    process.program.assign(header_->program, strnlen(header_->program, sizeof(header_->program)));
    process.objects.emplace_back();
    return process;
  }

  // The number of events passed on. Sets `process->ended` with the last.
  std::size_t Poll(ChannelProcess* process, const OnEvent& on_event) {
    process_ = process;
    std::size_t count = Drain(on_event);
    if (count == 0 && !IsRunning(header_->pid, header_->start_time)) {
      is_over_ = true;
      count = Drain(on_event);
      if (count == 0) count = End(on_event);
    }
    process->lost = header_->lost.load(std::memory_order_relaxed);
    const std::uint64_t head = header_->head.load(std::memory_order_acquire);
    process->unread = head > ticket_ ? head - ticket_ : 0;
    return count;
  }

 private:
  struct ThreadChain {
    std::uint16_t generation = 0;
    std::shared_ptr<const Chain> chain;
  };

  Channel(std::string path, std::string name, void* mapped, std::size_t bytes)
      : path_(std::move(path)),
        name_(std::move(name)),
        bytes_(bytes),
        header_(static_cast<ChannelHeader*>(mapped)),
        slots_(reinterpret_cast<ChannelSlot*>(static_cast<char*>(mapped) + sizeof(ChannelHeader))),
        no_chain_(std::make_shared<const Chain>()) {}

  bool IsComplete() {
    if (header_->magic.load(std::memory_order_acquire) != kChannelMagic) return false;
    count_ = header_->slots;
    return count_ > 0 && bytes_ >= sizeof(ChannelHeader) + count_ * sizeof(ChannelSlot);
  }

  // No further than writers are now: to read what one has just written takes its cache lines away.
  std::size_t Drain(const OnEvent& on_event) {
    const std::uint64_t head = header_->head.load(std::memory_order_acquire);
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
        return TakeText(kind);
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
    if (kind == RecordKind::kName) Put(&names_, record.number, text);
    if (kind == RecordKind::kObject) {
      std::string_view rest = text;
      Object object;
      for (std::string* part : {&object.path, &object.build_id, &object.soname}) {
        const std::size_t zero = std::min(rest.find('\0'), rest.size());
        *part = rest.substr(0, zero);
        rest.remove_prefix(std::min(zero + 1, rest.size()));
      }
      Put(&process_->objects, record.number, std::move(object));
    }
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
    if (record.kind > static_cast<std::uint8_t>(EventKind::kUnloaded)) return false;
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
    on_event(*process_, event);
    if (event.kind == EventKind::kThreadEnd) chains_.erase(record.thread);
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
    unlink(path_.c_str());
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

  const std::string path_;
  const std::string name_;
  const std::size_t bytes_;
  ChannelHeader* const header_;
  const ChannelSlot* const slots_;
  const std::shared_ptr<const Chain> no_chain_;
  std::uint32_t count_ = 0;
  std::uint64_t ticket_ = 0;  // the first that is not read
  bool is_over_ = false;
  bool has_told_exit_ = false;
  std::uint64_t broken_at_ = ~std::uint64_t{0};
  std::uint64_t stuck_at_ = ~std::uint64_t{0};
  std::uint64_t stuck_since_ = 0;
  std::vector<std::uint8_t> body_;
  std::vector<std::string> names_;
  std::unordered_map<std::uint32_t, std::vector<ThreadChain>> chains_;
  ChannelProcess* process_ = nullptr;
};

ChannelReader::ChannelReader(std::string directory) : directory_(std::move(directory)) {}

ChannelReader::~ChannelReader() = default;

void ChannelReader::FindChannels() {
  DIR* directory = opendir(directory_.c_str());
  if (directory == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory)) {
    if (IsChannelName(entry->d_name)) names.emplace_back(entry->d_name);
  }
  closedir(directory);
  for (const std::string& name : names) {
    const auto is_same = [&](const auto& channel) {
      return channel != nullptr && channel->name() == name;
    };
    if (std::any_of(channels_.begin(), channels_.end(), is_same)) continue;
    std::unique_ptr<Channel> channel = Channel::Open(directory_ + "/" + name, name);
    if (channel == nullptr) continue;
    processes_.push_back(std::make_unique<ChannelProcess>(channel->Describe()));
    channels_.push_back(std::move(channel));
  }
}

std::size_t ChannelReader::Poll(const OnEvent& on_event) {
  FindChannels();
  std::size_t count = 0;
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    if (channels_[i] == nullptr) continue;
    count += channels_[i]->Poll(processes_[i].get(), on_event);
    if (processes_[i]->ended) channels_[i] = nullptr;
  }
  return count;
}

bool ChannelReader::AllEnded() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const auto& process) { return process->ended; });
}

}  // namespace cuguest::audit
