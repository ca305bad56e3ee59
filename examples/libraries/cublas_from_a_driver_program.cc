// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a driver-API program call cuBLAS, and what does it cost?
//
// A cuBLAS handle belongs to the context that was current when it was created. cuBLAS does not
// check that when the handle is used: with another context current a call on stream 0 fails, and
// with none current it creates the device's primary context P and leaves it on the caller's stack.
// A CublasScope borrows a handle of the stream's context, makes that context current, and restores
// everything at its end.
//
//   1. cuBLAS by itself, on a thread that has nothing current
//
//      before                        (empty)         P is inactive
//      after cublasSgemm             [P]<            P is active
//   ...
//      through a CublasScope         +0.01 % time    best of 20

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

#include "cudasim/sim.h"
#include "cuguest/libraries/cublas.h"
#include "cuguest/status.h"
#include "examples/libraries/multiply.h"
#include "examples/support/stage.h"

// The program works in A, which need not be current.
namespace program {

absl::Status Multiply(support::DeviceProduct& product) {
  static auto& handles = *new cuguest::runtime::CublasHandles;  // of every context
  const cuguest::runtime::CublasScope blas(handles, product.stream());
  CUGUEST_RETURN_IF_ERROR(blas);
  CUGUEST_RETURN_IF_ERROR(cuguest::runtime::ToStatus(product.Multiply(blas.handle()), "multiply"));
  return product.stream().Synchronize();
}

}  // namespace program

namespace host {

using support::DeviceProduct;
using support::Stage;

// With a handle that was made in A.
void ByItself(const Stage& stage, DeviceProduct& in_a) {
  support::PrintScene("cuBLAS by itself, on a thread that has nothing current");
  stage.Set({"A"});
  cublasHandle_t handle = nullptr;
  SUCCEEDS(cublasCreate(&handle));
  stage.Set({});
  CHECK(stage.Shows("before", "(empty)", "P is inactive"));
  SUCCEEDS(cublasSetStream(handle, in_a.stream().get()));
  SUCCEEDS(in_a.Multiply(handle));
  CHECK(stage.Shows("after cublasSgemm", "[P]<", "P is active"));
  CHECK(in_a.IsRight());
  stage.Set({"A"});
  SUCCEEDS(cublasDestroy(handle));
  stage.Set({"P"});
  SUCCEEDS(cudaDeviceReset());
}

void ThroughAScope(const Stage& stage, const char* callers, DeviceProduct& in_a) {
  const support::Undisturbed undisturbed;
  CHECK(stage.Shows("before", callers, "P is inactive"));
  CHECK_OK(program::Multiply(in_a));
  CHECK(in_a.IsRight());
  CHECK(stage.Shows("after", callers, "P is inactive"));
  SUCCEEDS(cudaPeekAtLastError());
}

void ThroughScopes(const Stage& stage, DeviceProduct& in_a) {
  support::PrintScene("Through a CublasScope, whatever the caller has current");
  stage.Set({"X", "A"});
  ThroughAScope(stage, "[X] [A]<", in_a);
  stage.Set({"X"});
  ThroughAScope(stage, "[X]<", in_a);
  std::thread([&] { ThroughAScope(stage, "(empty)", in_a); }).join();
}

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// In P, with a handle of its own, as a plain program of the runtime. By turns, so that a change of
// the device's clock affects both; the device switches contexts in the first product of each turn.
absl::Status BesideAPlainProgram(const support::Product& product, DeviceProduct& in_a) {
  support::PrintScene("The cost, beside a plain program of the CUDA runtime");
  SUCCEEDS(cudaSetDevice(0));
  CUGUEST_ASSIGN_OR_RETURN(DeviceProduct in_p,
                           DeviceProduct::Upload(cuguest::ContextRef::Current(), product));
  cublasHandle_t handle = nullptr;
  SUCCEEDS(cublasCreate(&handle));
  SUCCEEDS(cublasSetStream(handle, in_p.stream().get()));
  const auto plain = [&] {
    SUCCEEDS(in_p.Multiply(handle));
    SUCCEEDS(cudaStreamSynchronize(in_p.stream().get()));
  };
  const auto scoped = [&] { CHECK_OK(program::Multiply(in_a)); };
  double plain_seconds = 1e9;
  double scoped_seconds = 1e9;
  for (int round = 0; round < 20; ++round) {
    plain();
    plain_seconds = std::min(plain_seconds, SecondsOf(plain));
    scoped();
    scoped_seconds = std::min(scoped_seconds, SecondsOf(scoped));
  }
  char difference[40];
  std::snprintf(difference, sizeof(difference), "%+.2f %% time",
                100 * (scoped_seconds / plain_seconds - 1));
  support::PrintRow("through a CublasScope", difference, "best of 20");
  CHECK(cudasim::Sim::IsActive() || scoped_seconds < 1.01 * plain_seconds);
  CHECK(in_p.IsRight() && in_a.IsRight());
  SUCCEEDS(cublasDestroy(handle));
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  const Stage stage(driver, device, {"X", "A", "P"});
  const support::Product product(cudasim::Sim::IsActive() ? 128 : 4096, /*seed=*/1);
  CUGUEST_ASSIGN_OR_RETURN(DeviceProduct in_a,
                           DeviceProduct::Upload(cuguest::ContextRef::Borrow(stage["A"]), product));
  ByItself(stage, in_a);
  ThroughScopes(stage, in_a);
  stage.Set({});
  CUGUEST_RETURN_IF_ERROR(BesideAPlainProgram(product, in_a));
  SUCCEEDS(cudaDeviceReset());
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a driver-API program call cuBLAS, and what does it cost?",
                             &host::Demonstrate);
}
