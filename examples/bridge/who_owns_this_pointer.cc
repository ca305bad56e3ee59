// SPDX-License-Identifier: Apache-2.0
//
// Whose is this pointer, who can reach it, and who frees it?
//
// A library is given an address. It may be of the driver API or of the runtime, in
// device or host memory, the first byte of an allocation or one in its midst, freed
// long ago, or no memory of CUDA's at all; its type tells nothing. `Describe` does,
// whatever is current, and touches nothing. The host below has memory of every kind in
// a context A of its own, in the primary context P, and in a context that is gone:
//
//   1. Memory of the driver API, made with A current
//
//   pointer           kind    owner    byte         reached freed by
//   cuMemAlloc        device  A        0 of 4096    device  cuMemFree, cudaFree
//   the same, inside  device  A        100 of 4096  device  cuMemFree, cudaFree
//   ...
//
// In the end the host frees each by the other API's call, which is how the last column
// is known to be so.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/memory.h"
#include "cuguest/runtime/array.h"
#include "cuguest/runtime/pointer.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace guest {

using cuguest::MemoryDescription;
using cuguest::MemoryKind;

std::string WhoFrees(const MemoryDescription& memory) {
  switch (memory.kind) {
    case MemoryKind::kDevice:
    case MemoryKind::kManaged:
    case MemoryKind::kPool:
      return "cuMemFree, cudaFree";
    case MemoryKind::kPinnedHost:
      return "only its maker knows";  // a free, or an end of the registration
    case MemoryKind::kVirtual:
      return "cuMemUnmap";
    case MemoryKind::kUnregistered:
      return "not CUDA";
  }
  return "";
}

const char* Kind(const MemoryDescription& memory) {
  switch (memory.kind) {
    case MemoryKind::kDevice:
      return "device";
    case MemoryKind::kManaged:
      return "managed";
    case MemoryKind::kPool:
      return "pool";
    case MemoryKind::kPinnedHost:
      return "pinned";
    case MemoryKind::kVirtual:
      return "virtual";
    case MemoryKind::kUnregistered:
      return "unknown";
  }
  return "";
}

const char* WhoReaches(const MemoryDescription& memory) {
  if (memory.device_address == 0) return "nobody";
  return memory.host_address == nullptr ? "device" : "both";
}

}  // namespace guest

namespace host {

using cuguest::Describe;
using cuguest::Device;
using cuguest::Driver;
using cuguest::MemoryDescription;
using cuguest::MemoryKind;
using cuguest::runtime::ToDriver;
using cuguest::runtime::ToRuntime;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;

constexpr std::size_t kBytes = 4096;
constexpr std::size_t kInside = 100;

enum class Reach { kNobody, kDevice, kBoth };

// What the host knows of an address, to hold the answers against.
struct Pointer {
  std::string made_by;
  CUdeviceptr address;
  MemoryKind kind;
  std::string owner;
  Reach reach;
  std::size_t size = kBytes;
  std::size_t offset = 0;
  std::function<bool()> free = nullptr;  // by the other API where it has a call for it
};

Pointer Inside(const Pointer& first) {
  return {"the same, inside",
          first.address + kInside,
          first.kind,
          first.owner,
          first.reach,
          first.size,
          kInside};
}

std::string Owner(const MemoryDescription& memory, const Cast& cast) {
  if (memory.context.ok()) return cast.NameOf(memory.context.get());
  if (memory.device.has_value()) return "device " + std::to_string(memory.device->get());
  return "nobody";
}

void PrintHeading(const char* title) {
  PrintScene(title);
  std::printf("   %-17s %-7s %-8s %-12s %-7s %s\n", "pointer", "kind", "owner", "byte", "reached",
              "freed by");
}

void Print(const Pointer& pointer, const MemoryDescription& memory, const Cast& cast) {
  const std::string byte =
      memory.size == 0 ? ""
                       : std::to_string(memory.offset()) + " of " + std::to_string(memory.size);
  std::printf("   %-17s %-7s %-8s %-12s %-7s %s\n", pointer.made_by.c_str(), guest::Kind(memory),
              Owner(memory, cast).c_str(), byte.c_str(), guest::WhoReaches(memory),
              guest::WhoFrees(memory).c_str());
}

void ShowRow(const Pointer& pointer, const Cast& cast) {
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const absl::StatusOr<MemoryDescription> memory = Describe(pointer.address);
  if (!CHECK_OK(memory.status())) return;
  Print(pointer, *memory, cast);
  CHECK(memory->kind == pointer.kind);
  CHECK(Owner(*memory, cast) == pointer.owner);
  CHECK(memory->size == pointer.size);
  CHECK(memory->offset() == pointer.offset);
  CHECK(memory->device_address == (pointer.reach == Reach::kNobody ? 0 : pointer.address));
  CHECK(ToDriver(memory->host_address) == (pointer.reach == Reach::kBoth ? pointer.address : 0));
}

// With nothing current: whose a pointer is does not depend on that.
void ShowTable(const std::vector<Pointer>& pointers, const Cast& cast, HostStack& stack) {
  stack.Set({});
  for (const Pointer& pointer : pointers) ShowRow(pointer, cast);
}

// Physical memory of device 0 behind addresses of its own.
class Mapping {
 public:
  static constexpr std::size_t kSize = std::size_t{2} << 20;

  Mapping() {
    const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = location;
    CUmemGenericAllocationHandle memory = 0;
    CHECK(DRIVER(cuMemCreate)(&memory, kSize, &properties, 0) == CUDA_SUCCESS);
    CHECK(DRIVER(cuMemAddressReserve)(&address_, kSize, 0, 0, 0) == CUDA_SUCCESS);
    CHECK(DRIVER(cuMemMap)(address_, kSize, 0, memory, 0) == CUDA_SUCCESS);
    CHECK(DRIVER(cuMemRelease)(memory) == CUDA_SUCCESS);
    const CUmemAccessDesc access = {location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(DRIVER(cuMemSetAccess)(address_, kSize, &access, 1) == CUDA_SUCCESS);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { CHECK(DRIVER(cuMemAddressFree)(address_, kSize) == CUDA_SUCCESS); }

  [[nodiscard]] CUdeviceptr address() const { return address_; }
  [[nodiscard]] bool Unmap() const { return DRIVER(cuMemUnmap)(address_, kSize) == CUDA_SUCCESS; }

 private:
  CUdeviceptr address_ = 0;
};

struct HostPages {
  alignas(kBytes) std::byte bytes[kBytes];
};

std::vector<Pointer> MakeByDriver(HostPages& pages, const Mapping& mapping) {
  CUdeviceptr device = 0;
  CHECK(DRIVER(cuMemAlloc)(&device, kBytes) == CUDA_SUCCESS);
  CUdeviceptr managed = 0;
  CHECK(DRIVER(cuMemAllocManaged)(&managed, kBytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  void* pinned = nullptr;
  CHECK(DRIVER(cuMemHostAlloc)(&pinned, kBytes, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemHostRegister)(&pages, kBytes, 0) == CUDA_SUCCESS);
  CUdeviceptr pool = 0;
  CHECK(DRIVER(cuMemAllocAsync)(&pool, kBytes, CU_STREAM_LEGACY) == CUDA_SUCCESS);
  CHECK(DRIVER(cuStreamSynchronize)(CU_STREAM_LEGACY) == CUDA_SUCCESS);

  const auto cuda_free = [](CUdeviceptr address) {
    return [address] { return cudaFree(ToRuntime(address)) == cudaSuccess; };
  };
  const Pointer first = {"cuMemAlloc", device, MemoryKind::kDevice, "A", Reach::kDevice,
                         kBytes,       0,      cuda_free(device)};
  return {first,
          Inside(first),
          {"cuMemAllocManaged", managed, MemoryKind::kManaged, "A", Reach::kBoth, kBytes, 0,
           cuda_free(managed)},
          {"cuMemHostAlloc", ToDriver(pinned), MemoryKind::kPinnedHost, "A", Reach::kBoth, kBytes,
           0, [=] { return cudaFreeHost(pinned) == cudaSuccess; }},
          {"cuMemHostRegister", ToDriver(&pages), MemoryKind::kPinnedHost, "A", Reach::kBoth,
           kBytes, 0, [&] { return cudaHostUnregister(&pages) == cudaSuccess; }},
          {"cuMemAllocAsync", pool, MemoryKind::kPool, "device 0", Reach::kDevice, kBytes, 0,
           cuda_free(pool)},
          {"cuMemMap", mapping.address(), MemoryKind::kVirtual, "device 0", Reach::kDevice,
           Mapping::kSize, 0, [&] { return mapping.Unmap(); }}};
}

std::vector<Pointer> MakeByRuntime(HostPages& pages) {
  void* device = nullptr;
  CHECK(cudaMalloc(&device, kBytes) == cudaSuccess);
  void* managed = nullptr;
  CHECK(cudaMallocManaged(&managed, kBytes, cudaMemAttachGlobal) == cudaSuccess);
  void* pinned = nullptr;
  CHECK(cudaMallocHost(&pinned, kBytes) == cudaSuccess);
  CHECK(cudaHostRegister(&pages, kBytes, cudaHostRegisterDefault) == cudaSuccess);
  void* pool = nullptr;
  CHECK(cudaMallocAsync(&pool, kBytes, cudaStreamLegacy) == cudaSuccess);
  CHECK(cudaStreamSynchronize(cudaStreamLegacy) == cudaSuccess);

  const auto cu_free = [](void* address) {
    return [address] { return DRIVER(cuMemFree)(ToDriver(address)) == CUDA_SUCCESS; };
  };
  const Pointer first = {
      "cudaMalloc",   ToDriver(device), MemoryKind::kDevice, "P", Reach::kDevice, kBytes, 0,
      cu_free(device)};
  return {first,
          Inside(first),
          {"cudaMallocManaged", ToDriver(managed), MemoryKind::kManaged, "P", Reach::kBoth, kBytes,
           0, cu_free(managed)},
          {"cudaMallocHost", ToDriver(pinned), MemoryKind::kPinnedHost, "P", Reach::kBoth, kBytes,
           0, [=] { return DRIVER(cuMemFreeHost)(pinned) == CUDA_SUCCESS; }},
          {"cudaHostRegister", ToDriver(&pages), MemoryKind::kPinnedHost, "P", Reach::kBoth, kBytes,
           0, [&] { return DRIVER(cuMemHostUnregister)(&pages) == CUDA_SUCCESS; }},
          {"cudaMallocAsync", ToDriver(pool), MemoryKind::kPool, "device 0", Reach::kDevice, kBytes,
           0, cu_free(pool)}};
}

// The runtime allocates where the driver's current context is, not in "its" primary one.
Pointer MakeByRuntimeInA() {
  void* device = nullptr;
  CHECK(cudaMalloc(&device, kBytes) == cudaSuccess);
  return {"cudaMalloc in A",
          ToDriver(device),
          MemoryKind::kDevice,
          "A",
          Reach::kDevice,
          kBytes,
          0,
          [device] { return DRIVER(cuMemFree)(ToDriver(device)) == CUDA_SUCCESS; }};
}

Pointer Unknown(const char* what, CUdeviceptr address) {
  return {what, address, MemoryKind::kUnregistered, "nobody", Reach::kNobody, 0};
}

CUdeviceptr Freed() {
  CUdeviceptr device = 0;
  CHECK(DRIVER(cuMemAlloc)(&device, kBytes) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemFree)(device) == CUDA_SUCCESS);
  return device;
}

absl::StatusOr<CUdeviceptr> GoneWithItsContext(const Driver& driver, Device device,
                                               HostStack& stack) {
  const absl::StatusOr<HostContext> b = HostContext::Create(driver, device);
  if (!b.ok()) return b.status();
  stack.Set({b->get()});
  CUdeviceptr pointer = 0;
  CHECK(DRIVER(cuMemAlloc)(&pointer, kBytes) == CUDA_SUCCESS);
  stack.Set({});
  return pointer;
}

// What is behind an array's handle has no address, and nobody tells whose it is.
void ShowArray() {
  PrintScene("An array has no address, and a description of its own");
  CUDA_ARRAY_DESCRIPTOR shape = {};
  shape.Width = 64;
  shape.Height = 16;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 4;
  CUarray array = nullptr;
  CHECK(DRIVER(cuArrayCreate)(&array, &shape) == CUDA_SUCCESS);
  const absl::StatusOr<cuguest::ArrayDescription> described = Describe(array);
  if (CHECK_OK(described.status())) {
    support::PrintParagraph(described->ToString());
    CHECK(described->width == 64 && described->height == 16 && described->depth == 0);
    CHECK(described->bytes == std::size_t{64} * 16 * 4 * sizeof(float));
  }
  CHECK(cudaFreeArray(cuguest::runtime::ToRuntime(array)) == cudaSuccess);
}

// With the context current that the memory was made in, as the runtime's calls ask for.
void FreeAll(const std::vector<Pointer>& pointers) {
  int freed = 0;
  for (const Pointer& pointer : pointers) {
    if (!pointer.free) continue;
    CHECK(pointer.free());
    const absl::StatusOr<MemoryDescription> memory = Describe(pointer.address);
    CHECK(memory.ok() && memory->kind == MemoryKind::kUnregistered);
    ++freed;
  }
  PrintRow(pointers.front().made_by + " ...", std::to_string(freed) + " freed",
           "and unknown from then on");
}

// As a program of the runtime does; its device is then current, and stays so.
absl::StatusOr<CUcontext> ChooseTheDevice(const Driver& driver, Device device, HostStack& stack) {
  stack.Set({});
  CHECK(cudaSetDevice(device.get()) == cudaSuccess);
  CUcontext primary = nullptr;
  const CUresult code = driver.CtxGetCurrent(&primary);
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "look at the runtime's context");
  return primary;
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  const absl::StatusOr<HostContext> a = HostContext::Create(driver, device);
  if (!a.ok()) return a.status();
  HostStack stack(driver, {a->get()});
  Cast cast;
  cast.Name("A", a->get());
  static HostPages pages[2];
  const Mapping mapping;

  const std::vector<Pointer> drivers = MakeByDriver(pages[0], mapping);
  PrintHeading("Memory of the driver API, made with A current");
  ShowTable(drivers, cast, stack);

  const absl::StatusOr<CUcontext> primary = ChooseTheDevice(driver, device, stack);
  if (!primary.ok()) return primary.status();
  cast.Name("P", *primary);
  std::vector<Pointer> runtimes = MakeByRuntime(pages[1]);
  PrintHeading("Memory of the runtime, made with P current, and once with A");
  stack.Set({a->get()});
  runtimes.push_back(MakeByRuntimeInA());
  ShowTable(runtimes, cast, stack);

  stack.Set({a->get()});
  const CUdeviceptr freed = Freed();
  const absl::StatusOr<CUdeviceptr> gone = GoneWithItsContext(driver, device, stack);
  if (!gone.ok()) return gone.status();
  PrintHeading("What belongs to nobody");
  ShowTable({Unknown("null", 0), Unknown("a local variable", ToDriver(&freed)),
             Unknown("freed", freed), Unknown("context is gone", *gone)},
            cast, stack);

  stack.Set({a->get()});
  ShowArray();
  PrintScene("Each is freed by the other API's call");
  FreeAll(drivers);
  stack.Set({*primary});
  FreeAll(runtimes);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(cudaDeviceReset() == cudaSuccess);  // the runtime's unit of P
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("Whose is this pointer, who can reach it, and who frees it?",
                             &host::Demonstrate);
}
