// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The programs and shared libraries that frames were seen in, which keep their numbers and names
// when they are unloaded.
//
// Threads: any. Looking one up takes no lock of the dynamic linker's where glibc has
// _dl_find_object (2.35): a thread that holds that lock may wait for ours.

#ifndef CUGUEST_AUDIT_COLLECT_OBJECT_TABLE_H_
#define CUGUEST_AUDIT_COLLECT_OBJECT_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "audit/collect/channel_writer.h"
#include "audit/event.h"

namespace cuguest::audit {

// What is loaded at an address now. `name` belongs to the dynamic linker: valid while it is loaded.
struct LoadedObject {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uintptr_t bias = 0;  // what was added to the object's own addresses
  const char* name = nullptr;
  const void* dynamic = nullptr;  // section of the object; likewise
};

// False for an address in no object.
bool FindLoaded(std::uintptr_t address, LoadedObject* object);

struct KnownObject {
  LoadedObject loaded;  // `name` is our copy, as the dynamic linker had it
  std::uint32_t number = 0;
  // The driver, the runtime, a tool's interface to them, the collector itself: left out of the
  // beginning of a chain.
  bool is_hidden = false;
  bool is_runtime = false;                           // libcudart.so
  mutable std::atomic<std::uint32_t> defined_in{0};  // the epoch, see Define()
};

class ObjectTable {
 public:
  static constexpr std::size_t kPlaces = 2 * kObjectLimit;  // of which half are used

  constexpr ObjectTable() = default;

  // The object at that address; null if there is none, no memory, or no room.
  const KnownObject* Find(std::uintptr_t address);

  // Whether what is loaded at that address is `object`, which may have been unloaded.
  static bool IsStill(const KnownObject& object, std::uintptr_t address);

  // Writes it into the channel unless that was done in this epoch, which is from 1 and another one
  // for each channel.
  static void Define(const KnownObject& object, std::uint32_t epoch, ChannelWriter* writer);

  // The numbers of those that were defined in this epoch and are not loaded now.
  template <typename Visit>
  void ForEachUnloaded(std::uint32_t epoch, const Visit& visit) const {
    for (const auto& place : objects_) {
      const KnownObject* known = place.load(std::memory_order_acquire);
      if (known != nullptr && known->defined_in.load(std::memory_order_relaxed) == epoch &&
          !IsStill(*known, known->loaded.begin)) {
        visit(known->number);
      }
    }
  }

  // For a forked child: no other thread is in here any more.
  void UnlockInChild();

 private:
  static std::size_t PlaceOf(const LoadedObject& loaded);
  const KnownObject* FindKnown(const LoadedObject& loaded) const;
  const KnownObject* Add(const LoadedObject& loaded);

  std::mutex mutex_;  // of adding
  std::uint32_t count_ = 0;
  std::atomic<const KnownObject*> objects_[kPlaces] = {};
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_OBJECT_TABLE_H_
