// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory and copies, beside the bare calls.

#include <benchmark/benchmark.h>
#include <cuda.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuguest/context_ref.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/memory.h"
#include "cuguest/objects/stream.h"
#include "test/benchmark/table.h"

namespace cuguest_benchmark {
namespace {

using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::Driver;
using cuguest::HostSpan;
using cuguest::ObjectDriver;
using cuguest::Stream;

constexpr std::size_t kMost = 4 << 20;
constexpr char kCallsOfCopies[] = "what `Upload` and `Download` call";
constexpr char kCallsOfOrdered[] = "what `AllocateAsync` and the free call";

// Of the user's context.
struct Objects {
  Objects() : streams(kMostThreads) {
    for (Stream& stream : streams) stream = Take(Stream::Create(ref));
  }

  const ObjectDriver& driver = *TheWorld().driver;
  ContextRef ref = TheWorld().user_ref;
  std::vector<Stream> streams;
  std::vector<char> host = std::vector<char>(kMost);
  DeviceBuffer<char> device = Take(DeviceBuffer<char>::Allocate(ref, kMost));
};

Group Allocating(Objects& objects) {
  Group group = {"1 MiB allocated, freed", TheWorld().user, {1, 4}, 10, {}};
  group.Add("`cuMemAlloc`, `cuMemFree`", [&objects](std::size_t) {
    CUdeviceptr pointer = 0;
    REQUIRE(objects.driver.MemAlloc(&pointer, 1 << 20) == CUDA_SUCCESS);
    objects.driver.MemFree(pointer);
  });
  group.Add("`DeviceBuffer::Allocate`, destroyed", [&objects](std::size_t) {
    REQUIRE(DeviceBuffer<char>::Allocate(objects.ref, 1 << 20).ok());
  });
  return group;
}

template <typename Call>
CUresult InRelaxedMode(const ObjectDriver& driver, const Call& call) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  driver.ThreadExchangeStreamCaptureMode(&mode);
  const CUresult code = call();
  driver.ThreadExchangeStreamCaptureMode(&mode);
  return code;
}

// As a copy does without a stream.
template <typename Call>
void InContext(const Objects& objects, const Call& call) {
  const ObjectDriver& driver = objects.driver;
  CUcontext current = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  driver.CtxGetCurrent(&current);
  AskForId(objects.ref.get());
  driver.StreamIsCapturing(CU_STREAM_LEGACY, &status);
  REQUIRE(InRelaxedMode(driver, call) == CUDA_SUCCESS);
  driver.CtxGetCurrent(&current);
  benchmark::DoNotOptimize(current);
}

CUresult AskForAttributes(const ObjectDriver& driver, CUdeviceptr pointer) {
  CUcontext context = nullptr;
  unsigned type = 0;
  int ordinal = 0;
  CUdeviceptr start = 0;
  std::size_t size = 0;
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
      CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&context, &type, &ordinal, &start, &size};
  const CUresult code = driver.PointerGetAttributes(5, attributes, values, pointer);
  benchmark::DoNotOptimize(size);
  return code;
}

void AskBeforeOrderedCall(const Objects& objects, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  AskForId(objects.ref.get());
  objects.driver.StreamIsCapturing(stream, &status);
}

Group AllocatingInStream(Objects& objects) {
  Group group = {"the same in a stream", TheWorld().user, {1, 4}, 50, {}};
  group.settle = [&objects] { REQUIRE(objects.streams[0].ref().Synchronize().ok()); };
  group.Add("`cuMemAllocAsync`, `cuMemFreeAsync`", [&objects](std::size_t thread) {
    const CUstream stream = objects.streams[thread].get();
    CUdeviceptr pointer = 0;
    REQUIRE(objects.driver.MemAllocAsync(&pointer, 1 << 20, stream) == CUDA_SUCCESS);
    objects.driver.MemFreeAsync(pointer, stream);
  });
  group.Add(kCallsOfOrdered, [&objects](std::size_t thread) {
    const CUstream stream = objects.streams[thread].get();
    CUdeviceptr pointer = 0;
    AskBeforeOrderedCall(objects, stream);
    REQUIRE(InRelaxedMode(objects.driver, [&] {
              return objects.driver.MemAllocAsync(&pointer, 1 << 20, stream);
            }) == CUDA_SUCCESS);
    AskBeforeOrderedCall(objects, stream);
    InRelaxedMode(objects.driver, [&] { return objects.driver.MemFreeAsync(pointer, stream); });
  });
  group.Add("`DeviceBuffer::AllocateAsync`, destroyed", [&objects](std::size_t thread) {
    REQUIRE(DeviceBuffer<char>::AllocateAsync(objects.streams[thread].ref(), 1 << 20).ok());
  });
  return group;
}

Group Copying(Objects& objects, const std::string& title, std::size_t bytes, int batch) {
  Group group = {title + " copied to the device and back", TheWorld().user, {1}, batch, {}};
  group.Add("`cuMemcpyHtoD`, `cuMemcpyDtoH`", [&objects, bytes](std::size_t) {
    const CUdeviceptr pointer = objects.device.get();
    REQUIRE(objects.driver.MemcpyHtoD(pointer, objects.host.data(), bytes) == CUDA_SUCCESS);
    REQUIRE(objects.driver.MemcpyDtoH(objects.host.data(), pointer, bytes) == CUDA_SUCCESS);
  });
  group.Add(kCallsOfCopies, [&objects, bytes](std::size_t) {
    const CUdeviceptr pointer = objects.device.get();
    const ObjectDriver& driver = objects.driver;
    InContext(objects, [&] {
      const CUresult code = driver.MemcpyHtoD(pointer, objects.host.data(), bytes);
      return code == CUDA_SUCCESS ? driver.StreamSynchronize(CU_STREAM_LEGACY) : code;
    });
    InContext(objects, [&] {
      REQUIRE(driver.MemcpyDtoH(objects.host.data(), pointer, bytes) == CUDA_SUCCESS);
      return AskForAttributes(driver, reinterpret_cast<CUdeviceptr>(objects.host.data()));
    });
  });
  const auto device = Take(objects.device.view().Subview(0, bytes));
  group.Add("`Upload`, `Download`", [&objects, device, bytes](std::size_t) {
    const HostSpan<char> host(objects.host.data(), bytes);
    REQUIRE(cuguest::Upload(device, HostSpan<const char>(objects.host.data(), bytes)).ok());
    REQUIRE(cuguest::Download(device, host).ok());
  });
  return group;
}

Group Describing(Objects& objects) {
  const CUdeviceptr pointer = objects.device.get();
  Group group = {"what memory a pointer names", TheWorld().user, {1, 4, 16}, 300, {}};
  group.Add("`cuPointerGetAttribute`, the context", [&objects, pointer](std::size_t) {
    CUcontext context = nullptr;
    objects.driver.PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
    benchmark::DoNotOptimize(context);
  });
  group.Add("`cuPointerGetAttributes`, five of them",
            [&objects, pointer](std::size_t) { AskForAttributes(objects.driver, pointer); });
  group.Add("`Describe`",
            [pointer](std::size_t) { benchmark::DoNotOptimize(cuguest::Describe(pointer)->size); });
  return group;
}

Rows Make() {
  const auto objects = std::make_shared<Objects>();
  Rows rows;
  rows.groups = {Allocating(*objects),
                 AllocatingInStream(*objects),
                 Copying(*objects, "4 bytes", 4, 10),
                 Copying(*objects, "64 KiB", 64 << 10, 5),
                 Copying(*objects, "4 MiB", kMost, 1),
                 Describing(*objects)};
  rows.promises = {
      {rows.groups[1].title, "`DeviceBuffer::AllocateAsync`, destroyed", 1, 1.8},
      {rows.groups[1].title, "`DeviceBuffer::AllocateAsync`, destroyed", 1, 1.4, kCallsOfOrdered},
      {rows.groups[2].title, "`Upload`, `Download`", 1, 1.15, kCallsOfCopies}};
  rows.needs = objects;
  return rows;
}

const RowsOf g_rows(5, &Make);

}  // namespace
}  // namespace cuguest_benchmark
