// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that has a copy of the core with a suffix of its own, CUGUEST_NAMESPACE_SUFFIX.

#include "cuguest/c.h"
#define NAME_2(suffix) guest_##suffix
#define NAME(suffix) NAME_2(suffix)
unsigned long long NAME(CUGUEST_NAMESPACE_SUFFIX)(struct CUctx_st* context,
                                                  int (*callee)(struct CUctx_st*)) {
  cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
  CUGUEST_SCOPE(cuguest_guard, guard);
  if (cuguest_shared_context_attach(&shared, context) != 0) return 99;
  if (cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE) != 0) return 98;
  if (callee(context) != 0 || cuguest_guard_leave(&guard) != 0) return 97;
  if (cuguest_shared_context_detach(&shared) != 0) return 96;
  return cuguest_incident_count(-1);
}
