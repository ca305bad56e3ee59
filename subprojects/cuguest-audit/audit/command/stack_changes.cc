// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/stack_changes.h"

#include <algorithm>

namespace cuguest::audit {

namespace {

bool IsSameEntry(const ContextNote& a, const ContextNote& b) {
  return a.id == b.id && a.device == b.device && a.primary == b.primary;
}

}  // namespace

std::string ContextLabel(const ContextNote& context) {
  std::string label = context.id == 0 ? "no context" : "context " + std::to_string(context.id);
  if (context.device < 0) return label;
  return label + (context.primary ? " (primary of device " : " (device ") +
         std::to_string(context.device) + ")";
}

void StackChanges::Set(const ThreadOfProcess& where, std::uint64_t time,
                       std::vector<ContextNote> stack) {
  std::vector<ContextNote>& known = stacks_[where];
  const std::size_t common = std::min(known.size(), stack.size());
  const auto differs =
      std::mismatch(stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(common),
                    known.begin(), IsSameEntry);
  const auto kept = static_cast<std::size_t>(differs.first - stack.begin());
  if (kept == known.size() && kept == stack.size()) return;
  known.swap(stack);
  for (StackObserver* observer : observers_) {
    observer->OnStackChange({where, time, stack, known, kept});
  }
}

void StackChanges::EndThread(const ThreadOfProcess& where, std::uint64_t time) {
  if (stacks_.count(where) == 0) return;
  Set(where, time, {});
  stacks_.erase(where);
  for (StackObserver* observer : observers_) observer->OnThreadEnd(where);
}

void StackChanges::EndProcess(std::uint32_t process, std::uint64_t time) {
  for (auto at = stacks_.lower_bound({process, 0, 0});
       at != stacks_.end() && at->first.process == process;) {
    const ThreadOfProcess where = (at++)->first;
    EndThread(where, time);
  }
}

}  // namespace cuguest::audit
