// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/channel_feed.h"

#include <algorithm>
#include <cstdio>

#include "audit/channel.h"
#include "audit/command/clock.h"
#include "audit/command/options.h"

namespace cuguest::audit {

std::size_t ChannelFeed::Poll() {
  const std::uint64_t last = polled_ns_;
  polled_ns_ = MonotonicNow();
  server_.Serve(&reader_);
  const std::size_t events = reader_.Poll(
      [this](const ChannelProcess& process, const Event& event) { OnEvent(process, event); });
  // Before it or within it.
  const std::uint64_t pause =
      std::max(last == 0 ? 0 : polled_ns_ - last, MonotonicNow() - polled_ns_);
  // Those without events, too.
  for (const auto& process : reader_.processes()) {
    Fed& fed = Feed(*process);
    if (process->lost == fed.lost) continue;
    fed.lost = process->lost;
    fed.pause_ns = std::max(fed.pause_ns, pause);
  }
  for (; refusals_ < server_.refusals().size(); ++refusals_) {
    const ChannelServer::Refusal& refusal = server_.refusals()[refusals_];
    AddUnaudited(refusal.pid, refusal.program, refusal.why);
  }
  return events;
}

void ChannelFeed::Begin(const Process& process) {
  pids_.insert(process.pid);
  for (EventSink* sink : sinks_) sink->OnProcess(process);
}

void ChannelFeed::AddUnaudited(int pid, const std::string& program, const std::string& why) {
  if (pids_.count(pid) != 0) return;
  Process process;
  process.number = ++last_number_;
  process.pid = pid;
  process.program = program;
  Begin(process);
  const std::string& reason = IsFollowed(pid) ? why : kNotFollowed;
  for (EventSink* sink : sinks_) sink->OnUnaudited(process.number, reason);
}

ChannelFeed::Fed& ChannelFeed::Feed(const ChannelProcess& process) {
  Fed& fed = fed_[&process];
  if (fed.number == 0) {
    fed.number = ++last_number_;
    Begin({fed.number, process.pid, process.parent, process.forked, process.start_ns,
           process.program});
    const std::string why = !IsFollowed(process.pid) ? kNotFollowed
                            : !process.started       ? "it ended before it had mapped its channel"
                                                     : "";
    for (EventSink* sink : sinks_) {
      if (!why.empty()) sink->OnUnaudited(fed.number, why);
    }
  }
  if (IsFollowed(process.pid)) Tell(process, &fed);
  return fed;
}

// What became known meanwhile.
void ChannelFeed::Tell(const ChannelProcess& process, Fed* fed) {
  for (; fed->notes < process.notes.size(); ++fed->notes) {
    for (EventSink* sink : sinks_) sink->OnNote(fed->number, process.notes[fed->notes]);
  }
  for (; fed->limits < process.limits.size(); ++fed->limits) {
    for (EventSink* sink : sinks_) sink->OnLimit(fed->number, process.limits[fed->limits]);
  }
  if (!fed->source && !process.source.empty()) {
    fed->source = true;
    for (EventSink* sink : sinks_) sink->OnSource(fed->number, process.source);
  }
  for (; fed->objects < process.objects.size(); ++fed->objects) {
    const auto index = static_cast<std::uint32_t>(fed->objects);
    for (EventSink* sink : sinks_) sink->OnObject(fed->number, index, process.objects[index]);
  }
}

void ChannelFeed::OnEvent(const ChannelProcess& process, const Event& event) {
  if (!IsFollowed(process.pid)) return;
  const Fed& fed = Feed(process);
  for (EventSink* sink : sinks_) sink->OnEvent(fed.number, event);
}

std::string ChannelFeed::WhyLost(const Fed& fed) const {
  const std::uint64_t size = ChannelBytes(slots_) >> 20;
  char text[160];
  if (fed.pause_ns < kChannelPatienceNs / 2) {
    std::snprintf(text, sizeof(text), "events were lost: the channel of %llu MiB was full",
                  static_cast<unsigned long long>(size));
  } else {
    std::snprintf(text, sizeof(text),
                  "events were lost: cuguest-audit was stopped or got no processor for %.1f s, and "
                  "the channel of %llu MiB was full",
                  static_cast<double>(fed.pause_ns) / 1e9, static_cast<unsigned long long>(size));
  }
  const std::string larger = LargerBuffer(static_cast<int>(size));
  return std::string(text) + "; " +
         (larger.empty() ? "audit a part of the program" : larger + " makes it larger");
}

void ChannelFeed::Freeze() {
  server_.Close();
  reader_.Freeze();
}

void ChannelFeed::End(const std::map<int, ProcessWatch::Unreachable>& unreachable) {
  for (const int pid : reader_.Unbegun()) {
    AddUnaudited(pid, ProgramOf(pid), "it has not mapped its channel");
  }
  for (const auto& [pid, process] : unreachable) AddUnaudited(pid, process.program, process.why);
  for (const auto& [process, fed] : fed_) {
    if (!IsFollowed(process->pid)) continue;
    const Loss loss = {process->lost, process->broken};
    for (EventSink* sink : sinks_) {
      if (loss.events != 0) sink->OnNote(fed.number, WhyLost(fed));
      if (loss.events != 0 || loss.records != 0) sink->OnLoss(fed.number, loss);
      if (!process->ended)
        sink->OnNote(fed.number, "it still runs; what it does now is not audited");
    }
  }
}

}  // namespace cuguest::audit
