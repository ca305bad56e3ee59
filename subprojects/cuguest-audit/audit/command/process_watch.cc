// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/process_watch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

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

bool HasLoaded(int pid, const std::string& object) {
  return ReadFile(Folder(pid) + "/maps").find(object) != std::string::npos;
}

}  // namespace

void ProcessWatch::Look(const std::set<int>& known) {
  const std::uint64_t begin = MonotonicNow();
  if (begin < next_) return;
  Visit(root_, known);
  const std::uint64_t end = MonotonicNow();
  next_ = end + std::max(kPeriodNs, kShare * (end - begin));
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
  if (!obstacle.empty()) return HasLoaded(pid, "/libcuda.so") ? obstacle : "";
  std::uint64_t& looked = looked_[pid];
  const std::uint64_t now = MonotonicNow();
  if (now - looked < kObjectsPeriodNs) return "";
  looked = now;
  return HasLoaded(pid, collector_) ? "the collector in it could not ask for a channel: a sandbox?"
                                    : "";
}

// What keeps a process from asking, whether or not it uses CUDA.
std::string ProcessWatch::Obstacle(int pid) const {
  const std::string environment = '\0' + ReadFile(Folder(pid) + "/environ");
  const bool is_known = environment.size() > 1 || ReadFile(Folder(pid) + "/cmdline") != "";
  struct stat status = {};
  if (!is_known || stat(Folder(pid).c_str(), &status) != 0) return "";
  if (status.st_uid != geteuid()) return "another user's process cannot load the collector";
  if (environment.find('\0' + expected_ + '\0') == std::string::npos) {
    return "it was started without the variables of cuguest-audit in its environment";
  }
  const std::string network = ReadLink(Folder(pid) + "/ns/net");
  if (!network.empty() && network != ReadLink("/proc/self/ns/net")) {
    return "it is in another network namespace, where it cannot ask for a channel";
  }
  return "";
}

}  // namespace cuguest::audit
