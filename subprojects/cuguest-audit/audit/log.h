// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The events of an audit as text, to be looked at and to be analysed again.
//
//     cuguest-audit-log 2
//     process 1 4711 4700 - 81264003712 /usr/bin/python3
//     source cupti
//     object 1 - /usr/bin/python3
//     object 2 8f3a...:libmine.so.1 /usr/lib/libmine.so.1.4
//     object 3 -::22:Encoder.encode /home/me/work/encoding/codec.py
//     thread 1 4711 python3
//     chain 1 2+4f20@7ffe1000 1+10@7ffe2000
//     call 1 2310 cuCtxPushCurrent result=0 before=1 after=2 context=2 chain=1
//     end
//
// A line is a record, its words parted by single spaces. The last word of a process, a source, a
// note or an object is the rest of its line, in which \\ is a backslash and \n a newline.
//
// `process NUMBER PID PARENT KIND START PROGRAM` begins a process; KIND is "forked" for a copy of
// its parent and "-" for others, START the CLOCK_MONOTONIC at which its times begin. `process
// NUMBER` goes back to one. What follows is of that process: where its events are from, notes about
// that, `unaudited WHY`, `lost EVENTS RECORDS`, `limit TEXT`, objects, threads, chains and events.
// An object is NUMBER BUILD_ID[:SONAME[:PACKAGE[:FUNCTION]]] PATH, with the members of Object.
// `thread NUMBER ID NAME` is before the first event of a thread. A chain is its frames, innermost
// first, as OBJECT+OFFSET@ADDRESS, the last two in hexadecimal, and has a number, below kLogChains,
// that a later chain may take over. An event is its kind, the thread, the time in nanoseconds, the
// name of the call ("-": none) and what is not as Event has it from the beginning of: result,
// before, after, context, device, primary, setting, value, old; and its chain, if it has one that
// is not empty. A log without its last line was cut off.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_LOG_H_
#define CUGUEST_AUDIT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/event.h"

namespace cuguest::audit {

inline constexpr int kLogVersion = 2;
inline constexpr std::size_t kLogChains =
    4096;  // of a process that are known by number at one time

// A process of an audit.
struct Process {
  std::uint32_t number = 0;  // from 1, in the order of their first sight
  int pid = 0;
  int parent = 0;
  bool forked = false;         // a copy of its parent that has not called exec
  std::uint64_t start_ns = 0;  // CLOCK_MONOTONIC; Event::time_ns counts from it
  std::string program;         // path of the executable
};

// What an audit did not see of a process.
struct Loss {
  std::uint64_t events = 0;   // there was no room for them
  std::uint64_t records = 0;  // their writer died, or they are bad
};

// Why a process is not audited that its user has left out, by --no-follow-fork.
inline constexpr char kNotFollowed[] = "--no-follow-fork leaves out what the program starts";

// Is told of processes, their objects and events, each in the order in which it happened: a process
// before its objects, an object before the frames in it.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void OnProcess(const Process& process) = 0;
  // What gives the process's events. Without it, nothing does.
  virtual void OnSource(std::uint32_t /*process*/, const std::string& /*name*/) {}
  // For people: why a source could not be had, what the one that there is does not see.
  virtual void OnNote(std::uint32_t /*process*/, const std::string& /*text*/) {}
  // The process uses CUDA, and nothing gives its events.
  virtual void OnUnaudited(std::uint32_t /*process*/, const std::string& /*why*/) {}
  // A limit of the collection was reached: what is missing for that, for people.
  virtual void OnLimit(std::uint32_t /*process*/, const std::string& /*text*/) {}
  // In all, at the end; not told if there is none.
  virtual void OnLoss(std::uint32_t /*process*/, const Loss& /*loss*/) {}
  virtual void OnObject(std::uint32_t process, std::uint32_t index, const Object& object) = 0;
  virtual void OnEvent(std::uint32_t process, const Event& event) = 0;
};

// Writes what it is told as lines, which it appends to `out`; its owner empties that into a file.
// A chain is written again only when another took its number over meanwhile.
class LogWriter final : public EventSink {
 public:
  explicit LogWriter(std::string* out);

  void OnProcess(const Process& process) override;
  void OnSource(std::uint32_t process, const std::string& name) override;
  void OnNote(std::uint32_t process, const std::string& text) override;
  void OnUnaudited(std::uint32_t process, const std::string& why) override;
  void OnLimit(std::uint32_t process, const std::string& text) override;
  void OnLoss(std::uint32_t process, const Loss& loss) override;
  void OnObject(std::uint32_t process, std::uint32_t index, const Object& object) override;
  void OnEvent(std::uint32_t process, const Event& event) override;
  // Nothing follows.
  void End();

 private:
  void Switch(std::uint32_t process);
  std::size_t NumberOf(const Chain& chain);
  void NameThread(const Event& event);

  std::string* const out_;
  std::uint32_t process_ = 0;                           // that lines are of
  std::map<std::uint32_t, std::vector<Chain>> chains_;  // of each process, by number
  // That are written and have not ended, by process and number.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<const OsThread>> threads_;
};

// Reads a log, piece by piece as it comes, and tells `sink` what is there.
class LogReader {
 public:
  explicit LogReader(EventSink* sink);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // The next part of the log, of any size. After the first bad line nothing more is read; what
  // precedes it has been passed on.
  void Read(std::string_view part);
  // After the last part.
  void Finish();

  // "", or what is wrong and in which line: "line 17: ...". Also of a log that was cut off, or is
  // empty.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  struct State;

  // What is wrong with the line, or "".
  std::string ReadLine(std::string_view line);

  EventSink* sink_;
  std::string rest_;  // of a line that is not complete yet
  std::uint64_t line_ = 0;
  bool has_ended_ = false;
  std::string error_;
  std::unique_ptr<State> state_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_LOG_H_
