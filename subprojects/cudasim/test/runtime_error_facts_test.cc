// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's last error, and its codes' names.

#include <atomic>
#include <string>

#include "cudasim/sim.h"
#include "test/runtime_facts.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(runtime_error_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

constexpr size_t kTooMuch = size_t{1} << 60;

// A case's own primary context, and no last error.
struct Primary : Unused {
  Primary() { RT_OK(cudaFree(nullptr)); }
};

// `code` is the result of the call that has just been made.
void CheckNoted(cudaError_t code, cudaError_t expected) {
  BOOST_CHECK_EQUAL(code, expected);
  BOOST_CHECK_EQUAL(cudaGetLastError(), expected);
  BOOST_CHECK_EQUAL(cudaGetLastError(), cudaSuccess);
}

#define NOTED(call, error) CheckNoted((call), cudaError##error)

}  // namespace

BOOST_AUTO_TEST_CASE(a_failure_stays_until_it_is_taken) {
  const Primary primary;
  void* pointer = nullptr;
  RT_IS(cudaMalloc(&pointer, kTooMuch), MemoryAllocation);
  RT_IS(cudaPeekAtLastError(), MemoryAllocation);
  RT_OK(cudaFree(nullptr));
  RT_IS(cudaPeekAtLastError(), MemoryAllocation);
  RT_IS(cudaSetDevice(99), InvalidDevice);
  RT_IS(cudaGetLastError(), InvalidDevice);
  RT_OK(cudaGetLastError());
  RT_OK(cudaPeekAtLastError());
}

BOOST_AUTO_TEST_CASE(every_thread_has_its_own) {
  const Primary primary;
  RT_IS(cudaSetDevice(99), InvalidDevice);
  OnAnotherThread([] {
    RT_OK(cudaPeekAtLastError());
    RT_IS(cudaSetDevice(-1), InvalidDevice);
    RT_IS(cudaGetLastError(), InvalidDevice);
  });
  RT_IS(cudaGetLastError(), InvalidDevice);
}

BOOST_AUTO_TEST_CASE(the_drivers_failures_are_not_the_runtimes) {
  const Primary primary;
  CUdeviceptr address = 0;
  IS(RAW(cuMemAlloc)(&address, kTooMuch), OUT_OF_MEMORY);
  RT_OK(cudaPeekAtLastError());
}

BOOST_AUTO_TEST_CASE(bad_arguments_are_noted) {
  const Primary primary;
  int number = 0;
  void* pointer = nullptr;
  unsigned flags = 0;
  char host[64];
  NOTED(cudaGetDevice(nullptr), InvalidValue);
  NOTED(cudaGetDeviceCount(nullptr), InvalidValue);
  NOTED(cudaRuntimeGetVersion(nullptr), InvalidValue);
  NOTED(cudaDriverGetVersion(nullptr), InvalidValue);
  NOTED(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0), InvalidValue);
  NOTED(cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, 99), InvalidDevice);
  NOTED(cudaDeviceGetAttribute(&number, OutOfRange<cudaDeviceAttr>(9999), 0), InvalidValue);
  NOTED(cudaGetDeviceProperties(nullptr, 0), InvalidValue);
  NOTED(cudaDeviceGetPCIBusId(host, 0, 0), InvalidValue);
  NOTED(cudaDeviceGetPCIBusId(host, 5, 0), InvalidValue);
  NOTED(cudaDeviceGetPCIBusId(host, sizeof(host), 99), InvalidDevice);
  NOTED(cudaDeviceGetByPCIBusId(&number, "nonsense"), InvalidValue);
  NOTED(cudaDeviceCanAccessPeer(&number, 0, 99), InvalidDevice);
  NOTED(cudaDeviceCanAccessPeer(nullptr, 0, 0), InvalidValue);
  NOTED(cudaDeviceGetLimit(nullptr, cudaLimitStackSize), InvalidValue);
  NOTED(cudaSetDeviceFlags(0xff00), InvalidValue);
  NOTED(cudaMalloc(nullptr, 16), InvalidValue);
  NOTED(cudaMallocHost(static_cast<void**>(nullptr), 16), InvalidValue);
  NOTED(cudaHostAlloc(&pointer, 16, 0xff00), InvalidValue);
  NOTED(cudaMallocManaged(&pointer, 16, 0), InvalidValue);
  NOTED(cudaMallocAsync(nullptr, 16, nullptr), InvalidValue);
  NOTED(cudaPointerGetAttributes(nullptr, host), InvalidValue);
  NOTED(cudaHostGetFlags(&flags, host), InvalidValue);
  NOTED(cudaHostGetDevicePointer(&pointer, host, 0), InvalidValue);
  NOTED(cudaHostUnregister(host), HostMemoryNotRegistered);
  NOTED(cudaHostUnregister(nullptr), InvalidValue);
  NOTED(cudaHostRegister(nullptr, 4096, 0), InvalidValue);
  NOTED(cudaHostRegister(host, 0, 0), InvalidValue);
}

BOOST_AUTO_TEST_CASE(bad_streams_and_events_are_noted) {
  const Primary primary;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  NOTED(cudaStreamCreate(nullptr), InvalidValue);
  NOTED(cudaStreamCreateWithFlags(&stream, 0xff), InvalidValue);
  NOTED(cudaStreamDestroy(nullptr), InvalidResourceHandle);
  NOTED(cudaStreamDestroy(cudaStreamLegacy), InvalidResourceHandle);
  NOTED(cudaStreamWaitEvent(nullptr, nullptr, 0), InvalidResourceHandle);
  NOTED(cudaStreamIsCapturing(nullptr, nullptr), InvalidValue);
  NOTED(cudaEventCreateWithFlags(&event, 0xff00), InvalidValue);
  NOTED(cudaEventDestroy(nullptr), InvalidResourceHandle);
  NOTED(cudaEventRecord(nullptr, nullptr), InvalidResourceHandle);
  NOTED(cudaEventQuery(nullptr), InvalidResourceHandle);
  NOTED(cudaEventSynchronize(nullptr), InvalidResourceHandle);
  NOTED(cudaGraphDestroy(nullptr), InvalidValue);
}

BOOST_AUTO_TEST_CASE(answers_are_no_errors) {
  const Primary primary;
  char host[4] = {};
  int number = 1;
  void* pointer = nullptr;
  cudaPointerAttributes attributes;
  RT_OK(cudaPointerGetAttributes(&attributes, host));
  RT_OK(cudaPointerGetAttributes(&attributes, nullptr));
  RT_OK(cudaDeviceCanAccessPeer(&number, 0, 0));
  BOOST_TEST(number == 0);
  RT_OK(cudaMallocHost(&pointer, 0));
  RT_OK(cudaMallocManaged(&pointer, 0, cudaMemAttachGlobal));
  RT_OK(cudaMallocAsync(&pointer, 0, nullptr));
  RT_OK(cudaMemGetInfo(nullptr, nullptr));
  RT_OK(cudaPeekAtLastError());
}

BOOST_AUTO_TEST_CASE(not_ready_is_not_noted) {
  const Primary primary;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  RT_OK(cudaStreamCreate(&stream));
  RT_OK(cudaEventCreate(&event));
  std::atomic<bool> go{false};
  const auto wait = [](void* data) {
    while (!static_cast<std::atomic<bool>*>(data)->load()) std::this_thread::yield();
  };
  RT_OK(cudaLaunchHostFunc(stream, wait, &go));
  RT_OK(cudaEventRecord(event, stream));
  RT_IS(cudaStreamQuery(stream), NotReady);
  RT_IS(cudaEventQuery(event), NotReady);
  RT_OK(cudaPeekAtLastError());
  go = true;
  RT_OK(cudaStreamSynchronize(stream));
  RT_OK(cudaEventDestroy(event));
  RT_OK(cudaStreamDestroy(stream));
}

BOOST_AUTO_TEST_CASE(codes_have_names_and_texts) {
  const auto name = [](int code) {
    return std::string(cudaGetErrorName(OutOfRange<cudaError_t>(code)));
  };
  const auto text = [](int code) {
    return std::string(cudaGetErrorString(OutOfRange<cudaError_t>(code)));
  };
  BOOST_TEST(name(0) == "cudaSuccess");
  BOOST_TEST(text(0) == "no error");
  BOOST_TEST(name(2) == "cudaErrorMemoryAllocation");
  BOOST_TEST(text(2) == "out of memory");
  BOOST_TEST(name(201) == "cudaErrorDeviceUninitialized");
  BOOST_TEST(name(400) == "cudaErrorInvalidResourceHandle");
  BOOST_TEST(name(709) == "cudaErrorContextIsDestroyed");
  BOOST_TEST(name(10000) == "cudaErrorApiFailureBase");
  for (const int unknown : {-1, 202, 12345}) {
    BOOST_TEST(name(unknown) == "unrecognized error code");
    BOOST_TEST(text(unknown) == "unrecognized error code");
  }
}

// --- a lost device ---

namespace {

CUresult Fault(const SimLaunch&) { return CUDA_ERROR_ILLEGAL_ADDRESS; }

// A kernel of the driver that writes where nothing is, in the current context.
void LaunchFault() {
  Sim::RegisterKernel("store", &Fault);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(RAW(cuModuleLoadData)(&module, kPtx) == CUDA_SUCCESS);
  CHECK(RAW(cuModuleGetFunction)(&function, module, "store") == CUDA_SUCCESS);
  CUdeviceptr to = 0x10;
  unsigned value = 1;
  void* parameters[] = {&to, &value};
  CHECK(RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) ==
        CUDA_SUCCESS);
}

}  // namespace

// The error is the device's: the thread's last error can be taken, and the next call fails
// again.
CHILD(loses_the_device) {
  CHECK(cudaFree(nullptr) == cudaSuccess);
  LaunchFault();
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaSuccess);
  void* pointer = nullptr;
  CHECK(cudaMalloc(&pointer, 16) == cudaErrorIllegalAddress);
  CHECK(cudaFree(nullptr) == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  int device = -1;
  cudaDeviceProp properties;
  cudaPointerAttributes attributes;
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(cudaPointerGetAttributes(&attributes, &device) == cudaSuccess);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  return 0;
}

// The process's context is gone with the reset, and there will be no other.
CHILD(resets_a_lost_device) {
  CHECK(cudaFree(nullptr) == cudaSuccess);
  LaunchFault();
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaDeviceReset() == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  void* pointer = nullptr;
  CHECK(cudaMalloc(&pointer, 16) == cudaErrorDevicesUnavailable);
  return 0;
}

BOOST_AUTO_TEST_CASE(a_lost_device_fails_every_call_that_needs_it) {
  REQUIRE_CHILD_PASSES("loses_the_device");
}

BOOST_AUTO_TEST_CASE(a_lost_device_is_unavailable_after_a_reset) {
  REQUIRE_CHILD_PASSES("resets_a_lost_device");
}

BOOST_AUTO_TEST_SUITE_END()
