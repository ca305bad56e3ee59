// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events, graphs, memory pools and memory: made by one API, converted, used and
// ended by the other. The names of the cases are those of the table in docs/bridge.md.

#include <numeric>

#include "cudasim/sim.h"
#include "cuguest/runtime/handle.h"
#include "cuguest/runtime/pointer.h"
#include "test/runtime/everywhere.h"

BOOST_AUTO_TEST_SUITE(conversion)

namespace {

using namespace cuguest_runtime_test;
using cuguest::runtime::ToDriver;
using cuguest::runtime::ToRuntime;

constexpr size_t kCount = 256;
constexpr size_t kBytes = kCount * sizeof(int);

std::vector<int> Numbers() {
  std::vector<int> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 7);
  return numbers;
}

CUcontext ContextOf(CUdeviceptr pointer) {
  CUcontext context = nullptr;
  OK(RAW(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer));
  return context;
}

}  // namespace

BOOST_AUTO_TEST_CASE(stream_driver_to_runtime) {
  const auto make = [] {
    CUstream stream = nullptr;
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
  };
  Everywhere(make, [](CUstream made) {
    const cudaStream_t stream = ToRuntime(made);
    unsigned flags = 0;
    RT_OK(cudaStreamGetFlags(stream, &flags));
    BOOST_TEST(flags == unsigned{cudaStreamNonBlocking});
    void* memory = nullptr;
    RT_OK(cudaMalloc(&memory, kBytes));
    RT_OK(cudaMemsetAsync(memory, 1, kBytes, stream));
    RT_OK(cudaStreamSynchronize(stream));
    RT_OK(cudaFree(memory));
    RT_OK(cudaStreamDestroy(stream));
  });
}

BOOST_AUTO_TEST_CASE(stream_runtime_to_driver) {
  const auto make = [] {
    cudaStream_t stream = nullptr;
    RT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  };
  Everywhere(make, [](cudaStream_t made) {
    const CUstream stream = ToDriver(made);
    CUcontext context = nullptr;
    OK(RAW(cuStreamGetCtx)(stream, &context));
    BOOST_TEST(context == CurrentContext());
    CUdeviceptr memory = 0;
    OK(RAW(cuMemAlloc)(&memory, kBytes));
    OK(RAW(cuMemsetD8Async)(memory, 1, kBytes, stream));
    OK(RAW(cuStreamSynchronize)(stream));
    OK(RAW(cuMemFree)(memory));
    OK(RAW(cuStreamDestroy)(stream));
  });
}

BOOST_AUTO_TEST_CASE(stream_0_becomes_explicit) {
  const CUstream none = nullptr;
  BOOST_TEST(ToDriver(none) == CU_STREAM_LEGACY);
  BOOST_TEST(ToRuntime(none) == cudaStreamLegacy);
  BOOST_TEST(ToDriver(cudaStreamLegacy) == CU_STREAM_LEGACY);
  BOOST_TEST(ToDriver(cudaStreamPerThread) == CU_STREAM_PER_THREAD);
  BOOST_TEST(ToRuntime(CU_STREAM_PER_THREAD) == cudaStreamPerThread);
  const auto make = [] { return CUstream{nullptr}; };
  Everywhere(make, [](CUstream stream) {
    RT_OK(cudaStreamSynchronize(ToRuntime(stream)));
    OK(RAW(cuStreamSynchronize)(ToDriver(stream)));
  });
}

BOOST_AUTO_TEST_CASE(event_driver_to_runtime) {
  const auto make = [] {
    CUevent event = nullptr;
    OK(RAW(cuEventCreate)(&event, CU_EVENT_DEFAULT));
    return event;
  };
  Everywhere(make, [](CUevent made) {
    const cudaEvent_t event = ToRuntime(made);
    RT_OK(cudaEventRecord(event, cudaStreamLegacy));
    RT_OK(cudaEventSynchronize(event));
    RT_OK(cudaEventQuery(event));
    float milliseconds = -1;
    RT_OK(cudaEventElapsedTime(&milliseconds, event, event));
    BOOST_TEST(milliseconds == 0.0F);
    RT_OK(cudaEventDestroy(event));
  });
}

BOOST_AUTO_TEST_CASE(event_runtime_to_driver) {
  const auto make = [] {
    cudaEvent_t event = nullptr;
    RT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
  };
  Everywhere(make, [](cudaEvent_t made) {
    const CUevent event = ToDriver(made);
    OK(RAW(cuEventRecord)(event, CU_STREAM_LEGACY));
    OK(RAW(cuStreamWaitEvent)(CU_STREAM_PER_THREAD, event, 0));
    OK(RAW(cuEventSynchronize)(event));
    OK(RAW(cuEventDestroy)(event));
  });
}

// Made by a capture, which is how libraries get graphs.
BOOST_AUTO_TEST_CASE(graph_driver_to_runtime) {
  const auto make = [] {
    CUstream stream = nullptr;
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    const CUhostFn nothing = [](void*) {};
    OK(RAW(cuLaunchHostFunc)(stream, nothing, nullptr));
    CUgraph graph = nullptr;
    OK(RAW(cuStreamEndCapture)(stream, &graph));
    OK(RAW(cuStreamDestroy)(stream));
    return graph;
  };
  Everywhere(make, [](CUgraph made) {
    const cudaGraph_t graph = ToRuntime(made);
    size_t count = 0;
    RT_OK(cudaGraphGetNodes(graph, nullptr, &count));
    BOOST_TEST(count == 1U);
    cudaGraphExec_t exec = nullptr;
    RT_OK(cudaGraphInstantiate(&exec, graph, 0));
    // And on by the driver.
    OK(RAW(cuGraphLaunch)(ToDriver(exec), CU_STREAM_PER_THREAD));
    OK(RAW(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
    OK(RAW(cuGraphExecDestroy)(ToDriver(exec)));
    RT_OK(cudaGraphDestroy(graph));
  });
}

BOOST_AUTO_TEST_CASE(graph_runtime_to_driver) {
  const auto make = [] {
    cudaStream_t stream = nullptr;
    RT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    RT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    const cudaHostFn_t nothing = [](void*) {};
    RT_OK(cudaLaunchHostFunc(stream, nothing, nullptr));
    cudaGraph_t graph = nullptr;
    RT_OK(cudaStreamEndCapture(stream, &graph));
    RT_OK(cudaStreamDestroy(stream));
    return graph;
  };
  Everywhere(make, [](cudaGraph_t made) {
    const CUgraph graph = ToDriver(made);
    size_t count = 1;
    CUgraphNode node = nullptr;
    OK(RAW(cuGraphGetNodes)(graph, &node, &count));
    BOOST_TEST(count == 1U);
    BOOST_TEST(ToRuntime(node) == node);
    CUgraphExec exec = nullptr;
    OK(RAW(cuGraphInstantiate)(&exec, graph, 0));
    RT_OK(cudaGraphLaunch(ToRuntime(exec), cudaStreamPerThread));
    RT_OK(cudaStreamSynchronize(cudaStreamPerThread));
    RT_OK(cudaGraphExecDestroy(ToRuntime(exec)));
    OK(RAW(cuGraphDestroy)(graph));
  });
}

BOOST_AUTO_TEST_CASE(memory_pool_driver_to_runtime) {
  const auto make = [] {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    OK(RAW(cuMemPoolCreate)(&pool, &properties));
    return pool;
  };
  Everywhere(make, [](CUmemoryPool made) {
    const cudaMemPool_t pool = ToRuntime(made);
    void* memory = nullptr;
    RT_OK(cudaMallocFromPoolAsync(&memory, kBytes, pool, cudaStreamPerThread));
    RT_OK(cudaFreeAsync(memory, cudaStreamPerThread));
    RT_OK(cudaStreamSynchronize(cudaStreamPerThread));
    RT_OK(cudaMemPoolDestroy(pool));
  });
}

BOOST_AUTO_TEST_CASE(memory_pool_runtime_to_driver) {
  const auto make = [] {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    cudaMemPool_t pool = nullptr;
    RT_OK(cudaMemPoolCreate(&pool, &properties));
    return pool;
  };
  Everywhere(make, [](cudaMemPool_t made) {
    const CUmemoryPool pool = ToDriver(made);
    CUdeviceptr memory = 0;
    OK(RAW(cuMemAllocFromPoolAsync)(&memory, kBytes, pool, CU_STREAM_PER_THREAD));
    OK(RAW(cuMemFreeAsync)(memory, CU_STREAM_PER_THREAD));
    OK(RAW(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
    OK(RAW(cuMemPoolDestroy)(pool));
  });
}

BOOST_AUTO_TEST_CASE(a_devices_default_pool_is_the_same_in_both) {
  CUmemoryPool driver_pool = nullptr;
  OK(RAW(cuDeviceGetDefaultMemPool)(&driver_pool, 0));
  cudaMemPool_t runtime_pool = nullptr;
  RT_OK(cudaDeviceGetDefaultMemPool(&runtime_pool, 0));
  BOOST_TEST(ToDriver(runtime_pool) == driver_pool);
}

BOOST_AUTO_TEST_CASE(pointer_driver_to_runtime) {
  const auto make = [] {
    CUdeviceptr memory = 0;
    OK(RAW(cuMemAlloc)(&memory, kBytes));
    const auto numbers = Numbers();
    OK(RAW(cuMemcpyHtoD)(memory, numbers.data(), kBytes));
    return memory;
  };
  Everywhere(make, [](CUdeviceptr made) {
    int* const memory = ToRuntime<int>(made);
    BOOST_TEST(ToDriver(memory + 1) == made + sizeof(int));
    cudaPointerAttributes attributes = {};
    RT_OK(cudaPointerGetAttributes(&attributes, memory));
    BOOST_CHECK_EQUAL(attributes.type, cudaMemoryTypeDevice);
    BOOST_TEST(attributes.device == 0);
    std::vector<int> numbers(kCount);
    RT_OK(cudaMemcpy(numbers.data(), memory, kBytes, cudaMemcpyDefault));
    BOOST_TEST(numbers == Numbers());
    RT_OK(cudaFree(memory));
  });
}

BOOST_AUTO_TEST_CASE(pointer_runtime_to_driver) {
  const auto make = [] {
    void* memory = nullptr;
    RT_OK(cudaMalloc(&memory, kBytes));
    const auto numbers = Numbers();
    RT_OK(cudaMemcpy(memory, numbers.data(), kBytes, cudaMemcpyHostToDevice));
    return memory;
  };
  Everywhere(make, [](void* made) {
    const CUdeviceptr memory = ToDriver(made);
    BOOST_TEST(ContextOf(memory) == CurrentContext());
    std::vector<int> numbers(kCount);
    OK(RAW(cuMemcpyDtoH)(numbers.data(), memory, kBytes));
    BOOST_TEST(numbers == Numbers());
    OK(RAW(cuMemFree)(memory));
  });
}

BOOST_AUTO_TEST_CASE(managed_memory_driver_to_runtime) {
  const auto make = [] {
    CUdeviceptr memory = 0;
    OK(RAW(cuMemAllocManaged)(&memory, kBytes, CU_MEM_ATTACH_GLOBAL));
    return memory;
  };
  Everywhere(make, [](CUdeviceptr made) {
    cudaPointerAttributes attributes = {};
    RT_OK(cudaPointerGetAttributes(&attributes, ToRuntime(made)));
    BOOST_CHECK_EQUAL(attributes.type, cudaMemoryTypeManaged);
    *ToRuntime<int>(made) = 7;
    RT_OK(cudaFree(ToRuntime(made)));
  });
}

BOOST_AUTO_TEST_CASE(managed_memory_runtime_to_driver) {
  const auto make = [] {
    void* memory = nullptr;
    RT_OK(cudaMallocManaged(&memory, kBytes, cudaMemAttachGlobal));
    return memory;
  };
  Everywhere(make, [](void* made) {
    unsigned managed = 0;
    OK(RAW(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, ToDriver(made)));
    BOOST_TEST(managed == 1U);
    OK(RAW(cuMemFree)(ToDriver(made)));
  });
}

BOOST_AUTO_TEST_CASE(pinned_memory_driver_to_runtime) {
  const auto make = [] {
    void* memory = nullptr;
    OK(RAW(cuMemHostAlloc)(&memory, kBytes, 0));
    return memory;
  };
  Everywhere(make, [](void* made) {
    cudaPointerAttributes attributes = {};
    RT_OK(cudaPointerGetAttributes(&attributes, made));
    BOOST_CHECK_EQUAL(attributes.type, cudaMemoryTypeHost);
    RT_OK(cudaFreeHost(made));
  });
}

BOOST_AUTO_TEST_CASE(pinned_memory_runtime_to_driver) {
  const auto make = [] {
    void* memory = nullptr;
    RT_OK(cudaMallocHost(&memory, kBytes));
    return memory;
  };
  Everywhere(make, [](void* made) {
    CUdeviceptr mapped = 0;
    OK(RAW(cuMemHostGetDevicePointer)(&mapped, made, 0));
    BOOST_TEST(mapped == ToDriver(made));  // one address space
    OK(RAW(cuMemFreeHost)(made));
  });
}

BOOST_AUTO_TEST_CASE(pool_memory_driver_to_runtime) {
  const auto make = [] {
    CUdeviceptr memory = 0;
    OK(RAW(cuMemAllocAsync)(&memory, kBytes, CU_STREAM_PER_THREAD));
    OK(RAW(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
    return memory;
  };
  Everywhere(make, [](CUdeviceptr made) {
    RT_OK(cudaMemset(ToRuntime(made), 1, kBytes));
    RT_OK(cudaFreeAsync(ToRuntime(made), cudaStreamPerThread));
    RT_OK(cudaStreamSynchronize(cudaStreamPerThread));
  });
}

BOOST_AUTO_TEST_CASE(pool_memory_runtime_to_driver) {
  const auto make = [] {
    void* memory = nullptr;
    RT_OK(cudaMallocAsync(&memory, kBytes, cudaStreamPerThread));
    RT_OK(cudaStreamSynchronize(cudaStreamPerThread));
    return memory;
  };
  Everywhere(make, [](void* made) {
    OK(RAW(cuMemsetD8)(ToDriver(made), 1, kBytes));
    OK(RAW(cuMemFreeAsync)(ToDriver(made), CU_STREAM_PER_THREAD));
    OK(RAW(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
  });
}

BOOST_AUTO_TEST_CASE(null_stays_null) {
  BOOST_TEST(ToDriver(static_cast<const void*>(nullptr)) == 0U);
  BOOST_TEST(ToRuntime(CUdeviceptr{0}) == nullptr);
  BOOST_TEST(ToDriver(cudaEvent_t{nullptr}) == nullptr);
  BOOST_TEST(ToRuntime(CUgraph{nullptr}) == nullptr);
  BOOST_TEST(ToDriver(cudaMemPool_t{nullptr}) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
