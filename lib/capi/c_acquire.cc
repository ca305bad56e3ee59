// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"

#include "cuguest/acquire.h"
#include "cuguest/internal/stream_kind.h"
#include "lib/capi/c_acquired.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

static_assert(CUGUEST_FROM_STREAM == static_cast<int>(Acquired::Source::kStream));
static_assert(CUGUEST_FROM_POINTER == static_cast<int>(Acquired::Source::kPointer));
static_assert(CUGUEST_FROM_CURRENT == static_cast<int>(Acquired::Source::kCurrent));
static_assert(CUGUEST_FROM_PRIMARY == static_cast<int>(Acquired::Source::kPrimary));
static_assert(CUGUEST_FROM_CREATED == static_cast<int>(Acquired::Source::kCreated));

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_acquire_on(cuguest_acquired* acquired, int device, int if_inactive) {
  if (!c::IsWhatIfInactive(if_inactive)) return CUDA_ERROR_INVALID_VALUE;
  return c::BeginObject(acquired, [=] {
    return c::AcquireOn(c::CurrentContext(), cuguest::Device::Borrow(device),
                        static_cast<cuguest::IfInactive>(if_inactive));
  });
}

// Source: <cuda.h>, where a CUdeviceptr is this type on 64-bit platforms.
int cuguest_acquire_from_pointer(cuguest_acquired* acquired, unsigned long long pointer,
                                 int if_inactive) {
  if (!c::IsWhatIfInactive(if_inactive)) return CUDA_ERROR_INVALID_VALUE;
  return c::BeginObject(acquired, [=] {
    return cuguest::AcquireFromPointer(static_cast<CUdeviceptr>(pointer),
                                       static_cast<cuguest::IfInactive>(if_inactive));
  });
}

int cuguest_acquire_from_stream(cuguest_acquired* acquired, CUstream stream, int device,
                                int if_inactive) {
  if (!c::IsWhatIfInactive(if_inactive)) return CUDA_ERROR_INVALID_VALUE;
  if (device != CUGUEST_NO_DEVICE && c::MeansCurrent(stream)) {
    return cuguest_acquire_on(acquired, device, if_inactive);
  }
  return c::BeginObject(acquired, [=] { return cuguest::AcquireFromStream(stream); });
}

int cuguest_acquire_any(cuguest_acquired* acquired) {
  return c::BeginObject(acquired, [] { return cuguest::AcquireAny(); });
}

int cuguest_acquired_hold(cuguest_acquired* acquired) {
  const c::AcquiredStorage storage(acquired);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->Hold().code : code;
}

int cuguest_acquired_device(const cuguest_acquired* acquired, int* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const c::ConstAcquiredStorage storage(acquired);
  CUresult code = storage.HasBegun();
  cuguest::Device found = cuguest::Device::Borrow(0);
  if (code == CUDA_SUCCESS) code = storage->GetDevice(&found);
  if (code == CUDA_SUCCESS) *device = found.get();
  return code;
}

int cuguest_acquired_ref(const cuguest_acquired* acquired, cuguest_ref* ref) {
  return c::NameObject<cuguest::Acquired>(acquired, ref);
}

int cuguest_acquired_source(const cuguest_acquired* acquired) {
  const c::ConstAcquiredStorage storage(acquired);
  return storage.HasBegun() == CUDA_SUCCESS ? static_cast<int>(storage->source()) : -1;
}

int cuguest_acquired_move(cuguest_acquired* to, cuguest_acquired* from) {
  return c::MoveObject<cuguest::Acquired>(to, from);
}

int cuguest_acquired_release(cuguest_acquired* acquired) {
  return c::ReleaseObject<cuguest::Acquired>(acquired);
}

void cuguest_acquired_cleanup(cuguest_acquired* acquired) {
  c::CleanUpOwner<cuguest::Acquired>(acquired);
}
