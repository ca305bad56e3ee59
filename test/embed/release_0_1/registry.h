// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of 0.1.0's lib/context/registry.h.

#ifndef CUGUEST_TEST_RELEASE_0_1_REGISTRY_H_
#define CUGUEST_TEST_RELEASE_0_1_REGISTRY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "test/embed/release_0_1/release.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
enum class Ending : std::uint64_t {
  kNothing,
  kDestroy,
  kReleasePrimary,
  kRetired,
};
struct alignas(64) Stripe {
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 63;
  Atomic<std::uint64_t> word{0};
};
struct Slot {
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kStriped = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kBias = std::uint64_t{1} << 48;
  static constexpr std::uint64_t kCount = kStriped - 1;
  static constexpr int kStripes = Spread(16, 2);
  alignas(64) Atomic<std::uint64_t> root{0};
  alignas(64) Atomic<std::uint64_t> context{0};
  Atomic<std::uint64_t> id{0};
  Atomic<std::uint64_t> ending{0};
  Atomic<std::uint64_t> device{0};
  Stripe stripes[kStripes];
  bool IsOpen() const { return (root.load(std::memory_order_acquire) & kOpen) != 0; }
  bool IsFor(CUcontext handle, unsigned long long wanted_id) const {
    return context.load(std::memory_order_acquire) == reinterpret_cast<std::uintptr_t>(handle) &&
           id.load(std::memory_order_relaxed) == wanted_id && GetEnding() != Ending::kRetired;
  }
  bool IsFor(const ContextRef& wanted) const { return IsFor(wanted.get(), wanted.id()); }
  Ending GetEnding() const { return static_cast<Ending>(ending.load(std::memory_order_relaxed)); }
};
struct Chunk {
  static constexpr int kSlots = Spread(16, 2);
  Slot slots[kSlots];
  Atomic<Chunk*> next{nullptr};
};
struct Unit {
  Slot* slot = nullptr;
  int stripe = kRoot;
  static constexpr int kRoot = -1;
};
class Registry {
 public:
  static Registry& OfProcess() noexcept;
  Unit Join(const ContextRef& context) noexcept;
  Unit JoinLatest(CUcontext context) noexcept;
  enum class Outcome { kOpened, kJoined, kClosing, kNoMemory };
  Outcome JoinOrOpen(const ContextRef& context, Ending ending, CUdevice device,
                     Unit* unit) noexcept;
  Outcome OpenNew(const ContextRef& context, CUdevice device, Unit* unit) noexcept;
  static Unit Copy(Slot* slot) noexcept;
  static CUresult Leave(const Unit& unit) noexcept;
  static std::uint64_t Count(const Slot& slot) noexcept;
  bool Knows(CUcontext handle) noexcept;
  bool IsValid() const noexcept { return magic_ == kMagic && size_ == sizeof(Registry); }

 private:
  static constexpr std::uint32_t kMagic = 0x74736775;
  Unit Join(CUcontext context, unsigned long long id) noexcept;
  template <typename Predicate>
  Slot* Find(Predicate is_wanted) noexcept;
  template <typename Use>
  Outcome WithSlots(Use use) noexcept;
  Slot* FindUnused() noexcept;
  void Add(Chunk* chunk) noexcept;
  std::uint32_t magic_ = kMagic;
  std::uint32_t size_ = sizeof(Registry);
  SharedMutex opening_;
  Chunk first_;
};
struct EmbeddedCopy {
  std::string path;
  std::uint32_t layout = 0;
  Registry* registry = nullptr;
};
std::vector<EmbeddedCopy> FindCopies();
std::uint32_t RegistryLayout() noexcept;
}  // namespace internal
CUGUEST_END_NAMESPACE
#endif
