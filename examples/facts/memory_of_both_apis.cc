// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which context owns a pointer, which device reaches it, and which call frees it? See
// docs/facts/memory_of_both_apis.md.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/array.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/memory.h"
#include "cuguest/runtime/array.h"
#include "cuguest/runtime/handle.h"
#include "cuguest/runtime/pointer.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace {

using cuguest::Describe;
using cuguest::Device;
using cuguest::Driver;
using cuguest::MemoryDescription;
using cuguest::runtime::ToDriver;
using cuguest::runtime::ToRuntime;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

// Of either API: both have 0 for success.
#define SUCCEEDS(call) CHECK(static_cast<int>(call) == 0)

constexpr std::size_t kCount = 1000;  // as many as in a Ramp
constexpr std::size_t kBytes = kCount * sizeof(float);
constexpr std::size_t kPage = std::size_t{2} << 20;  // of virtual memory

struct Memory {
  const char* made_by;
  CUdeviceptr address;
  MemoryDescription::Kind kind;
  const char* owner;  // a context of the pictures, or a device
  bool host_reaches;
  std::function<int()> free;  // by the other API's call, where it has one
  const char* freed_by;
};

const char* Text(MemoryDescription::Kind kind) {
  switch (kind) {
    case MemoryDescription::Kind::kDevice:
      return "device";
    case MemoryDescription::Kind::kManaged:
      return "managed";
    case MemoryDescription::Kind::kPool:
      return "pool";
    case MemoryDescription::Kind::kPinnedHost:
      return "pinned host";
    case MemoryDescription::Kind::kVirtual:
      return "virtual";
    case MemoryDescription::Kind::kUnregistered:
      return "unregistered";
  }
  return "";
}

CUdeviceptr MapVirtual() {
  const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location;
  const CUmemAccessDesc access = {location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle physical = 0;
  CUdeviceptr address = 0;
  SUCCEEDS(DRIVER(cuMemCreate)(&physical, kPage, &properties, 0));
  SUCCEEDS(DRIVER(cuMemAddressReserve)(&address, kPage, 0, 0, 0));
  SUCCEEDS(DRIVER(cuMemMap)(address, kPage, 0, physical, 0));
  SUCCEEDS(DRIVER(cuMemRelease)(physical));
  SUCCEEDS(DRIVER(cuMemSetAccess)(address, kPage, &access, 1));
  return address;
}

int Unmap(CUdeviceptr address) {
  const CUresult unmapped = DRIVER(cuMemUnmap)(address, kPage);
  return unmapped != CUDA_SUCCESS ? unmapped : DRIVER(cuMemAddressFree)(address, kPage);
}

std::vector<Memory> MakeByDriver() {
  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  void* pinned = nullptr;
  CUdeviceptr pool = 0;
  SUCCEEDS(DRIVER(cuMemAlloc)(&device, kBytes));
  SUCCEEDS(DRIVER(cuMemAllocManaged)(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
  SUCCEEDS(DRIVER(cuMemHostAlloc)(&pinned, kBytes, 0));
  SUCCEEDS(DRIVER(cuMemAllocAsync)(&pool, kBytes, CU_STREAM_LEGACY));
  SUCCEEDS(DRIVER(cuStreamSynchronize)(CU_STREAM_LEGACY));
  const CUdeviceptr mapped = MapVirtual();
  const auto cuda_free = [](CUdeviceptr address) {
    return [address] { return cudaFree(ToRuntime(address)); };
  };
  return {{"cuMemAlloc", device, MemoryDescription::Kind::kDevice, "A", false, cuda_free(device),
           "cudaFree"},
          {"cuMemAllocManaged", managed, MemoryDescription::Kind::kManaged, "A", true,
           cuda_free(managed), "cudaFree"},
          {"cuMemHostAlloc", ToDriver(pinned), MemoryDescription::Kind::kPinnedHost, "A", true,
           [=] { return cudaFreeHost(pinned); }, "cudaFreeHost"},
          {"cuMemAllocAsync", pool, MemoryDescription::Kind::kPool, "device 0", false,
           cuda_free(pool), "cudaFree"},
          {"cuMemCreate, cuMemMap", mapped, MemoryDescription::Kind::kVirtual, "device 0", false,
           [mapped] { return Unmap(mapped); }, "cuMemUnmap"}};
}

std::vector<Memory> MakeByRuntime() {
  void* device = nullptr;
  void* managed = nullptr;
  void* pinned = nullptr;
  void* pool = nullptr;
  SUCCEEDS(cudaMalloc(&device, kBytes));
  SUCCEEDS(cudaMallocManaged(&managed, kBytes, cudaMemAttachGlobal));
  SUCCEEDS(cudaMallocHost(&pinned, kBytes));
  SUCCEEDS(cudaMallocAsync(&pool, kBytes, cudaStreamLegacy));
  SUCCEEDS(cudaStreamSynchronize(cudaStreamLegacy));
  const auto cu_free = [](void* address) {
    return [address] { return DRIVER(cuMemFree)(ToDriver(address)); };
  };
  return {{"cudaMalloc", ToDriver(device), MemoryDescription::Kind::kDevice, "P", false,
           cu_free(device), "cuMemFree"},
          {"cudaMallocManaged", ToDriver(managed), MemoryDescription::Kind::kManaged, "P", true,
           cu_free(managed), "cuMemFree"},
          {"cudaMallocHost", ToDriver(pinned), MemoryDescription::Kind::kPinnedHost, "P", true,
           [=] { return DRIVER(cuMemFreeHost)(pinned); }, "cuMemFreeHost"},
          {"cudaMallocAsync", ToDriver(pool), MemoryDescription::Kind::kPool, "device 0", false,
           cu_free(pool), "cuMemFree"}};
}

std::string Owner(const MemoryDescription& memory, const Cast& cast) {
  if (memory.context.ok()) return cast.NameOf(memory.context.get());
  if (memory.device.has_value()) return "device " + std::to_string(memory.device->get());
  return "none";
}

// Describe() says all of it, whatever is current, and touches nothing.
void ShowRow(const Memory& made, const Cast& cast) {
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const absl::StatusOr<MemoryDescription> memory = Describe(made.address);
  if (!CHECK_OK(memory.status())) return;
  const bool host = memory->host_address != nullptr;
  std::printf("   %-22s %-12s %-9s %-15s %s\n", made.made_by, Text(memory->kind),
              Owner(*memory, cast).c_str(), host ? "host and device" : "device", made.freed_by);
  CHECK(memory->kind == made.kind);
  CHECK(Owner(*memory, cast) == made.owner);
  CHECK(host == made.host_reaches);
  CHECK(memory->device_address == made.address && memory->offset() == 0);

  const absl::StatusOr<MemoryDescription> inside = Describe(made.address + 100);
  if (CHECK_OK(inside.status())) CHECK(inside->base == memory->base && inside->offset() == 100);
}

// The runtime copies to and from every kind, where the owner is current; and the other API's call
// frees it.
void CopyAndFree(const Memory& made) {
  const std::vector<float> ramp = Ramp(1);
  std::vector<float> read(kCount);
  void* const memory = ToRuntime(made.address);
  SUCCEEDS(cudaMemcpy(memory, ramp.data(), kBytes, cudaMemcpyDefault));
  SUCCEEDS(cudaMemcpy(read.data(), memory, kBytes, cudaMemcpyDefault));
  CHECK(read == ramp);
  SUCCEEDS(made.free());
  const absl::StatusOr<MemoryDescription> freed = Describe(made.address);
  CHECK(freed.ok() && freed->kind == MemoryDescription::Kind::kUnregistered);
}

void ShowTable(const char* title, const std::vector<Memory>& memories, const Cast& cast,
               HostStack* stack, CUcontext owner) {
  PrintScene(title);
  std::printf("   %-22s %-12s %-9s %-15s %s\n", "made by", "kind", "owner", "reached from",
              "freed here by");
  stack->Set({});  // the answers do not depend on what is current
  for (const Memory& memory : memories) ShowRow(memory, cast);
  stack->Set({owner});
  for (const Memory& memory : memories) CopyAndFree(memory);
}

// An array has no address, and the driver does not say whose it is.
void ShowArray() {
  PrintScene("An array");
  CUDA_ARRAY_DESCRIPTOR shape = {};
  shape.Width = 64;
  shape.Height = 16;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 4;
  CUarray array = nullptr;
  SUCCEEDS(DRIVER(cuArrayCreate)(&array, &shape));
  const absl::StatusOr<cuguest::Array::Description> described = cuguest::Array::Describe(array);
  if (CHECK_OK(described.status())) {
    support::PrintParagraph(described->ToString());
    CHECK(described->width == 64 && described->height == 16 && described->depth == 0);
    CHECK(described->bytes == std::size_t{64} * 16 * 4 * sizeof(float));
  }
  SUCCEEDS(cudaFreeArray(ToRuntime(array)));
}

void ShowUnregistered(const Driver& driver, Device device, HostStack* stack, CUcontext a) {
  PrintScene("Memory that CUDA does not know");
  CUdeviceptr freed = 0;
  SUCCEEDS(DRIVER(cuMemAlloc)(&freed, kBytes));
  SUCCEEDS(DRIVER(cuMemFree)(freed));
  CUdeviceptr gone = 0;
  {
    const absl::StatusOr<HostContext> b = HostContext::Create(driver, device);
    if (!CHECK_OK(b.status())) return;
    stack->Set({b->get()});
    SUCCEEDS(DRIVER(cuMemAlloc)(&gone, kBytes));
    stack->Set({a});
  }
  const std::pair<const char*, CUdeviceptr> pointers[] = {{"null", 0},
                                                          {"a local variable", ToDriver(&gone)},
                                                          {"freed", freed},
                                                          {"its context was destroyed", gone}};
  for (const auto& [what, address] : pointers) {
    const absl::StatusOr<MemoryDescription> memory = Describe(address);
    CHECK(memory.ok() && memory->kind == MemoryDescription::Kind::kUnregistered &&
          memory->size == 0);
    PrintRow(what, "unregistered");
  }
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  HostStack stack(driver, {a.get()});
  Cast cast;
  cast.Name("A", a.get());
  ShowTable("Memory of the driver API, allocated with A current", MakeByDriver(), cast, &stack,
            a.get());
  ShowArray();
  ShowUnregistered(driver, device, &stack, a.get());

  // As a program of the runtime does.
  stack.Set({});
  SUCCEEDS(cudaSetDevice(device.get()));
  CUcontext primary = nullptr;
  SUCCEEDS(driver.CtxGetCurrent(&primary));
  cast.Name("P", primary);
  ShowTable("Memory of the runtime, allocated with the primary context P current", MakeByRuntime(),
            cast, &stack, primary);
  SUCCEEDS(cudaPeekAtLastError());
  SUCCEEDS(cudaDeviceReset());
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample(
      "Which context owns a pointer, which device reaches it, and which call frees it?",
      &Demonstrate);
}
