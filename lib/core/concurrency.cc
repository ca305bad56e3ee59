// SPDX-License-Identifier: Apache-2.0

#include "lib/core/concurrency.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

unsigned ThreadNumber() noexcept {
  static std::atomic<unsigned> s_next{0};
  thread_local const unsigned s_mine = s_next.fetch_add(1, std::memory_order_relaxed);
  return s_mine;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
