// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/channel_feed.h"

namespace cuguest::audit {

std::size_t ChannelFeed::Poll() {
  const std::size_t events = reader_.Poll(
      [this](const ChannelProcess& process, const Event& event) { OnEvent(process, event); });
  // Those without events, too.
  for (const auto& process : reader_.processes()) {
    if (IsFollowed(*process)) Feed(*process);
  }
  return events;
}

ChannelFeed::Fed& ChannelFeed::Feed(const ChannelProcess& process) {
  Fed& fed = fed_[&process];
  if (fed.number == 0) {
    fed.number = static_cast<std::uint32_t>(fed_.size());
    const Process about = {fed.number,     process.pid,      process.parent,
                           process.forked, process.start_ns, process.program};
    for (EventSink* sink : sinks_) sink->OnProcess(about);
  }
  Tell(process, &fed);
  return fed;
}

// What became known meanwhile.
void ChannelFeed::Tell(const ChannelProcess& process, Fed* fed) {
  for (; fed->notes < process.notes.size(); ++fed->notes) {
    for (EventSink* sink : sinks_) sink->OnNote(fed->number, process.notes[fed->notes]);
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
  if (!IsFollowed(process)) return;
  const Fed& fed = Feed(process);
  for (EventSink* sink : sinks_) sink->OnEvent(fed.number, event);
}

void ChannelFeed::End() {
  for (const auto& [process, fed] : fed_) {
    const Loss loss = {process->lost, process->broken};
    for (EventSink* sink : sinks_) {
      if (loss.events != 0 || loss.records != 0) sink->OnLoss(fed.number, loss);
      if (!process->ended)
        sink->OnNote(fed.number, "it still runs; what it does now is not audited");
    }
  }
}

}  // namespace cuguest::audit
