// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on what a ChannelReader reads, with the processes numbered.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_CHANNEL_FEED_H_
#define CUGUEST_AUDIT_COMMAND_CHANNEL_FEED_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "audit/channel_reader.h"
#include "audit/log.h"

namespace cuguest::audit {

class ChannelFeed {
 public:
  ChannelFeed(const std::string& directory, std::vector<EventSink*> sinks)
      : reader_(directory), sinks_(std::move(sinks)) {}

  // Only the programs of this process; otherwise those of all that write channels.
  void Follow(int pid) { only_pid_ = pid; }

  // As ChannelReader::Poll.
  std::size_t Poll();
  [[nodiscard]] bool AllEnded() const { return reader_.AllEnded(); }

  // Nothing more is read: tells what was lost, and which processes still run.
  void End();

 private:
  struct Fed {
    std::uint32_t number = 0;
    // That the sinks know.
    std::size_t objects = 1;  // the first is no object
    std::size_t notes = 0;
    bool source = false;
  };

  [[nodiscard]] bool IsFollowed(const ChannelProcess& process) const {
    return only_pid_ == 0 || process.pid == only_pid_;
  }
  Fed& Feed(const ChannelProcess& process);
  void Tell(const ChannelProcess& process, Fed* fed);
  void OnEvent(const ChannelProcess& process, const Event& event);

  ChannelReader reader_;
  const std::vector<EventSink*> sinks_;
  int only_pid_ = 0;
  std::map<const ChannelProcess*, Fed> fed_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_CHANNEL_FEED_H_
