// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/timeline.h"

#include <algorithm>

namespace cuguest::audit {

namespace {

ContextId MergedCell(ContextId a, ContextId b) {
  if (a == b || b == 0) return a;
  return a == 0 ? b : Timeline::kSeveral;
}

}  // namespace

void Timeline::Advance(std::uint64_t time) {
  if (now_ != 0 && time <= last_time_) return;
  last_time_ = time;
  if (now_ == kColumns * stride_) Halve();
  if (now_ % stride_ == 0) begins_.push_back(time);
  ++now_;
}

void Timeline::Halve() {
  stride_ *= 2;
  for (std::size_t i = 0; i < begins_.size() / 2; ++i) begins_[i] = begins_[2 * i];
  begins_.resize(begins_.size() / 2);
  for (auto& [number, thread] : threads_) {
    for (Row& row : thread.rows) {
      row.resize((row.size() + 1) / 2 * 2);
      for (std::size_t i = 0; i < row.size() / 2; ++i) {
        row[i] = MergedCell(row[2 * i], row[2 * i + 1]);
      }
      row.resize(row.size() / 2);
    }
  }
}

void Timeline::Draw(std::size_t depth, std::uint64_t begin, std::uint64_t end, ContextId context,
                    Thread* thread) const {
  if (depth >= kRows) {
    thread->is_higher = true;
    return;
  }
  thread->rows.resize(std::max(thread->rows.size(), depth + 1));
  Row& row = thread->rows[depth];
  const std::size_t first = begin / stride_;
  const std::size_t last = (begin < end ? end - 1 : begin) / stride_;
  row.resize(std::max(row.size(), last + 1));
  for (std::size_t i = first; i <= last; ++i) row[i] = MergedCell(row[i], context);
}

void Timeline::OnStackChange(const StackChange& change) {
  const auto found = threads_.find(change.where.thread);
  if (found == threads_.end() && threads_.size() == kThreads) {
    has_others_ = true;
    return;
  }
  Thread& thread = found == threads_.end() ? threads_[change.where.thread] : found->second;
  Advance(change.time);
  const std::uint64_t change_number = now_ - 1;
  for (std::size_t i = change.before.size(); i-- > change.kept; thread.open.pop_back()) {
    Draw(i, thread.open[i].first, change_number, thread.open[i].second, &thread);
  }
  for (std::size_t i = change.kept; i < change.after.size(); ++i) {
    const ContextNote& context = change.after[i];
    thread.open.emplace_back(change_number, context.id);
    notes_[context.id] = context;
  }
  if (notes_.size() > notes_limit_) {
    notes_ = Contexts();
    notes_limit_ = kColumns + 2 * notes_.size();
  }
}

std::size_t Timeline::ColumnAt(std::uint64_t time) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), time);
  return after == begins_.begin() ? 0 : static_cast<std::size_t>(after - begins_.begin()) - 1;
}

std::map<ContextId, ContextNote> Timeline::Contexts() const {
  std::map<ContextId, ContextNote> contexts;
  const auto add = [&](ContextId id) {
    const auto note = notes_.find(id);
    if (id != 0 && note != notes_.end()) contexts.insert(*note);
  };
  for (const auto& [number, thread] : threads_) {
    for (const Row& row : thread.rows) std::for_each(row.begin(), row.end(), add);
    for (const auto& [since, id] : thread.open) add(id);
  }
  return contexts;
}

void Timelines::OnStackChange(const StackChange& change) {
  const auto found = processes_.find(change.where.process);
  if (found != processes_.end()) return found->second.OnStackChange(change);
  if (processes_.size() == kProcesses) {
    has_others_ = true;
    return;
  }
  processes_[change.where.process].OnStackChange(change);
}

}  // namespace cuguest::audit
