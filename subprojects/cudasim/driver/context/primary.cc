// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/context/primary.h"

#include <mutex>

#include "driver/api.h"
#include "driver/context/context.h"
#include "driver/context/device.h"

namespace cudasim::driver {
namespace {

// What cuCtxGetFlags says in a primary context whose state says `flags`.
unsigned ShownFlags(unsigned flags) { return flags | unsigned{CU_CTX_MAP_HOST}; }

// Primary
//
// | call           | active           | inactive, releases due   | inactive          |
// |----------------|------------------|--------------------------|-------------------|
// | Retain         | +1               | a new incarnation        | a new incarnation |
// | Release        | -1; ends at 0    | one fewer due            | INVALID_CONTEXT   |
// | Reset          | ends             | nothing                  | nothing           |
// | SetFlags (v2)  | everybody's      | for the next one         | for the next one  |
//
// "Releases due" are the retains that a reset cut off: their owners' releases succeed (measured on
// an H100, driver 580.159.04). Retains have no owners: a release too many takes somebody else's.
//
// An incarnation does not end under a green context: a reset is then NOT_PERMITTED, and so is the
// release of the last reference, which is gone all the same. The green context then has no
// reference left to give back, and the primary stays active until somebody retains and releases or
// resets it (measured on the same).
struct Primary {
  std::mutex mutex;
  size_t references = 0;  // of this incarnation, or due after a reset
  size_t greens = 0;
  bool active = false;
  unsigned flags = 0;

  CUresult Begin(Context* context) {
    if (!active && !context->Activate(ShownFlags(flags))) return CUDA_ERROR_OUT_OF_MEMORY;
    active = true;
    ++references;
    return CUDA_SUCCESS;
  }

  CUresult Release(Context* context) {
    if (references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--references > 0) return CUDA_SUCCESS;
    if (!active) {
      flags = 0;
      return CUDA_SUCCESS;
    }
    if (greens > 0) return CUDA_ERROR_NOT_PERMITTED;
    End(context);
    return CUDA_SUCCESS;
  }

  void End(Context* context) {
    active = false;
    flags = 0;
    context->Deactivate();
  }
};

Primary primaries[kMaxDevices];

CUresult SetFlags(CUdevice device, unsigned flags, bool only_inactive) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!AreContextFlags(flags) || (flags & CU_CTX_MAP_HOST) != 0) return CUDA_ERROR_INVALID_VALUE;
  Primary& primary = primaries[device];
  const std::lock_guard<std::mutex> lock(primary.mutex);
  if (primary.active && only_inactive) return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
  primary.flags = flags;
  if (primary.active) Context::Primary(device)->flags.store(ShownFlags(flags));
  return CUDA_SUCCESS;
}

}  // namespace

size_t CountPrimaryReferences() {
  size_t count = 0;
  for (Primary& primary : primaries) {
    const std::lock_guard<std::mutex> lock(primary.mutex);
    count += primary.references;
  }
  return count;
}

CUresult DevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (StickyError() != CUDA_SUCCESS) return StickyError();
  Context* context = Context::Primary(device);
  Primary& primary = primaries[device];
  const std::lock_guard<std::mutex> lock(primary.mutex);
  const CUresult code = primary.Begin(context);
  if (code == CUDA_SUCCESS) *handle = context->handle();
  return code;
}

CUresult CreateGreenContext(CUdevice device, const Partition& partition, Context** context) {
  if (StickyError() != CUDA_SUCCESS) return StickyError();
  Context* owner = Context::Primary(device);
  Primary& primary = primaries[device];
  const std::lock_guard<std::mutex> lock(primary.mutex);
  const CUresult code = primary.Begin(owner);
  if (code != CUDA_SUCCESS) return code;
  *context = Context::CreateGreen(owner, partition);
  if (*context == nullptr) {
    primary.Release(owner);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  ++primary.greens;
  return CUDA_SUCCESS;
}

CUresult DestroyGreenContext(Context* context) {
  Context* owner = context->owner();
  Primary& primary = primaries[owner->device()];
  const std::lock_guard<std::mutex> lock(primary.mutex);
  if (!context->Destroy()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  --primary.greens;
  primary.Release(owner);  // in vain if its reference was stolen
  return CUDA_SUCCESS;
}

CUresult DevicePrimaryCtxRelease(CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Primary& primary = primaries[device];
  const std::lock_guard<std::mutex> lock(primary.mutex);
  return primary.Release(Context::Primary(device));
}

// The first version takes a release that no retain covers for done.
CUresult DevicePrimaryCtxReleaseQuietly(CUdevice device) {
  const CUresult code = DevicePrimaryCtxRelease(device);
  return code == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : code;
}

CUresult DevicePrimaryCtxReset(CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Primary& primary = primaries[device];
  const std::lock_guard<std::mutex> lock(primary.mutex);
  if (primary.greens > 0) return CUDA_ERROR_NOT_PERMITTED;
  primary.flags = 0;
  if (primary.active) primary.End(Context::Primary(device));
  return CUDA_SUCCESS;
}

// The first version releases a reference, too.
CUresult DevicePrimaryCtxResetFirst(CUdevice device) {
  const CUresult code = DevicePrimaryCtxReset(device);
  if (code == CUDA_SUCCESS) DevicePrimaryCtxRelease(device);
  return code;
}

CUresult DevicePrimaryCtxSetFlagsInactive(CUdevice device, unsigned flags) {
  return SetFlags(device, flags, /*only_inactive=*/true);
}

CUresult DevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return SetFlags(device, flags, /*only_inactive=*/false);
}

void ShowSyncMemops(CUdevice device, bool syncs) {
  constexpr unsigned kSyncMemops = CU_CTX_SYNC_MEMOPS;
  Primary& primary = primaries[device];
  const std::lock_guard<std::mutex> lock(primary.mutex);
  primary.flags = (primary.flags & ~kSyncMemops) | (syncs ? kSyncMemops : 0);
}

CUresult DevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Primary& primary = primaries[device];
  const std::lock_guard<std::mutex> lock(primary.mutex);
  *flags = primary.flags;
  *active = primary.active ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
