// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/in_process/own_channel.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace cuguest::audit {

Resumed OwnChannel::Resume() {
  if (collect_ == nullptr) {
    if (Resumed loaded = Load(); !loaded.ok()) return loaded;
  }
  if (reader_ == nullptr) {
    if (Resumed opened = Open(); !opened.ok()) return opened;
  }
  ChannelProcess* process = Find();
  process->notes.clear();
  collect_("");  // goes on, and tries again to find a source
  Drain([](const Event&) {});
  if (!process->source.empty()) return {};
  Pause();
  std::string why = "the auditor has no source of events:";
  for (const std::string& note : process->notes) why += " " + note;
  return {Resumed::Outcome::kNoSource, why + " Run the test without other tools."};
}

Resumed OwnChannel::Load() {
  const char* wanted = std::getenv("CUGUEST_AUDIT_LIBRARY");
  const bool is_named = wanted != nullptr && *wanted != '\0';
  void* library = dlopen(is_named ? wanted : CUGUEST_AUDIT_INSTALLED, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr && !is_named)
    library = dlopen("libcuguest-audit.so", RTLD_NOW | RTLD_LOCAL);
  void* function = library != nullptr ? dlsym(library, kCollectFunction) : nullptr;
  if (function == nullptr) {
    return {Resumed::Outcome::kNoCollector,
            std::string("the auditor's collector cannot be loaded (") + dlerror() +
                "): set CUGUEST_AUDIT_LIBRARY to the path of libcuguest-audit.so"};
  }
  collect_ = reinterpret_cast<CollectFunction*>(function);
  return {};
}

// Both sides have the file open afterwards, and need the directory no more.
Resumed OwnChannel::Open() {
  const char* temporary = std::getenv("TMPDIR");
  std::string directory = temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
  directory += "/cuguest-audit-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) {
    return {Resumed::Outcome::kNoFiles, "the auditor cannot make a directory " + directory};
  }
  const auto result = static_cast<Collecting>(collect_(directory.c_str()));
  reader_ = std::make_unique<ChannelReader>(directory);
  reader_->Poll([](const ChannelProcess&, const Event&) {});
  const ChannelProcess* process = Find();
  if (process != nullptr) unlink((directory + "/" + std::to_string(getpid()) + ".0").c_str());
  rmdir(directory.c_str());
  if (process != nullptr) return {};
  reader_ = nullptr;
  if (result == Collecting::kForAnother) {
    return {Resumed::Outcome::kAuditedAlready,
            "the process is audited by cuguest-audit already: run the test without that command"};
  }
  return {Resumed::Outcome::kNoFiles, "the auditor cannot make its files in " + directory};
}

ChannelProcess* OwnChannel::Find() const {
  for (const auto& process : reader_->processes()) {
    if (process->pid == getpid()) return process.get();
  }
  return nullptr;
}

std::size_t OwnChannel::Poll(const OnEvent& on_event) const {
  return reader_->Poll([&](const ChannelProcess& process, const Event& event) {
    if (process.pid == getpid()) on_event(event);
  });
}

void OwnChannel::Drain(const OnEvent& on_event) const {
  while (Poll(on_event) != 0 || process().unread != 0) std::this_thread::yield();
}

}  // namespace cuguest::audit
