// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does a program of the CUDA runtime gain by launching through the driver?
//
// The same vector addition three times, on the same memory of cudaMalloc and the same cudaStream_t:
// with <<<>>>, whose parameters the compiler checks and whose kernel is linked with the program;
// with cuguest and a kernel of an image, which might come over the network; and with cuguest and
// the linked kernel itself, whose CUkernel the runtime returns for its symbol. An invalid launch
// with <<<>>> is a code in the runtime's last error; with Launch it is a status that says what is
// wrong.
//
//   1. Three launches of one kernel
//
//      <<<>>>                        right           cudaGetLastError() == cudaSuccess
//      an image                      right           Module::GetKernel, LaunchForElements
//      the symbol                    right           Kernel::Borrow, LaunchForElements
//
//   2. A block that is too large
//
//      <<<>>>                        refused         cudaErrorInvalidValue
//      Launch                        refused
//        ...

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/device.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/function.h"
#include "cuguest/runtime/handle.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "examples/bridge/vector_add.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/vector_add.h"

namespace {

using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::StreamRef;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

#define SUCCEEDS(call) CHECK((call) == cudaSuccess)

constexpr unsigned kCount = 1000;  // as many as in a Ramp
constexpr std::size_t kBytes = kCount * sizeof(float);

// Three vectors of the runtime's, and a stream.
struct Program {
  Program() {
    for (float** vector : {&a, &b, &c}) {
      SUCCEEDS(cudaMalloc(reinterpret_cast<void**>(vector), kBytes));
    }
    SUCCEEDS(cudaMemcpy(a, Ramp(1).data(), kBytes, cudaMemcpyHostToDevice));
    SUCCEEDS(cudaMemcpy(b, Ramp(2).data(), kBytes, cudaMemcpyHostToDevice));
    SUCCEEDS(cudaStreamCreate(&stream));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    SUCCEEDS(cudaStreamDestroy(stream));
    for (float* vector : {a, b, c}) SUCCEEDS(cudaFree(vector));
  }

  [[nodiscard]] absl::StatusOr<StreamRef> work() const {
    return StreamRef::Borrow(cuguest::runtime::ToDriver(stream));
  }

  float* a = nullptr;
  float* b = nullptr;
  float* c = nullptr;
  cudaStream_t stream = nullptr;
};

absl::Status LaunchByRuntime(const Program& p) {
  return cuguest::runtime::ToStatus(VectorAdd(kCount, p.a, p.b, p.c, p.stream),
                                    "launch vector_add");
}

absl::Status LaunchByDriver(const Program& p, const Kernel& kernel) {
  CUGUEST_ASSIGN_OR_RETURN(const StreamRef work, p.work());
  return cuguest::LaunchForElements(kernel, kCount, work, kCount, DevicePtr<const float>(p.a),
                                    DevicePtr<const float>(p.b), DevicePtr(p.c));
}

void RunAndCheck(const Program& program, const char* how, const char* calls,
                 const std::function<absl::Status()>& launch) {
  SUCCEEDS(cudaMemset(program.c, 0, kBytes));
  CHECK_OK(launch());
  SUCCEEDS(cudaStreamSynchronize(program.stream));
  std::vector<float> sum(kCount);
  SUCCEEDS(cudaMemcpy(sum.data(), program.c, kBytes, cudaMemcpyDeviceToHost));
  PrintRow(how, CHECK(sum == Ramp(3)) ? "right" : "wrong", calls);
}

void ThreeTimes(const Program& program, const Kernel& loaded, const Kernel& linked) {
  PrintScene("Three launches of one kernel");
  RunAndCheck(program, "<<<>>>", "cudaGetLastError() == cudaSuccess",
              [&] { return LaunchByRuntime(program); });
  RunAndCheck(program, "an image", "Module::GetKernel, LaunchForElements",
              [&] { return LaunchByDriver(program, loaded); });
  RunAndCheck(program, "the symbol", "Kernel::Borrow, LaunchForElements",
              [&] { return LaunchByDriver(program, linked); });
}

constexpr unsigned kTooLarge = 2048;

// What the compiler makes of <<<1, 2048>>>.
cudaError_t LaunchTooLarge(const Program& program) {
  unsigned n = kCount;
  float* a = program.a;
  float* b = program.b;
  float* c = program.c;
  void* args[] = {&n, &a, &b, &c};
  return cudaLaunchKernel(SymbolOfVectorAdd(), dim3(1), dim3(kTooLarge), args, 0, program.stream);
}

void TooLarge(const Program& program, const Kernel& kernel) {
  PrintScene("A block that is too large");
  const cudaError_t code = LaunchTooLarge(program);
  PrintRow("<<<>>>", "refused", cudaGetErrorName(code));
  CHECK(code != cudaSuccess);
  CHECK(cudaGetLastError() == code);  // which clears it

  cuguest::LaunchShape shape;
  shape.block = kTooLarge;
  const absl::StatusOr<StreamRef> work = program.work();
  if (!CHECK_OK(work.status())) return;
  const absl::Status refused =
      cuguest::Launch(kernel, shape, *work, kCount, DevicePtr<const float>(program.a),
                      DevicePtr<const float>(program.b), DevicePtr(program.c));
  PrintRow("Launch", "refused");
  support::PrintParagraph(std::string(refused.message()));
  CHECK(refused.code() == absl::StatusCode::kInvalidArgument);
  CHECK(cudaGetLastError() == cudaSuccess);
  PrintRow("the runtime's last error", "cudaSuccess");
}

absl::Status Demonstrate(const cuguest::Driver& driver, cuguest::Device) {
  const support::HostStack stack(driver, {});  // empties it at the end
  {
    const Program program;
    CUGUEST_ASSIGN_OR_RETURN(
        const Module module,
        Module::Load({cuguest_kernels::vector_add_fatbin, cuguest_kernels::vector_add_fatbin_size},
                     "vector_add"));
    CUGUEST_ASSIGN_OR_RETURN(const Kernel loaded, module.GetKernel("vector_add"));
    CUGUEST_ASSIGN_OR_RETURN(const CUkernel symbol,
                             cuguest::runtime::KernelOf(SymbolOfVectorAdd()));
    CUGUEST_ASSIGN_OR_RETURN(const Kernel linked, Kernel::Borrow(symbol));
    ThreeTimes(program, loaded, linked);
    TooLarge(program, loaded);
  }
  SUCCEEDS(cudaDeviceReset());
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample(
      "What does a program of the CUDA runtime gain by launching through the driver?",
      &Demonstrate);
}
