// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The context stacks of threads as a picture has them: columns from left to right, rows of depth.
//
// Note [Columns]
// ~~~~~~~~~~~~~~
// A column is a number of successive changes in the process, one at first. When all columns are in
// use, each two become one, so that memory is bounded however long a program runs, and what happens
// within a microsecond is seen beside a pause of minutes. Of a cell that had several contexts
// nothing else is known.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_TIMELINE_H_
#define CUGUEST_AUDIT_COMMAND_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "audit/command/stack_changes.h"
#include "audit/finding.h"

namespace cuguest::audit {

// Of one process.
class Timeline final : public StackObserver {
 public:
  static constexpr std::size_t kColumns = 256;
  static constexpr std::size_t kRows = 8;      // of a thread; what is above is not kept
  static constexpr std::size_t kThreads = 16;  // the first ones

  static constexpr ContextId kSeveral = ~ContextId{0};
  // By column; 0: there was none. Columns at the end may be missing.
  using Row = std::vector<ContextId>;
  struct Thread {
    std::vector<Row> rows;  // the outermost entry first
    bool is_higher = false;

   private:
    friend class Timeline;
    std::vector<std::pair<std::uint64_t, ContextId>> open = {};  // since which change
  };

  // Entries that are on a stack are drawn when they go.
  void OnStackChange(const StackChange& change) override;

  // When each column begins.
  [[nodiscard]] const std::vector<std::uint64_t>& begins() const { return begins_; }
  [[nodiscard]] std::size_t ColumnAt(std::uint64_t time) const;
  [[nodiscard]] const std::map<std::uint32_t, Thread>& threads() const { return threads_; }
  // Those of all cells.
  [[nodiscard]] std::map<ContextId, ContextNote> Contexts() const;
  // How many are remembered, also of no cell: a multiple of those at most, whatever happens.
  [[nodiscard]] std::size_t remembered() const { return notes_.size(); }
  // Whether there are threads that are not kept.
  [[nodiscard]] bool has_others() const { return has_others_; }
  // In a column.
  [[nodiscard]] std::uint64_t changes() const { return stride_; }

 private:
  void Advance(std::uint64_t time);
  void Halve();
  void Draw(std::size_t depth, std::uint64_t begin, std::uint64_t end, ContextId context,
            Thread* thread) const;

  std::uint64_t stride_ = 1;
  std::uint64_t now_ = 0;  // changes, those at one time being one
  std::vector<std::uint64_t> begins_;
  std::uint64_t last_time_ = 0;
  std::map<std::uint32_t, Thread> threads_;
  bool has_others_ = false;
  std::map<ContextId, ContextNote> notes_;  // of all cells and open entries, and perhaps more
  std::size_t notes_limit_ = kColumns;
};

// Of the first processes.
class Timelines final : public StackObserver {
 public:
  static constexpr std::size_t kProcesses = 16;

  void OnStackChange(const StackChange& change) override;

  // By the process's number.
  [[nodiscard]] const std::map<std::uint32_t, Timeline>& processes() const { return processes_; }
  [[nodiscard]] bool has_others() const { return has_others_; }

 private:
  std::map<std::uint32_t, Timeline> processes_;
  bool has_others_ = false;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_TIMELINE_H_
