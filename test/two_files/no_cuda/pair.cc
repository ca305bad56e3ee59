// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled twice for one program, with CUGUEST_NO_CUDA and without.

#include "pair.h"

#include "cuguest_core.h"

#ifdef CUGUEST_NO_CUDA
#define ASK ask_without_cuda
#define ASK_C ask_c_without_cuda
#else
#define ASK ask_with_cuda
#define ASK_C ask_c_with_cuda
#endif

struct answers ASK(void) {
  const cuguest::ContextGuard guard(cuguest::ContextRef{});
  const cuguest::CGuard of_c(nullptr);
  cuguest::PerContext<int> cache;
  const auto pin =
      cache.GetOrMake(cuguest::ContextRef(), [](const cuguest::ContextRef&) { return 1; });
  return {static_cast<int>(guard.result()), ASK_C(), of_c.code(),
          static_cast<int>(pin.error().code)};
}
