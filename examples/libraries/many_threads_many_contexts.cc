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
#include <string>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/libraries/cublas.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/runtime/device_buffer.h"
#include "cuguest/runtime/error.h"
#include "cuguest/shared_context.h"
#include "examples/libraries/multiply.h"
#include "examples/libraries/tones.h"
#include "examples/support/stage.h"
#include "kernels/saxpy.h"

// The library works in the context of the stream, whatever is current.
namespace library {

namespace runtime = cuguest::runtime;
using cuguest::StreamRef;

cuguest::Module::Once code({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size},
                           "saxpy");
cuguest::Kernel::Once kernel(code, "saxpy");

// Memory and a copy of the runtime, a stream and a kernel of the driver.
absl::StatusOr<bool> Launch(const StreamRef& stream) {
  CUGUEST_ASSIGN_OR_RETURN(const auto* const saxpy, kernel.Get());
  const std::vector<float> ramp = support::Ramp(1);
  const auto count = static_cast<unsigned>(ramp.size());
  CUGUEST_ASSIGN_OR_RETURN(auto y, runtime::AllocateBuffer<float>(stream, count));
  const cuguest::ContextGuard guard(stream);
  CUGUEST_RETURN_IF_ERROR(guard);
  CUGUEST_RETURN_IF_ERROR(runtime::ToStatus(
      cudaMemcpyAsync(y.data(), ramp.data(), y.size_bytes(), cudaMemcpyHostToDevice, stream.get()),
      "copy"));
  CUGUEST_RETURN_IF_ERROR(cuguest::LaunchForElements(*saxpy, count, stream, count, 2.0F, y, y));
  return support::Has(cuguest::Download(y.view(), stream), support::Ramp(3));
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
  CUGUEST_ASSIGN_OR_RETURN(Buffer samples, Buffer::CopyOf(stream, support::MakeTones(kCount)));
  const runtime::CufftScope fft(plans, runtime::CufftPlans::Layout::Line(kCount), stream);
  CUGUEST_RETURN_IF_ERROR(fft);
  auto* const data = reinterpret_cast<cufftComplex*>(samples.data());
  CUGUEST_RETURN_IF_ERROR(
      runtime::ToStatus(cufftExecC2C(fft.handle(), data, data, CUFFT_FORWARD), "transform"));
  CUGUEST_ASSIGN_OR_RETURN(const auto spectrum, cuguest::Download(samples.view(), stream));
  return support::RelativeError(spectrum, support::SpectrumOfTones(kCount)) <=
         support::TransformTolerance(kCount);
}

}  // namespace library

namespace host {

absl::Status Work(const cuguest::ContextRef& home, unsigned seed) {
  const support::Product matrices(32, seed);
  CUGUEST_ASSIGN_OR_RETURN(auto product, support::DeviceProduct::Upload(home, matrices));
  const std::function<absl::StatusOr<bool>()> calls[] = {
      [&] { return library::Launch(product.stream()); },
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
void RunThread(const support::Stage& stage, const std::string& home, unsigned index) {
  stage.Set({"X"});
  if (index % 2 == 1) stage.Set({"X", home});
  const cudaError_t last = index % 3 == 2 ? cudaErrorInvalidDevice : cudaSuccess;
  if (last != cudaSuccess) CHECK(cudaSetDevice(1'000'000) == last);
  {
    const support::Undisturbed undisturbed;
    CHECK_OK(Work(cuguest::ContextRef::Borrow(stage[home]), index));
  }
  CHECK(cudaGetLastError() == last);
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"X"});
  const unsigned contexts = cudasim::Sim::IsActive() ? 2 : 4;
  std::vector<cuguest::SharedContext> homes;
  while (homes.size() < contexts) {
    CUGUEST_ASSIGN_OR_RETURN(homes.emplace_back(), cuguest::SharedContext::Create(device));
    stage.Name(std::to_string(homes.size() - 1), homes.back().get());
  }
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4 * contexts; ++i) {
    threads.emplace_back([&, i] { RunThread(stage, std::to_string(i % contexts), i); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(stage.Shows(std::to_string(4 * contexts) + " threads", "(empty)", "P is inactive"));
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "Can many threads use both APIs in many contexts, without disturbing others?",
      &host::Demonstrate);
}
