// SPDX-License-Identifier: Apache-2.0
//
// A kernel's own parameters, which the driver is asked for once, so that every launch is held
// against them and not against what is like them.                                  tier: 3

#ifndef CUGUEST_LIB_MODULE_KERNEL_PARAMS_H_
#define CUGUEST_LIB_MODULE_KERNEL_PARAMS_H_

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuguest/export.h"
#include "cuguest/param_layout.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// KernelParams
//
// Threads: all members from any threads at the same time. What is kept once is never replaced,
//          so that a launch reads it without a lock.
class KernelParams {
 public:
  KernelParams() noexcept = default;
  KernelParams(const KernelParams&) = delete;
  KernelParams& operator=(const KernelParams&) = delete;
  ~KernelParams() { delete places_.load(std::memory_order_relaxed); }

  // Whether the kernel is known to take a layout: by count and sizes; by offsets as well; a
  // number of parameters. False until Keep().
  [[nodiscard]] bool AreSizes(const ParamLayoutView& layout) const noexcept {
    const Places* const places = Kept(layout.count);
    if (places == nullptr) return false;
    for (std::size_t i = 0; i < layout.count; ++i) {
      if ((*places)[i].size != layout.places[i].size) return false;
    }
    return true;
  }
  [[nodiscard]] bool ArePlaces(const ParamLayoutView& layout) const noexcept {
    static_assert(std::has_unique_object_representations_v<ParamPlace>, "compared as bytes");
    const Places* const places = Kept(layout.count);
    return places != nullptr &&
           (layout.count == 0 ||
            std::memcmp(places->data(), layout.places, layout.count * sizeof(ParamPlace)) == 0);
  }
  [[nodiscard]] bool AreCount(std::size_t count) const noexcept { return Kept(count) != nullptr; }

  // Nothing if others were first.
  void Keep(std::vector<ParamPlace> places) {
    auto kept = std::make_unique<const Places>(std::move(places));
    const Places* none = nullptr;
    if (places_.compare_exchange_strong(none, kept.get(), std::memory_order_release,
                                        std::memory_order_relaxed)) {
      static_cast<void>(kept.release());
    }
  }

 private:
  using Places = std::vector<ParamPlace>;

  // Null if they are not known, or not so many.
  const Places* Kept(std::size_t count) const noexcept {
    const Places* const places = places_.load(std::memory_order_acquire);
    return places != nullptr && places->size() == count ? places : nullptr;
  }

  std::atomic<const Places*> places_{nullptr};
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_KERNEL_PARAMS_H_
