// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/report.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "driver/context/device.h"
#include "driver/control.h"
#include "driver/entry.h"
#include "driver/environment.h"
#include "driver/launch/launch.h"
#include "driver/not_modelled.h"
#include "driver/panic.h"
#include "driver/process.h"
#include "driver/stream/schedule.h"

extern "C" const cudasim::driver::Control* cudasimControl();

namespace cudasim::driver {
namespace {

using Missing = std::set<std::pair<std::string, int>>;

// Of a process that reports. Entries are called until the very end, so nothing is deleted.
struct Report {
  explicit Report(std::string of_reports) : folder(std::move(of_reports)) {}

  const std::string folder;
  bool is_written = false;
  std::mutex mutex;
  Missing missing;
  std::set<std::string> private_tables;  // who asked for one
};
Report* report = nullptr;

// 0 to `limit`, or -1.
int ParseNumber(std::string_view text, int limit) {
  int value = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && value >= 0 && value <= limit ? value : -1;
}

std::string_view TakeUntil(char separator, std::string_view* text) {
  const size_t end = text->find(separator);
  const std::string_view part = text->substr(0, end);
  *text = end == std::string_view::npos ? std::string_view() : text->substr(end + 1);
  return part;
}

bool IsEntry(const std::string& name) {
  for (const Entry& entry : Entries()) {
    if (name == entry.base) return true;
  }
  return false;
}

void ArmFault(std::string_view fault) {
  std::string_view rest = fault;
  const std::string entry(TakeUntil(':', &rest));
  const int nth = ParseNumber(TakeUntil(':', &rest), 1000000000);
  const int code = ParseNumber(rest, CUDA_ERROR_UNKNOWN);
  if (!IsEntry(entry) || nth < 1 || code < 1) {
    Panic("CUDASIM_FAIL: \"%s\" is not ENTRY:NTH:CODE", std::string(fault).c_str());
  }
  FailCall(entry.c_str(), static_cast<unsigned>(nth), static_cast<CUresult>(code),
           /*from_any_thread=*/true);
}

// SEED:CALLS
void SetSchedule(std::string_view text) {
  std::string_view rest = text;
  const int seed = ParseNumber(TakeUntil(':', &rest), 100000000);
  const int calls = ParseNumber(rest, 100000000);
  if (seed < 0 || calls < 0) {
    Panic("CUDASIM_SCHEDULE: \"%s\" is not SEED:CALLS", std::string(text).c_str());
  }
  Schedule::Set(static_cast<std::uint64_t>(seed), static_cast<unsigned>(calls));
}

std::string ProgramPath() {
  char path[PATH_MAX] = {};
  return readlink("/proc/self/exe", path, sizeof(path) - 1) > 0 ? path : "(unknown)";
}

bool WriteFile(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fputs(text.c_str(), file) >= 0;
  return std::fclose(file) == 0 && written;
}

// As one rename, so that nobody reads half of it. A process does not end because nobody can read of
// it.
void Write(const std::string& text) {
  const std::string path = report->folder + "/" + std::to_string(getpid());
  const std::string temporary = path + ".new";
  if (WriteFile(temporary, text) && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  std::fprintf(stderr, "cudasim: CUDASIM_REPORT: the report cannot be written to %s: %s\n",
               path.c_str(), std::strerror(errno));
}

void Begin() { Write("program " + ProgramPath() + "\nrunning\n"); }

std::string CallLines() {
  std::string text = "program " + ProgramPath() + "\n";
  text += "driver " + std::to_string(Process::DriverVersion()) + " " +
          std::to_string(Process::DeviceCount()) + "\n";
  for (size_t i = 0; const char* entry = cudasimControl()->entry_name(i); ++i) {
    const std::uint64_t calls = Calls(entry);
    if (calls > 0) text += "call " + std::to_string(calls) + " " + entry + "\n";
    for (unsigned faults = PendingFaults(entry); faults > 0; --faults) {
      text += std::string("pending ") + entry + "\n";
    }
  }
  for (const auto& [symbol, count] : UnmodelledCalls()) {
    text += "unmodelled " + std::to_string(count) + " " + symbol + "\n";
  }
  for (const auto& [kernel, count] : SkippedLaunches()) {
    text += "skipped " + std::to_string(count) + " " + kernel + "\n";
  }
  const std::lock_guard<std::mutex> lock(report->mutex);
  for (const std::string& object : report->private_tables) text += "private " + object + "\n";
  for (const auto& [entry, version] : report->missing) {
    text += "missing " + entry + " " + std::to_string(version) + "\n";
  }
  return text;
}

std::string LiveLines() {
  std::string text;
  const SimLive live = cudasimControl()->live();
  const std::pair<size_t, const char*> counts[] = {
      {live.contexts, "contexts"},
      {live.primary_references, "references to primary contexts"},
      {live.allocations, "allocations"},
      {live.streams, "streams"},
      {live.events, "events"},
      {live.modules, "modules"},
      {live.green_contexts, "green contexts"},
      {live.graphs, "graphs"},
      {live.pools, "memory pools"},
      {live.virtual_memory, "allocations and ranges of virtual memory"},
      {live.arrays, "arrays"},
      {live.textures, "textures and surfaces"},
      {live.libraries, "libraries"},
      {live.link_states, "links in progress"},
  };
  for (const auto& [count, what] : counts) {
    if (count > 0) text += "live " + std::to_string(count) + " " + what + "\n";
  }
  return text;
}

void Finish() {
  if (report == nullptr || std::exchange(report->is_written, true)) return;
  Write(CallLines() + LiveLines() + "end\n");
}

void FinishInPanic() {
  if (!std::exchange(report->is_written, true)) Write(CallLines() + "panic\nend\n");
}

// Before the child of fork runs anything else. Of the parent's report it has the folder alone:
// another thread may have been in it.
void BeginInChild() {
  const bool has_driver = Process::Serves(Floor::kCallback) == CUDA_SUCCESS;
  report = new Report(report->folder);
  report->is_written = has_driver;
  if (has_driver) return;
  ResetCalls();
  Begin();
}

__attribute__((constructor)) void ReadSettings() {
  if (const char* devices = Setting("DEVICES")) {
    const int count = ParseNumber(devices, kMaxDevices);
    if (count < 0) {
      Panic("CUDASIM_DEVICES: \"%s\" is no number of devices, 0 to %d", devices, kMaxDevices);
    }
    Process::SetDeviceCount(count);
  }
  if (const char* faults = Setting("FAIL")) {
    for (std::string_view rest = faults; !rest.empty();) ArmFault(TakeUntil(',', &rest));
  }
  if (const char* unknown = Setting("UNKNOWN_KERNELS")) {
    if (std::string_view(unknown) != "skip") {
      Panic("CUDASIM_UNKNOWN_KERNELS: \"%s\" is not skip", unknown);
    }
    SkipUnknownKernels(true);
  }
  if (const char* schedule = Setting("SCHEDULE")) SetSchedule(schedule);
  if (const char* folder = Setting("REPORT")) {
    report = new Report(folder);
    Begin();
    BeforePanicAborts(FinishInPanic);
    static_cast<void>(pthread_atfork(nullptr, nullptr, BeginInChild));
  }
}

__attribute__((destructor)) void ReportAtEnd() { Finish(); }

}  // namespace

void NoteMissing(const char* entry, int version) {
  if (report == nullptr) return;
  const std::lock_guard<std::mutex> lock(report->mutex);
  report->missing.emplace(*entry != '\0' ? entry : "\"\"", version);
}

void NotePrivateTable(const std::string& object) {
  // These of the toolkit's ask for one, too, and do without.
  const bool does_without = object.find("/libnvrtc") != std::string::npos ||
                            object.find("/libnvJitLink") != std::string::npos;
  static std::atomic<bool> was_said{false};
  if (!does_without && !was_said.exchange(true)) {
    std::fprintf(
        stderr,
        "cudasim: %s asked for a private table of the driver, as a statically linked CUDA "
        "runtime does, and there is none: all calls of that runtime fail with error 1. Link "
        "the shared runtime: nvcc -cudart shared; in CMake CUDA_RUNTIME_LIBRARY Shared\n",
        object.empty() ? "a library" : object.c_str());
  }
  if (report == nullptr || does_without) return;
  const std::lock_guard<std::mutex> lock(report->mutex);
  report->private_tables.insert(object.empty() ? "(unknown)" : object);
}

}  // namespace cudasim::driver
