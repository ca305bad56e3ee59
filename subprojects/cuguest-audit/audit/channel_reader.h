// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The events of all audited processes, read from their channels.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_CHANNEL_READER_H_
#define CUGUEST_AUDIT_CHANNEL_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "audit/channel.h"
#include "audit/event.h"

namespace cuguest::audit {

// One program of one process: a program that calls exec is followed by another with the same pid.
struct ChannelProcess {
  int pid = 0;
  int parent = 0;
  bool forked = false;             // a copy of a process that had started CUDA; has not called exec
  std::uint64_t start_ns = 0;      // CLOCK_MONOTONIC; Event::time_ns counts from it
  std::string program;             // path of the executable
  std::string source;              // of its events: "cupti", "cudasim"; empty: none could be had
  std::vector<std::string> notes;  // why a source could not be had, what this one does not see
  std::vector<std::string> limits;  // that the collector reached, and what is missing for that
  std::vector<Object> objects;      // Frame::object is an index into it; the first is no object
  std::uint64_t lost = 0;    // events dropped, because the reader was slower than the process
  std::uint64_t unread = 0;  // slots that were being written
  std::uint64_t broken = 0;  // records that cannot be read: their writer died, or they are bad
  bool started = true;       // false: the process has ended before it began its channel
  bool ended = false;        // the process is gone, and everything of it was read
};

class ChannelReader {
 public:
  using OnEvent = std::function<void(const ChannelProcess&, const Event&)>;

  ChannelReader();
  ~ChannelReader();
  ChannelReader(const ChannelReader&) = delete;
  ChannelReader& operator=(const ChannelReader&) = delete;

  // As many events as this at one time, and the processes write faster than a caller reads that
  // sleeps between two.
  static constexpr std::size_t kManyEvents = kChannelSlots / 4;

  // Reads the channel in `memory`, which the caller closes, of the process `pid`, whose executable
  // `program` is until the channel says it. False if the memory cannot be mapped.
  bool Add(int memory, int pid, const std::string& program);

  // Passes on what was written until now, each process's events in their
  // order. Returns their number. Below kManyEvents a caller does well to sleep a millisecond, so
  // that it does not read where the processes write (50 ns more for each event, on an H200's
  // machine), and a few with 0, when there is nothing to read. A process that called exit() has a
  // kProcessEnd, before the events of its exit handlers.
  //
  // A record whose writer does not finish holds up its process's later ones for a second, or until
  // the process ends. The memory of a process that has ended and was read is given back.
  std::size_t Poll(const OnEvent& on_event);

  // All processes seen, in the order of their first sight; pointers stay valid.
  const std::vector<std::unique_ptr<ChannelProcess>>& processes() const { return processes_; }

  // From now on passes on only what was written until now.
  void Freeze();

  // Those that run and have not begun their channels.
  std::vector<int> Unbegun() const;

  // Whether each process that has a channel is gone and read to its end.
  bool AllEnded() const { return channels_.empty(); }

 private:
  class Channel;

  std::vector<std::unique_ptr<Channel>> channels_;  // of processes that have not ended
  std::vector<std::unique_ptr<ChannelProcess>> processes_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_CHANNEL_READER_H_
