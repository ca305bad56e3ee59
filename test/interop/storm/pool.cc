// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/pool.h"

#include "cuguest/capture.h"
#include "test/interop/storm/failure.h"
#include "test/support/raw_driver.h"

namespace storm {

using cuguest::CaptureModeGuard;
using cuguest::Device;
using cuguest::StreamRef;

namespace {

CUmemLocation LocationOf(CUdevice device) {
  CUmemLocation location = {};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device;
  return location;
}

}  // namespace

Pool::Pool(Device device, int devices)
    : device_(device), is_open_to_(static_cast<std::size_t>(devices)) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = LocationOf(device.get());
  REQUIRE_CALL(RAW(cuMemPoolCreate)(&pool_, &props));
  for (int other = 0; other < devices; ++other) {
    int is_linked = other == device.get() ? 1 : 0;
    if (is_linked == 0) REQUIRE_CALL(RAW(cuDeviceCanAccessPeer)(&is_linked, other, device.get()));
    if (is_linked == 0) continue;
    const CUmemAccessDesc access = {LocationOf(other), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    REQUIRE_CALL(RAW(cuMemPoolSetAccess)(pool_, &access, 1));
    is_open_to_[static_cast<std::size_t>(other)] = true;
  }
}

Pool::~Pool() { RAW(cuMemPoolDestroy)(pool_); }

// Relaxed, as another thread may capture.
CUdeviceptr Pool::Allocate(std::size_t bytes, const StreamRef& stream) const {
  const CaptureModeGuard relaxed;
  RequireOk(relaxed);
  CUdeviceptr memory = 0;
  REQUIRE_CALL(RAW(cuMemAllocFromPoolAsync)(&memory, bytes, pool_, stream.get()));
  return memory;
}

void Pool::Free(CUdeviceptr memory, const StreamRef& stream) {
  const CaptureModeGuard relaxed;
  RequireOk(relaxed);
  REQUIRE_CALL(RAW(cuMemFreeAsync)(memory, stream.get()));
}

void Pool::Trim() const { REQUIRE_CALL(RAW(cuMemPoolTrimTo)(pool_, 0)); }

}  // namespace storm
