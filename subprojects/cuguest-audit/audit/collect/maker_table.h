// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of the places in the program that make objects: of a call and the code that makes it,
// whatever the thread and the stack.
//
// Threads: any; no locks.

#ifndef CUGUEST_AUDIT_COLLECT_MAKER_TABLE_H_
#define CUGUEST_AUDIT_COLLECT_MAKER_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "audit/channel.h"

namespace cuguest::audit {

class MakerTable {
 public:
  static constexpr std::size_t kMaxMakers = 4096;

  constexpr MakerTable() = default;

  // From 1; 0: there is no room.
  std::uint32_t NumberOf(std::uint32_t call, const FrameRecord* frames, std::size_t count);
  // Whether the channel knows it.
  bool IsTold(std::uint32_t number) const {
    return told_[number - 1].load(std::memory_order_relaxed);
  }
  void SetTold(std::uint32_t number) { told_[number - 1].store(true, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> places_[kMaxMakers] = {};  // hashes; 0: free
  std::atomic<bool> told_[kMaxMakers] = {};
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_MAKER_TABLE_H_
