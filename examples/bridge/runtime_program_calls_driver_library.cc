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
//   - asks the stream for its context, and enters that for the call, whatever is current on the
//     caller's thread;
//   - submits its work in the order of the program's, and does not wait;
//   - makes no runtime call, and so leaves no last error that the program would take for one of its
//     own kernel.
//
//   2. From a thread that has never used CUDA
//
//      the host's thread             (empty)         device 0, cudaSuccess
//      in guest::Axpy                [P]<            the stream's context
//      when guest::Axpy returned     (empty)         device 0, cudaSuccess

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device_ptr.h"
#include "cuguest/device_view.h"
#include "cuguest/driver.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/bridge/triple.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

// The library: driver API and cuguest, without the runtime.
namespace guest {

using cuguest::ContextGuard;
using cuguest::DevicePtr;
using cuguest::DeviceView;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::StreamRef;

using Trace = std::function<void()>;  // called while the library is at work

absl::StatusOr<Kernel> LoadSaxpy() {
  CUGUEST_ASSIGN_OR_RETURN(
      const Module module,
      Module::Load({cuguest_kernels::saxpy_ptx, cuguest_kernels::saxpy_ptx_size}, "saxpy"));
  return module.GetKernel("saxpy");  // which keeps the module loaded
}

// One for all contexts. Never destroyed.
const absl::StatusOr<Kernel>& Saxpy() {
  static const auto& kernel = *new absl::StatusOr<Kernel>(LoadSaxpy());
  return kernel;
}

// y = a * x + y, in the order of `stream`; does not wait.
absl::Status Axpy(CUstream stream, float a, const float* x, float* y, std::size_t count,
                  const Trace& trace = nullptr) {
  CUGUEST_ASSIGN_OR_RETURN(const DeviceView<const float> from,
                           DeviceView<const float>::Borrow(x, count));
  CUGUEST_ASSIGN_OR_RETURN(const DeviceView<float> to, DeviceView<float>::Borrow(y, count));
  CUGUEST_ASSIGN_OR_RETURN(const StreamRef work, StreamRef::Borrow(stream));

  const absl::StatusOr<Kernel>& saxpy = Saxpy();
  CUGUEST_RETURN_IF_ERROR(saxpy);

  const ContextGuard guard(work.context());
  CUGUEST_RETURN_IF_ERROR(guard);
  if (trace) trace();
  return cuguest::LaunchForElements(*saxpy, count, work, static_cast<unsigned>(count), a,
                                    DevicePtr(from), DevicePtr(to));
}

// What `values` points to, when no stream writes it any more. The copy finds the context that owns
// the memory.
absl::StatusOr<std::vector<float>> Read(const float* values, std::size_t count) {
  CUGUEST_ASSIGN_OR_RETURN(const DeviceView<const float> from,
                           DeviceView<const float>::Borrow(values, count));
  return cuguest::Download(from);
}

}  // namespace guest

// A program of the runtime.
namespace host {

using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

#define SUCCEEDS(call) CHECK((call) == cudaSuccess)

constexpr std::size_t kCount = 1000;  // as many as in a Ramp
constexpr std::size_t kBytes = kCount * sizeof(float);

// Numbers on the device.
class Numbers {
 public:
  explicit Numbers(const std::vector<float>& values) {
    SUCCEEDS(cudaMalloc(reinterpret_cast<void**>(&values_), kBytes));
    SUCCEEDS(cudaMemcpy(values_, values.data(), kBytes, cudaMemcpyHostToDevice));
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  ~Numbers() { SUCCEEDS(cudaFree(values_)); }

  [[nodiscard]] float* get() const { return values_; }
  [[nodiscard]] std::vector<float> Read() const {
    std::vector<float> values(kCount);
    SUCCEEDS(cudaMemcpy(values.data(), values_, kBytes, cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  float* values_ = nullptr;
};

class Stream {
 public:
  Stream() { SUCCEEDS(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { SUCCEEDS(cudaStreamDestroy(stream_)); }
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void Wait() const { SUCCEEDS(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

// What the runtime says of the thread. Neither call creates a context.
std::string DeviceAndError() {
  int device = -1;
  const cudaError_t error = cudaPeekAtLastError();
  SUCCEEDS(cudaGetDevice(&device));
  return "device " + std::to_string(device) + ", " + cudaGetErrorName(error);
}

// Draws the thread before, during and after the call, which must not change it.
void CallGuest(const Cast& cast, const std::string& thread,
               const std::function<absl::Status(const guest::Trace&)>& call) {
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const std::string stack = cast.Draw();
  const std::string state = DeviceAndError();
  PrintRow(thread, stack, state);
  CHECK_OK(call([&] {
    PrintRow("in guest::Axpy", cast.Draw(), "the stream's context");
    CHECK(cast.Draw() == "[P]<");
  }));
  PrintRow("when guest::Axpy returned", cast.Draw(), DeviceAndError());
  CHECK(cast.Draw() == stack);
  CHECK(DeviceAndError() == state);
}

// The host's kernel, the guest's, the host's: the host waits at the end only.
void BetweenTwoKernels(const Cast& cast, const Stream& stream, const Numbers& x) {
  PrintScene("Between two kernels of the host, on the host's stream");
  const Numbers y(Ramp(1));
  SUCCEEDS(host::Triple(y.get(), kCount, stream.get()));
  CallGuest(cast, "the host's thread", [&](const guest::Trace& trace) {
    return guest::Axpy(stream.get(), 2.0F, x.get(), y.get(), kCount, trace);
  });
  SUCCEEDS(host::Triple(y.get(), kCount, stream.get()));
  stream.Wait();
  CHECK(y.Read() == Ramp(3 * (3 * 1 + 2 * 2)));
  PrintRow("the numbers", "right", "3 * (3 * y + 2 * x), a thousand of them");
}

void OnANewThread(const std::function<void()>& work) { std::thread(work).join(); }

void FromANewThread(const Cast& cast, const Stream& stream, const Numbers& x) {
  PrintScene("From a thread that has never used CUDA");
  const Numbers y(Ramp(1));
  OnANewThread([&] {
    CallGuest(cast, "the host's thread", [&](const guest::Trace& trace) {
      return guest::Axpy(stream.get(), 1.0F, x.get(), y.get(), kCount, trace);
    });
  });
  stream.Wait();
  OnANewThread([&] {
    const UndisturbedScope undisturbed(&support::ReportDisturbance);
    const absl::StatusOr<std::vector<float>> read = guest::Read(y.get(), kCount);
    if (CHECK_OK(read.status())) CHECK(*read == Ramp(1 + 2));
    PrintRow("when guest::Read returned", cast.Draw(), "in the memory's context");
  });
}

void Refused(const char* given, const absl::Status& status) {
  PrintRow(given, "refused", "");
  support::PrintParagraph(std::string(status.message()));
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
}

void WrongPointers(const Stream& stream, const Numbers& x) {
  PrintScene("A wrong pointer gives an error, and no last error of the host's");
  std::vector<float> plain(kCount);
  float* freed = nullptr;
  SUCCEEDS(cudaMalloc(reinterpret_cast<void**>(&freed), kBytes));
  SUCCEEDS(cudaFree(freed));
  const std::pair<const char*, float*> wrong[] = {
      {"memory of the host's", plain.data()},
      {"memory that was freed", freed},
      {"a null pointer", nullptr},
      {"too few elements", x.get() + kCount / 2},
  };
  const std::string before = DeviceAndError();
  {
    const UndisturbedScope undisturbed(&support::ReportDisturbance);
    for (const auto& [given, y] : wrong) {
      Refused(given, guest::Axpy(stream.get(), 1.0F, x.get(), y, kCount));
    }
  }
  CHECK(DeviceAndError() == before);
  SUCCEEDS(host::Triple(x.get(), kCount, stream.get()));
  stream.Wait();
  PrintRow("the host's next kernel", "succeeds", DeviceAndError());
  CHECK(x.Read() == Ramp(3 * 2));
}

absl::Status Demonstrate(const cuguest::Driver& driver, cuguest::Device) {
  const support::HostStack stack(driver, {});  // empties it at the end
  Cast cast;
  {
    const Numbers x(Ramp(2));
    cast.Name("P", cuguest::ContextRef::Current().get());  // which cudaMalloc has created
    const Stream stream;
    BetweenTwoKernels(cast, stream, x);
    FromANewThread(cast, stream, x);
    WrongPointers(stream, x);
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
