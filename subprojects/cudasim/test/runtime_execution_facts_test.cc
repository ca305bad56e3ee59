// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Execution contexts of the runtime, measured with the runtimes of 13.1, 13.3 and 13.5 on an H200,
// driver 580.159.04 (CUDA 13.0), unless a case says that it is of the documentation.

#include "test/runtime_facts.h"
#include "test/support/execution_context.h"

BOOST_AUTO_TEST_SUITE(runtime_execution_facts)

using namespace cudasim_facts;
using cudasim_test::CreateGreenExecutionContext;
using cudasim_test::NeedsExecutionContexts;

namespace {

cudaExecutionContext_t OfDevice() {
  cudaExecutionContext_t context = nullptr;
  RT_OK(cudaDeviceGetExecutionCtx(&context, 0));
  return context;
}

// The documentation calls the handle opaque.
CUcontext AsContext(cudaExecutionContext_t context) { return reinterpret_cast<CUcontext>(context); }

CUcontext ContextOf(CUstream stream) {
  CUcontext context = nullptr;
  OK(RAW(cuStreamGetCtx)(stream, &context));
  return context;
}

CUstream StreamIn(cudaExecutionContext_t context) {
  cudaStream_t stream = nullptr;
  RT_OK(cudaExecutionCtxStreamCreate(&stream, context, cudaStreamNonBlocking, 0));
  return stream;
}

}  // namespace

BOOST_AUTO_TEST_CASE(asking_for_a_devices_creates_its_primary, *NeedsExecutionContexts()) {
  const Unused unused;
  const cudaExecutionContext_t context = OfDevice();
  BOOST_TEST(IsActive(0));
  BOOST_TEST(CurrentContext() == nullptr);
  BOOST_TEST(AsContext(context) == PrimaryHandle());
  BOOST_TEST(OfDevice() == context);
}

BOOST_AUTO_TEST_CASE(ids_and_handles_are_the_drivers, *NeedsExecutionContexts()) {
  const Unused unused;
  const cudaExecutionContext_t green = CreateGreenExecutionContext();
  for (const cudaExecutionContext_t context : {OfDevice(), green}) {
    unsigned long long id = 0;
    RT_OK(cudaExecutionCtxGetId(context, &id));
    BOOST_TEST(id == IdOf(AsContext(context)));
    BOOST_TEST(id != 0u);
  }
  CUcontext converted = nullptr;
  OK(RAW(cuCtxFromGreenCtx)(&converted, reinterpret_cast<CUgreenCtx>(green)));
  BOOST_TEST(converted == AsContext(green));
  RT_OK(cudaExecutionCtxDestroy(green));
}

BOOST_AUTO_TEST_CASE(a_stream_names_its_execution_context, *NeedsExecutionContexts()) {
  const Unused unused;
  const cudaExecutionContext_t green = CreateGreenExecutionContext();
  for (const cudaExecutionContext_t context : {OfDevice(), green}) {
    const CUstream stream = StreamIn(context);
    BOOST_TEST(CurrentContext() == nullptr);
    BOOST_TEST(ContextOf(stream) == AsContext(context));
    OK(RAW(cuStreamDestroy)(stream));
  }
  RT_OK(cudaExecutionCtxDestroy(green));
}

BOOST_AUTO_TEST_CASE(memory_of_a_green_one_is_the_primarys, *NeedsExecutionContexts()) {
  const Unused unused;
  const cudaExecutionContext_t green = CreateGreenExecutionContext();
  BOOST_TEST(CurrentContext() == nullptr);
  SetStack({AsContext(green)});
  BOOST_TEST(AsContext(OfDevice()) == PrimaryHandle());
  void* memory = nullptr;
  RT_OK(cudaMalloc(&memory, 64));
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  BOOST_TEST(Attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, address) == PrimaryHandle());
  RT_OK(cudaFree(memory));
  SetStack({});
  RT_OK(cudaExecutionCtxDestroy(green));
}

BOOST_AUTO_TEST_CASE(a_destroyed_one_is_said_to_be, *NeedsExecutionContexts()) {
  const Unused unused;
  static_cast<void>(OfDevice());
  const cudaExecutionContext_t green = CreateGreenExecutionContext();
  const CUstream stream = StreamIn(green);
  RT_OK(cudaExecutionCtxDestroy(green));
  CUcontext context = nullptr;
  unsigned long long id = 0;
  IS(RAW(cuStreamGetCtx)(stream, &context), CONTEXT_IS_DESTROYED);
  IS(RAW(cuCtxGetId)(AsContext(green), &id), CONTEXT_IS_DESTROYED);
  RT_IS(cudaStreamSynchronize(stream), ContextIsDestroyed);
  RT_IS(cudaStreamDestroy(stream), ContextIsDestroyed);
  cudaGetLastError();
}

BOOST_AUTO_TEST_CASE(a_reset_ends_a_devices, *NeedsExecutionContexts()) {
  const Unused unused;
  const cudaExecutionContext_t context = OfDevice();
  SetStack({PrimaryHandle()});
  RT_OK(cudaDeviceReset());
  SetStack({});
  unsigned long long id = 0;
  RT_IS(cudaExecutionCtxGetId(context, &id), ContextIsDestroyed);
  cudaGetLastError();
}

BOOST_AUTO_TEST_CASE(what_is_asked_of_one_needs_nothing_current, *NeedsExecutionContexts()) {
  const Unused unused;
  const cudaExecutionContext_t green = CreateGreenExecutionContext();
  CUevent event = nullptr;
  SetStack({PrimaryHandle()});
  OK(RAW(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  SetStack({});
  for (const cudaExecutionContext_t context : {OfDevice(), green}) {
    int device = -1;
    RT_OK(cudaExecutionCtxGetDevice(&device, context));
    BOOST_TEST(device == 0);
    RT_OK(cudaExecutionCtxRecordEvent(context, event));
    RT_OK(cudaExecutionCtxWaitEvent(context, event));
    RT_OK(cudaExecutionCtxSynchronize(context));
    BOOST_TEST(CurrentContext() == nullptr);
  }
  cudaDevResource resource = {};
  constexpr auto kType = static_cast<cudaDevResourceType>(CU_DEV_RESOURCE_TYPE_SM);
  RT_OK(cudaExecutionCtxGetDevResource(green, &resource, kType));
  BOOST_TEST(resource.sm.smCount == 16u);
  OK(RAW(cuEventDestroy)(event));
  RT_OK(cudaExecutionCtxDestroy(green));
}

BOOST_AUTO_TEST_CASE(no_execution_context_is_refused, *NeedsExecutionContexts()) {
  const Unused unused;
  unsigned long long id = 0;
  int device = 0;
  cudaStream_t stream = nullptr;
  cudaExecutionContext_t context = nullptr;
  RT_IS(cudaExecutionCtxGetId(nullptr, &id), InvalidValue);
  RT_IS(cudaExecutionCtxGetDevice(&device, nullptr), InvalidValue);
  RT_IS(cudaExecutionCtxStreamCreate(&stream, nullptr, 0, 0), InvalidValue);
  RT_IS(cudaExecutionCtxSynchronize(nullptr), InvalidValue);
  RT_IS(cudaDeviceGetExecutionCtx(nullptr, 0), InvalidValue);
  RT_IS(cudaDeviceGetExecutionCtx(&context, 4711), InvalidDevice);
  BOOST_TEST(!IsActive(0));
  cudaGetLastError();
}

BOOST_AUTO_TEST_SUITE_END()
