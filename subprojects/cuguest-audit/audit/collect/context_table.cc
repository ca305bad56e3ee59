// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/context_table.h"

namespace cuguest::audit {
namespace {

std::uint64_t Scatter(std::uint64_t value) { return value * 0x9E3779B97F4A7C15u >> 32; }

}  // namespace

void ContextTable::NoteCreated(const void* handle, std::uint64_t id) {
  std::size_t at = Scatter(reinterpret_cast<std::uintptr_t>(handle)) % kMaxHandles;
  for (std::size_t tries = 0; tries < kMaxHandles; ++tries, at = (at + 1) % kMaxHandles) {
    const void* there = places_[at].handle.load(std::memory_order_acquire);
    if (there == nullptr) places_[at].handle.compare_exchange_strong(there, handle);
    if (there != nullptr && there != handle) continue;
    places_[at].id.store(id, std::memory_order_release);
    return;
  }
}

void ContextTable::NoteDestroyed(const void* handle) {
  const std::uint64_t id = IdOf(handle);
  if (id == 0) return;
  NoteCreated(handle, id | kDead);
  for (std::atomic<std::uint64_t>& primary : primaries_) {
    std::uint64_t ended = id;
    primary.compare_exchange_strong(ended, 0, std::memory_order_relaxed);
  }
}

std::uint64_t ContextTable::Look(const void* handle) const {
  if (handle == nullptr) return 0;
  std::size_t at = Scatter(reinterpret_cast<std::uintptr_t>(handle)) % kMaxHandles;
  for (std::size_t tries = 0; tries < kMaxHandles; ++tries, at = (at + 1) % kMaxHandles) {
    const void* there = places_[at].handle.load(std::memory_order_acquire);
    if (there == nullptr) return 0;
    if (there == handle) return places_[at].id.load(std::memory_order_acquire);
  }
  return 0;
}

std::uint64_t ContextTable::IdOf(const void* handle) const { return Look(handle) & ~kDead; }

bool ContextTable::IsDestroyed(const void* handle) const { return (Look(handle) & kDead) != 0; }

void ContextTable::NoteOwner(std::uint64_t id, int device, bool is_primary, bool is_green) {
  if (id >= kMaxUsed) return;
  const bool is_known = device >= 0 && device < kMaxDevices;
  std::uint64_t owner = is_green ? 0 : id;
  if (is_known && is_green) owner = primaries_[device].load(std::memory_order_relaxed);
  if (is_known && is_primary && !is_green) primaries_[device].store(id, std::memory_order_relaxed);
  owners_[id].store(owner, std::memory_order_relaxed);
}

std::uint64_t ContextTable::OwnerOf(std::uint64_t id) const {
  return id < kMaxUsed ? owners_[id].load(std::memory_order_relaxed) : 0;
}

bool ContextTable::HasPrimary(int device) const {
  const bool is_known = device >= 0 && device < kMaxDevices;
  return !is_known || primaries_[device].load(std::memory_order_relaxed) != 0;
}

bool ContextTable::NoteUsed(std::uint64_t id) {
  if (id == 0 || id >= kMaxUsed) return false;
  const std::uint64_t bit = std::uint64_t{1} << (id % 64);
  return (used_[id / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

std::uint64_t SettingTable::Exchange(std::uint64_t context, std::uint8_t family, int setting,
                                     std::uint64_t value) {
  const std::uint64_t key = (context << 16 | static_cast<std::uint64_t>(family) << 8 |
                             (static_cast<std::uint64_t>(setting) & 0xff)) +
                            1;
  Place& place = places_[Scatter(key) % kPlaces];
  const bool is_known = place.key.load(std::memory_order_acquire) == key;
  const std::uint64_t old_value = place.value.exchange(value, std::memory_order_acq_rel);
  place.key.store(key, std::memory_order_release);
  return is_known ? old_value : kUnknown;
}

}  // namespace cuguest::audit
