// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/in_process/own_channel.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "audit/channel_server.h"

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
  collect_(kResumeCollecting);  // goes on, and tries again to find a source
  Drain([](const Event&) {});
  if (!process->source.empty()) return {};
  Pause();
  std::string why = "the auditor has no source of events:";
  for (const std::string& note : process->notes) why += " " + note;
  return {Resumed::Outcome::kNoSource, why + " Run the test without other tools."};
}

Resumed OwnChannel::Load() {
  const char* wanted = secure_getenv("CUGUEST_AUDIT_LIBRARY");
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

// Both sides have it mapped afterwards.
Resumed OwnChannel::Open() {
  const int memory = MakeChannelMemory(kChannelSlots);
  auto reader = std::make_unique<ChannelReader>();
  if (memory < 0 || !reader->Add(memory, getpid(), "")) {
    const std::string why = std::strerror(errno);
    if (memory >= 0) close(memory);
    return {Resumed::Outcome::kNoMemory, "the auditor has no memory for its events: " + why};
  }
  const auto result = static_cast<Collecting>(collect_(memory));
  close(memory);
  if (result == Collecting::kForAnother) {
    return {Resumed::Outcome::kAuditedAlready,
            "the process is audited by cuguest-audit already: run the test without that command"};
  }
  if (result == Collecting::kNoChannel) {
    return {Resumed::Outcome::kNoMemory, "the collector cannot map the memory for its events"};
  }
  reader_ = std::move(reader);
  reader_->Poll([](const ChannelProcess&, const Event&) {});
  return {};
}

ChannelProcess* OwnChannel::Find() const { return reader_->processes().front().get(); }

std::size_t OwnChannel::Poll(const OnEvent& on_event) const {
  return reader_->Poll([&](const ChannelProcess&, const Event& event) { on_event(event); });
}

void OwnChannel::Drain(const OnEvent& on_event) const {
  while (Poll(on_event) != 0 || process().unread != 0) std::this_thread::yield();
}

}  // namespace cuguest::audit
