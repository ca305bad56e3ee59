// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/memory/reach.h"

#include "driver/context/device.h"
#include "driver/memory/memory.h"
#include "driver/memory/pool.h"

namespace cudasim::driver {
namespace {

// Memory of a device, allocated in a context of another than that of `place`.
bool IsOpenToPeers(Touch touch, const Allocation& memory, const Incarnation& place) {
  if (touch == Touch::kCopy) return true;
  const Incarnation& owner = memory.incarnation;
  return owner.context != nullptr && IsPeer(OwnerOf(place).id, OwnerOf(owner).id);
}

bool Finds(Touch touch, const Allocation& memory, unsigned access, const Incarnation& place) {
  const CUdevice device = place.context->device();
  if (memory.IsOnHost() || memory.IsManaged()) return true;
  switch (memory.kind) {
    case MemoryKind::kPool:
      // Copies find a host's pool without access (measured on an H100, driver 580.159.04).
      return (memory.lies_on_host && touch != Touch::kFill) || PoolReaches(memory.pool, device);
    case MemoryKind::kMapped:
      return memory.lies_on_host || (memory.AccessFrom(device) & access) != 0;
    case MemoryKind::kGraph:
      // Whatever access its node asks for. Not measured.
      return touch != Touch::kFill || memory.device == device;
    default:
      return memory.device == device || IsOpenToPeers(touch, memory, place);
  }
}

// To memory that is in no context.
bool HasAccess(const Allocation& memory, CUdevice device) {
  switch (memory.kind) {
    case MemoryKind::kPool:
      return PoolReaches(memory.pool, device);
    case MemoryKind::kMapped:
      return memory.AccessFrom(device) != 0;
    default:
      return memory.device == device;  // a graph's
  }
}

}  // namespace

bool IsWithinReach(Touch touch, CUdeviceptr address, size_t bytes, unsigned access,
                   const Incarnation& place) {
  Allocation part;
  while (Memory::Find(address, &part)) {
    if (!Finds(touch, part, access, place)) return false;
    if (part.Contains(address, bytes)) return true;
    bytes -= part.base + part.size - address;
    address = part.base + part.size;
  }
  return true;
}

std::uint32_t DevicesWithAccess(CUdeviceptr address) {
  Allocation memory;
  if (!Memory::Find(address, &memory) || memory.incarnation.id != 0) return 0;
  std::uint32_t devices = 1u << 31;
  for (CUdevice device = 0; device < kMaxDevices; ++device) {
    if (HasAccess(memory, device)) devices |= 1u << device;
  }
  return devices;
}

}  // namespace cudasim::driver
