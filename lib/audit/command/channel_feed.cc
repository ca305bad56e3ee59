// SPDX-License-Identifier: Apache-2.0

#include "lib/audit/command/channel_feed.h"

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
    Process about;
    about.number = fed.number;
    about.pid = process.pid;
    about.parent = process.parent;
    about.forked = process.forked;
    about.program = process.program;
    on_start_(fed.number, process);
    for (EventSink* sink : sinks_) sink->OnProcess(about);
  }
  return fed;
}

void ChannelFeed::OnEvent(const ChannelProcess& process, const Event& event) {
  if (!IsFollowed(process)) return;
  Fed& fed = Feed(process);
  for (; fed.objects < process.objects.size(); ++fed.objects) {
    for (EventSink* sink : sinks_) {
      sink->OnObject(fed.number, static_cast<std::uint32_t>(fed.objects),
                     process.objects[fed.objects]);
    }
  }
  for (EventSink* sink : sinks_) sink->OnEvent(fed.number, event);
}

std::map<std::uint32_t, const ChannelProcess*> ChannelFeed::processes() const {
  std::map<std::uint32_t, const ChannelProcess*> by_number;
  for (const auto& [process, fed] : fed_) by_number[fed.number] = process;
  return by_number;
}

}  // namespace cuguest::audit
