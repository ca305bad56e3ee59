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
#include "cuguest/runtime/cublas.h"
#include "cuguest/status.h"
#include "examples/libraries/multiply.h"
#include "examples/support/example.h"
#include "examples/support/house.h"

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
using support::HostStack;
using support::House;

#define SUCCEEDS(call) CHECK((call) == 0)

// With a handle that was made in A.
void ByItself(const House& house, DeviceProduct& in_a) {
  support::PrintScene("cuBLAS by itself, on a thread that has nothing current");
  HostStack stack(house.driver, {house.a.get()});
  cublasHandle_t handle = nullptr;
  SUCCEEDS(cublasCreate(&handle));
  stack.Set({});
  house.Show("before");
  SUCCEEDS(cublasSetStream(handle, in_a.stream().get()));
  SUCCEEDS(in_a.Multiply(handle));
  house.Show("after cublasSgemm");
  CHECK(house.cast.Draw() == "[P]<" && support::IsActive(house.device));
  CHECK(in_a.IsRight());
  stack.Set({house.a.get()});
  SUCCEEDS(cublasDestroy(handle));
  stack.Set({house.p});
  SUCCEEDS(cudaDeviceReset());
}

void MultiplyUndisturbed(const House& house, DeviceProduct& in_a) {
  const cuguest::testing::UndisturbedScope undisturbed(&support::ReportDisturbance);
  house.Show("before");
  CHECK_OK(program::Multiply(in_a));
  house.Show("after", in_a.IsRight() ? "right" : "WRONG");
  SUCCEEDS(cudaPeekAtLastError());
}

void ThroughAScope(const House& house, DeviceProduct& in_a) {
  support::PrintScene("Through a CublasScope, whatever the caller has current");
  HostStack stack(house.driver, {house.x.get(), house.a.get()});
  MultiplyUndisturbed(house, in_a);
  stack.Set({house.x.get()});
  MultiplyUndisturbed(house, in_a);
  std::thread([&] { MultiplyUndisturbed(house, in_a); }).join();
  CHECK(!support::IsActive(house.device));
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

absl::Status Demonstrate(const cuguest::Driver& driver, cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const House house, House::Create(driver, device));
  const support::Product product(cudasim::Sim::IsActive() ? 128 : 4096, /*seed=*/1);
  CUGUEST_ASSIGN_OR_RETURN(
      DeviceProduct in_a,
      DeviceProduct::Upload(cuguest::ContextRef::Borrow(house.a.get()), product));
  ByItself(house, in_a);
  ThroughAScope(house, in_a);
  const HostStack stack(driver, {});  // empties it at the end
  CUGUEST_RETURN_IF_ERROR(BesideAPlainProgram(product, in_a));
  SUCCEEDS(cudaDeviceReset());
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a driver-API program call cuBLAS, and what does it cost?",
                             &host::Demonstrate);
}
