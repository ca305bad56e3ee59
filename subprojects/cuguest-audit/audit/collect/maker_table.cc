// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/maker_table.h"

namespace cuguest::audit {

std::uint32_t MakerTable::NumberOf(std::uint32_t call, const FrameRecord* frames,
                                   std::size_t count) {
  std::uint64_t hash = call;
  for (std::size_t i = 0; i < count; ++i) {
    hash = (hash ^ frames[i].offset ^ std::uint64_t{frames[i].object} << 48) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  if (hash == 0) hash = 1;
  for (std::size_t tries = 0; tries < kMaxMakers; ++tries) {
    const std::size_t at = (hash + tries) % kMaxMakers;
    std::uint64_t there = places_[at].load(std::memory_order_relaxed);
    if (there == 0 && places_[at].compare_exchange_strong(there, hash)) there = hash;
    if (there == hash) return static_cast<std::uint32_t>(at + 1);
  }
  return 0;
}

}  // namespace cuguest::audit
