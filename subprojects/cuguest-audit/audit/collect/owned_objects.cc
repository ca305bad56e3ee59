// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/owned_objects.h"

#include <sched.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace cuguest::audit {
namespace {

constexpr std::uint64_t kNumberLimit = 1 << 20;  // of a texture

bool IsNumber(ObjectKind kind) {
  return kind == ObjectKind::kTexture || kind == ObjectKind::kSurface;
}

auto OrderOf(const OwnedObject& object) { return std::make_tuple(object.kind, object.begin); }

}  // namespace

class OwnedObjects::Lock {
 public:
  explicit Lock(std::atomic_flag* flag) : flag_(flag) {
    while (flag_->test_and_set(std::memory_order_acquire)) sched_yield();
  }
  ~Lock() { flag_->clear(std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::atomic_flag* const flag_;
};

std::uint64_t OwnedObjects::KeyOf(ObjectKind kind, std::uint64_t begin, std::uint64_t context) {
  return IsNumber(kind) ? context * kNumberLimit + begin : begin;
}

// Where it is, or would be.
std::size_t OwnedObjects::PlaceOf(ObjectKind kind, std::uint64_t key) const {
  std::size_t place =
      (key * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(kind) * 0x85EBCA6Bu) >> 32;
  for (place %= kPlaces; places_[place] != 0; place = (place + 1) % kPlaces) {
    const OwnedObject& there = living_[places_[place] - 1];
    if (there.kind == kind && KeyOf(kind, there.begin, there.context) == key) break;
  }
  return place;
}

void OwnedObjects::Make(const OwnedObject& object) {
  if (IsNumber(object.kind) && object.begin >= kNumberLimit) return;
  if (is_closed_.load(std::memory_order_relaxed)) return;
  const Lock lock(&lock_);
  const std::uint64_t key = KeyOf(object.kind, object.begin, object.context);
  RemoveLiving(PlaceOf(object.kind, key));
  if (HasDead() && !IsNumber(object.kind)) RemoveOverlapping(object);
  if (object.context == 0) return;
  if (living_count_ == kMaxLiving) {
    has_dropped_.store(true, std::memory_order_relaxed);
    return;
  }
  const std::size_t place = PlaceOf(object.kind, key);
  living_[living_count_] = object;
  places_[place] = static_cast<std::uint32_t>(++living_count_);
}

void OwnedObjects::Free(ObjectKind kind, std::uint64_t begin, std::uint64_t context) {
  if (is_closed_.load(std::memory_order_relaxed)) return;
  const Lock lock(&lock_);
  RemoveLiving(PlaceOf(kind, KeyOf(kind, begin, context)));
  if (kind != ObjectKind::kModule) return;
  for (std::size_t i = living_count_; i > 0; --i) {
    const OwnedObject object = living_[i - 1];
    if (object.kind == ObjectKind::kFunction && object.parent == begin) {
      RemoveLiving(PlaceOf(object.kind, object.begin));
    }
  }
}

bool OwnedObjects::FindLiving(ObjectKind kind, std::uint64_t begin, OwnedObject* object) {
  if (is_closed_.load(std::memory_order_relaxed)) return false;
  const Lock lock(&lock_);
  const std::uint32_t number = places_[PlaceOf(kind, begin)];
  if (number != 0) *object = living_[number - 1];
  return number != 0;
}

void OwnedObjects::RemoveLiving(std::size_t place) {
  if (places_[place] == 0) return;
  const std::size_t index = places_[place] - 1;
  places_[place] = 0;
  // Those behind it that were put there because it was in their way.
  for (std::size_t at = (place + 1) % kPlaces; places_[at] != 0; at = (at + 1) % kPlaces) {
    const std::uint32_t number = std::exchange(places_[at], 0);
    const OwnedObject& moved = living_[number - 1];
    places_[PlaceOf(moved.kind, KeyOf(moved.kind, moved.begin, moved.context))] = number;
  }
  const OwnedObject last = living_[--living_count_];
  if (index == living_count_) return;
  const std::size_t of_last = PlaceOf(last.kind, KeyOf(last.kind, last.begin, last.context));
  living_[index] = last;
  places_[of_last] = static_cast<std::uint32_t>(index + 1);
}

void OwnedObjects::End(std::uint64_t context) {
  if (context == 0 || is_closed_.load(std::memory_order_relaxed)) return;
  const Lock lock(&lock_);
  std::size_t count = 0;
  for (std::size_t i = living_count_; i > 0; --i) {
    const OwnedObject object = living_[i - 1];
    if (object.context != context) continue;
    RemoveLiving(PlaceOf(object.kind, KeyOf(object.kind, object.begin, object.context)));
    // Behind the living ones there is now room for one more.
    living_[kMaxLiving - ++count] = object;
  }
  if (count > 0) Bury(&living_[kMaxLiving - count], count);
}

void OwnedObjects::Bury(OwnedObject* dead, std::size_t count) {
  std::sort(dead, dead + count,
            [](const OwnedObject& a, const OwnedObject& b) { return OrderOf(a) < OrderOf(b); });
  version_.fetch_add(1, std::memory_order_acq_rel);
  DropGiven();
  std::size_t old = dead_count_.load(std::memory_order_relaxed);
  if (old + count > kMaxDead) {
    has_dropped_.store(true, std::memory_order_relaxed);
    count = std::min(count, kMaxDead);
    old = std::min(old, kMaxDead - count);
  }
  dead_count_.store(old + count, std::memory_order_relaxed);
  for (std::size_t at = old + count; count > 0; --at) {
    const bool is_old = old > 0 && OrderOf(Read(graves_[old - 1])) > OrderOf(dead[count - 1]);
    Write(is_old ? Read(graves_[--old]) : dead[--count], &graves_[at - 1]);
  }
  version_.fetch_add(1, std::memory_order_release);
}

void OwnedObjects::DropGiven() {
  const std::size_t count = dead_count_.load(std::memory_order_relaxed);
  std::size_t left = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const OwnedObject object = Read(graves_[i]);
    if (object.context != 0) Write(object, &graves_[left++]);
  }
  dead_count_.store(left, std::memory_order_relaxed);
}

void OwnedObjects::RemoveOverlapping(const OwnedObject& object) {
  const std::uint64_t last = object.begin + object.size - 1;
  for (std::size_t i = Behind(dead_count_.load(std::memory_order_relaxed), object.kind, last);
       i > 0; --i) {
    Grave& grave = graves_[i - 1];
    const OwnedObject there = Read(grave);
    if (there.kind != object.kind || there.begin + there.size <= object.begin) return;
    grave.context.store(0, std::memory_order_relaxed);
  }
}

std::size_t OwnedObjects::Behind(std::size_t count, ObjectKind kind, std::uint64_t address) const {
  const auto wanted = static_cast<std::uint64_t>(kind);
  std::size_t low = 0;
  while (count > 0) {
    const std::size_t half = count / 2;
    const Grave& there = graves_[low + half];
    const std::uint64_t of_kind = there.key.load(std::memory_order_relaxed) >> 32;
    const bool is_behind = of_kind != wanted
                               ? of_kind > wanted
                               : there.begin.load(std::memory_order_relaxed) > address;
    low += is_behind ? 0 : half + 1;
    count = is_behind ? half : count - half - 1;
  }
  return low;
}

bool OwnedObjects::FindDead(ObjectKind kind, std::uint64_t address, OwnedObject* object) const {
  if (address == 0) return false;
  const std::uint64_t version = version_.load(std::memory_order_acquire);
  if (version % 2 != 0) return false;
  const std::size_t behind = Behind(dead_count_.load(std::memory_order_relaxed), kind, address);
  if (behind == 0) return false;
  *object = Read(graves_[behind - 1]);
  std::atomic_thread_fence(std::memory_order_acquire);
  return version_.load(std::memory_order_relaxed) == version && object->kind == kind &&
         object->context != 0 && address - object->begin < object->size;
}

OwnedObject OwnedObjects::Read(const Grave& grave) {
  OwnedObject object;
  const std::uint64_t key = grave.key.load(std::memory_order_relaxed);
  object.kind = static_cast<ObjectKind>(key >> 32);
  object.maker = static_cast<std::uint32_t>(key);
  object.begin = grave.begin.load(std::memory_order_relaxed);
  object.size = grave.size.load(std::memory_order_relaxed);
  object.context = grave.context.load(std::memory_order_relaxed);
  return object;
}

void OwnedObjects::Write(const OwnedObject& object, Grave* grave) {
  grave->key.store(static_cast<std::uint64_t>(object.kind) << 32 | object.maker,
                   std::memory_order_relaxed);
  grave->begin.store(object.begin, std::memory_order_relaxed);
  grave->size.store(object.size, std::memory_order_relaxed);
  grave->context.store(object.context, std::memory_order_relaxed);
}

void OwnedObjects::Close() {
  is_closed_.store(true, std::memory_order_relaxed);
  dead_count_.store(0, std::memory_order_relaxed);
}

}  // namespace cuguest::audit
