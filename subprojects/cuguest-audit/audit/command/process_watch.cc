// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/process_watch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "audit/channel.h"
#include "audit/channel_server.h"
#include "audit/command/clock.h"
#include "audit/command/text_file.h"

namespace cuguest::audit {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPeriodNs = 20'000'000;
constexpr std::uint64_t kObjectsPeriodNs = 200'000'000;
constexpr std::uint64_t kShare = 20;  // of the time, at most one in as many is for looking

std::string Folder(int pid) { return "/proc/" + std::to_string(pid); }

// As much as there is of a process that may have ended.
std::string ReadFile(const std::string& path) {
  std::string text;
  static_cast<void>(ReadTextFile(path, &text));
  return text;
}

std::string ReadLink(const std::string& path) {
  std::error_code ignored;
  return fs::read_symlink(path, ignored).string();
}

// With a zero before each variable; without variables if it has ended or may not be looked at.
std::string EnvironmentOf(int pid) { return '\0' + ReadFile(Folder(pid) + "/environ"); }

}  // namespace

void ProcessWatch::Look(const std::set<int>& known) {
  LookFor(&next_, [&] { Visit(root_, known); });
}

void ProcessWatch::LookAtLeft(const std::set<int>& known) {
  LookFor(&next_at_left_, [&] {
    std::set<int> left;
    std::error_code error;
    for (fs::directory_iterator process("/proc", error), end; !error && process != end;
         process.increment(error)) {
      const int pid = std::atoi(process->path().filename().c_str());
      // One that is known may have become a program with another environment.
      const bool is_left = left_.count(pid) != 0 ? !ReadFile(Folder(pid) + "/cmdline").empty()
                                                 : pid != 0 && HasVariable(EnvironmentOf(pid));
      if (!is_left) continue;
      left.insert(pid);
      Visit(pid, known);
    }
    left_ = std::move(left);
  });
}

template <typename Act>
void ProcessWatch::LookFor(std::uint64_t* next, const Act& act) {
  const std::uint64_t begin = MonotonicNow();
  if (begin < *next) return;
  act();
  const std::uint64_t end = MonotonicNow();
  *next = end + std::max(kPeriodNs, kShare * (end - begin));
}

void ProcessWatch::Visit(int pid, const std::set<int>& known) {
  if (known.count(pid) == 0 && found_.count(pid) == 0) {
    const std::string why = WhyUnreachable(pid);
    if (!why.empty()) found_[pid] = {ProgramOf(pid), why};
  }
  std::error_code error;
  for (fs::directory_iterator thread(Folder(pid) + "/task", error), end; !error && thread != end;
       thread.increment(error)) {
    std::ifstream children(thread->path() / "children");
    for (int child = 0; children >> child;) Visit(child, known);
  }
}

// "", if it can ask for a channel or does not use CUDA, as far as that can be seen.
std::string ProcessWatch::WhyUnreachable(int pid) {
  const std::string obstacle = Obstacle(pid);
  std::uint64_t& looked = looked_[pid];
  const std::uint64_t now = MonotonicNow();
  if (obstacle.empty() && now - looked < kObjectsPeriodNs) return "";
  looked = now;
  const std::string objects = ReadFile(Folder(pid) + "/maps");
  const auto has_loaded = [&](const std::string& object) {
    return objects.find(object) != std::string::npos;
  };
  // The channel is the parent's: the child of a fork has called nothing so far.
  if (has_loaded(std::string("/memfd:") + kChannelMemory)) return "";
  if (!obstacle.empty()) return has_loaded("/libcuda.so") ? obstacle : "";
  return has_loaded(collector_) ? "the collector in it could not ask for a channel: a sandbox?"
                                : "";
}

bool ProcessWatch::HasVariable(const std::string& environment) const {
  return environment.find('\0' + expected_ + '\0') != std::string::npos;
}

// What keeps a process from asking, whether or not it uses CUDA.
std::string ProcessWatch::Obstacle(int pid) const {
  const std::string environment = EnvironmentOf(pid);
  const bool is_known = environment.size() > 1 || ReadFile(Folder(pid) + "/cmdline") != "";
  struct stat status = {};
  if (!is_known || stat(Folder(pid).c_str(), &status) != 0) return "";
  if (status.st_uid != geteuid()) return "another user's process cannot load the collector";
  if (!HasVariable(environment)) {
    return "it was started without the variables of cuguest-audit in its environment";
  }
  const std::string network = ReadLink(Folder(pid) + "/ns/net");
  if (!network.empty() && network != ReadLink("/proc/self/ns/net")) {
    return "it is in another network namespace, where it cannot ask for a channel";
  }
  return "";
}

}  // namespace cuguest::audit
