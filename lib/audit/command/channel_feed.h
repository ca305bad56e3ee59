// SPDX-License-Identifier: Apache-2.0
//
// Passes on what a ChannelReader reads, with the processes numbered.
//
// Thread-safe: no.

#ifndef CUGUEST_LIB_AUDIT_COMMAND_CHANNEL_FEED_H_
#define CUGUEST_LIB_AUDIT_COMMAND_CHANNEL_FEED_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/audit/channel_reader.h"
#include "lib/audit/log.h"

namespace cuguest::audit {

class ChannelFeed {
 public:
  // Told of a process before any sink is.
  using OnStart = std::function<void(std::uint32_t number, const ChannelProcess&)>;

  ChannelFeed(const std::string& directory, std::vector<EventSink*> sinks, OnStart on_start)
      : reader_(directory), sinks_(std::move(sinks)), on_start_(std::move(on_start)) {}

  // Only the programs of this process; otherwise those of all that write channels.
  void Follow(int pid) { only_pid_ = pid; }

  // As ChannelReader::Poll.
  std::size_t Poll();
  [[nodiscard]] bool AllEnded() const { return reader_.AllEnded(); }

  // Those that are followed, by number.
  [[nodiscard]] std::map<std::uint32_t, const ChannelProcess*> processes() const;

 private:
  struct Fed {
    std::uint32_t number = 0;
    std::size_t objects = 1;  // that the sinks know; the first is no object
  };

  [[nodiscard]] bool IsFollowed(const ChannelProcess& process) const {
    return only_pid_ == 0 || process.pid == only_pid_;
  }
  Fed& Feed(const ChannelProcess& process);
  void OnEvent(const ChannelProcess& process, const Event& event);

  ChannelReader reader_;
  const std::vector<EventSink*> sinks_;
  const OnStart on_start_;
  int only_pid_ = 0;
  std::map<const ChannelProcess*, Fed> fed_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_LIB_AUDIT_COMMAND_CHANNEL_FEED_H_
