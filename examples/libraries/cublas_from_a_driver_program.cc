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
//
//   2. Through a CublasScope, whatever the caller has current
//
//      before                        [X]<            P is inactive
//      in the scope                  [X] [A]<
//      after                         [X]<            right, P is inactive
//      ...
//   3. The same product in a plain program of the CUDA runtime
//
//      the plain program, in P       50.80 TFLOP/s   best of 20
//      through a CublasScope, in A   50.79 TFLOP/s   best of 20, +0.01 % time

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cudasim/sim.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/runtime/cublas.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/libraries/multiply.h"
#include "examples/libraries/product.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

// A plain program of the CUDA runtime, which works in the primary context.
namespace plain {

#define SUCCEEDS(call) CHECK((call) == 0)

class Program {
 public:
  explicit Program(const support::Product& product) : n_(product.n()), bytes_(BytesOf(product)) {
    SUCCEEDS(cudaSetDevice(0));
    for (float** matrix : {&a_, &b_, &c_}) {
      SUCCEEDS(cudaMalloc(reinterpret_cast<void**>(matrix), bytes_));
    }
    SUCCEEDS(cudaMemcpy(a_, product.a().data(), bytes_, cudaMemcpyHostToDevice));
    SUCCEEDS(cudaMemcpy(b_, product.b().data(), bytes_, cudaMemcpyHostToDevice));
    SUCCEEDS(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    SUCCEEDS(cublasCreate(&handle_));
    SUCCEEDS(cublasSetStream(handle_, stream_));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    SUCCEEDS(cublasDestroy(handle_));
    SUCCEEDS(cudaStreamDestroy(stream_));
    for (float* matrix : {a_, b_, c_}) SUCCEEDS(cudaFree(matrix));
    SUCCEEDS(cudaDeviceReset());
  }

  void Multiply() {
    SUCCEEDS(support::Multiply(handle_, n_, a_, b_, c_));
    SUCCEEDS(cudaStreamSynchronize(stream_));
  }

  [[nodiscard]] std::vector<float> Read() const {
    std::vector<float> c(bytes_ / sizeof(float));
    SUCCEEDS(cudaMemcpy(c.data(), c_, bytes_, cudaMemcpyDeviceToHost));
    return c;
  }

 private:
  static std::size_t BytesOf(const support::Product& product) {
    return product.a().size() * sizeof(float);
  }

  int n_;
  std::size_t bytes_;
  float* a_ = nullptr;
  float* b_ = nullptr;
  float* c_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace plain

// A program of the driver API, with contexts of its own.
namespace host {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::runtime::CublasHandles;
using cuguest::runtime::CublasScope;
using cuguest::testing::UndisturbedScope;
using support::Activity;
using support::Cast;
using support::DeviceProduct;
using support::HostContext;
using support::HostStack;
using support::IsActive;
using support::PrintRow;
using support::PrintScene;
using support::Product;

struct House {
  const Driver& driver;
  Device device;
  CUcontext x;
  CUcontext a;
  CUcontext p;
  const Cast& cast;
  HostStack& stack;
  CublasHandles& handles;
  const Product& product;
  DeviceProduct& in_a;  // its matrices
};

// Multiplies in a scope, and waits. `inside` is called in the scope.
absl::Status Multiply(const House& house,
                      const std::function<void(cublasHandle_t)>& inside = nullptr) {
  {
    const CublasScope blas(house.handles, house.in_a.stream());
    CUGUEST_RETURN_IF_ERROR(blas);
    if (inside) inside(blas.handle());
    const cublasStatus_t code = house.in_a.Multiply(blas.handle());
    if (code != CUBLAS_STATUS_SUCCESS) return cuguest::runtime::ToStatus(code, "multiply");
  }
  return house.in_a.stream().Synchronize();
}

// Without cuguest: A is current while the handle is created and destroyed, and not while it is
// used.
void Bare(const House& house) {
  PrintScene("cuBLAS by itself, on a thread that has nothing current");
  cublasHandle_t handle = nullptr;
  house.stack.Set({house.a});
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  house.stack.Set({});
  PrintRow("before", house.cast.Draw(), Activity(house.device));
  CHECK(!IsActive(house.device));

  CHECK(cublasSetStream(handle, house.in_a.stream().get()) == CUBLAS_STATUS_SUCCESS);
  CHECK(house.in_a.Multiply(handle) == CUBLAS_STATUS_SUCCESS);
  PrintRow("after cublasSgemm", house.cast.Draw(), Activity(house.device));
  CHECK(house.cast.Draw() == "[P]<");
  CHECK(IsActive(house.device));
  CHECK(house.in_a.IsRight());
  support::PrintParagraph(
      "It succeeds, and the product is right. The thread's next calls, of both APIs, work in P.");

  house.stack.Set({house.a});
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  house.stack.Set({house.p});
  CHECK(cudaDeviceReset() == cudaSuccess);
  house.stack.Set({});
}

// Returns the handle that was borrowed.
cublasHandle_t MultiplyUndisturbed(const House& house) {
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  PrintRow("before", house.cast.Draw(), Activity(house.device));
  cublasHandle_t borrowed = nullptr;
  CHECK_OK(Multiply(house, [&](cublasHandle_t handle) {
    borrowed = handle;
    PrintRow("in the scope", house.cast.Draw());
  }));
  const std::string right = house.in_a.IsRight() ? "right, " : "WRONG, ";
  PrintRow("after", house.cast.Draw(), right + Activity(house.device));
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  return borrowed;
}

void ThroughAScope(const House& house) {
  PrintScene("Through a CublasScope, whatever the caller has current");
  std::set<cublasHandle_t> handles;
  const std::vector<CUcontext> callers[] = {{house.x, house.a}, {house.x}, {}};
  for (const std::vector<CUcontext>& caller : callers) {
    house.stack.Set(caller);
    handles.insert(MultiplyUndisturbed(house));
    std::printf("\n");
  }
  std::thread([&] { handles.insert(MultiplyUndisturbed(house)); }).join();
  support::PrintParagraph("The last one was another thread. All four used one handle.");
  CHECK(handles.size() == 1);
  CHECK(!IsActive(house.device));
}

// Keeps the best time.
class Stopwatch {
 public:
  void Time(const std::function<void()>& what) {
    const auto start = std::chrono::steady_clock::now();
    what();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best_ = best_ == 0 ? taken.count() : std::min(best_, taken.count());
  }
  [[nodiscard]] double seconds() const { return best_; }

 private:
  double best_ = 0;  // 0: none yet
};

struct Race {
  Stopwatch plain;
  Stopwatch bridged;
};

constexpr int kRounds = 20;

// Alternately, so that a change of the device's clock affects both. The first product of each turn
// is not timed: the device switches contexts.
Race Run(const House& house, plain::Program* program) {
  Race race;
  for (int round = 0; round < kRounds; ++round) {
    program->Multiply();
    race.plain.Time([&] { program->Multiply(); });
    CHECK_OK(Multiply(house));
    race.bridged.Time([&] { CHECK_OK(Multiply(house)); });
  }
  return race;
}

std::string Format(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

void Print(const Race& race, double operations) {
  const auto rate = [operations](const Stopwatch& watch) {
    return Format("%.2f TFLOP/s", operations / watch.seconds() / 1e12);
  };
  const std::string best = "best of " + std::to_string(kRounds);
  const double slower = 100 * (race.bridged.seconds() / race.plain.seconds() - 1);
  PrintRow("the plain program, in P", rate(race.plain), best);
  PrintRow("through a CublasScope, in A", rate(race.bridged),
           best + Format(", %+.2f %% time", slower));
  if (Sim::IsActive()) {
    support::PrintParagraph("This is the time of the host, which computes for the simulation.");
  } else {
    CHECK(slower < 1);
  }
}

void BesideAPlainProgram(const House& house) {
  PrintScene("The same product in a plain program of the CUDA runtime");
  house.stack.Set({});
  {
    plain::Program program(house.product);
    Print(Run(house, &program), house.product.operations());
    CHECK(house.in_a.IsRight());
    CHECK(house.product.IsRight(program.Read()));
  }
  house.stack.Set({});
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext x, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const CUcontext p, support::HandleOfPrimary(device));
  Cast cast;
  cast.Name("X", x.get());
  cast.Name("A", a.get());
  cast.Name("P", p);
  HostStack stack(driver, {});

  const Product product(Sim::IsActive() ? 128 : 4096, /*seed=*/1);
  std::printf("   matrices: %d x %d%s\n", product.n(), product.n(),
              Sim::IsActive() ? " (4096 x 4096 on a GPU)" : "");
  CUGUEST_ASSIGN_OR_RETURN(DeviceProduct in_a,
                           DeviceProduct::Upload(ContextRef::Borrow(a.get()), product));
  CublasHandles handles;
  const House house{driver, device, x.get(), a.get(), p, cast, stack, handles, product, in_a};
  Bare(house);
  ThroughAScope(house);
  BesideAPlainProgram(house);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a driver-API program call cuBLAS, and what does it cost?",
                             &host::Demonstrate);
}
