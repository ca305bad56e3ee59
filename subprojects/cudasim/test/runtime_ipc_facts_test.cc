// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device memory and events that two processes share through the runtime. As
// <cuda_runtime_api.h> describes them; not measured.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "test/busy.h"
#include "test/ipc.h"
#include "test/runtime_facts.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(runtime_ipc_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kSize = 4096;
constexpr unsigned kFlags = cudaIpcMemLazyEnablePeerAccess;
constexpr unsigned kShared = cudaEventInterprocess | cudaEventDisableTiming;

template <typename Handle>
void CheckOther(const char* child, const Handle& handle) {
  const cudasim_test::Ended ended = RunWithHandle(child, handle);
  BOOST_TEST(ended.code == 0, ended.output);
}

// An event of two processes, recorded behind a host function that is held.
struct EventOwner {
  EventOwner() {
    RT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    RT_OK(cudaEventCreateWithFlags(&event, kShared));
    RT_OK(cudaIpcGetEventHandle(&handle, event));
  }
  ~EventOwner() {
    RT_OK(cudaEventDestroy(event));
    RT_OK(cudaStreamDestroy(stream));
  }
  EventOwner(const EventOwner&) = delete;
  EventOwner& operator=(const EventOwner&) = delete;

  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaIpcEventHandle_t handle = {};
};

}  // namespace

// Finds 0x11 everywhere, and leaves 0x22. Nothing is current at first.
CHILD(reads_and_writes) {
  const auto handle = ReceivedHandle<cudaIpcMemHandle_t>();
  void* pointer = nullptr;
  void* again = nullptr;
  CHECK(cudaIpcOpenMemHandle(&pointer, handle, kFlags) == cudaSuccess);
  CHECK(cudaIpcOpenMemHandle(&again, handle, kFlags) == cudaSuccess);
  CHECK(again == pointer);
  std::vector<unsigned char> content(kSize);
  CHECK(cudaMemcpy(content.data(), pointer, kSize, cudaMemcpyDefault) == cudaSuccess);
  CHECK(content == std::vector<unsigned char>(kSize, 0x11));
  CHECK(cudaMemset(pointer, 0x22, kSize) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaFree(pointer) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaIpcCloseMemHandle(pointer) == cudaSuccess);
  CHECK(cudaIpcCloseMemHandle(pointer) == cudaSuccess);  // opened twice
  CHECK(cudaIpcCloseMemHandle(pointer) == cudaErrorInvalidValue);
  CHECK(cudaIpcOpenMemHandle(&pointer, handle, 0) == cudaErrorInvalidValue);
  CHECK(cudaIpcOpenMemHandle(nullptr, handle, kFlags) == cudaErrorInvalidValue);
  CHECK(cudaIpcOpenMemHandle(&pointer, {}, kFlags) == cudaErrorInvalidValue);
  return 0;
}

BOOST_AUTO_TEST_CASE(another_process_reads_and_writes_memory) {
  const Unused unused;
  void* pointer = nullptr;
  cudaIpcMemHandle_t handle = {};
  RT_OK(cudaMalloc(&pointer, kSize));
  RT_OK(cudaMemset(pointer, 0x11, kSize));
  RT_OK(cudaDeviceSynchronize());
  RT_OK(cudaIpcGetMemHandle(&handle, pointer));
  CheckOther("reads_and_writes", handle);
  std::vector<unsigned char> content(kSize);
  RT_OK(cudaMemcpy(content.data(), pointer, kSize, cudaMemcpyDefault));
  BOOST_TEST((content == std::vector<unsigned char>(kSize, 0x22)));
  RT_OK(cudaFree(pointer));
}

BOOST_AUTO_TEST_CASE(both_apis_give_one_handle) {
  const Unused unused;
  void* pointer = nullptr;
  cudaIpcMemHandle_t handle = {};
  CUipcMemHandle drivers = {};
  RT_OK(cudaMalloc(&pointer, kSize));
  RT_OK(cudaIpcGetMemHandle(&handle, pointer));
  OK(RAW(cuIpcGetMemHandle)(&drivers, reinterpret_cast<CUdeviceptr>(pointer)));
  static_assert(sizeof(handle) == sizeof(drivers));
  BOOST_TEST(std::memcmp(&handle, &drivers, sizeof(handle)) == 0);
  RT_OK(cudaFree(pointer));
}

BOOST_AUTO_TEST_CASE(only_device_memory_has_a_handle) {
  const Unused unused;
  void* pointer = nullptr;
  void* host = nullptr;
  cudaIpcMemHandle_t handle = {};
  RT_IS(cudaIpcGetMemHandle(&handle, nullptr), InvalidValue);
  RT_IS(cudaGetLastError(), InvalidValue);
  BOOST_TEST(IsActive(0));  // bound by the call
  RT_OK(cudaMallocHost(&host, kSize));
  RT_OK(cudaMalloc(&pointer, kSize));
  RT_IS(cudaIpcGetMemHandle(&handle, host), InvalidValue);
  RT_IS(cudaIpcCloseMemHandle(pointer), InvalidValue);
  RT_OK(cudaIpcGetMemHandle(&handle, pointer));
  void* own = nullptr;
  RT_IS(cudaIpcOpenMemHandle(&own, handle, kFlags), DeviceUninitialized);  // in its own process
  RT_OK(cudaFree(pointer));
  RT_OK(cudaFreeHost(host));
}

CHILD(finds_the_record_pending) {
  const auto handle = ReceivedHandle<cudaIpcEventHandle_t>();
  cudaEvent_t event = nullptr;
  CHECK(cudaIpcOpenEventHandle(&event, handle) == cudaSuccess);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  return 0;
}

CHILD(finds_the_record_done) {
  const auto handle = ReceivedHandle<cudaIpcEventHandle_t>();
  cudaEvent_t event = nullptr;
  cudaIpcEventHandle_t own = {};
  CHECK(cudaIpcOpenEventHandle(nullptr, handle) == cudaErrorInvalidValue);
  CHECK(cudaIpcOpenEventHandle(&event, handle) == cudaSuccess);
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(cudaStreamPerThread, event, 0) == cudaSuccess);
  CHECK(cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess);
  CHECK(cudaIpcGetEventHandle(&own, event) == cudaErrorInvalidResourceHandle);  // not its creator's
  CHECK(cudaEventRecord(event, nullptr) == cudaSuccess);
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  return 0;
}

BOOST_AUTO_TEST_CASE(another_process_sees_a_record) {
  const Unused unused;
  const EventOwner owner;
  {
    const Hold hold(owner.stream);
    RT_OK(cudaEventRecord(owner.event, owner.stream));
    CheckOther("finds_the_record_pending", owner.handle);
    RT_IS(cudaEventQuery(owner.event), NotReady);
  }
  RT_OK(cudaStreamSynchronize(owner.stream));
  CheckOther("finds_the_record_done", owner.handle);
  RT_OK(cudaEventQuery(owner.event));
}

BOOST_AUTO_TEST_CASE(only_interprocess_events_have_handles) {
  const Unused unused;
  const EventOwner owner;
  cudaEvent_t own = nullptr;
  cudaIpcEventHandle_t handle = {};
  RT_OK(cudaEventCreateWithFlags(&own, cudaEventDisableTiming));
  RT_IS(cudaIpcGetEventHandle(&handle, own), InvalidResourceHandle);
  RT_IS(cudaIpcGetEventHandle(&handle, nullptr), InvalidValue);
  RT_IS(cudaEventCreateWithFlags(&own, cudaEventInterprocess), InvalidValue);
  RT_OK(cudaEventDestroy(own));
}

// The runtime of CUDA 13.0 writes the memory's, and crashes (seen on an H100).
BOOST_AUTO_TEST_CASE(a_handle_needs_a_place, *cudasim_test::OnlySim()) {
  const Unused unused;
  const EventOwner owner;
  void* pointer = nullptr;
  RT_OK(cudaMalloc(&pointer, kSize));
  RT_IS(cudaIpcGetMemHandle(nullptr, pointer), InvalidValue);
  RT_IS(cudaIpcGetEventHandle(nullptr, owner.event), InvalidValue);
  RT_OK(cudaFree(pointer));
}

namespace {

constexpr char kDescriptor[] = "CUDASIM_TEST_DESCRIPTOR";
constexpr auto kType = cudaMemHandleTypePosixFileDescriptor;

}  // namespace

// Finds 0x11 everywhere, and leaves 0x22.
CHILD(imports_from_a_pool) {
  auto data = ReceivedHandle<cudaMemPoolPtrExportData>();
  const std::intptr_t descriptor = std::atoi(std::getenv(kDescriptor));
  cudaMemPool_t pool = nullptr;
  void* pointer = nullptr;
  CHECK(cudaMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(descriptor), kType,
                                             0) == cudaSuccess);
  CHECK(cudaMemPoolImportPointer(nullptr, pool, &data) == cudaErrorInvalidValue);
  CHECK(cudaMemPoolImportPointer(&pointer, pool, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaMemPoolImportPointer(&pointer, pool, &data) == cudaSuccess);
  std::vector<unsigned char> content(kSize);
  CHECK(cudaMemcpy(content.data(), pointer, kSize, cudaMemcpyDefault) == cudaSuccess);
  CHECK(content == std::vector<unsigned char>(kSize, 0x11));
  CHECK(cudaMemset(pointer, 0x22, kSize) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaFree(pointer) == cudaSuccess);
  CHECK(cudaMemPoolDestroy(pool) == cudaSuccess);
  return 0;
}

BOOST_AUTO_TEST_CASE(another_process_reads_and_writes_a_pools_memory) {
  const Unused unused;
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = kType;
  properties.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool = nullptr;
  void* pointer = nullptr;
  int descriptor = -1;
  cudaMemPoolPtrExportData data = {};
  RT_OK(cudaMemPoolCreate(&pool, &properties));
  RT_OK(cudaMallocFromPoolAsync(&pointer, kSize, pool, nullptr));
  RT_OK(cudaMemset(pointer, 0x11, kSize));
  RT_OK(cudaDeviceSynchronize());
  RT_OK(cudaMemPoolExportToShareableHandle(&descriptor, pool, kType, 0));
  RT_OK(cudaMemPoolExportPointer(&data, pointer));
  const int inherited = dup(descriptor);
  const cudasim_test::Ended ended =
      RunWithHandle("imports_from_a_pool", data, {kDescriptor + ("=" + std::to_string(inherited))});
  close(inherited);
  close(descriptor);
  BOOST_TEST(ended.code == 0, ended.output);
  std::vector<unsigned char> content(kSize);
  RT_OK(cudaMemcpy(content.data(), pointer, kSize, cudaMemcpyDefault));
  BOOST_TEST((content == std::vector<unsigned char>(kSize, 0x22)));
  RT_OK(cudaFree(pointer));
  RT_OK(cudaMemPoolDestroy(pool));
}

BOOST_AUTO_TEST_SUITE_END()
