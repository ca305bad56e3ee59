// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives channels to processes and passes on what they write, with the processes numbered.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_CHANNEL_FEED_H_
#define CUGUEST_AUDIT_COMMAND_CHANNEL_FEED_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "audit/channel_reader.h"
#include "audit/channel_server.h"
#include "audit/command/process_watch.h"
#include "audit/log.h"

namespace cuguest::audit {

class ChannelFeed {
 public:
  // Of channels of `slots` slots.
  ChannelFeed(std::uint32_t slots, std::vector<EventSink*> sinks)
      : slots_(slots), server_(slots), sinks_(std::move(sinks)) {}

  // Of the processes that ask; see there for its error, address and descriptor.
  [[nodiscard]] const ChannelServer& server() const { return server_; }

  // Only the programs of this process are audited; otherwise all that ask for a channel.
  void Follow(int pid) { only_pid_ = pid; }

  // As ChannelReader::Poll.
  std::size_t Poll();
  [[nodiscard]] bool AllEnded() const { return reader_.AllEnded(); }

  // The process ids of all that are audited or named as unaudited.
  [[nodiscard]] const std::set<int>& pids() const { return pids_; }

  // No process is given a channel any more, and only what was written until now is read.
  void Freeze();
  // Nothing more is read: tells what was lost, which processes still run, and which use CUDA and
  // have no channel, with those of `unreachable`.
  void End(const std::map<int, ProcessWatch::Unreachable>& unreachable);

 private:
  struct Fed {
    std::uint32_t number = 0;
    // That the sinks know.
    std::size_t objects = 1;  // the first is no object
    std::size_t notes = 0;
    std::size_t limits = 0;
    bool source = false;
    // When events were last lost.
    std::uint64_t lost = 0;
    std::uint64_t pause_ns = 0;
  };

  [[nodiscard]] bool IsFollowed(int pid) const { return only_pid_ == 0 || pid == only_pid_; }
  Fed& Feed(const ChannelProcess& process);
  void Begin(const Process& process);
  // Unless it is known.
  void AddUnaudited(int pid, const std::string& program, const std::string& why);
  void Tell(const ChannelProcess& process, Fed* fed);
  void OnEvent(const ChannelProcess& process, const Event& event);
  [[nodiscard]] std::string WhyLost(const Fed& fed) const;

  const std::uint32_t slots_;
  ChannelServer server_;
  ChannelReader reader_;
  const std::vector<EventSink*> sinks_;
  int only_pid_ = 0;
  std::uint32_t last_number_ = 0;
  std::uint64_t polled_ns_ = 0;
  std::size_t refusals_ = 0;  // that the sinks know
  std::set<int> pids_;
  std::map<const ChannelProcess*, Fed> fed_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_CHANNEL_FEED_H_
