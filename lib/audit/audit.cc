// SPDX-License-Identifier: Apache-2.0
//
// Note [The callable as a party]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The analysis knows parties by their objects, and a test has the guest in its own. So frames of
// the program's object up to CallAudited() are given another object's number before the analysis
// sees them: that of kAuditedCallable, whose names are found in the program's file. Frames
// of Audit() itself are left out.
//
// What the caller has is told by calls of its own: before the callable its contexts are popped and
// pushed once, which makes it the one who put them there and who manages contexts, and tells the
// collector which handles they have.

#include "cuguest/testing/audit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "cuguest/driver.h"
#include "lib/audit/analysis.h"
#include "lib/audit/channel.h"
#include "lib/audit/channel_reader.h"
#include "lib/audit/command/report.h"
#include "lib/audit/command/report_builder.h"
#include "lib/audit/command/suppressions.h"
#include "subprojects/cudasim/include/cudasim/stack_probe.h"

CUGUEST_BEGIN_NAMESPACE
namespace testing {
namespace {

using audit::Chain;
using audit::ChannelProcess;
using audit::ChannelReader;
using audit::Collecting;
using audit::ContextId;
using audit::Event;
using audit::EventKind;

// The channel of this process, which is kept from the first audit on.
struct Channel {
  audit::CollectFunction* collect = nullptr;
  std::unique_ptr<ChannelReader> reader;

  // Null as long as nothing was read.
  [[nodiscard]] ChannelProcess* process() const {
    for (const auto& process : reader->processes()) {
      if (process->pid == getpid()) return process.get();
    }
    return nullptr;
  }

  // Until there is nothing to read.
  void Drain(const ChannelReader::OnEvent& on_event) const {
    const auto is_unread = [this] { return process() != nullptr && process()->unread != 0; };
    while (reader->Poll(on_event) != 0 || is_unread()) std::this_thread::yield();
  }
};

absl::Status LoadCollector(Channel* channel) {
  const char* wanted = std::getenv("CUGUEST_AUDIT_LIBRARY");
  const bool is_named = wanted != nullptr && *wanted != '\0';
  void* library = dlopen(is_named ? wanted : CUGUEST_AUDIT_INSTALLED, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr && !is_named)
    library = dlopen("libcuguest-audit.so", RTLD_NOW | RTLD_LOCAL);
  void* function = library != nullptr ? dlsym(library, audit::kCollectFunction) : nullptr;
  if (function == nullptr) {
    return absl::NotFoundError(std::string("the auditor's collector cannot be loaded (") +
                               dlerror() +
                               "): set CUGUEST_AUDIT_LIBRARY to the path of libcuguest-audit.so");
  }
  channel->collect = reinterpret_cast<audit::CollectFunction*>(function);
  return absl::OkStatus();
}

// Both sides have the file open afterwards, and need the directory no more.
absl::Status OpenChannel(Channel* channel) {
  const char* temporary = std::getenv("TMPDIR");
  std::string directory = temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
  directory += "/cuguest-audit-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) {
    return absl::InternalError("the auditor cannot make a directory " + directory);
  }
  const auto result = static_cast<Collecting>(channel->collect(directory.c_str()));
  channel->reader = std::make_unique<ChannelReader>(directory);
  channel->reader->Poll([](const ChannelProcess&, const Event&) {});
  const ChannelProcess* process = channel->process();
  if (process != nullptr) unlink((directory + "/" + std::to_string(getpid()) + ".0").c_str());
  rmdir(directory.c_str());
  if (process != nullptr) return absl::OkStatus();
  channel->reader = nullptr;
  if (result == Collecting::kForAnother) {
    return absl::FailedPreconditionError(
        "the process is audited by cuguest-audit already: run the test without that command");
  }
  return absl::InternalError("the auditor cannot make its files in " + directory);
}

absl::Status Resume(Channel* channel) {
  if (channel->collect == nullptr) {
    if (absl::Status loaded = LoadCollector(channel); !loaded.ok()) return loaded;
  }
  if (channel->reader == nullptr) {
    if (absl::Status opened = OpenChannel(channel); !opened.ok()) return opened;
  }
  channel->process()->notes.clear();
  channel->collect("");  // goes on, and tries again to find a source
  channel->Drain([](const ChannelProcess&, const Event&) {});
  if (!channel->process()->source.empty()) return absl::OkStatus();
  channel->collect(nullptr);
  std::string why = "the auditor has no source of events:";
  for (const std::string& note : channel->process()->notes) why += " " + note;
  return absl::UnavailableError(why + " Run the test without other tools.");
}

// Passes on to an analysis what happens in this process; see Note [The callable as a party].
class Feed {
 public:
  // What the caller has, by `events` of calls of TellContexts(): they have a frame between `inner`
  // and `outer`, the frame of Audit().
  void OnPreparation(const ChannelProcess& process, const std::vector<Event>& events,
                     std::uintptr_t inner, std::uintptr_t outer);
  // From now on frames below this address, and the next one, are the callable's.
  void BeginCallable(std::uintptr_t frame) { callable_.store(frame); }
  void OnEvent(const ChannelProcess& process, const Event& event);
  // The callable has returned.
  void End();

  [[nodiscard]] bool has_caller() const { return thread_ != 0; }
  [[nodiscard]] const audit::Analysis& analysis() const { return analysis_; }

 private:
  static constexpr std::uint32_t kCallableObject = 1;  // the others follow

  void AddObjects(const ChannelProcess& process);
  void AddContext(ContextId id, int device, bool is_callers);
  void Pass(Event event);
  [[nodiscard]] bool IsOfCaller(const Event& event) const;
  // The address of the callable's outermost frame, which is CallAudited()'s: a callable that ends
  // with the call of CUDA leaves no other.
  [[nodiscard]] std::uintptr_t EndOfCallable(const Event& event) const;

  audit::Analysis analysis_;
  std::size_t objects_ = 1;
  std::uint32_t program_ = 0;
  std::uint32_t thread_ = 0;
  ContextId current_ = 0;                                                  // in the thread
  std::shared_ptr<const Chain> caller_ = std::make_shared<const Chain>();  // of Audit()
  std::uintptr_t audit_ = 0;  // canonical address of Audit()'s frame
  std::atomic<std::uintptr_t> callable_{0};
};

void Feed::AddObjects(const ChannelProcess& process) {
  for (; objects_ < process.objects.size(); ++objects_) {
    analysis_.OnObject(static_cast<std::uint32_t>(objects_) + 1, process.objects[objects_]);
  }
}

// One that is older than the audit.
void Feed::AddContext(ContextId id, int device, bool is_callers) {
  Event event;
  event.kind = EventKind::kContext;
  event.thread = thread_;
  event.context = id;
  event.device = device;
  event.primary = device >= 0;
  event.chain = is_callers ? caller_ : std::make_shared<const Chain>();
  Pass(event);
  event.kind = EventKind::kUsed;
  Pass(event);
}

void Feed::OnPreparation(const ChannelProcess& process, const std::vector<Event>& events,
                         std::uintptr_t inner, std::uintptr_t outer) {
  std::map<ContextId, int> primaries;
  std::set<ContextId> of_caller;
  std::vector<Event> of_stack;
  int device = -1;  // whose primary context is looked at
  for (const Event& event : events) {
    const auto above = [&](std::uintptr_t address) {
      return std::find_if(event.chain->begin(), event.chain->end(),
                          [=](const audit::Frame& frame) { return frame.address > address; });
    };
    const auto own = above(outer);
    if (above(inner) == own || own == event.chain->end()) continue;  // another thread's
    if (own + 1 == event.chain->end()) continue;                     // nobody called
    thread_ = event.thread;
    program_ = own->object;
    audit_ = own->address;
    caller_ = std::make_shared<const Chain>(own + 1, event.chain->end());
    const bool is_push = event.name == "cuCtxPushCurrent";
    if (event.name == "cuDevicePrimaryCtxRetain") {
      device = event.device;
    } else if (event.name == "cuDevicePrimaryCtxRelease") {
      device = -1;
    } else if (device < 0) {
      of_stack.push_back(event);
      if (is_push) of_caller.insert(event.after);
    } else if (is_push) {
      primaries[event.after] = device;
    }
  }
  if (!has_caller()) return;
  const audit::Object& program = process.objects.at(program_);
  analysis_.OnObject(kCallableObject, {kAuditedCallable, program.build_id, program.path});
  AddObjects(process);
  for (const auto& [id, primary_of] : primaries)
    AddContext(id, primary_of, of_caller.count(id) != 0);
  for (const ContextId id : of_caller) {
    if (primaries.count(id) == 0) AddContext(id, -1, true);
  }
  for (const Event& event : of_stack) Pass(event);
}

bool Feed::IsOfCaller(const Event& event) const {
  return event.thread == thread_ && !event.chain->empty() &&
         event.chain->back().object == caller_->back().object &&
         event.chain->back().address == caller_->back().address;
}

void Feed::OnEvent(const ChannelProcess& process, const Event& event) {
  AddObjects(process);
  Pass(event);
}

std::uintptr_t Feed::EndOfCallable(const Event& event) const {
  if (!IsOfCaller(event)) return UINTPTR_MAX;
  const std::uintptr_t callable = callable_.load();
  const auto outermost =
      std::find_if(event.chain->begin(), event.chain->end(),
                   [=](const audit::Frame& frame) { return frame.address > callable; });
  return callable != 0 && outermost->address < audit_ ? outermost->address : 0;
}

void Feed::Pass(Event event) {
  const std::uintptr_t end = EndOfCallable(event);
  Chain chain;
  for (audit::Frame frame : *event.chain) {
    if (frame.address > end && frame.address <= audit_) continue;
    const bool is_callables = frame.object == program_ && frame.address <= end;
    if (frame.object != 0) frame.object = is_callables ? kCallableObject : frame.object + 1;
    chain.push_back(frame);
  }
  event.chain = std::make_shared<const Chain>(std::move(chain));
  const bool is_told = event.kind == EventKind::kCall || event.kind == EventKind::kCheck;
  if (event.thread == thread_ && is_told) current_ = event.after;
  analysis_.OnEvent(event);
}

void Feed::End() {
  Event event;
  event.kind = EventKind::kCheck;
  event.thread = thread_;
  event.before = event.after = current_;
  event.chain = caller_;
  Pass(event);
}

// Calls by which the collector and the analysis know the process's contexts. The stack is as it
// was.
void TellContexts(const Driver& driver) {
  int count = 0;
  static_cast<void>(driver.DeviceGetCount(&count));
  for (CUdevice device = 0; device < count; ++device) {
    unsigned flags = 0;
    int is_active = 0;
    CUcontext primary = nullptr;
    static_cast<void>(driver.DevicePrimaryCtxGetState(device, &flags, &is_active));
    if (is_active == 0 || driver.DevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) continue;
    if (driver.CtxPushCurrent(primary) == CUDA_SUCCESS) driver.CtxPopCurrent(&primary);
    driver.DevicePrimaryCtxRelease(device);
  }
  const auto probe = cudasim::StackProbe::Take();
  // The caller of an empty stack calls, too.
  if (probe.stack().empty() && !probe.cut()) driver.CtxSetCurrent(nullptr);
}

// Reads while the callable runs. Takes no signals.
class Reading {
 public:
  Reading(const Channel* channel, Feed* feed) : channel_(channel), feed_(feed) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    thread_ = std::thread([this] { Run(); });
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }
  ~Reading() { End(); }

  // What was written by now is read.
  void End() {
    if (!thread_.joinable()) return;
    channel_->collect(nullptr);
    is_over_.store(true);
    thread_.join();
  }

 private:
  void Run() {
    const auto feed = [this](const ChannelProcess& process, const Event& event) {
      if (&process == channel_->process()) feed_->OnEvent(process, event);
    };
    while (!is_over_.load()) {
      if (channel_->reader->Poll(feed) == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    channel_->Drain(feed);
  }

  const Channel* const channel_;
  Feed* const feed_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

[[gnu::noinline]] void CallAudited(absl::FunctionRef<void()> callable, Feed* feed) {
  feed->BeginCallable(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  callable();
  asm volatile("");  // no tail call, which would take the frame away
}

[[gnu::noinline]] bool Prepare(const Driver& driver, const Channel& channel, std::uintptr_t outer,
                               Feed* feed) {
  TellContexts(driver);
  std::vector<Event> events;
  channel.Drain([&](const ChannelProcess& process, const Event& event) {
    if (&process == channel.process()) events.push_back(event);
  });
  feed->OnPreparation(*channel.process(), events,
                      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), outer);
  return feed->has_caller();
}

// Of the file that the environment names.
absl::Status ReadSuppressions(audit::Suppressions* suppressions) {
  const char* file = std::getenv("CUGUEST_AUDIT_SUPPRESSIONS");
  if (file == nullptr || *file == '\0') return absl::OkStatus();
  const std::string error = suppressions->AddFile(file);
  if (error.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("CUGUEST_AUDIT_SUPPRESSIONS: " + error);
}

std::vector<AuditFinding> Name(const audit::Analysis& analysis, audit::Suppressions* suppressions) {
  audit::ReportBuilder builder({}, /*generates=*/false, suppressions);
  audit::Report report;
  builder.Add({}, analysis, &report);
  std::vector<AuditFinding> findings;
  for (const audit::NamedFinding& named : report.findings) {
    findings.push_back({audit::Identifier(named.finding.kind), named.finding.call,
                        named.culprit.object, named.culprit.name, named.victim.object,
                        named.victim.name, named.finding.count, audit::FindingText(report, named)});
  }
  return findings;
}

// Events that were not read, since the channel was opened.
std::uint64_t Missed(const ChannelProcess& process) { return process.lost + process.broken; }

class OnlyOne {
 public:
  OnlyOne() : is_first_(!is_taken_.exchange(true)) {}
  ~OnlyOne() {
    if (is_first_) is_taken_.store(false);
  }
  OnlyOne(const OnlyOne&) = delete;
  OnlyOne& operator=(const OnlyOne&) = delete;

  [[nodiscard]] bool is_first() const { return is_first_; }

 private:
  static std::atomic<bool> is_taken_;
  const bool is_first_;
};

std::atomic<bool> OnlyOne::is_taken_{false};

}  // namespace

[[gnu::noinline]] absl::StatusOr<std::vector<AuditFinding>> Audit(
    absl::FunctionRef<void()> callable) {
  const OnlyOne only;
  if (!only.is_first()) {
    return absl::FailedPreconditionError("another audit is in progress in this process");
  }
  audit::Suppressions suppressions;
  if (absl::Status read = ReadSuppressions(&suppressions); !read.ok()) return read;
  const absl::StatusOr<const Driver*> driver = Driver::GetInitialized();
  if (!driver.ok()) return driver.status();
  static auto* const channel = new Channel;  // for the life of the process, as the collector
  if (absl::Status resumed = Resume(channel); !resumed.ok()) return resumed;
  const std::uint64_t missed = Missed(*channel->process());
  Feed feed;
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (!Prepare(**driver, *channel, frame, &feed)) {
    channel->collect(nullptr);
    return absl::FailedPreconditionError(
        "the current context is destroyed, or the stack of calls cannot be followed");
  }
  Reading reading(channel, &feed);
  CallAudited(callable, &feed);
  reading.End();
  if (Missed(*channel->process()) != missed) {
    return absl::DataLossError("the auditor lost events of the callable: they came too fast");
  }
  feed.End();
  return Name(feed.analysis(), &suppressions);
}

}  // namespace testing
CUGUEST_END_NAMESPACE
