// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The controls of the simulated libraries, and what ends a program there.

#include "cudasim/sim_library.h"

#include <cublas_v2.h>
#include <cufft.h>
#include <cusolverDn.h>
#include <cusparse.h>
#include <dlfcn.h>

#include <csignal>
#include <cstdlib>
#include <set>
#include <string>

#include "cudasim/sim.h"
#include "test/library.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(sim_library)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLibrary;
using cudasim::SimLive;
using cudasim_test::OnlyReal;
using cudasim_test::OnlySim;

namespace {

struct NoFaultsLeft {
  ~NoFaultsLeft() { SimLibrary::ClearFaults(); }
};

// Loads each, and none is left out by the linker.
void UseAll() {
  int version = 0;
  BOOST_TEST(cublasGetProperty(MAJOR_VERSION, &version) == CUBLAS_STATUS_SUCCESS);
  BOOST_TEST(cufftGetProperty(MAJOR_VERSION, &version) == CUFFT_SUCCESS);
  BOOST_TEST(cusolverGetProperty(MAJOR_VERSION, &version) == CUSOLVER_STATUS_SUCCESS);
  BOOST_TEST(cusparseGetProperty(MAJOR_VERSION, &version) == CUSPARSE_STATUS_SUCCESS);
}

// A fault returns before any argument is looked at.
int CallWithZeros(const char* name) {
  using Z = std::uintptr_t;
  using AnyEntry = int (*)(Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z);
  void* function = dlsym(RTLD_DEFAULT, name);
  BOOST_REQUIRE(function != nullptr);
  return reinterpret_cast<AnyEntry>(function)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                              0, 0);
}

std::string Soname(const char* name, int major) {
  return std::string("lib") + name + ".so." + std::to_string(major);
}

void CheckPanics(const char* child, const std::string& text) {
  const cudasim_test::Ended ended = cudasim_test::RunChild(child);
  BOOST_TEST(ended.code == -SIGABRT, child << ": " << ended.output);
  BOOST_TEST((ended.output.find(text) != std::string::npos), child << ": " << ended.output);
}

// A handle of a context that is current.
cublasHandle_t Create(CUcontext* context) {
  cublasHandle_t handle = nullptr;
  RAW(cuInit)(0);
  RAW(cuCtxCreate)(context, nullptr, 0, 0);
  cublasCreate(&handle);
  return handle;
}

}  // namespace

BOOST_AUTO_TEST_CASE(they_are_active_where_the_driver_is_simulated) {
  UseAll();
  for (const std::string& soname :
       {Soname("cublas", CUBLAS_VER_MAJOR), Soname("cufft", CUFFT_VER_MAJOR),
        Soname("cusolver", CUSOLVER_VER_MAJOR), Soname("cusparse", CUSPARSE_VER_MAJOR)}) {
    BOOST_TEST(SimLibrary::IsActive(soname.c_str()) == Sim::IsActive(), soname);
  }
  BOOST_TEST(!SimLibrary::IsActive("libcublas.so.1"));
}

BOOST_AUTO_TEST_CASE(nothing_is_done_to_real_libraries, *OnlyReal()) {
  UseAll();
  SimLibrary::FailCall("cublasGetProperty", 1, CUBLAS_STATUS_INTERNAL_ERROR);
  int version = 0;
  BOOST_TEST(cublasGetProperty(MAJOR_VERSION, &version) == CUBLAS_STATUS_SUCCESS);
  BOOST_TEST(SimLibrary::Calls("cublasGetProperty") == 0u);
  BOOST_TEST(SimLibrary::EntryName(0) == nullptr);
  SimLibrary::ClearFaults();
  SimLibrary::ResetCalls();
}

BOOST_AUTO_TEST_CASE(every_entry_fails_on_demand_and_does_nothing_else, *OnlySim()) {
  UseAll();
  const NoFaultsLeft cleanup;
  const SimLive live = Sim::Live();
  std::set<std::string> names;
  size_t index = 0;
  for (; SimLibrary::EntryName(index) != nullptr; ++index) {
    const char* name = SimLibrary::EntryName(index);
    names.insert(name);
    const auto calls = SimLibrary::Calls(name);
    SimLibrary::FailCall(name, 1, 77);
    BOOST_TEST(CallWithZeros(name) == 77, name);
    BOOST_TEST(SimLibrary::Calls(name) == calls + 1, name);
  }
  BOOST_TEST(names.size() == index);
  for (const char* name : {"cublasSgemm_v2", "cufftExecC2C", "cusolverDnCreate", "cusparseSpMV"}) {
    BOOST_TEST(names.count(name) == 1u, name);
  }
  BOOST_CHECK(Sim::Live() == live);
  BOOST_CHECK(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(a_fault_hits_the_nth_call_once, *OnlySim()) {
  const NoFaultsLeft cleanup;
  int version = 0;
  const auto call = [&] { return cufftGetVersion(&version); };
  BOOST_TEST(call() == CUFFT_SUCCESS);
  SimLibrary::FailCall("cufftGetVersion", 2, CUFFT_ALLOC_FAILED);
  SimLibrary::FailCall("cufftGetVersion", 3, CUFFT_INTERNAL_ERROR, /*from_any_thread=*/false);
  BOOST_TEST(call() == CUFFT_SUCCESS);
  OnAnotherThread([&] { BOOST_TEST(call() == CUFFT_ALLOC_FAILED); });
  BOOST_TEST(call() == CUFFT_SUCCESS);
  BOOST_TEST(call() == CUFFT_INTERNAL_ERROR);
  BOOST_TEST(call() == CUFFT_SUCCESS);
  SimLibrary::FailCall("cufftGetVersion", 1, CUFFT_ALLOC_FAILED);
  SimLibrary::ClearFaults();
  BOOST_TEST(call() == CUFFT_SUCCESS);
  SimLibrary::ResetCalls();
  BOOST_TEST(SimLibrary::Calls("cufftGetVersion") == 0u);
}

// What a library takes in a context, it gives back, or it goes with the context.
BOOST_AUTO_TEST_CASE(memory_of_handles_and_plans_shows, *OnlySim()) {
  const Current current;
  const size_t before = Sim::Live().allocations;
  cublasHandle_t blas = nullptr;
  cusolverDnHandle_t solver = nullptr;
  cufftHandle plan = 0;
  BOOST_TEST(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS);
  BOOST_TEST(cusolverDnCreate(&solver) == CUSOLVER_STATUS_SUCCESS);
  BOOST_TEST(cufftPlan1d(&plan, 1 << 16, CUFFT_C2C, 1) == CUFFT_SUCCESS);
  BOOST_TEST(Sim::Live().allocations == before + 4);
  BOOST_TEST(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);
  BOOST_TEST(cusolverDnDestroy(solver) == CUSOLVER_STATUS_SUCCESS);
  BOOST_TEST(cufftDestroy(plan) == CUFFT_SUCCESS);
  BOOST_TEST(Sim::Live().allocations == before);
}

// No memory for a handle: nothing is left.
BOOST_AUTO_TEST_CASE(what_cannot_be_made_leaves_nothing, *OnlySim()) {
  const Current current;
  const SimLive live = Sim::Live();
  cublasHandle_t blas = nullptr;
  cufftHandle plan = 0;
  Sim::FailCall("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
  BOOST_TEST(cublasCreate(&blas) == CUBLAS_STATUS_ALLOC_FAILED);
  Sim::FailCall("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY);
  BOOST_TEST(cufftPlan1d(&plan, 1 << 16, CUFFT_C2C, 1) == CUFFT_INTERNAL_ERROR);
  Sim::ClearFaults();
  BOOST_TEST(Sim::Live().allocations == live.allocations);
}

// Memory that the device cannot reach.
CHILD(host_memory) {
  CUcontext context = nullptr;
  const cublasHandle_t handle = Create(&context);
  std::vector<float> x(4), y(4);
  const float factor = 2;
  if (cublasSaxpy(handle, 4, &factor, x.data(), 1, y.data(), 1) != CUBLAS_STATUS_SUCCESS) return 1;
  return RAW(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 2;
}

CHILD(memory_of_another_device) {
  CUcontext context = nullptr, other = nullptr;
  CUdeviceptr x = 0;
  RAW(cuInit)(0);
  RAW(cuCtxCreate)(&other, nullptr, 0, 1);
  RAW(cuMemAlloc)(&x, 64);
  const cublasHandle_t handle = Create(&context);
  auto* data = reinterpret_cast<float*>(x);
  const float factor = 2;
  if (cublasSscal(handle, 4, &factor, data, 1) != CUBLAS_STATUS_SUCCESS) return 1;
  return RAW(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 2;
}

CHILD(work_area_that_is_not_aligned) {
  RAW(cuInit)(0);
  const Current current;
  constexpr int kLength = 1 << 16;
  const OnDevice<cufftComplex> data{std::vector<cufftComplex>(kLength)};
  const OnDevice<char> area{std::vector<char>(kLength * sizeof(cufftComplex) + 1)};
  cufftHandle plan = 0;
  size_t bytes = 0;
  cufftCreate(&plan);
  cufftSetAutoAllocation(plan, 0);
  cufftMakePlan1d(plan, kLength, CUFFT_C2C, 1, &bytes);
  if (cufftSetWorkArea(plan, area.get() + 1) != CUFFT_SUCCESS) return 1;
  if (cufftExecC2C(plan, data.get(), data.get(), CUFFT_FORWARD) != CUFFT_SUCCESS) return 2;
  std::_Exit(RAW(cuCtxSynchronize)() == CUDA_ERROR_MISALIGNED_ADDRESS ? 0 : 3);
}

BOOST_AUTO_TEST_CASE(memory_that_a_device_cannot_reach_loses_it, *OnlySim()) {
  REQUIRE_CHILD_PASSES("work_area_that_is_not_aligned");
  REQUIRE_CHILD_PASSES("host_memory");
  REQUIRE_CHILD_PASSES("memory_of_another_device");
}

// The code that all work runs by is loaded by the first handle.
CHILD(code_that_cannot_be_loaded) {
  CUcontext context = nullptr;
  cublasHandle_t handle = nullptr;
  RAW(cuInit)(0);
  RAW(cuCtxCreate)(&context, nullptr, 0, 0);
  for (const char* entry : {"cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction"}) {
    const SimLive live = Sim::Live();
    Sim::FailCall(entry, 1, CUDA_ERROR_OUT_OF_MEMORY);
    if (cublasCreate(&handle) != CUBLAS_STATUS_ALLOC_FAILED) return 1;
    if (Sim::Live().allocations != live.allocations) return 2;
    const bool has_code = std::string(entry) == "cuKernelGetFunction";  // which is kept
    if (Sim::Live().libraries != live.libraries + (has_code ? 1 : 0)) return 3;
  }
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 4;
  return cublasDestroy(handle);
}

BOOST_AUTO_TEST_CASE(code_that_cannot_be_loaded_leaves_nothing, *OnlySim()) {
  REQUIRE_CHILD_PASSES("code_that_cannot_be_loaded");
}

// cuSOLVER leaves a handle of what it could not make.
BOOST_AUTO_TEST_CASE(a_solver_that_could_not_be_made_can_be_destroyed, *OnlySim()) {
  const Current current;
  const NoFaultsLeft cleanup;
  const size_t before = Sim::Live().allocations;
  cusolverDnHandle_t solver = nullptr;
  Sim::FailCall("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
  BOOST_TEST(cusolverDnCreate(&solver) == CUSOLVER_STATUS_INTERNAL_ERROR);
  BOOST_REQUIRE(solver != nullptr);
  BOOST_TEST(cusolverDnDestroy(solver) == CUSOLVER_STATUS_SUCCESS);
  BOOST_TEST(Sim::Live().allocations == before);
}

// With numbers whose product no integer holds.
BOOST_AUTO_TEST_CASE(sizes_beyond_all_memory_are_refused, *OnlySim()) {
  const Current current;
  constexpr int kLarge = 0x7fffffff;
  cufftHandle plan = 0;
  int size[] = {8, 8, 8}, embed[] = {kLarge, kLarge, kLarge};
  BOOST_TEST(cufftPlan3d(&plan, kLarge, kLarge, kLarge, CUFFT_Z2Z) == CUFFT_INVALID_SIZE);
  BOOST_TEST(cufftPlanMany(&plan, 3, size, embed, kLarge, 1, embed, 1, 1, CUFFT_C2C, 1) ==
             CUFFT_INVALID_SIZE);
  BOOST_TEST(cufftPlanMany(&plan, 1, size, embed, -1, 8, embed, 1, 8, CUFFT_C2C, 1) ==
             CUFFT_INVALID_SIZE);
}

BOOST_AUTO_TEST_CASE(modes_and_counts_of_cublas_that_there_are_not, *OnlySim()) {
  const Current current;
  cublasHandle_t blas = nullptr;
  BOOST_TEST(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS);
  const OnDevice<float> a({1}), b({2});
  const float one = 1;
  const auto solve = [&](int side, int fill, int diagonal) {
    return cublasStrsm(blas, OutOfRange<cublasSideMode_t>(side), OutOfRange<cublasFillMode_t>(fill),
                       CUBLAS_OP_N, OutOfRange<cublasDiagType_t>(diagonal), 1, 1, &one, a.get(), 1,
                       b.get(), 1);
  };
  BOOST_TEST(cublasSetPointerMode(blas, OutOfRange<cublasPointerMode_t>(2)) ==
             CUBLAS_STATUS_INVALID_VALUE);
  BOOST_TEST(cublasSetAtomicsMode(blas, OutOfRange<cublasAtomicsMode_t>(2)) ==
             CUBLAS_STATUS_INVALID_VALUE);
  BOOST_TEST(solve(0, 0, 0) == CUBLAS_STATUS_SUCCESS);
  BOOST_TEST(solve(2, 0, 0) == CUBLAS_STATUS_INVALID_VALUE);
  BOOST_TEST(solve(0, CUBLAS_FILL_MODE_FULL, 0) == CUBLAS_STATUS_INVALID_VALUE);
  BOOST_TEST(solve(0, 0, 2) == CUBLAS_STATUS_INVALID_VALUE);
  BOOST_TEST(cublasSgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.get(), 1, 1,
                                       a.get(), 1, 1, &one, b.get(), 1, 1,
                                       -1) == CUBLAS_STATUS_INVALID_VALUE);
  BOOST_TEST(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);
}

// y = A x of a matrix of one row, one column and an index.
int Multiply(int index, cusparseIndexType_t type, bool with_dead_handle = false) {
  const OwnContext context;
  cusparseHandle_t handle = nullptr;
  if (with_dead_handle) {
    const Current dead;
    cusparseCreate(&handle);
  }
  SetStack({context.get()});
  if (!with_dead_handle) cusparseCreate(&handle);
  const OnDevice<int> offsets({0, 1}), indices({index});
  const OnDevice<float> values({2}), x({3}), y({0});
  const float one = 1, zero = 0;
  cusparseSpMatDescr_t matrix = nullptr;
  cusparseDnVecDescr_t from = nullptr, to = nullptr;
  cusparseCreateCsr(&matrix, 1, 1, 1, offsets.get(), indices.get(), values.get(), type, type,
                    CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
  cusparseCreateDnVec(&from, 1, x.get(), CUDA_R_32F);
  cusparseCreateDnVec(&to, 1, y.get(), CUDA_R_32F);
  const int code = cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, from, &zero,
                                to, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, offsets.get());
  cusparseDestroySpMat(matrix);
  cusparseDestroyDnVec(from);
  cusparseDestroyDnVec(to);
  cusparseDestroy(handle);
  return code;
}

CHILD(index_outside_of_the_matrix) {
  RAW(cuInit)(0);
  return Multiply(1, CUSPARSE_INDEX_32I);
}

CHILD(sparse_handle_of_a_dead_context) {
  RAW(cuInit)(0);
  return Multiply(0, CUSPARSE_INDEX_32I, /*with_dead_handle=*/true);
}

CHILD(long_indices) {
  RAW(cuInit)(0);
  CHECK(Multiply(0, CUSPARSE_INDEX_64I) == CUSPARSE_STATUS_NOT_SUPPORTED);
  CHECK(Sim::UnmodelledCalls("cusparseSpMV") == 1);
  return 0;
}

BOOST_AUTO_TEST_CASE(other_types_are_not_supported, *OnlySim()) {
  REQUIRE_CHILD_PASSES("long_indices");
  Sim::ResetCalls();
  const Current current;
  cublasHandle_t blas = nullptr;
  BOOST_TEST(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS);
  const OnDevice<float> a({2}), b({3});
  const float one = 1;
  BOOST_TEST(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.get(), CUDA_R_16F, 1,
                          a.get(), CUDA_R_16F, 1, &one, b.get(), CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                          CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);
  BOOST_TEST(Sim::UnmodelledCalls("cublasGemmEx") == 1u);
  BOOST_TEST(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);
}

// Registered before cuInit, it runs after the end of the driver.
CHILD(computes_after_the_end) {
  static cublasHandle_t handle = nullptr;
  std::atexit([] {
    const float factor = 2;
    if (cublasSetStream(handle, nullptr) == CUBLAS_STATUS_SUCCESS) {
      cublasSscal(handle, 1, &factor, nullptr, 1);
    }
  });
  CUcontext context = nullptr;
  handle = Create(&context);
  return 0;
}

// So that nothing but the work was it.
CHILD(destroys_after_the_end) {
  static cublasHandle_t handle = nullptr;
  std::atexit([] { std::_Exit(cublasDestroy(handle)); });
  CUcontext context = nullptr;
  handle = Create(&context);
  return 1;
}

CHILD(destroyed_handle) {
  CUcontext context = nullptr;
  const cublasHandle_t handle = Create(&context);
  cublasDestroy(handle);
  return cublasSetStream(handle, nullptr);
}

CHILD(handle_of_a_dead_context) {
  CUcontext context = nullptr;
  const cublasHandle_t handle = Create(&context);
  RAW(cuCtxDestroy)(context);
  return cublasDestroy(handle);
}

CHILD(plan_of_a_dead_context) {
  CUcontext context = nullptr;
  cufftHandle plan = 0;
  RAW(cuInit)(0);
  RAW(cuCtxCreate)(&context, nullptr, 0, 0);
  cufftPlan1d(&plan, 8, CUFFT_C2C, 1);
  RAW(cuCtxDestroy)(context);
  return cufftDestroy(plan);
}

CHILD(call_before_the_next) {
  int version = 0;
  cublasGetProperty(MAJOR_VERSION, &version);
  SimLibrary::FailCall("cublasGetProperty", 0, 1);
  return 0;
}

CHILD(unknown_entry) {
  int version = 0;
  cublasGetProperty(MAJOR_VERSION, &version);
  SimLibrary::FailCall("cublasNothing", 1, 1);
  return 0;
}

BOOST_AUTO_TEST_CASE(what_is_undefined_ends_the_program, *OnlySim()) {
  CheckPanics("computes_after_the_end", "after the end of the driver");
  REQUIRE_CHILD_PASSES("destroys_after_the_end");
  CheckPanics("destroyed_handle", "no handle, or one that was destroyed");
  CheckPanics("handle_of_a_dead_context", "of a context that is over");
  CheckPanics("plan_of_a_dead_context", "of a context that is over");
  CheckPanics("index_outside_of_the_matrix", "row 0 of the matrix has an offset or an index");
  CheckPanics("sparse_handle_of_a_dead_context", "of a context that is over");
  CheckPanics("call_before_the_next", "the next call is 1");
  CheckPanics("unknown_entry", "\"cublasNothing\" is modelled by no");
}

BOOST_AUTO_TEST_SUITE_END()
