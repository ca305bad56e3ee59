// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Can many threads use both APIs, cuBLAS and cuFFT in many contexts, without disturbing others?
//
// The threads of a host, each with contexts and a last error of its own, call a library that works
// in other contexts. After each call, in random order, the result is right and the context that was
// current is current; at the end each thread's stack and last error are what they were, and no
// primary context was created.

#include <cuda_runtime_api.h>

#include <complex>
#include <functional>
#include <random>
#include <thread>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/device_ptr.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/runtime/cublas.h"
#include "cuguest/runtime/cufft.h"
#include "cuguest/runtime/device_buffer.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/handle.h"
#include "cuguest/shared_context.h"
#include "examples/libraries/multiply.h"
#include "examples/libraries/tones.h"
#include "examples/support/example.h"
#include "examples/support/house.h"
#include "kernels/saxpy.h"

// The library works in the context of the stream, whatever is current.
namespace library {

namespace runtime = cuguest::runtime;
using cuguest::StreamRef;

// Memory and a copy of the runtime, a stream and a kernel of the driver.
absl::StatusOr<bool> Launch(const cuguest::Kernel& saxpy, const StreamRef& stream) {
  const std::vector<float> ramp = support::Ramp(1);
  const auto count = static_cast<unsigned>(ramp.size());
  CUGUEST_ASSIGN_OR_RETURN(auto y, runtime::AllocateBuffer<float>(stream.context(), count));
  const cuguest::ContextGuard guard(stream.context());
  CUGUEST_RETURN_IF_ERROR(guard);
  CUGUEST_RETURN_IF_ERROR(
      runtime::ToStatus(cudaMemcpyAsync(y.data(), ramp.data(), y.size_bytes(),
                                        cudaMemcpyHostToDevice, runtime::ToRuntime(stream.get())),
                        "copy"));
  const cuguest::DevicePtr at(y.view());
  CUGUEST_RETURN_IF_ERROR(cuguest::LaunchForElements(saxpy, count, stream, count, 2.0F, at, at));
  CUGUEST_RETURN_IF_ERROR(stream.Synchronize());
  return support::Holds(y.view(), support::Ramp(3));
}

absl::StatusOr<bool> Multiply(support::DeviceProduct& product) {
  static auto& handles = *new runtime::CublasHandles;  // of every context; never destroyed
  const runtime::CublasScope blas(handles, product.stream());
  CUGUEST_RETURN_IF_ERROR(blas);
  CUGUEST_RETURN_IF_ERROR(runtime::ToStatus(product.Multiply(blas.handle()), "multiply"));
  return product.IsRight();
}

absl::StatusOr<bool> Transform(const StreamRef& stream) {
  static auto& plans = *new runtime::CufftPlans;
  constexpr int kCount = 256;
  using Buffer = cuguest::DeviceBuffer<std::complex<float>>;
  CUGUEST_ASSIGN_OR_RETURN(Buffer samples,
                           Buffer::CopyOf(stream.context(), support::MakeTones(kCount)));
  const runtime::CufftScope fft(plans, runtime::CufftPlans::Layout::Line(kCount), stream);
  CUGUEST_RETURN_IF_ERROR(fft);
  auto* const data = reinterpret_cast<cufftComplex*>(samples.data());
  CUGUEST_RETURN_IF_ERROR(
      runtime::ToStatus(cufftExecC2C(fft.handle(), data, data, CUFFT_FORWARD), "transform"));
  CUGUEST_RETURN_IF_ERROR(stream.Synchronize());
  CUGUEST_ASSIGN_OR_RETURN(const auto spectrum, cuguest::Download(samples.view()));
  return support::RelativeError(spectrum, support::SpectrumOfTones(kCount)) <=
         support::TransformTolerance(kCount);
}

}  // namespace library

namespace host {

absl::Status Work(const cuguest::Kernel& saxpy, const cuguest::ContextRef& home, unsigned seed) {
  const support::Product matrices(32, seed);
  CUGUEST_ASSIGN_OR_RETURN(auto product, support::DeviceProduct::Upload(home, matrices));
  const std::function<absl::StatusOr<bool>()> calls[] = {
      [&] { return library::Launch(saxpy, product.stream()); },
      [&] { return library::Multiply(product); },
      [&] { return library::Transform(product.stream()); },
  };
  const cuguest::ContextRef callers = cuguest::ContextRef::Current();
  std::mt19937 random(seed);
  const int rounds = cudasim::Sim::IsActive() ? 250 : 2000;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t choice = random() % std::size(calls);
    CUGUEST_ASSIGN_OR_RETURN(const bool is_right, calls[choice]());
    if (!is_right) return absl::DataLossError("wrong: call " + std::to_string(choice));
    if (!CHECK(cuguest::ContextRef::Current() == callers)) break;
  }
  return absl::OkStatus();
}

// One of the host's threads. Every second one has the library's context current above the host's;
// every third one has a last error of the runtime, which it reads at the end.
void RunThread(const support::House& house, const cuguest::Kernel& saxpy,
               const cuguest::ContextRef& home, unsigned index) {
  std::vector<CUcontext> callers = {house.x.get()};
  if (index % 2 == 1) callers.push_back(home.get());
  const support::HostStack stack(house.driver, callers);
  const cudaError_t last = index % 3 == 2 ? cudaErrorInvalidDevice : cudaSuccess;
  if (last != cudaSuccess) CHECK(cudaSetDevice(1'000'000) == last);
  {
    const cuguest::testing::UndisturbedScope undisturbed(&support::ReportDisturbance);
    CHECK_OK(Work(saxpy, home, index));
  }
  CHECK(cudaGetLastError() == last);
}

absl::Status Demonstrate(const cuguest::Driver& driver, cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const support::House house, support::House::Create(driver, device));
  const unsigned contexts = cudasim::Sim::IsActive() ? 2 : 4;
  std::vector<cuguest::SharedContext> homes;
  while (homes.size() < contexts) {
    CUGUEST_ASSIGN_OR_RETURN(homes.emplace_back(), cuguest::SharedContext::Create(device));
  }
  CUGUEST_ASSIGN_OR_RETURN(
      const auto module,
      cuguest::Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size},
                            "saxpy"));
  CUGUEST_ASSIGN_OR_RETURN(const cuguest::Kernel saxpy, module.GetKernel("saxpy"));
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4 * contexts; ++i) {
    threads.emplace_back([&, i] { RunThread(house, saxpy, homes[i % contexts].context(), i); });
  }
  for (std::thread& thread : threads) thread.join();
  house.Show(std::to_string(4 * contexts) + " threads");
  CHECK(!support::IsActive(device));
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "Can many threads use both APIs in many contexts, without disturbing others?",
      &host::Demonstrate);
}
