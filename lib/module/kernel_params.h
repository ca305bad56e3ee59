// SPDX-License-Identifier: Apache-2.0
//
// A kernel's own parameters, which the driver is asked for once, so that every launch is held
// against them and not against what is like them.                                  tier: 3

#ifndef CUGUEST_LIB_MODULE_KERNEL_PARAMS_H_
#define CUGUEST_LIB_MODULE_KERNEL_PARAMS_H_

#include <atomic>
#include <cstddef>
#include <memory>
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
    return Are(layout, [](const ParamPlace& takes, const ParamPlace& given) {
      return takes.size == given.size;
    });
  }
  [[nodiscard]] bool ArePlaces(const ParamLayoutView& layout) const noexcept {
    return Are(layout, [](const ParamPlace& takes, const ParamPlace& given) {
      return ((takes.size ^ given.size) | (takes.offset ^ given.offset)) == 0;
    });
  }
  [[nodiscard]] bool AreCount(std::size_t count) const noexcept {
    const Places* const places = Kept();
    return places != nullptr && places->size() == count;
  }

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

  template <typename IsRight>
  bool Are(const ParamLayoutView& layout, const IsRight& is_right) const noexcept {
    const Places* const places = Kept();
    if (places == nullptr || places->size() != layout.count) return false;
    const ParamPlace* takes = places->data();
    const ParamPlace* given = layout.places;
    for (const ParamPlace* const end = given + layout.count; given != end; ++takes, ++given) {
      if (!is_right(*takes, *given)) return false;
    }
    return true;
  }

  const Places* Kept() const noexcept { return places_.load(std::memory_order_acquire); }

  std::atomic<const Places*> places_{nullptr};
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_KERNEL_PARAMS_H_
