// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The objects that contexts own: which live, and which went with their context and were not made
// anew since.
//
// Note [What is certain of a dead object]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A driver gives handles and addresses again. An object is dead from its context's end until a call
// gives its handle, or a part of its memory, to anybody: from then on who uses that may mean the
// new one, and nothing is said. Numbers of textures are of one context each, so that the same
// number in another one is no new object.
//
// Threads: any. Calls that make, free or end take a lock that nothing else is done under;
// FindDead() and HasDead() take none.

#ifndef CUGUEST_AUDIT_COLLECT_OWNED_OBJECTS_H_
#define CUGUEST_AUDIT_COLLECT_OWNED_OBJECTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "audit/event.h"

namespace cuguest::audit {

struct OwnedObject {
  ObjectKind kind = ObjectKind::kNone;
  std::uint32_t maker = 0;    // as MakerTable numbers it; 0: not known
  std::uint64_t begin = 0;    // the handle, or where the memory begins
  std::uint64_t size = 0;     // of memory; of others 1
  std::uint64_t context = 0;  // that owns it
  std::uint64_t parent = 0;   // of a function: its module
};

class OwnedObjects {
 public:
  static constexpr std::size_t kMaxLiving = 1 << 16;
  static constexpr std::size_t kMaxDead = 1 << 16;

  constexpr OwnedObjects() = default;

  // Takes the place of what had its handle or memory, living or dead. Without a context it is only
  // that.
  void Make(const OwnedObject& object);
  // `context`: of a texture or a surface.
  void Free(ObjectKind kind, std::uint64_t begin, std::uint64_t context);
  // The living object with that handle; false if there is none.
  bool FindLiving(ObjectKind kind, std::uint64_t begin, OwnedObject* object);
  // The context is over, and what it owns with it.
  void End(std::uint64_t context);

  [[nodiscard]] bool HasDead() const { return dead_count_.load(std::memory_order_relaxed) != 0; }
  // What is dead and has that handle, or memory there.
  bool FindDead(ObjectKind kind, std::uint64_t address, OwnedObject* object) const;

  // Whether there was no room for an object, which is then unseen.
  [[nodiscard]] bool HasDropped() const { return has_dropped_.load(std::memory_order_relaxed); }

  // For a forked child, where CUDA does not work: there is nothing from now on.
  void Close();

 private:
  static constexpr std::size_t kPlaces = 2 * kMaxLiving;

  // Of a dead object; `context` 0: it was made anew.
  struct Grave {
    std::atomic<std::uint64_t> key{0};  // kind and maker
    std::atomic<std::uint64_t> begin{0};
    std::atomic<std::uint64_t> size{0};
    std::atomic<std::uint64_t> context{0};
  };

  class Lock;

  static std::uint64_t KeyOf(ObjectKind kind, std::uint64_t begin, std::uint64_t context);
  std::size_t PlaceOf(ObjectKind kind, std::uint64_t key) const;
  void RemoveLiving(std::size_t place);
  void RemoveOverlapping(const OwnedObject& object);
  void DropGiven();
  void Bury(OwnedObject* dead, std::size_t count);
  // The first grave behind those at or before `address`.
  std::size_t Behind(std::size_t count, ObjectKind kind, std::uint64_t address) const;
  static OwnedObject Read(const Grave& grave);
  static void Write(const OwnedObject& object, Grave* grave);

  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  std::atomic<bool> is_closed_{false};
  std::size_t living_count_ = 0;
  OwnedObject living_[kMaxLiving] = {};
  std::uint32_t places_[kPlaces] = {};     // index in living_ and 1; 0: nothing
  std::atomic<std::uint64_t> version_{0};  // odd while graves are changed
  std::atomic<std::size_t> dead_count_{0};
  std::atomic<bool> has_dropped_{false};
  Grave graves_[kMaxDead];  // ordered by kind and beginning
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_OWNED_OBJECTS_H_
