// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a library does that uses each guard there is; compiled by used_test.py as one of its files,
// PART. With WITH_LIBRARY also those that stand on Abseil and on the runtime.

#include <cuda.h>

#include "cuguest/c.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/context_scope.h"
#include "cuguest/exact_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/relaxed.h"
#ifdef WITH_LIBRARY
#include "cuguest/acquired_guard.h"
#include "cuguest/runtime/device_guard.h"
#endif

#define NAME_OF(part) Use##part
#define NAME(part) NAME_OF(part)
#define EXPECT(holds)              \
  do {                             \
    if (!(holds)) return __LINE__; \
  } while (false)

namespace {

using Get = CUresult (*)(CUcontext*);

bool IsCurrent(Get get, CUcontext wanted) {
  CUcontext now = nullptr;
  return get(&now) == CUDA_SUCCESS && now == wanted;
}

int UseGuards(CUcontext mine, Get get) {
  const cuguest::ContextRef ref = cuguest::ContextRef::Borrow(mine);
  EXPECT(ref.ok());
  cuguest::ContextGuard guard(mine);
  EXPECT(guard.ok() && !guard.elided() && guard.caller() == nullptr && IsCurrent(get, mine));
  const cuguest::ContextGuard elided(ref);
  EXPECT(elided.ok() && elided.elided());
  const cuguest::ContextGuard pushed(ref, cuguest::GuardMode::kAlwaysPush);
  EXPECT(pushed.ok() && !pushed.elided());
  {
    const cuguest::HostScope host(guard);
    EXPECT(host.ok() && IsCurrent(get, nullptr));
  }
  const cuguest::CaptureModeGuard mode;
  EXPECT(mode.ok() && IsCurrent(get, mine));
  {
    const cuguest::Relaxed<cuguest::ContextGuard> relaxed(ref);
    EXPECT(relaxed.ok() && relaxed.guard().elided());
  }
  {
    const cuguest::NoContextGuard none;
    EXPECT(none.ok() && IsCurrent(get, nullptr));
    const cuguest::ExactGuard exact(ref);
    EXPECT(exact.ok() && IsCurrent(get, mine));
  }
  const cuguest::ExactGuard exact(mine);
  EXPECT(exact.ok() && exact.caller() == mine);
  return 0;
}

int UseScopes(CUcontext mine, Get get) {
  const cuguest::ContextRef ref = cuguest::ContextRef::Borrow(mine);
  cuguest::ContextScope scope;
  EXPECT(scope.Enter(ref) == CUDA_SUCCESS && IsCurrent(get, mine));
  EXPECT(scope.MoveTo(mine) == CUDA_SUCCESS && scope.Reassert() == CUDA_SUCCESS);
  EXPECT(scope.Leave() == CUDA_SUCCESS && IsCurrent(get, nullptr));
  return 0;
}

int UseC(CUcontext mine, Get get) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  EXPECT(cuguest_ref_borrow(&ref, mine) == 0);
  CUGUEST_SCOPE(cuguest_guard, guard);
  EXPECT(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  EXPECT(IsCurrent(get, mine));
  CUGUEST_SCOPE(cuguest_host_scope, host);
  EXPECT(cuguest_host_scope_enter(&host, CUGUEST_HERE) == 0 && IsCurrent(get, nullptr));
  return 0;
}

#ifdef WITH_LIBRARY
int UseLibrary(CUcontext mine, Get get) {
  const cuguest::Device device = cuguest::Device::Borrow(0);
  {
    const cuguest::runtime::DeviceGuard guard(device);
    EXPECT(guard.ok() && IsCurrent(get, mine));
  }
  const cuguest::AcquiredGuard acquired(device);
  EXPECT(acquired.ok() && IsCurrent(get, mine));
  return 0;
}
#endif

}  // namespace

// The line of what does not hold; or 0. `mine` is the primary context of device 0, and nothing is
// current.
int NAME(PART)(CUcontext mine, Get get);
int NAME(PART)(CUcontext mine, Get get) {
  int line = UseGuards(mine, get);
  if (line == 0) line = UseScopes(mine, get);
  if (line == 0) line = UseC(mine, get);
#ifdef WITH_LIBRARY
  if (line == 0) line = UseLibrary(mine, get);
#endif
  EXPECT(line != 0 || (IsCurrent(get, nullptr) && cuguest::IncidentCount() == 0));
  return line;
}
