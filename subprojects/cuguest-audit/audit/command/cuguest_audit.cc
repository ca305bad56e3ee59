// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   cuguest-audit [OPTION...] -- PROGRAM [ARGUMENT...]
//
// Runs a program with the collector injected, analyses the events of its processes while it runs,
// and reports when it has ended. See kUsage.

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/channel.h"
#include "audit/channel_reader.h"
#include "audit/command/channel_feed.h"
#include "audit/command/clock.h"
#include "audit/command/color.h"
#include "audit/command/device_memory.h"
#include "audit/command/event_log.h"
#include "audit/command/live_findings.h"
#include "audit/command/options.h"
#include "audit/command/output_file.h"
#include "audit/command/printable.h"
#include "audit/command/process_watch.h"
#include "audit/command/program.h"
#include "audit/command/report.h"
#include "audit/command/report_builder.h"
#include "audit/command/report_html.h"
#include "audit/command/report_sarif.h"
#include "audit/command/session.h"
#include "audit/command/suppressions.h"
#include "audit/command/text_file.h"
#include "audit/command/timeline.h"
#include "audit/command/trace.h"
#include "audit/finding.h"
#include "audit/log.h"

namespace {

namespace fs = std::filesystem;
using namespace cuguest::audit;

constexpr int kBadUsage = 125;
constexpr int kPollMilliseconds = 5;
constexpr std::uint32_t kSlotsOfMib = (1 << 20) / sizeof(ChannelSlot);
// How long processes that the program left behind are waited for.
constexpr std::uint64_t kGraceNs = 1'000'000'000;
constexpr char kInjectionVariable[] = "CUDA_INJECTION64_PATH";

[[noreturn]] void Fail(const std::string& text) {
  std::fprintf(stderr, "cuguest-audit: %s\n", Printable(text).c_str());
  std::exit(kBadUsage);
}

void FailIf(const std::string& error) {
  if (!error.empty()) Fail(error);
}

// As it was built, or as it was installed.
fs::path FindCollector() {
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) Fail("/proc is not mounted");
  const fs::path own = fs::path(path).parent_path();
  const fs::path places[] = {own / CUGUEST_AUDIT_BUILT, own / CUGUEST_AUDIT_INSTALLED};
  for (const fs::path& place : places) {
    std::error_code error;
    const fs::path found = fs::weakly_canonical(place, error);
    if (!error && fs::exists(found, error)) return found;
  }
  Fail("there is neither " + places[0].lexically_normal().string() + " nor " +
       places[1].lexically_normal().string());
}

Suppressions ReadSuppressions(const std::vector<std::string>& files) {
  Suppressions suppressions;
  for (const std::string& file : files) FailIf(suppressions.AddFile(file));
  return suppressions;
}

// The files that the options name.
struct Files {
  // Before anything runs.
  static void Check(const Options& options) {
    for (const std::string* path : {&options.output, &options.html, &options.json, &options.sarif,
                                    &options.trace, &options.log}) {
      if (!path->empty()) FailIf(OutputFile::Check(*path));
    }
  }
  // Returns what cannot be written, though it could have been before.
  std::vector<std::string> Open(const Options& options) {
    std::vector<std::string> errors;
    if (!options.output.empty()) errors.push_back(output.Open(options.output));
    if (!options.html.empty()) errors.push_back(html.Open(options.html));
    if (!options.json.empty()) errors.push_back(json.Open(options.json));
    if (!options.sarif.empty()) errors.push_back(sarif.Open(options.sarif));
    if (!options.trace.empty()) errors.push_back(trace.Open(options.trace));
    if (!options.log.empty()) errors.push_back(log.Open(options.log));
    return errors;
  }
  void Flush() {
    trace.Flush();
    log.Flush();
  }

  OutputFile output;
  OutputFile html;
  OutputFile json;
  OutputFile sarif;
  TraceWriter trace;
  EventLog log;
};

// The memory of each device in a trace.
class MemoryTrack {
 public:
  // Looks at all devices now, for Begin().
  MemoryTrack(bool is_wanted, TraceWriter* trace) : trace_(*trace) {
    if (!is_wanted) return;
    memory_ = std::make_unique<DeviceMemory>();
    begin_ns_ = MonotonicNow();
    begin_ = memory_->Used();
  }

  // The trace is open: writes what there was before.
  void Begin() { Write(begin_ns_, begin_); }

  // All devices.
  void Sample() {
    last_.clear();
    next_ = 0;
    SampleChanges();
  }

  // Those that have changed, if it is time to look.
  void SampleChanges() {
    const std::uint64_t now = MonotonicNow();
    if (memory_ == nullptr || now < next_) return;
    Write(now, memory_->Used());
  }

 private:
  static constexpr std::uint64_t kSampleNs = 20'000'000;

  void Write(std::uint64_t now, const std::vector<std::uint64_t>& used) {
    next_ = now + kSampleNs;
    for (size_t i = 0; i < used.size(); ++i) {
      if (i < last_.size() && used[i] == last_[i]) continue;
      trace_.AddCounter(0, now, "memory in use, device " + std::to_string(i) + " of NVML", used[i]);
    }
    last_ = used;
  }

  TraceWriter& trace_;
  std::unique_ptr<DeviceMemory> memory_;
  std::uint64_t begin_ns_ = 0;
  std::vector<std::uint64_t> begin_;
  std::uint64_t next_ = 0;
  std::vector<std::uint64_t> last_;
};

// What --live prints, every now and then, for a twentieth of the time.
class LiveOutput {
 public:
  LiveOutput(const Options& options, const Session& session)
      : is_wanted_(options.live), session_(session), findings_(options.objects) {}

  void Look() {
    const std::uint64_t now = is_wanted_ ? MonotonicNow() : 0;
    if (now < next_ || !is_wanted_) return;
    std::fputs(findings_.Look(session_.processes()).c_str(), stderr);
    const std::uint64_t end = MonotonicNow();
    next_ = end + std::max(kLookNs, 20 * (end - now));
  }

 private:
  static constexpr std::uint64_t kLookNs = 200'000'000;

  const bool is_wanted_;
  const Session& session_;
  LiveFindings findings_;
  std::uint64_t next_ = 0;
};

class Audit {
 public:
  explicit Audit(const Options& options)
      : options_(options),
        suppressions_(ReadSuppressions(options.suppressions)),
        builder_(options.objects, options.gen_suppressions, &suppressions_),
        session_(options.trace.empty() ? nullptr : &files_.trace,
                 options.html.empty() ? std::vector<StackObserver*>()
                                      : std::vector<StackObserver*>{&timelines_}),
        live_(options, session_) {}

  // Returns the exit status.
  int Run();
  int Replay();
  // For the report.
  void Note(const std::string& note);

 private:
  [[nodiscard]] Program::Environment EnvironmentOf(const std::string& address);
  void OpenFiles();
  void FailUnlessLog(std::string_view beginning) const;
  void Wait(Program* program, ChannelFeed* feed, ProcessWatch* watch, MemoryTrack* memory);
  [[nodiscard]] Pictures NamePictures();
  void WriteForms();
  [[nodiscard]] bool HasFailed() const;
  int Finish(int exit_status);

  const Options& options_;
  Suppressions suppressions_;
  ReportBuilder builder_;
  Files files_;
  Timelines timelines_;
  Session session_;
  LiveOutput live_;
  Report report_;
};

void Audit::Note(const std::string& note) {
  if (!note.empty()) report_.notes.push_back(note);
}

Program::Environment Audit::EnvironmentOf(const std::string& address) {
  if (const char* other = std::getenv(kInjectionVariable)) {
    Note(std::string(kInjectionVariable) + " was " + other + ", which was not loaded");
  }
  Program::Environment environment = {{kInjectionVariable, FindCollector()},
                                      {kChannelVariable, address}};
  std::string watched;
  for (const std::string& what : options_.forbidden) {
    if (what.rfind("api:", 0) == 0) watched += (watched.empty() ? "" : ",") + what.substr(4);
  }
  if (!watched.empty()) environment.emplace_back(kWatchVariable, watched);
  if (options_.noise) environment.emplace_back(kNoiseVariable, "1");
  if (!options_.source.empty()) environment.emplace_back(kSourceVariable, options_.source);
  return environment;
}

void Audit::OpenFiles() {
  for (const std::string& error : files_.Open(options_)) Note(error);
}

// Until the program and the processes that it started have ended, or no longer than a grace for the
// latter.
void Audit::Wait(Program* program, ChannelFeed* feed, ProcessWatch* watch, MemoryTrack* memory) {
  int milliseconds = 0;
  while (!program->WaitFor(milliseconds, feed->server().descriptor())) {
    const std::size_t events = feed->Poll();
    milliseconds = events >= ChannelReader::kManyEvents ? 0 : events > 0 ? 1 : kPollMilliseconds;
    memory->SampleChanges();
    watch->Look(feed->pids());
    live_.Look();
    if (milliseconds > 0) files_.Flush();
  }
  const std::uint64_t end = MonotonicNow() + kGraceNs;
  bool is_over = false;
  do {
    const bool is_behind = feed->Poll() >= ChannelReader::kManyEvents;
    memory->SampleChanges();
    watch->LookAtLeft(feed->pids());
    is_over = feed->AllEnded() && watch->left().empty();
    const timespec pause = {0, is_over || is_behind ? 0 : kPollMilliseconds * 1'000'000L};
    nanosleep(&pause, nullptr);
  } while (!is_over && MonotonicNow() < end);
  feed->Freeze();
  while (feed->Poll() != 0) {
  }
}

int Audit::Run() {
  for (char** word = options_.program; *word != nullptr; ++word) {
    report_.subject += (report_.subject.empty() ? "" : " ") + std::string(*word);
  }
  Files::Check(options_);
  ChannelFeed feed(static_cast<std::uint32_t>(options_.buffer) * kSlotsOfMib,
                   {&session_, &files_.log});
  FailIf(feed.server().error());
  MemoryTrack memory(!options_.trace.empty(), &files_.trace);
  {
    Program program(options_.program, EnvironmentOf(feed.server().address()));
    if (!program.error().empty()) {
      std::fprintf(stderr, "cuguest-audit: %s\n", Printable(program.error()).c_str());
      return program.exit_status();
    }
    OpenFiles();
    memory.Begin();
    if (!options_.follow_fork) feed.Follow(program.pid());
    ProcessWatch watch(program.pid(), FindCollector(), kChannelVariable, feed.server().address());
    Wait(&program, &feed, &watch, &memory);
    report_.exit_status = program.exit_status();
    report_.signal = program.signal();
    feed.End(watch.found());
    for (const int pid : watch.left()) {
      const std::string name = feed.pids().count(pid) == 0 ? ProgramOf(pid) : "";
      if (name.empty()) continue;
      Note(name + " (" + std::to_string(pid) +
           ") still runs, and has not used CUDA; what it does now is not audited");
    }
  }
  memory.Sample();
  return Finish(report_.exit_status);
}

// No file is emptied for what is no log.
void Audit::FailUnlessLog(std::string_view beginning) const {
  Session session(nullptr);
  LogReader reader(&session);
  reader.Read(beginning);
  reader.Finish();
  if (!reader.error().empty() && session.processes().empty()) {
    Fail(options_.replay + ": " + reader.error());
  }
}

int Audit::Replay() {
  report_.is_replay = true;
  report_.subject = options_.replay;
  std::ifstream in(options_.replay, std::ios::binary);
  if (!in) Fail(options_.replay + ": " + std::strerror(errno));
  Files::Check(options_);
  LogReader reader(&session_);
  std::vector<char> part(1 << 16);
  bool is_first = true;
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())), in.gcount() > 0) {
    const std::string_view text = {part.data(), static_cast<size_t>(in.gcount())};
    if (std::exchange(is_first, false)) {
      FailUnlessLog(text);
      OpenFiles();
    }
    reader.Read(text);
  }
  reader.Finish();
  if (!reader.error().empty()) {
    const std::string error = options_.replay + ": " + reader.error();
    if (session_.processes().empty()) Fail(error);
    report_.gaps.push_back(error + "; the report is of what precedes it");
  }
  return Finish(0);
}

Pictures Audit::NamePictures() {
  Pictures pictures;
  for (const auto& [number, timeline] : timelines_.processes()) {
    NamedTimeline named = {number, &timeline, {}};
    const std::vector<Object>& objects = session_.processes().at(number).analysis->objects();
    for (const auto& [id, note] : timeline.Contexts()) {
      named.contexts[id] = builder_.Name(note, objects);
    }
    pictures.timelines.push_back(std::move(named));
  }
  pictures.has_others = timelines_.has_others();
  return pictures;
}

// The report in files of other forms.
void Audit::WriteForms() {
  const auto finish = [this](const char* form, OutputFile* file) {
    const std::string error = file->Close();
    if (!error.empty()) Note(std::string("the ") + form + " is not complete: " + error);
  };
  if (files_.html.is_open()) files_.html.Write(ReportHtml(report_, NamePictures()));
  finish("HTML", &files_.html);
  if (files_.sarif.is_open()) {
    std::error_code ignored;
    files_.sarif.Write(
        ReportSarif(report_, CUGUEST_AUDIT_VERSION, fs::current_path(ignored).string()));
  }
  finish("SARIF", &files_.sarif);
  files_.json.Write(ReportJson(report_));
  finish("JSON", &files_.json);
}

// Writes what is asked for. A file that cannot be written is named in the report, and the one that
// has the report on standard error.
int Audit::Finish(int exit_status) {
  builder_.SetLeaks(options_.leaks);
  builder_.SetForbidden(options_.forbidden);
  builder_.SetNoise(options_.noise);
  for (const auto& [number, audited] : session_.processes()) {
    builder_.Add(audited.about, *audited.analysis, &report_);
    builder_.AddUnsettled(audited.about, *audited.analysis, &report_);
  }
  report_.suppressed = suppressions_.used();
  report_.paths = options_.paths;
  report_.unused_suppressions = suppressions_.unused();
  report_.is_verbose = options_.verbosity > 0;
  session_.Finish(report_);
  const std::string trace_error = files_.trace.Close();
  if (!trace_error.empty()) Note("the trace ends early: " + trace_error);
  const std::string log_error = files_.log.Close();
  if (!log_error.empty()) Note("the log ends early: " + log_error);
  Note(Symbols::Unavailable());
  WriteForms();
  if (HasFailed() && report_.findings.empty()) {
    Note("the audit is incomplete, so the exit status is " +
         std::to_string(options_.error_exitcode) + "; --accept-incomplete accepts that");
  }
  const bool is_told = options_.verbosity >= 0 || !report_.findings.empty() || !IsComplete(report_);
  const bool is_terminal =
      files_.output.is_open() ? files_.output.IsTerminal() : isatty(STDERR_FILENO) == 1;
  const std::string text =
      ReportText(report_, WantsColors(options_.color, SurroundingsOf(is_terminal)));
  if (files_.output.is_open()) {
    files_.output.Write(text);
    const std::string error = files_.output.Close();
    if (!error.empty()) std::fprintf(stderr, "cuguest-audit: %s\n", Printable(error).c_str());
  } else if (is_told) {
    std::fputs(text.c_str(), stderr);
  }
  return HasFailed() ? options_.error_exitcode : exit_status;
}

bool Audit::HasFailed() const {
  const bool is_accepted = options_.accept_incomplete || IsComplete(report_);
  return options_.error_exitcode != 0 && !(report_.findings.empty() && is_accepted);
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Those of the file, unless another user may have written it, then of the variable. Returns a note
// for the report.
std::string ReadDefaults(Options* options) {
  std::string note;
  struct stat status = {};
  if (stat(kOptionsFile, &status) == 0) {
    if (status.st_uid == geteuid() && (status.st_mode & S_IWOTH) == 0) {
      std::string text;
      FailIf(ReadTextFile(kOptionsFile, &text));
      FailIf(ParseOptionsFile(kOptionsFile, text, options));
    } else {
      note = std::string(kOptionsFile) + " was not read: another user may have written it";
    }
  }
  const char* variable = std::getenv(kOptionsVariable);
  if (variable != nullptr) FailIf(ParseOptionsVariable(variable, options));
  return note;
}

}  // namespace

int main(int, char** argv) {
  Program::SetSignals();
  // Alone, so that mistakes in defaults do not stand in the way of --help.
  Options options;
  const std::string error = ParseOptions(argv + 1, &options);
  if (error.empty() && options.help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (error.empty() && options.version) {
    std::puts("cuguest-audit " CUGUEST_AUDIT_VERSION);
    return 0;
  }
  if (!error.empty()) Fail(error + "; `cuguest-audit --help` lists the options");
  options = Options();
  const std::string note = ReadDefaults(&options);
  FailIf(ParseOptions(argv + 1, &options));
  FailIf(ResolveFiles(getpid(), HostName(), &options));
  Audit audit(options);
  audit.Note(note);
  return options.replay.empty() ? audit.Run() : audit.Replay();
}
