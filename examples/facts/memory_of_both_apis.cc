// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which context owns a pointer, which device reaches it, and which call frees it? See
// docs/facts/memory_of_both_apis.md.

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "cuguest/objects/memory.h"
#include "cuguest/runtime/pointer.h"
#include "examples/support/stage.h"

namespace {

using cuguest::Describe;
using cuguest::MemoryDescription;
using cuguest::runtime::ToDriver;
using cuguest::runtime::ToRuntime;
using support::PrintRow;
using support::Ramp;
using Kind = MemoryDescription::Kind;

constexpr std::size_t kCount = 1000;  // as many as in a Ramp
constexpr std::size_t kBytes = kCount * sizeof(float);

struct Memory {
  const char* made_by;
  CUdeviceptr address;
  Kind kind;
  const char* freed_by;  // the other API
  std::function<int(void* memory)> free;
};

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
  return {{"cuMemAlloc", device, Kind::kDevice, "cudaFree", &cudaFree},
          {"cuMemAllocManaged", managed, Kind::kManaged, "cudaFree", &cudaFree},
          {"cuMemHostAlloc", ToDriver(pinned), Kind::kPinnedHost, "cudaFreeHost", &cudaFreeHost},
          {"cuMemAllocAsync", pool, Kind::kPool, "cudaFree", &cudaFree}};
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
  const auto mem_free = [](void* memory) { return DRIVER(cuMemFree)(ToDriver(memory)); };
  return {{"cudaMalloc", ToDriver(device), Kind::kDevice, "cuMemFree", mem_free},
          {"cudaMallocManaged", ToDriver(managed), Kind::kManaged, "cuMemFree", mem_free},
          {"cudaMallocHost", ToDriver(pinned), Kind::kPinnedHost, "cuMemFreeHost",
           DRIVER(cuMemFreeHost)},
          {"cudaMallocAsync", ToDriver(pool), Kind::kPool, "cuMemFree", mem_free}};
}

// Describe() says all of it, whatever is current, and touches nothing.
void ShowRow(const Memory& made, CUcontext owner, const char* owners_name) {
  const support::Undisturbed undisturbed;
  const absl::StatusOr<MemoryDescription> memory = Describe(made.address);
  if (!CHECK_OK(memory.status())) return;
  const bool on_host = made.kind == Kind::kManaged || made.kind == Kind::kPinnedHost;
  CHECK(memory->kind == made.kind);
  CHECK(memory->context.get() == (made.kind == Kind::kPool ? nullptr : owner));
  CHECK(memory->device.has_value() && memory->device->get() == 0);
  CHECK((memory->host_address != nullptr) == on_host);
  CHECK(memory->device_address == made.address && memory->offset() == 0);
  const absl::StatusOr<MemoryDescription> inside = Describe(made.address + 100);
  if (CHECK_OK(inside.status())) CHECK(inside->base == memory->base && inside->offset() == 100);
  PrintRow(made.made_by, made.kind == Kind::kPool ? "device 0" : owners_name,
           (on_host ? "host and device, " : "device, ") + std::string(made.freed_by));
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
  SUCCEEDS(made.free(memory));
  const absl::StatusOr<MemoryDescription> freed = Describe(made.address);
  CHECK(freed.ok() && freed->kind == MemoryDescription::Kind::kUnregistered);
}

void ShowTable(const std::vector<Memory>& memories, const support::Stage& stage,
               const char* owner) {
  PrintRow("made by", "owner", "reached from, freed by");
  stage.Set({});  // the answers do not depend on what is current
  for (const Memory& memory : memories) ShowRow(memory, stage[owner], owner);
  stage.Set({owner});
  for (const Memory& memory : memories) CopyAndFree(memory);
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"A", "B", "P"});
  support::PrintScene("Memory of the driver API, allocated with A current");
  stage.Set({"A"});
  ShowTable(MakeByDriver(), stage, "A");

  support::PrintScene("Memory that CUDA does not know");
  CUdeviceptr freed = 0;
  CUdeviceptr gone = 0;
  SUCCEEDS(driver.MemAlloc(&freed, kBytes));
  SUCCEEDS(driver.MemFree(freed));
  stage.Set({"B"});
  SUCCEEDS(driver.MemAlloc(&gone, kBytes));
  stage.Set({});
  stage.Destroy("B");
  for (const CUdeviceptr address : {CUdeviceptr{0}, ToDriver(&gone), freed, gone}) {
    const absl::StatusOr<MemoryDescription> memory = Describe(address);
    CHECK(memory.ok() && memory->kind == Kind::kUnregistered && memory->size == 0);
  }
  PrintRow("null, a local, freed, of a destroyed context", "unregistered");

  support::PrintScene("Memory of the runtime, allocated with the primary context P current");
  SUCCEEDS(cudaSetDevice(device.get()));
  ShowTable(MakeByRuntime(), stage, "P");
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
