// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   cuguest-audit [OPTION...] -- PROGRAM [ARGUMENT...]
//
// Runs a program with the collector injected, analyses the events of its processes while it runs,
// and reports when it has ended. See kUsage.

#include <limits.h>
#include <unistd.h>

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
#include <utility>
#include <vector>

#include "audit/channel.h"
#include "audit/channel_reader.h"
#include "audit/command/channel_feed.h"
#include "audit/command/device_memory.h"
#include "audit/command/event_log.h"
#include "audit/command/options.h"
#include "audit/command/output_file.h"
#include "audit/command/program.h"
#include "audit/command/report.h"
#include "audit/command/report_builder.h"
#include "audit/command/session.h"
#include "audit/command/suppressions.h"
#include "audit/command/trace.h"
#include "audit/finding.h"
#include "audit/log.h"

namespace {

namespace fs = std::filesystem;
using namespace cuguest::audit;

constexpr int kBadUsage = 125;
constexpr int kPollMilliseconds = 5;
// How long processes that the program left behind are waited for.
constexpr int kGraceMilliseconds = 1000;
constexpr char kInjectionVariable[] = "CUDA_INJECTION64_PATH";

[[noreturn]] void Fail(const std::string& text) {
  std::fprintf(stderr, "cuguest-audit: %s\n", text.c_str());
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

// A folder of this user's that is removed with what is in it.
class PrivateFolder {
 public:
  PrivateFolder() {
    const char* place = std::getenv("TMPDIR");
    path_ = std::string(place == nullptr || *place == 0 ? "/tmp" : place) + "/cuguest-audit-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) Fail(path_ + ": " + std::strerror(errno));
  }
  ~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Suppressions ReadSuppressions(const std::vector<std::string>& files) {
  Suppressions suppressions;
  for (const std::string& file : files) FailIf(suppressions.AddFile(file));
  return suppressions;
}

// The files that the options name, which are opened before anything runs.
struct Files {
  explicit Files(const Options& options) {
    if (!options.output.empty()) FailIf(output.Open(options.output));
    if (!options.json.empty()) FailIf(json.Open(options.json));
    if (!options.trace.empty()) FailIf(trace.Open(options.trace));
    if (!options.log.empty()) FailIf(log.Open(options.log));
  }
  void Flush() {
    trace.Flush();
    log.Flush();
  }

  OutputFile output;
  OutputFile json;
  TraceWriter trace;
  EventLog log;
};

std::uint64_t Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// The memory of each device in a trace.
class MemoryTrack {
 public:
  explicit MemoryTrack(TraceWriter* trace) : trace_(*trace) {
    if (trace_.is_open()) memory_ = std::make_unique<DeviceMemory>();
  }

  // All devices.
  void Sample() {
    last_.clear();
    next_ = 0;
    SampleChanges();
  }

  // Those that have changed, if it is time to look.
  void SampleChanges() {
    const std::uint64_t now = Now();
    if (memory_ == nullptr || now < next_) return;
    next_ = now + kSampleNs;
    const std::vector<std::uint64_t> used = memory_->Used();
    for (size_t i = 0; i < used.size(); ++i) {
      if (i < last_.size() && used[i] == last_[i]) continue;
      trace_.AddCounter(0, now, "memory in use, device " + std::to_string(i) + " of NVML", used[i]);
    }
    last_ = used;
  }

 private:
  static constexpr std::uint64_t kSampleNs = 20'000'000;

  TraceWriter& trace_;
  std::unique_ptr<DeviceMemory> memory_;
  std::uint64_t next_ = 0;
  std::vector<std::uint64_t> last_;
};

class Audit {
 public:
  explicit Audit(const Options& options)
      : options_(options),
        suppressions_(ReadSuppressions(options.suppressions)),
        builder_(options.objects, options.gen_suppressions, &suppressions_),
        files_(options),
        session_(options.trace.empty() ? nullptr : &files_.trace) {}

  // Returns the exit status.
  int Run();
  int Replay();

 private:
  [[nodiscard]] Program::Environment EnvironmentOf(const std::string& folder);
  void Wait(Program* program, ChannelFeed* feed, MemoryTrack* memory);
  void Note(const std::string& note);
  int Finish(int exit_status);

  const Options& options_;
  Suppressions suppressions_;
  ReportBuilder builder_;
  Files files_;
  Session session_;
  Report report_;
};

void Audit::Note(const std::string& note) {
  if (!note.empty()) report_.notes.push_back(note);
}

Program::Environment Audit::EnvironmentOf(const std::string& folder) {
  if (const char* other = std::getenv(kInjectionVariable)) {
    Note(std::string(kInjectionVariable) + " was " + other + ", which was not loaded");
  }
  Program::Environment environment = {{kInjectionVariable, FindCollector()},
                                      {kDirectoryVariable, folder}};
  std::string watched;
  for (const std::string& what : options_.forbidden) {
    if (what.rfind("api:", 0) == 0) watched += (watched.empty() ? "" : ",") + what.substr(4);
  }
  if (!watched.empty()) environment.emplace_back(kWatchVariable, watched);
  if (!options_.source.empty()) environment.emplace_back(kSourceVariable, options_.source);
  return environment;
}

// Until the program and the processes that it started have ended, or no longer than a grace for the
// latter.
void Audit::Wait(Program* program, ChannelFeed* feed, MemoryTrack* memory) {
  int milliseconds = 0;
  while (!program->WaitFor(milliseconds)) {
    const std::size_t events = feed->Poll();
    milliseconds = events >= ChannelReader::kManyEvents ? 0 : events > 0 ? 1 : kPollMilliseconds;
    memory->SampleChanges();
    if (milliseconds > 0) files_.Flush();
  }
  int left = kGraceMilliseconds;
  while (feed->Poll() != 0 || (!feed->AllEnded() && left > 0)) {
    memory->SampleChanges();
    const timespec pause = {0, kPollMilliseconds * 1'000'000L};
    nanosleep(&pause, nullptr);
    left -= kPollMilliseconds;
  }
}

int Audit::Run() {
  for (char** word = options_.program; *word != nullptr; ++word) {
    report_.subject += (report_.subject.empty() ? "" : " ") + std::string(*word);
  }
  const PrivateFolder folder;
  ChannelFeed feed(folder.path(), {&session_, &files_.log});
  MemoryTrack memory(&files_.trace);
  memory.Sample();
  {
    Program program(options_.program, EnvironmentOf(folder.path()));
    if (!program.error().empty()) {
      std::fprintf(stderr, "cuguest-audit: %s\n", program.error().c_str());
      return program.exit_status();
    }
    if (!options_.follow_fork) feed.Follow(program.pid());
    Wait(&program, &feed, &memory);
    report_.exit_status = program.exit_status();
    report_.signal = program.signal();
  }
  memory.Sample();
  feed.End();
  return Finish(report_.exit_status);
}

int Audit::Replay() {
  report_.is_replay = true;
  report_.subject = options_.replay;
  std::ifstream in(options_.replay, std::ios::binary);
  if (!in) Fail(options_.replay + ": " + std::strerror(errno));
  LogReader reader(&session_);
  std::vector<char> part(1 << 16);
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())), in.gcount() > 0) {
    reader.Read({part.data(), static_cast<size_t>(in.gcount())});
  }
  reader.Finish();
  if (!reader.error().empty()) {
    const std::string error = options_.replay + ": " + reader.error();
    if (session_.processes().empty()) Fail(error);
    Note(error + "; the report is of what precedes it");
  }
  return Finish(0);
}

// Writes what is asked for. A file that cannot be written is named in the report, and the one that
// has the report on standard error.
int Audit::Finish(int exit_status) {
  builder_.SetLeaks(options_.leaks);
  builder_.SetForbidden(options_.forbidden);
  for (const auto& [number, audited] : session_.processes()) {
    builder_.Add(audited.about, *audited.analysis, &report_);
  }
  report_.suppressed = suppressions_.used();
  report_.paths = options_.paths;
  session_.FinishTrace(report_);
  const std::string trace_error = files_.trace.Close();
  if (!trace_error.empty()) Note("the trace ends early: " + trace_error);
  const std::string log_error = files_.log.Close();
  if (!log_error.empty()) Note("the log ends early: " + log_error);
  Note(Symbols::Unavailable());
  files_.json.Write(ReportJson(report_));
  const std::string json_error = files_.json.Close();
  if (!json_error.empty()) Note("the JSON is not complete: " + json_error);
  const std::string text = ReportText(report_);
  if (options_.output.empty()) {
    std::fputs(text.c_str(), stderr);
  } else {
    files_.output.Write(text);
    const std::string error = files_.output.Close();
    if (!error.empty()) std::fprintf(stderr, "cuguest-audit: %s\n", error.c_str());
  }
  const bool is_clean = report_.findings.empty() && CountUnaudited(report_) == 0;
  return options_.error_exitcode != 0 && !is_clean ? options_.error_exitcode : exit_status;
}

}  // namespace

int main(int, char** argv) {
  Options options;
  const std::string error = ParseOptions(argv + 1, &options);
  if (!error.empty()) Fail(error + "; `cuguest-audit --help` lists the options");
  if (options.help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  Audit audit(options);
  return options.replay.empty() ? audit.Run() : audit.Replay();
}
