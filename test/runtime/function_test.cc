// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/runtime/function.h"

#include <string>

#include "cudasim/sim.h"
#include "kernels/saxpy.h"
#include "test/runtime/everywhere.h"
#include "test/runtime/host_kernels.h"
#include "test/runtime/kernels.h"

namespace {

using namespace cuguest_runtime_test;
using cudasim::Sim;
using cuguest::runtime::FunctionOf;
using cuguest::runtime::KernelOf;
using cuguest::runtime::LibraryOf;
using cuguest::runtime::ModuleOf;
using cuguest::runtime::ToDriver;
using cuguest::runtime::ToRuntime;
using cuguest::runtime::ToSymbol;
using cuguest_test::HasDriver;
using cuguest_test::NeedsDriver;
using cuguest_test::OnlySim;

constexpr unsigned kCount = 4;

// Numbers on the device, and the arguments of both kernels.
struct Numbers {
  Numbers() {
    OK(RAW(cuMemAlloc)(&memory, sizeof(host)));
    OK(RAW(cuMemcpyHtoD)(memory, host, sizeof(host)));
  }
  ~Numbers() { OK(RAW(cuMemFree)(memory)); }

  void CheckTimes(float factor) {
    OK(RAW(cuCtxSynchronize)());
    float now[kCount] = {};
    OK(RAW(cuMemcpyDtoH)(now, memory, sizeof(now)));
    for (unsigned i = 0; i < kCount; ++i) BOOST_TEST(now[i] == factor * host[i]);
  }

  float host[kCount] = {1, 2, 3, 4};
  CUdeviceptr memory = 0;
  unsigned count = kCount;
  float factor = 3;
  void* scale[3] = {&memory, &count, &factor};
  void* saxpy[4] = {&count, &factor, &memory, &memory};
};

void LaunchByDriver(CUfunction function, void** arguments) {
  OK(RAW(cuLaunchKernel)(function, 1, 1, 1, kCount, 1, 1, 0, nullptr, arguments, nullptr));
}

CUlibrary LoadByDriver() {
  CUlibrary library = nullptr;
  OK(RAW(cuLibraryLoadData)(&library, cuguest_kernels::saxpy_fatbin, nullptr, nullptr, 0, nullptr,
                            nullptr, 0));
  return library;
}

CUkernel SaxpyOf(CUlibrary library) {
  CUkernel kernel = nullptr;
  OK(RAW(cuLibraryGetKernel)(&kernel, library, "saxpy"));
  return kernel;
}

template <typename T>
T Value(absl::StatusOr<T> result) {
  BOOST_TEST_REQUIRE(result.ok(), result.status().ToString());
  return *std::move(result);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(function, HostKernels)

BOOST_AUTO_TEST_CASE(function_runtime_to_driver) {
  const auto make = [] { return Value(FunctionOf(ScaleSymbol(), ContextRef::Current())); };
  Everywhere(make, [](CUfunction function) {
    Numbers numbers;
    LaunchByDriver(ToDriver(ToRuntime(function)), numbers.scale);
    numbers.CheckTimes(3);
  });
}

BOOST_AUTO_TEST_CASE(kernel_runtime_to_driver) {
  const auto make = [] { return Value(KernelOf(ScaleSymbol())); };
  Everywhere(make, [](CUkernel kernel) {
    Numbers numbers;
    LaunchByDriver(reinterpret_cast<CUfunction>(ToDriver(ToRuntime(kernel))), numbers.scale);
    numbers.CheckTimes(3);
    LaunchByDriver(Value(FunctionOf(kernel, ContextRef::Current())), numbers.scale);
    numbers.CheckTimes(9);
  });
}

BOOST_AUTO_TEST_CASE(kernel_driver_to_runtime, *NeedsDriver(12050, "cuKernelGetLibrary")) {
  const auto make = [] { return SaxpyOf(LoadByDriver()); };
  Everywhere(make, [](CUkernel kernel) {
    Numbers numbers;
    RT_OK(cudaLaunchKernel(ToSymbol(kernel), dim3{1, 1, 1}, dim3{kCount, 1, 1}, numbers.saxpy, 0,
                           nullptr));
    numbers.CheckTimes(4);
    cudaFuncAttributes attributes = {};
    RT_OK(cudaFuncGetAttributes(&attributes, ToSymbol(kernel)));
    BOOST_TEST(attributes.maxThreadsPerBlock >= 32);
    OK(RAW(cuLibraryUnload)(Value(LibraryOf(kernel))));
  });
}

BOOST_AUTO_TEST_CASE(library_driver_to_runtime, *NeedsDriver(12050, "cuKernelGetLibrary")) {
  Everywhere(LoadByDriver, [](CUlibrary made) {
    const cudaLibrary_t library = ToRuntime(made);
    cudaKernel_t kernel = nullptr;
    RT_OK(cudaLibraryGetKernel(&kernel, library, "saxpy"));
    BOOST_TEST(Value(LibraryOf(ToDriver(kernel))) == made);
    Numbers numbers;
    LaunchByDriver(reinterpret_cast<CUfunction>(ToDriver(kernel)), numbers.saxpy);
    numbers.CheckTimes(4);
    RT_OK(cudaLibraryUnload(library));
  });
}

BOOST_AUTO_TEST_CASE(library_runtime_to_driver) {
  const auto make = [] {
    cudaLibrary_t library = nullptr;
    RT_OK(cudaLibraryLoadData(&library, cuguest_kernels::saxpy_fatbin, nullptr, nullptr, 0, nullptr,
                              nullptr, 0));
    return library;
  };
  Everywhere(make, [](cudaLibrary_t made) {
    const CUlibrary library = ToDriver(made);
    Numbers numbers;
    LaunchByDriver(Value(FunctionOf(SaxpyOf(library), ContextRef::Current())), numbers.saxpy);
    numbers.CheckTimes(4);
    OK(RAW(cuLibraryUnload)(library));
  });
}

BOOST_AUTO_TEST_CASE(module_runtime_to_driver) {
  const auto make = [] {
    return Value(ModuleOf(Value(FunctionOf(ScaleSymbol(), ContextRef::Current()))));
  };
  Everywhere(make, [](CUmodule module) {
    CUfunction function = nullptr;
    OK(RAW(cuModuleGetFunction)(&function, module, "bridge_scale"));
    Numbers numbers;
    LaunchByDriver(function, numbers.scale);
    numbers.CheckTimes(3);
  });
}

BOOST_AUTO_TEST_CASE(a_function_belongs_to_its_context_and_a_kernel_to_none) {
  const OwnContext a;
  const OwnContext b;
  const CUkernel kernel = Value(KernelOf(ScaleSymbol()));
  const ContextRef in_a = ContextRef::Borrow(a.get());
  const ContextRef in_b = ContextRef::Borrow(b.get());
  BOOST_TEST(Value(FunctionOf(ScaleSymbol(), in_a)) == Value(FunctionOf(kernel, in_a)));
  BOOST_TEST(Value(FunctionOf(kernel, in_a)) != Value(FunctionOf(kernel, in_b)));
  BOOST_TEST(Value(ModuleOf(Value(FunctionOf(kernel, in_a)))) !=
             Value(ModuleOf(Value(FunctionOf(kernel, in_b)))));
}

BOOST_AUTO_TEST_CASE(with_nothing_current_no_context_is_created) {
  EndPrimary();
  const OwnContext context;
  const Undisturbed undisturbed;
  BOOST_TEST(Value(KernelOf(ScaleSymbol())) != nullptr);
  BOOST_TEST(Value(FunctionOf(ScaleSymbol(), ContextRef::Borrow(context.get()))) != nullptr);
}

BOOST_AUTO_TEST_CASE(what_is_none_is_refused_and_leaves_no_error) {
  const OwnContext context;
  const ContextRef home = ContextRef::Borrow(context.get());
  const int no_kernel = 0;
  const Undisturbed undisturbed;
  using absl::StatusCode;
  BOOST_TEST((KernelOf(nullptr).status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST((FunctionOf(static_cast<const void*>(nullptr), home).status().code() ==
              StatusCode::kInvalidArgument));
  BOOST_TEST((FunctionOf(CUkernel{nullptr}, home).status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST((LibraryOf(nullptr).status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST((ModuleOf(nullptr).status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST((FunctionOf(&no_kernel, home).status().code() == StatusCode::kNotFound));
  BOOST_TEST((KernelOf(&no_kernel).status().code() == StatusCode::kNotFound));
  BOOST_TEST(
      (FunctionOf(ScaleSymbol(), ContextRef()).status().code() == StatusCode::kFailedPrecondition));
  BOOST_TEST((FunctionOf(Value(KernelOf(ScaleSymbol())), ContextRef()).status().code() ==
              StatusCode::kFailedPrecondition));
}

BOOST_AUTO_TEST_CASE(every_failing_call_is_a_status, *OnlySim()) {
  const OwnContext context;
  const ContextRef home = ContextRef::Borrow(context.get());
  const CUkernel kernel = Value(KernelOf(ScaleSymbol()));
  const CUfunction function = Value(FunctionOf(kernel, home));
  const Undisturbed undisturbed;
  for (const char* entry : {"cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxGetId"}) {
    Sim::FailCall(entry, 1, CUDA_ERROR_UNKNOWN);
    BOOST_TEST(!FunctionOf(kernel, home).ok(), entry);
    Sim::ClearFaults();
  }
  Sim::FailCall("cuKernelGetFunction", 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
  BOOST_TEST((cuguest::CodeOf(FunctionOf(kernel, home).status()) == CUDA_ERROR_NO_BINARY_FOR_GPU));
  if (HasDriver(12050)) {
    Sim::FailCall("cuKernelGetLibrary", 1, CUDA_ERROR_UNKNOWN);
    BOOST_TEST((cuguest::CodeOf(LibraryOf(kernel).status()) == CUDA_ERROR_UNKNOWN));
  }
  Sim::FailCall("cuFuncGetModule", 1, CUDA_ERROR_UNKNOWN);
  BOOST_TEST((cuguest::CodeOf(ModuleOf(function).status()) == CUDA_ERROR_UNKNOWN));
}

BOOST_AUTO_TEST_SUITE_END()
