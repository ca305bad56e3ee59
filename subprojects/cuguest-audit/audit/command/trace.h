// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A trace in the Trace Event format (JSON array), which https://ui.perfetto.dev opens: a track for
// each thread, whose slices are the entries of its context stack, instants, and counters.
//
// Note [Written as it goes]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// An event is in the file's buffer when the call returns, and nothing of it is kept but what is
// open of each thread's stack. A file that lacks its end, since the writer was killed, is still
// opened: the format allows the closing bracket to be missing.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_TRACE_H_
#define CUGUEST_AUDIT_COMMAND_TRACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "audit/command/output_file.h"

namespace cuguest::audit {

// A process that calls exec becomes another one with its pid.
struct TraceProcess {
  int pid = 0;
  std::uint32_t number = 0;
};

class TraceWriter {
 public:
  // Times are in nanoseconds of one clock, CLOCK_MONOTONIC; the trace begins at the first one.
  using Time = std::uint64_t;
  using Arguments = std::vector<std::pair<std::string, std::string>>;

  TraceWriter() = default;
  ~TraceWriter() { Close(); }
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // As OutputFile's. Without it nothing below has an effect.
  std::string Open(const std::string& path) { return file_.Open(path); }
  [[nodiscard]] bool is_open() const { return file_.is_open(); }

  void NameProcess(int pid, const std::string& name);
  // Makes the open slices of the thread these, outermost first: closes those that are not among
  // them and opens the rest.
  void SetStack(TraceProcess process, std::uint32_t thread, Time time,
                const std::vector<std::string>& stack);
  void AddInstant(TraceProcess process, std::uint32_t thread, Time time, const std::string& name,
                  const Arguments& arguments);
  void AddCounter(int pid, Time time, const std::string& name, std::uint64_t value);
  // Closes the slices of a thread that has ended, and forgets it.
  void EndThread(TraceProcess process, std::uint32_t thread, Time time);
  // Closes the slices of a process that has ended.
  void EndProcess(TraceProcess process, Time time);

  void Flush() { file_.Flush(); }
  // Finishes the file. Returns "", or why it ends early: the disk was full.
  std::string Close();

 private:
  struct Thread {
    int number = 0;  // in the trace; unique among all processes
    std::vector<std::string> stack;
  };

  Thread& ThreadOf(TraceProcess process, std::uint32_t thread);
  std::string Begin(const char* phase, int pid, int thread, const std::string& name);
  std::string TimeText(Time time);
  void CloseTo(size_t depth, int pid, Time time, Thread* thread);
  void Write(const std::string& event);

  OutputFile file_;
  bool empty_ = true;
  bool has_begun_ = false;
  Time begin_ = 0;
  int last_number_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Thread> threads_;  // by process and thread
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_TRACE_H_
