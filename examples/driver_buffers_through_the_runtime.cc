// SPDX-License-Identifier: Apache-2.0
//
// What may the runtime, and a library that is written with it, do with the driver's memory?
//
// All that they do with their own. Every kind of memory that the driver gives is copied to and
// from by the runtime, worked on by cuBLAS, and freed by the runtime where that has a call for
// it; a CUstream is a cudaStream_t. What has to be right is the context that is current.
//
//   1. Every kind of memory
//
//      cuMemAlloc                    right           device, freed by cudaFree
//      cuMemAllocManaged             right           managed, freed by cudaFree
//      ...
//   2. One buffer and one stream, from hand to hand
//
//      before                        [X]<
//      the driver                    x               0, 1, 2, ...
//      cuBLAS                        y = 2 x + y     0, 3, 6, ...
//      ...
//      the runtime                   right           cudaMemcpyAsync

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/runtime/cublas.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/handle.h"
#include "cuguest/runtime/pointer.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Stream;
using cuguest::StreamRef;
using cuguest::runtime::CublasHandles;
using cuguest::runtime::CublasScope;
using cuguest::runtime::ToRuntime;
using cuguest::testing::UndisturbedScope;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

// Of either API: both have 0 for success.
#define SUCCEEDS(call) CHECK(static_cast<int>(call) == 0)

constexpr std::size_t kCount = 1000;  // as many as in a Ramp
constexpr std::size_t kBytes = kCount * sizeof(float);

// One way in which the driver gives memory, and what the runtime takes it for. Both functions
// are called with the stream's context current.
struct Kind {
  const char* allocated_by;
  cudaMemoryType type;
  const char* seen_as;
  CUdeviceptr (*allocate)(std::size_t bytes, CUstream stream);
  void (*free)(CUdeviceptr memory, std::size_t bytes, CUstream stream);
};

CUdeviceptr Allocate(std::size_t bytes, CUstream) {
  CUdeviceptr memory = 0;
  SUCCEEDS(DRIVER(cuMemAlloc)(&memory, bytes));
  return memory;
}

CUdeviceptr AllocateManaged(std::size_t bytes, CUstream) {
  CUdeviceptr memory = 0;
  SUCCEEDS(DRIVER(cuMemAllocManaged)(&memory, bytes, CU_MEM_ATTACH_GLOBAL));
  return memory;
}

CUdeviceptr AllocateHost(std::size_t bytes, CUstream) {
  void* memory = nullptr;
  SUCCEEDS(DRIVER(cuMemHostAlloc)(&memory, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
  return cuguest::runtime::ToDriver(memory);
}

CUdeviceptr AllocateFromPool(std::size_t bytes, CUstream stream) {
  CUdeviceptr memory = 0;
  SUCCEEDS(DRIVER(cuMemAllocAsync)(&memory, bytes, stream));
  return memory;
}

CUmemAllocationProp OnFirstDevice() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

std::size_t RoundedUp(std::size_t bytes) {
  const CUmemAllocationProp properties = OnFirstDevice();
  std::size_t unit = 1;
  SUCCEEDS(
      DRIVER(cuMemGetAllocationGranularity)(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return (bytes + unit - 1) / unit * unit;
}

// The memory goes when it is unmapped.
CUdeviceptr AllocateVirtual(std::size_t bytes, CUstream) {
  const CUmemAllocationProp properties = OnFirstDevice();
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const std::size_t size = RoundedUp(bytes);
  CUmemGenericAllocationHandle allocation = 0;
  CUdeviceptr memory = 0;
  SUCCEEDS(DRIVER(cuMemCreate)(&allocation, size, &properties, 0));
  SUCCEEDS(DRIVER(cuMemAddressReserve)(&memory, size, 0, 0, 0));
  SUCCEEDS(DRIVER(cuMemMap)(memory, size, 0, allocation, 0));
  SUCCEEDS(DRIVER(cuMemSetAccess)(memory, size, &access, 1));
  SUCCEEDS(DRIVER(cuMemRelease)(allocation));
  return memory;
}

void Free(CUdeviceptr memory, std::size_t, CUstream) { SUCCEEDS(cudaFree(ToRuntime(memory))); }
void FreeHost(CUdeviceptr memory, std::size_t, CUstream) {
  SUCCEEDS(cudaFreeHost(ToRuntime(memory)));
}
void FreeToPool(CUdeviceptr memory, std::size_t, CUstream stream) {
  SUCCEEDS(cudaFreeAsync(ToRuntime(memory), ToRuntime(stream)));
}
void FreeVirtual(CUdeviceptr memory, std::size_t bytes, CUstream) {
  SUCCEEDS(DRIVER(cuMemUnmap)(memory, RoundedUp(bytes)));
  SUCCEEDS(DRIVER(cuMemAddressFree)(memory, RoundedUp(bytes)));
}

constexpr Kind kKinds[] = {
    {"cuMemAlloc", cudaMemoryTypeDevice, "device, freed by cudaFree", &Allocate, &Free},
    {"cuMemAllocManaged", cudaMemoryTypeManaged, "managed, freed by cudaFree", &AllocateManaged,
     &Free},
    {"cuMemHostAlloc", cudaMemoryTypeHost, "host, freed by cudaFreeHost", &AllocateHost, &FreeHost},
    {"cuMemAllocAsync", cudaMemoryTypeDevice, "device, freed by cudaFreeAsync", &AllocateFromPool,
     &FreeToPool},
    {"cuMemCreate, cuMemMap", cudaMemoryTypeDevice, "device, the driver frees it", &AllocateVirtual,
     &FreeVirtual},
};

struct House {
  const support::Cast& cast;
  CublasHandles& handles;
  const StreamRef& stream;  // of the program's context A
};

// y = 2 x + y, on the stream.
absl::Status Saxpy(const House& house, const float* x, float* y) {
  const CublasScope blas(house.handles, house.stream);
  if (!blas.ok()) return blas.status();
  const float two = 2;
  return cuguest::runtime::ToStatus(
      cublasSaxpy(blas.handle(), static_cast<int>(kCount), &two, x, 1, y, 1), "add two vectors");
}

// Two vectors of the kind: the runtime brings them there, cuBLAS adds them, the runtime
// fetches the sum.
void RoundTrip(const House& house, const Kind& kind) {
  const ContextGuard guard(house.stream.context());
  CHECK(guard.ok());
  const CUdeviceptr memory = kind.allocate(2 * kBytes, house.stream.get());
  auto* const x = ToRuntime<float>(memory);
  float* const y = x + kCount;
  const cudaStream_t stream = ToRuntime(house.stream.get());
  const std::vector<float> ramp = Ramp(1);
  for (float* const vector : {x, y}) {
    SUCCEEDS(cudaMemcpyAsync(vector, ramp.data(), kBytes, cudaMemcpyDefault, stream));
  }
  CHECK_OK(Saxpy(house, x, y));
  std::vector<float> sum(kCount);
  SUCCEEDS(cudaMemcpyAsync(sum.data(), y, kBytes, cudaMemcpyDefault, stream));
  SUCCEEDS(cudaStreamSynchronize(stream));

  cudaPointerAttributes attributes = {};
  SUCCEEDS(cudaPointerGetAttributes(&attributes, x));
  CHECK(attributes.type == kind.type);
  PrintRow(kind.allocated_by, CHECK(sum == Ramp(3)) ? "right" : "WRONG", kind.seen_as);
  kind.free(memory, 2 * kBytes, house.stream.get());
}

void EveryKind(const House& house) {
  PrintScene("Every kind of memory");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  for (const Kind& kind : kKinds) RoundTrip(house, kind);
  SUCCEEDS(cudaPeekAtLastError());
}

// Nothing waits in between: all of it is in the order of the stream.
absl::Status FromHandToHand(const House& house) {
  PrintScene("One buffer and one stream, from hand to hand");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  absl::StatusOr<DeviceBuffer<float>> x =
      DeviceBuffer<float>::CopyOf(house.stream.context(), std::vector<float>(kCount));
  if (!x.ok()) return x.status();
  absl::StatusOr<DeviceBuffer<float>> y =
      DeviceBuffer<float>::CopyOf(house.stream.context(), Ramp(1));
  if (!y.ok()) return y.status();
  const absl::StatusOr<cuguest::Module> module = cuguest::Module::Load(
      {cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy");
  if (!module.ok()) return module.status();
  const absl::StatusOr<cuguest::Kernel> saxpy = module->GetKernel("saxpy");
  if (!saxpy.ok()) return saxpy.status();

  std::vector<float> result(kCount);
  const std::vector<float> ramp = Ramp(1);
  PrintRow("before", house.cast.Draw());
  CHECK_OK(CopyAsync(x->view(), ramp, house.stream));
  PrintRow("the driver", "x", "0, 1, 2, ...");
  CHECK_OK(Saxpy(house, x->data(), y->data()));
  PrintRow("cuBLAS", "y = 2 x + y", "0, 3, 6, ...");
  CHECK_OK(cuguest::LaunchForElements(*saxpy, kCount, house.stream, static_cast<unsigned>(kCount),
                                      4.0F, DevicePtr(y->view()), DevicePtr(x->view())));
  PrintRow("a kernel of the program", "x = 4 y + x", "0, 13, 26, ...");
  {
    const ContextGuard guard(house.stream.context());
    SUCCEEDS(cudaMemcpyAsync(result.data(), ToRuntime<float>(x->get()), kBytes, cudaMemcpyDefault,
                             ToRuntime(house.stream.get())));
  }
  CHECK_OK(house.stream.Synchronize());
  PrintRow("the runtime", CHECK(result == Ramp(13)) ? "right" : "WRONG", "cudaMemcpyAsync");
  PrintRow("after", house.cast.Draw());
  SUCCEEDS(cudaPeekAtLastError());
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::Driver& driver, cuguest::Device device) {
  const absl::StatusOr<support::HostContext> x = support::HostContext::Create(driver, device);
  if (!x.ok()) return x.status();
  const absl::StatusOr<support::HostContext> a = support::HostContext::Create(driver, device);
  if (!a.ok()) return a.status();
  const absl::StatusOr<Stream> stream = Stream::Create(ContextRef::Borrow(a->get()));
  if (!stream.ok()) return stream.status();
  support::Cast cast;
  cast.Name("X", x->get());
  cast.Name("A", a->get());
  const support::HostStack stack(driver, {x->get()});
  CublasHandles handles;
  const House house{cast, handles, stream->ref()};
  EveryKind(house);
  return FromHandToHand(house);
}

}  // namespace

int main() {
  return support::RunExample(
      "What may the runtime, and a library that is written with it, do with the driver's memory?",
      &Demonstrate);
}
