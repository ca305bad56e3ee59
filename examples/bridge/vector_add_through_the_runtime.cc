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
//      an image                      right           Kernel::Once, LaunchForElements
//      the symbol                    right           Kernel::Borrow, LaunchForElements

#include <cuda_runtime_api.h>

#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/runtime/function.h"
#include "cuguest/status.h"
#include "examples/bridge/numbers.h"
#include "examples/bridge/vector_add.h"
#include "examples/support/stage.h"
#include "kernels/vector_add.h"

// What the program does beside <<<>>>.
namespace program {

// The kernel of an image.
cuguest::Module::Once image({cuguest_kernels::vector_add_fatbin,
                             cuguest_kernels::vector_add_fatbin_size},
                            "vector_add");
cuguest::Kernel::Once loaded(image, "vector_add");

// The linked one.
absl::StatusOr<cuguest::Kernel> Link() {
  CUGUEST_ASSIGN_OR_RETURN(const CUkernel kernel, cuguest::runtime::KernelOf(SymbolOfVectorAdd()));
  return cuguest::Kernel::Borrow(kernel);
}

absl::Status Add(const cuguest::Kernel& kernel, unsigned count, const float* a, const float* b,
                 float* sum, cudaStream_t stream) {
  return cuguest::LaunchForElements(kernel, count, stream, count, cuguest::DevicePtr(a),
                                    cuguest::DevicePtr(b), cuguest::DevicePtr(sum));
}

}  // namespace program

namespace host {

using support::PrintRow;
using support::Ramp;

struct Vectors {
  Numbers a{Ramp(1)};
  Numbers b{Ramp(2)};
  Numbers sum{Ramp(0)};
};

void Check(const Vectors& vectors, cudaStream_t stream, const char* how, const char* calls) {
  SUCCEEDS(cudaStreamSynchronize(stream));
  PrintRow(how, CHECK(vectors.sum.Read() == Ramp(3)) ? "right" : "WRONG", calls);
  SUCCEEDS(cudaMemset(vectors.sum.get(), 0, Numbers::kBytes));
}

absl::Status ThreeTimes(const Vectors& v, cudaStream_t stream) {
  support::PrintScene("Three launches of one kernel");
  SUCCEEDS(VectorAdd(Numbers::kCount, v.a.get(), v.b.get(), v.sum.get(), stream));
  Check(v, stream, "<<<>>>", "cudaGetLastError() == cudaSuccess");
  CUGUEST_ASSIGN_OR_RETURN(const auto* const loaded, program::loaded.Get());
  CHECK_OK(program::Add(*loaded, Numbers::kCount, v.a.get(), v.b.get(), v.sum.get(), stream));
  Check(v, stream, "an image", "Kernel::Once, LaunchForElements");
  CUGUEST_ASSIGN_OR_RETURN(const auto linked, program::Link());
  CHECK_OK(program::Add(linked, Numbers::kCount, v.a.get(), v.b.get(), v.sum.get(), stream));
  Check(v, stream, "the symbol", "Kernel::Borrow, LaunchForElements");
  return absl::OkStatus();
}

absl::Status TooLarge(const Vectors& v, cudaStream_t stream) {
  support::PrintScene("A block that is too large");
  constexpr unsigned kTooLarge = 2048;
  unsigned count = Numbers::kCount;
  float* vectors[] = {v.a.get(), v.b.get(), v.sum.get()};
  void* args[] = {&count, &vectors[0], &vectors[1], &vectors[2]};
  // What the compiler makes of <<<1, 2048>>>.
  const cudaError_t code =
      cudaLaunchKernel(SymbolOfVectorAdd(), dim3(1), dim3(kTooLarge), args, 0, stream);
  PrintRow("<<<>>>", "refused", cudaGetErrorName(code));
  CHECK(code != cudaSuccess);
  CHECK(cudaGetLastError() == code);  // which clears it

  CUGUEST_ASSIGN_OR_RETURN(const auto* const kernel, program::loaded.Get());
  const absl::Status refused = cuguest::Launch(*kernel, {/*grid=*/1, kTooLarge}, stream,
                                               cuguest::HostSpan<void* const>(args));
  CHECK(support::IsRefused("Launch", refused, absl::StatusCode::kInvalidArgument));
  SUCCEEDS(cudaGetLastError());
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  const support::Stage stage(driver, device, {});  // empties the stack at the end
  {
    const Vectors vectors;
    cudaStream_t stream = nullptr;
    SUCCEEDS(cudaStreamCreate(&stream));
    CUGUEST_RETURN_IF_ERROR(ThreeTimes(vectors, stream));
    CUGUEST_RETURN_IF_ERROR(TooLarge(vectors, stream));
    SUCCEEDS(cudaStreamDestroy(stream));
  }
  SUCCEEDS(cudaDeviceReset());
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "What does a program of the CUDA runtime gain by launching through the driver?",
      &host::Demonstrate);
}
