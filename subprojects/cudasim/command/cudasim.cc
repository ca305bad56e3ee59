// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   cudasim [OPTION...] -- PROGRAM [ARGUMENT...]
//
// Runs a program on the simulation, and then says which calls each of its processes made, what it
// left alive, and which entries it asked for and did not find. See kUsage, and driver/report.h for
// what the processes are asked and what they answer.

#include <cuda.h>
#include <dlfcn.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "driver/control.h"

namespace {

namespace fs = std::filesystem;
using cudasim::driver::Control;

constexpr char kUsage[] =
    R"(usage: cudasim [OPTION...] -- PROGRAM [ARGUMENT...]

Runs PROGRAM on a simulated CUDA driver, runtime and libraries, and prints afterwards, to
standard error, which driver calls each of its processes made, what they left alive, which
entries they asked for and did not find, and what they called that is not modelled.

  --devices N              the number of devices: 0 to %d (default: 2)
  --driver-version V       the driver's version: %s (default: %s)
  --fail ENTRY:NTH:CODE    the NTH call of ENTRY from each process returns CODE, the name of a
                           CUresult with or without CUDA_ERROR_, or its number, and does nothing:
                           --fail cuMemAlloc:2:OUT_OF_MEMORY; may be given more than once
  --skip-unknown-kernels   a kernel that has no host function does nothing, and is counted; otherwise
                           its launch ends the program
  --schedule SEED:CALLS    work in streams is done later, in an order that SEED chooses, each piece of
                           it after CALLS driver calls; see Sim::ScheduleWork in cudasim/sim.h
  --help                   prints this

The exit status is the program's, or 128 and the number of the signal that terminated it; 125 if an
option is wrong, 126 if the program cannot be run, 127 if it is not found. SIGTERM and SIGHUP that
are sent to the command go to the program.

A program with a statically linked CUDA runtime does not run on the simulation.
)";

constexpr int kMaxDevices = 16;
constexpr int kBadUsage = 125;

[[noreturn]] void Fail(const std::string& text) {
  std::fprintf(stderr, "cudasim: %s\n", text.c_str());
  std::exit(kBadUsage);
}

[[noreturn]] void FailUsage(const std::string& text) {
  Fail(text + "; `cudasim --help` lists the options");
}

// The folder of this program.
fs::path OwnFolder() {
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) Fail("/proc is not mounted");
  return fs::path(path).parent_path();
}

// As it was built, or as it was installed.
fs::path FindSimulation() {
  const fs::path own = OwnFolder();
  const fs::path folders[] = {own / CUDASIM_BUILT, own / CUDASIM_INSTALLED};
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path found = fs::weakly_canonical(folder, error);
    if (!error && fs::exists(found / "libcuda.so.1", error)) return found;
  }
  Fail("there is no libcuda.so.1 in " + folders[0].lexically_normal().string() + " or " +
       folders[1].lexically_normal().string());
}

std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The simulated driver, loaded here to look at what it has.
class Driver {
 public:
  explicit Driver(const fs::path& simulation) {
    const std::string path = simulation / "libcuda.so.1";
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) Fail(dlerror());
    const auto control = Find<const Control* (*)()>(cudasim::driver::kControlSymbol);
    if (control == nullptr || control()->version != cudasim::driver::kControlVersion) {
      Fail(path + " is of another version of cudasim");
    }
    control_ = control();
  }

  bool HasEntry(const std::string& name) const {
    for (size_t i = 0; const char* entry = control_->entry_name(i); ++i) {
      if (name == entry) return true;
    }
    return false;
  }

  // A CUresult by its name, with or without CUDA_ERROR_, or by its number; 0 if there is none.
  int FindError(const std::string& text) const {
    const auto name_of = Find<decltype(&::cuGetErrorName)>("cuGetErrorName");
    for (int code = 1; code <= CUDA_ERROR_UNKNOWN; ++code) {
      const char* name = nullptr;
      if (name_of(static_cast<CUresult>(code), &name) != CUDA_SUCCESS) continue;
      if (text == name || "CUDA_ERROR_" + text == name || text == std::to_string(code)) return code;
    }
    return 0;
  }

  std::string version() const {
    int version = 0;
    Find<decltype(&::cuDriverGetVersion)>("cuDriverGetVersion")(&version);
    return VersionText(version);
  }

 private:
  template <typename Function>
  Function Find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }

  void* library_;
  const Control* control_;
};

// The versions that there are drivers of, beside the default.
std::vector<std::string> OtherVersions(const fs::path& simulation) {
  std::vector<std::string> versions;
  for (const fs::directory_entry& entry : fs::directory_iterator(simulation)) {
    if (fs::exists(entry.path() / "libcuda.so.1")) versions.push_back(entry.path().filename());
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

std::string Join(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

struct Options {
  std::string devices;
  std::string version;
  std::vector<std::string> faults;
  std::string schedule;
  bool skips_unknown_kernels = false;
  char** program = nullptr;
};

std::string CheckedDevices(const std::string& text) {
  const bool digits =
      !text.empty() && text.size() < 4 && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoi(text) > kMaxDevices) {
    FailUsage("--devices " + text + ": a number from 0 to " + std::to_string(kMaxDevices));
  }
  return text;
}

// ENTRY:NTH:CODE with the code as a number.
std::string CheckedFault(const std::string& text, const Driver& driver) {
  const std::string option = "--fail " + text + ": ";
  const size_t first = text.find(':');
  const size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  if (second == std::string::npos) FailUsage(option + "ENTRY:NTH:CODE");
  const std::string entry = text.substr(0, first);
  const std::string nth = text.substr(first + 1, second - first - 1);
  if (!driver.HasEntry(entry)) {
    FailUsage(option + "the simulated driver has no " + entry +
              " (names are without _v2: cuMemAlloc)");
  }
  if (nth.empty() || nth.size() > 9 || nth.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(nth) == 0) {
    FailUsage(option + "\"" + nth + "\" is not the number of a call, of which the first is 1");
  }
  const int code = driver.FindError(text.substr(second + 1));
  if (code == 0) FailUsage(option + "\"" + text.substr(second + 1) + "\" is no error of CUDA");
  return entry + ":" + nth + ":" + std::to_string(code);
}

std::string CheckedSchedule(const std::string& text) {
  const size_t colon = text.find(':');
  const auto is_number = [](const std::string& part) {
    return !part.empty() && part.size() < 9 &&
           part.find_first_not_of("0123456789") == std::string::npos;
  };
  if (colon == std::string::npos || !is_number(text.substr(0, colon)) ||
      !is_number(text.substr(colon + 1))) {
    FailUsage("--schedule " + text + ": SEED:CALLS, two numbers");
  }
  return text;
}

void PrintUsage(const Driver& driver, const std::vector<std::string>& other_versions) {
  std::printf(kUsage, kMaxDevices, Join(other_versions, ", ").c_str(), driver.version().c_str());
}

Options Parse(char** argv, const Driver& driver, const std::vector<std::string>& other_versions) {
  Options options;
  char** word = argv + 1;
  for (; *word != nullptr && std::strcmp(*word, "--") != 0; ++word) {
    std::string name = *word;
    if (name == "--help") {
      PrintUsage(driver, other_versions);
      std::exit(0);
    }
    if (name == "--skip-unknown-kernels") {
      options.skips_unknown_kernels = true;
      continue;
    }
    if (name != "--devices" && name != "--driver-version" && name != "--fail" &&
        name != "--schedule") {
      FailUsage((name.rfind("-", 0) == 0 ? "there is no option " : "-- is missing before ") + name);
    }
    const char* value = *++word;
    if (value == nullptr || std::strcmp(value, "--") == 0) FailUsage(name + " needs a value");
    if (name == "--devices") {
      options.devices = CheckedDevices(value);
    } else if (name == "--fail") {
      options.faults.push_back(CheckedFault(value, driver));
    } else if (name == "--schedule") {
      options.schedule = CheckedSchedule(value);
    } else if (value != driver.version()) {
      const bool known =
          std::find(other_versions.begin(), other_versions.end(), value) != other_versions.end();
      if (!known) {
        FailUsage("--driver-version " + std::string(value) + ": there are " +
                  Join(other_versions, ", ") + " and " + driver.version());
      }
      options.version = value;
    }
  }
  if (*word == nullptr || word[1] == nullptr) FailUsage("there is no program after --");
  options.program = word + 1;
  return options;
}

void SetEnvironment(const Options& options, const fs::path& simulation, const fs::path& folder) {
  std::string path = simulation;
  if (!options.version.empty()) path = (simulation / options.version).string() + ":" + path;
  // An empty folder of the path would be the current one.
  const char* before = std::getenv("LD_LIBRARY_PATH");
  if (before != nullptr && *before != '\0') path += std::string(":") + before;
  setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  setenv("CUDASIM_REPORT", folder.c_str(), 1);
  if (!options.devices.empty()) setenv("CUDASIM_DEVICES", options.devices.c_str(), 1);
  if (!options.schedule.empty()) setenv("CUDASIM_SCHEDULE", options.schedule.c_str(), 1);
  if (options.skips_unknown_kernels) setenv("CUDASIM_UNKNOWN_KERNELS", "skip", 1);
  if (!options.faults.empty()) setenv("CUDASIM_FAIL", Join(options.faults, ",").c_str(), 1);
}

volatile std::sig_atomic_t running = 0;  // the program's id; 0: it does not run

void PassOn(int signal) {
  if (running != 0) kill(running, signal);
}

// What the program's end was, as waitpid says it.
int Run(const Options& options, const fs::path& simulation, const fs::path& folder) {
  // Signals of the terminal are the program's, which gets them by itself and others from here. One
  // that is ignored stays so.
  const auto interrupt = std::signal(SIGINT, SIG_IGN);
  const auto quit = std::signal(SIGQUIT, SIG_IGN);
  const pid_t child = fork();
  if (child < 0) Fail(std::string("fork: ") + std::strerror(errno));
  if (child == 0) {
    std::signal(SIGINT, interrupt);
    std::signal(SIGQUIT, quit);
    SetEnvironment(options, simulation, folder);
    execvp(options.program[0], options.program);
    const int why = errno;
    std::fprintf(stderr, "cudasim: %s: %s\n", options.program[0], std::strerror(why));
    _exit(why == ENOENT ? 127 : 126);
  }
  running = child;
  for (const int other : {SIGTERM, SIGHUP}) {
    if (std::signal(other, PassOn) == SIG_IGN) std::signal(other, SIG_IGN);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  running = 0;
  return status;
}

// A report's lines, by their first word.
using Lines = std::map<std::string, std::vector<std::string>>;

Lines Read(const fs::path& file) {
  Lines lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t blank = line.find(' ');
    lines[line.substr(0, blank)].push_back(blank == std::string::npos ? ""
                                                                      : line.substr(blank + 1));
  }
  return lines;
}

void Print(const std::string& text) { std::fprintf(stderr, "cudasim: %s\n", text.c_str()); }

struct EntryCalls {
  unsigned long long count = 0;
  std::string entry;
};

std::vector<EntryCalls> CallsOf(const Lines& report) {
  std::vector<EntryCalls> calls;
  const auto lines = report.find("call");
  if (lines == report.end()) return calls;
  for (const std::string& line : lines->second) {
    EntryCalls one;
    std::istringstream(line) >> one.count >> one.entry;
    calls.push_back(one);
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const EntryCalls& a, const EntryCalls& b) { return a.count > b.count; });
  return calls;
}

std::vector<std::string> Of(const Lines& report, const char* word) {
  const auto lines = report.find(word);
  return lines == report.end() ? std::vector<std::string>() : lines->second;
}

void PrintCalls(const Lines& report, const std::string& process) {
  const std::vector<EntryCalls> calls = CallsOf(report);
  unsigned long long total = 0;
  for (const EntryCalls& one : calls) total += one.count;
  int version = 0;
  int devices = 0;
  std::istringstream(Of(report, "driver").at(0)) >> version >> devices;
  Print(process + ": " + std::to_string(total) + " calls of " + std::to_string(calls.size()) +
        " entries; CUDA " + VersionText(version) + ", devices: " + std::to_string(devices));
  for (const EntryCalls& one : calls) {
    std::fprintf(stderr, "cudasim: %10llu  %s\n", one.count, one.entry.c_str());
  }
}

std::string LeftAlive(const Lines& report) {
  std::vector<std::string> words;
  for (const std::string& line : Of(report, "live")) {
    const size_t blank = line.find(' ');
    words.push_back(line.substr(blank + 1) + ": " + line.substr(0, blank));
  }
  return words.empty() ? "nothing" : Join(words, ", ");
}

// As one that the program left behind: the process `id`, and no other that has its number since.
bool StillRuns(const std::string& id, const std::string& program) {
  std::error_code error;
  return fs::read_symlink("/proc/" + id + "/exe", error) == program && !error;
}

void PrintReport(const std::string& id, const Lines& report) {
  const auto program = Of(report, "program");
  const std::string process =
      (program.empty() ? "process" : fs::path(program[0]).filename().string()) + " (" + id + ")";
  if (report.count("end") == 0) {
    Print(process + (!program.empty() && StillRuns(id, program[0])
                         ? ": still runs, and reports no more"
                         : ": ended by a signal or _exit, without a report"));
    return;
  }
  PrintCalls(report, process);
  if (report.count("panic") != 0) {
    Print("ended by the simulation, as its message says; what was alive is not known");
  } else {
    Print("left alive: " + LeftAlive(report));
  }
  for (const std::string& line : Of(report, "missing")) {
    std::string entry;
    int version = 0;
    std::istringstream(line) >> entry >> version;
    Print("asked for and not found: " + entry + " of CUDA " + VersionText(version));
  }
  for (const std::string& line : Of(report, "unmodelled")) Print("not modelled: " + line);
  for (const std::string& line : Of(report, "skipped")) {
    const size_t blank = line.find(' ');
    Print("skipped: kernel " + line.substr(blank + 1) + ", launches: " + line.substr(0, blank));
  }
  for (const std::string& object : Of(report, "private")) {
    Print("asked for a private table of the driver, as a statically linked runtime does: " +
          object);
  }
  for (const std::string& entry : Of(report, "pending")) {
    Print("did not get to the call that was to fail: " + entry);
  }
}

void PrintReports(const fs::path& folder) {
  std::map<long, fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".new") {
      files[std::strtol(entry.path().filename().c_str(), nullptr, 10)] = entry.path();
    }
  }
  for (const auto& [id, file] : files) PrintReport(std::to_string(id), Read(file));
  if (files.empty()) {
    Print("no process loaded libcuda.so.1 of the simulation");
  }
}

}  // namespace

int main(int, char** argv) {
  const fs::path simulation = FindSimulation();
  const Driver driver(simulation);
  const Options options = Parse(argv, driver, OtherVersions(simulation));
  char folder[] = "/tmp/cudasim-XXXXXX";
  if (mkdtemp(folder) == nullptr) Fail(std::string("/tmp: ") + std::strerror(errno));
  const int status = Run(options, simulation, folder);
  PrintReports(folder);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
