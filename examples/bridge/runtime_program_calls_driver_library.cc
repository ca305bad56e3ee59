// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library of the driver API serve a program of the CUDA runtime?
//
// The program handles no contexts. It has pointers of cudaMalloc, a cudaStream_t and kernels that
// <<<>>> launches, and calls a library that links no CUDA library and has a kernel of its own as
// PTX. The handles are the same in both APIs: the program's pointers are CUdeviceptrs, and its
// stream is a CUstream. So the library
//
//   - validates the pointers: whether a device can reach the memory, whether there is enough of it,
//     and which context owns it;
//   - launches in the context of the stream, whatever is current on the caller's thread;
//   - submits its work in the order of the program's, and does not wait;
//   - makes no runtime call, and so leaves no last error that the program would take for one of its
//     own kernel.

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuguest/objects/device_view.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/status.h"
#include "examples/bridge/numbers.h"
#include "examples/bridge/triple.h"
#include "examples/support/stage.h"
#include "kernels/saxpy.h"

// The library: driver API and cuguest, without the runtime.
namespace guest {

// Loaded once, by the first call, for all contexts.
cuguest::Module::Once code({cuguest_kernels::saxpy_ptx, cuguest_kernels::saxpy_ptx_size}, "saxpy");
cuguest::Kernel::Once kernel(code, "saxpy");

// y = a * x + y, in the order of `stream`; does not wait.
absl::Status Axpy(CUstream stream, float a, const float* x, float* y, std::size_t count) {
  CUGUEST_ASSIGN_OR_RETURN(const auto* const saxpy, kernel.Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto from, cuguest::DeviceView<const float>::Borrow(x, count));
  CUGUEST_ASSIGN_OR_RETURN(const auto to, cuguest::DeviceView<float>::Borrow(y, count));
  return cuguest::LaunchForElements(*saxpy, count, stream, static_cast<unsigned>(count), a, from,
                                    to);
}

}  // namespace guest

// A program of the runtime.
namespace host {

using support::Ramp;

// What the runtime says of the thread. Neither call creates a context.
std::string DeviceAndError() {
  int device = -1;
  const cudaError_t error = cudaPeekAtLastError();
  SUCCEEDS(cudaGetDevice(&device));
  return "device " + std::to_string(device) + ", " + cudaGetErrorName(error);
}

// Calls the library, which must not change what the thread has.
void Call(const char* what, const std::function<void()>& call) {
  const support::Undisturbed undisturbed;
  const std::string before = DeviceAndError();
  call();
  support::PrintRow(what, "undisturbed", DeviceAndError());
  CHECK(DeviceAndError() == before);
}

// The host's kernel, the guest's, the host's: the host waits at the end only.
void BetweenTwoKernels(cudaStream_t stream, const Numbers& x) {
  const Numbers y(Ramp(1));
  SUCCEEDS(Triple(y.get(), Numbers::kCount, stream));
  Call("between two kernels",
       [&] { CHECK_OK(guest::Axpy(stream, 2.0F, x.get(), y.get(), Numbers::kCount)); });
  SUCCEEDS(Triple(y.get(), Numbers::kCount, stream));
  SUCCEEDS(cudaStreamSynchronize(stream));
  CHECK(y.Read() == Ramp(3 * (3 * 1 + 2 * 2)));
}

// The thread has nothing current.
void FromANewThread(cudaStream_t stream, const Numbers& x) {
  const Numbers y(Ramp(1));
  std::thread([&] {
    Call("from a new thread",
         [&] { CHECK_OK(guest::Axpy(stream, 1.0F, x.get(), y.get(), Numbers::kCount)); });
  }).join();
  SUCCEEDS(cudaStreamSynchronize(stream));
  CHECK(y.Read() == Ramp(1 + 2));
}

// A wrong pointer gives an error, and no last error of the host's.
void WrongPointers(cudaStream_t stream, const Numbers& x) {
  std::vector<float> plain(Numbers::kCount);
  float* freed = nullptr;
  SUCCEEDS(cudaMalloc(reinterpret_cast<void**>(&freed), Numbers::kBytes));
  SUCCEEDS(cudaFree(freed));
  const std::pair<const char*, float*> wrong[] = {
      {"memory of the host's", plain.data()},
      {"memory that was freed", freed},
      {"a null pointer", nullptr},
      {"too few elements", x.get() + 1},
  };
  for (const auto& [given, y] : wrong) {
    Call("a wrong pointer", [&, given = given, y = y] {
      CHECK(support::IsRefused(given, guest::Axpy(stream, 1.0F, x.get(), y, Numbers::kCount),
                               absl::StatusCode::kInvalidArgument));
    });
  }
  SUCCEEDS(Triple(x.get(), Numbers::kCount, stream));
  SUCCEEDS(cudaStreamSynchronize(stream));
  CHECK(x.Read() == Ramp(3 * 2));
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  const support::Stage stage(driver, device, {});  // empties the stack at the end
  {
    const Numbers x(Ramp(2));
    cudaStream_t stream = nullptr;
    SUCCEEDS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    BetweenTwoKernels(stream, x);
    FromANewThread(stream, x);
    WrongPointers(stream, x);
    SUCCEEDS(cudaStreamDestroy(stream));
  }
  SUCCEEDS(cudaDeviceReset());
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How does a library of the driver API serve a program of the CUDA runtime?",
      &host::Demonstrate);
}
