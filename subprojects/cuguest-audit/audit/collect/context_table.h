// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the process's context handles stand for, told by a source, and which contexts were used.
//
// Threads: any; no locks.

#ifndef CUGUEST_AUDIT_COLLECT_CONTEXT_TABLE_H_
#define CUGUEST_AUDIT_COLLECT_CONTEXT_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuguest::audit {

class ContextTable {
 public:
  constexpr ContextTable() = default;

  // `handle` stands for context `id` from now on.
  void NoteCreated(const void* handle, std::uint64_t id);
  void NoteDestroyed(const void* handle);

  // The context that the handle stands for, or last stood for; 0 for what never was a context.
  std::uint64_t IdOf(const void* handle) const;
  // False also for what never was a context.
  bool IsDestroyed(const void* handle) const;

  // Which context owns what is made in that one, but for streams: itself, or of a green one the
  // device's primary context. 0: it is not known.
  void NoteOwner(std::uint64_t id, int device, bool is_primary, bool is_green);
  std::uint64_t OwnerOf(std::uint64_t id) const;

  // Whether the device's primary context was told and not yet destroyed. True of a device that is
  // not known.
  bool HasPrimary(int device) const;

  // Whether this is the first call for that context. Ids count up from 1; beyond kMaxUsed all count
  // as used.
  bool NoteUsed(std::uint64_t id);

 private:
  static constexpr std::size_t kMaxHandles = 8192;
  static constexpr int kMaxDevices = 64;
  static constexpr std::uint64_t kMaxUsed = 1 << 18;
  static constexpr std::uint64_t kDead = std::uint64_t{1} << 63;

  struct Place {
    std::atomic<const void*> handle{nullptr};
    std::atomic<std::uint64_t> id{0};
  };

  std::uint64_t Look(const void* handle) const;

  Place places_[kMaxHandles];
  std::atomic<std::uint64_t> used_[kMaxUsed / 64] = {};
  std::atomic<std::uint64_t> owners_[kMaxUsed] = {};  // by id
  std::atomic<std::uint64_t> primaries_[kMaxDevices] = {};
};

// The last values that calls set or asked for, to tell what a call replaces. Values may be
// forgotten.
class SettingTable {
 public:
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

  constexpr SettingTable() = default;

  // What was there, or kUnknown.
  std::uint64_t Exchange(std::uint64_t context, std::uint8_t family, int setting,
                         std::uint64_t value);

 private:
  static constexpr std::size_t kPlaces = 1024;

  struct Place {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint64_t> value{0};
  };

  Place places_[kPlaces];
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_CONTEXT_TABLE_H_
