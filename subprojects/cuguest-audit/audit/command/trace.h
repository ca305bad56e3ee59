// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A trace in the Trace Event format (JSON array), which https://ui.perfetto.dev opens: a track for
// each thread, whose slices are the entries of its context stack, instants, and counters.
//
// Note [Written as it goes]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// An event is in the file's buffer when the call returns, and nothing of it is kept. A file that
// lacks its end, since the writer was killed, is still opened: the format allows the closing
// bracket to be missing.
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
#include "audit/command/stack_changes.h"

namespace cuguest::audit {

class TraceWriter final : public StackObserver {
 public:
  // Times are in nanoseconds of one clock, CLOCK_MONOTONIC; the trace begins at the first one.
  using Time = std::uint64_t;
  using Arguments = std::vector<std::pair<std::string, std::string>>;

  TraceWriter() = default;
  ~TraceWriter() override { Close(); }
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // As OutputFile's. Without it nothing below has an effect.
  std::string Open(const std::string& path) { return file_.Open(path); }
  [[nodiscard]] bool is_open() const { return file_.is_open(); }

  void NameProcess(int pid, const std::string& name);
  // Closes the slices of entries that are gone and opens those of new ones.
  void OnStackChange(const StackChange& change) override;
  void OnThreadEnd(const ThreadOfProcess& where) override { threads_.erase(where); }
  void AddInstant(const ThreadOfProcess& where, Time time, const std::string& name,
                  const Arguments& arguments);
  void AddCounter(int pid, Time time, const std::string& name, std::uint64_t value);

  void Flush() { file_.Flush(); }
  // Finishes the file. Returns "", or why it ends early: the disk was full.
  std::string Close();

 private:
  // In the trace; unique among all processes.
  int NumberOf(const ThreadOfProcess& where);
  std::string Begin(const char* phase, int pid, int thread, const std::string& name);
  std::string TimeText(Time time);
  void Write(const std::string& event);

  OutputFile file_;
  bool empty_ = true;
  bool has_begun_ = false;
  Time begin_ = 0;
  int last_number_ = 0;
  std::map<ThreadOfProcess, int> threads_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_TRACE_H_
