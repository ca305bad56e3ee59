// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels by their host function, as nvcc's host code registers them, and by the handles
// of both APIs.

#include <fatbinary_section.h>

#include <cstdint>

#include "cudasim/sim.h"
#include "test/kernels/saxpy.h"
#include "test/runtime_facts.h"

BOOST_AUTO_TEST_SUITE(runtime_launch_facts)

// What nvcc's host code calls, from crt/host_runtime.h, which is for nvcc only.
extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const char* symbol, char* device, const char* name,
                            int limit, uint3* thread, uint3* block, dim3* block_size,
                            dim3* grid_size, int* warp_size);
void __cudaUnregisterFatBinary(void** handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* symbol);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t stream);
}

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

template <typename T>
T Parameter(const SimLaunch& launch, size_t i) {
  T value;
  std::memcpy(&value, launch.parameters[i], sizeof(value));
  return value;
}

CUresult Saxpy(const SimLaunch& launch) {
  const auto n = Parameter<unsigned>(launch, 0);
  const auto a = Parameter<float>(launch, 1);
  const float* x = Parameter<const float*>(launch, 2);
  float* y = Parameter<float*>(launch, 3);
  for (unsigned i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
  return CUDA_SUCCESS;
}

// Host functions, of which only addresses matter.
void Registered() {}
void Unregistered() {}
const void* AddressOf(void (*function)()) { return reinterpret_cast<const void*>(function); }
const void* const kSaxpy = AddressOf(&Registered);

// What nvcc writes into every program with a kernel.
struct HostCode {
  HostCode() {
    Sim::RegisterKernel("saxpy", &Saxpy);
    static __fatBinC_Wrapper_t wrapper = {
        FATBINC_MAGIC, FATBINC_VERSION,
        reinterpret_cast<const unsigned long long*>(cudasim_kernels::saxpy_fatbin), nullptr};
    static char name[] = "saxpy";  // nvcc writes it twice
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, static_cast<const char*>(kSaxpy), name, "saxpy", -1, nullptr,
                           nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFatBinaryEnd(handle);
  }
  ~HostCode() { __cudaUnregisterFatBinary(handle); }
  void** handle;
};
const HostCode host_code;

// y = 2 * 3 + 1 in memory of the current context.
struct Work {
  Work() {
    const float three = 3;
    const float one = 1;
    RT_OK(cudaMalloc(&x, sizeof(float)));
    RT_OK(cudaMalloc(&y, sizeof(float)));
    RT_OK(cudaMemcpy(x, &three, sizeof(three), cudaMemcpyHostToDevice));
    RT_OK(cudaMemcpy(y, &one, sizeof(one), cudaMemcpyHostToDevice));
  }
  ~Work() {
    RT_OK(cudaFree(x));
    RT_OK(cudaFree(y));
  }
  float Result() const {
    float result = 0;
    RT_OK(cudaMemcpy(&result, y, sizeof(result), cudaMemcpyDeviceToHost));
    return result;
  }

  void* x = nullptr;
  void* y = nullptr;
  unsigned n = 1;
  float a = 2;
  void* arguments[4] = {&n, &a, &x, &y};
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_host_function_launches_its_kernel) {
  const Retained retained;
  Work work;
  RT_OK(cudaLaunchKernel(kSaxpy, dim3(1), dim3(32), work.arguments, 0, nullptr));
  BOOST_TEST(work.Result() == 7);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  RT_OK(cudaLaunchKernelExC(&config, kSaxpy, work.arguments));
  BOOST_TEST(work.Result() == 13);
}

BOOST_AUTO_TEST_CASE(attributes_of_launches_are_not_modelled, *cudasim_test::OnlySim()) {
  const Retained retained;
  Work work;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributePriority;
  cudaLaunchConfig_t config = {};
  config.gridDim = config.blockDim = dim3(1);
  config.attrs = &attribute;
  config.numAttrs = 1;
  Sim::ResetCalls();
  RT_IS(cudaLaunchKernelExC(&config, kSaxpy, work.arguments), NotSupported);
  BOOST_TEST(Sim::UnmodelledCalls("cudaLaunchKernelExC") == 1u);
}

BOOST_AUTO_TEST_CASE(a_launch_with_nothing_current_binds_the_primary) {
  const Unused unused;
  RT_IS(cudaLaunchKernel(kSaxpy, dim3(0), dim3(1), nullptr, 0, nullptr), InvalidValue);
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
}

// What <<<...>>> becomes.
BOOST_AUTO_TEST_CASE(the_stub_of_nvcc_launches) {
  const Retained retained;
  Work work;
  cudaStream_t stream = nullptr;
  RT_OK(cudaStreamCreate(&stream));
  BOOST_TEST(__cudaPushCallConfiguration(dim3(1, 2), dim3(32), 16, stream) == 0u);
  dim3 grid;
  dim3 block;
  size_t shared = 0;
  cudaStream_t popped = nullptr;
  RT_OK(__cudaPopCallConfiguration(&grid, &block, &shared, &popped));
  BOOST_TEST(grid.y == 2u);
  BOOST_TEST(block.x == 32u);
  BOOST_TEST(shared == 16u);
  BOOST_CHECK(popped == stream);
  RT_IS(__cudaPopCallConfiguration(&grid, &block, &shared, &popped), MissingConfiguration);
  cudaKernel_t kernel = nullptr;
  RT_OK(__cudaGetKernel(&kernel, kSaxpy));
  RT_OK(__cudaLaunchKernel(kernel, dim3(1), block, work.arguments, 0, stream));
  RT_OK(cudaStreamSynchronize(stream));
  BOOST_TEST(work.Result() == 7);
  RT_OK(cudaStreamDestroy(stream));
}

BOOST_AUTO_TEST_CASE(a_kernel_is_one_for_the_process_and_a_function_one_per_context) {
  const Retained retained;
  const OwnContext a;
  cudaKernel_t kernels[2] = {};
  cudaFunction_t functions[3] = {};
  RT_OK(cudaGetKernel(&kernels[0], kSaxpy));
  BOOST_CHECK(GetStack().empty());
  SetStack({a.get()});
  RT_OK(cudaGetKernel(&kernels[1], kSaxpy));
  BOOST_CHECK(kernels[0] == kernels[1]);
  RT_OK(cudaGetFuncBySymbol(&functions[0], kSaxpy));
  SetStack({PrimaryHandle()});
  RT_OK(cudaGetFuncBySymbol(&functions[1], kSaxpy));
  OK(RAW(cuKernelGetFunction)(&functions[2], kernels[0]));
  BOOST_CHECK(functions[0] != functions[1]);
  BOOST_CHECK(functions[1] == functions[2]);
  RT_OK(cudaGetFuncBySymbol(nullptr, kSaxpy));
}

BOOST_AUTO_TEST_CASE(each_api_launches_what_the_other_names) {
  const Retained retained;
  SetStack({PrimaryHandle()});
  Work work;
  cudaKernel_t kernel = nullptr;
  cudaFunction_t function = nullptr;
  RT_OK(cudaGetKernel(&kernel, kSaxpy));
  RT_OK(cudaGetFuncBySymbol(&function, kSaxpy));
  OK(RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, work.arguments, nullptr));
  OK(RAW(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                         work.arguments, nullptr));
  RT_OK(cudaLaunchKernel(function, dim3(1), dim3(1), work.arguments, 0, nullptr));
  RT_OK(cudaLaunchKernel(kernel, dim3(1), dim3(1), work.arguments, 0, nullptr));
  BOOST_TEST(work.Result() == 25);
}

BOOST_AUTO_TEST_CASE(attributes_and_names_of_functions) {
  const Retained retained;
  SetStack({PrimaryHandle()});
  cudaFuncAttributes attributes;
  cudaKernel_t kernel = nullptr;
  const char* name = nullptr;
  RT_OK(cudaGetKernel(&kernel, kSaxpy));
  for (const void* symbol : {kSaxpy, static_cast<const void*>(kernel)}) {
    RT_OK(cudaFuncGetAttributes(&attributes, symbol));
    BOOST_TEST(attributes.maxThreadsPerBlock == 1024);
    RT_OK(cudaFuncGetName(&name, symbol));
    BOOST_TEST(name == std::string("saxpy"));
  }
}

BOOST_AUTO_TEST_CASE(unknown_symbols_are_refused) {
  const Retained retained;
  SetStack({PrimaryHandle()});
  const void* const unknown = AddressOf(&Unregistered);
  static char data[64];  // as an address, no kernel either
  cudaKernel_t kernel = nullptr;
  cudaFunction_t function = nullptr;
  cudaFuncAttributes attributes;
  RT_IS(cudaGetKernel(&kernel, unknown), InvalidDeviceFunction);
  RT_IS(cudaGetKernel(nullptr, kSaxpy), InvalidValue);
  RT_IS(cudaGetFuncBySymbol(&function, unknown), InvalidDeviceFunction);
  RT_IS(cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr), InvalidDeviceFunction);
  RT_IS(cudaLaunchKernel(data, dim3(1), dim3(1), nullptr, 0, nullptr), InvalidResourceHandle);
  RT_IS(cudaFuncGetAttributes(&attributes, data), InvalidResourceHandle);
  RT_IS(cudaFuncGetAttributes(&attributes, nullptr), InvalidDeviceFunction);
  RT_IS(cudaFuncGetAttributes(nullptr, kSaxpy), InvalidValue);
  RT_OK(cudaGetKernel(&kernel, kSaxpy));
  RT_IS(cudaGetKernel(&kernel, kernel), InvalidDeviceFunction);
}

BOOST_AUTO_TEST_CASE(libraries_need_no_context) {
  const Unused unused;
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  unsigned count = 0;
  RT_OK(cudaLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  RT_OK(cudaLibraryGetKernelCount(&count, library));
  BOOST_TEST(count == 2u);
  RT_IS(cudaLibraryGetKernel(&kernel, library, "none"), SymbolNotFound);
  RT_OK(cudaLibraryGetKernel(&kernel, library, "nothing"));
  RT_IS(cudaLibraryLoadData(nullptr, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0), InvalidValue);
  RT_IS(cudaLibraryLoadData(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0),
        InvalidValue);
  RT_IS(cudaLibraryUnload(nullptr), InvalidResourceHandle);
  BOOST_CHECK(GetStack().empty());
  BOOST_CHECK(!IsActive(0));
  RT_OK(cudaLibraryUnload(library));
}

BOOST_AUTO_TEST_SUITE_END()
