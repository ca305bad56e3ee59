// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a driver-API program call cuFFT?
//
// A cuFFT plan belongs to the context that was current when it was created, has work memory there,
// and must be used by one thread at a time. CufftPlans keeps the plans of every context, by layout.
// A CufftScope borrows one, makes its context current, sets the stream, and restores everything at
// its end.
//
//   1. A signal of four tones, and its spectrum
//
//      before                        [X]<            P is inactive
//      in the scope                  [X] [A]<
//      after                         [X]<            P is inactive
//                                    right           error 2.8e-07, at most 8.4e-06
//
//   2. The inverse, on another thread, which has nothing current
//
//      before                        (empty)         P is inactive
//      in the scope                  [A]<
//      ...

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cufft.h>

#include <complex>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cudasim/sim.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/driver.h"
#include "cuguest/runtime/cufft.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/libraries/tones.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::Stream;
using Layout = cuguest::runtime::CufftPlans::Layout;
using cuguest::runtime::CufftPlans;
using cuguest::runtime::CufftScope;
using cuguest::testing::UndisturbedScope;
using support::Activity;
using support::Cast;
using support::PrintRow;
using support::PrintScene;
using support::Samples;

struct House {
  Device device;
  CUcontext x;
  const Cast& cast;
  support::HostStack& stack;
  CufftPlans& plans;
  const Stream& stream;                        // of the program's context A
  DeviceBuffer<std::complex<float>>& samples;  // and its memory there

  [[nodiscard]] int count() const { return static_cast<int>(samples.size()); }
};

std::string Format(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// Transforms in place, and waits.
absl::Status Transform(const House& house, int direction) {
  {
    const CufftScope fft(house.plans, Layout::Line(house.count(), CUFFT_C2C), house.stream.ref());
    CUGUEST_RETURN_IF_ERROR(fft);
    PrintRow("in the scope", house.cast.Draw());
    auto* const data = reinterpret_cast<cufftComplex*>(house.samples.data());
    const cufftResult code = cufftExecC2C(fft.handle(), data, data, direction);
    if (code != CUFFT_SUCCESS) return cuguest::runtime::ToStatus(code, "transform a signal");
  }
  return house.stream.ref().Synchronize();
}

void TransformAndCheck(const House& house, int direction, const Samples& expected,
                       double tolerance) {
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  PrintRow("before", house.cast.Draw(), Activity(house.device));
  CHECK_OK(Transform(house, direction));
  PrintRow("after", house.cast.Draw(), Activity(house.device));
  CHECK(cudaPeekAtLastError() == cudaSuccess);

  const absl::StatusOr<Samples> result = cuguest::Download(house.samples.view());
  if (!CHECK_OK(result.status())) return;
  const double error = support::RelativeError(*result, expected);
  PrintRow("", CHECK(error <= tolerance) ? "right" : "WRONG",
           Format("error %.1e", error) + Format(", at most %.1e", tolerance));
}

// cuFFT does not divide by the number of samples.
Samples Scaled(Samples samples, int factor) {
  for (std::complex<float>& sample : samples) sample *= static_cast<float>(factor);
  return samples;
}

void ThereAndBack(const House& house, const Samples& signal) {
  const double tolerance = support::TransformTolerance(house.count());
  PrintScene("A signal of four tones, and its spectrum");
  house.stack.Set({house.x});
  TransformAndCheck(house, CUFFT_FORWARD, support::SpectrumOfTones(house.count()), tolerance);

  PrintScene("The inverse, on another thread, which has nothing current");
  std::thread([&] {
    TransformAndCheck(house, CUFFT_INVERSE, Scaled(signal, house.count()), 2 * tolerance);
  }).join();
  CHECK(!support::IsActive(house.device));
}

absl::Status Demonstrate(const cuguest::Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const support::HostContext x,
                           support::HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const support::HostContext a,
                           support::HostContext::Create(driver, device));
  const ContextRef context = ContextRef::Borrow(a.get());

  const int count = cudasim::Sim::IsActive() ? 1 << 12 : 1 << 20;
  std::printf("   samples: %d%s\n", count, cudasim::Sim::IsActive() ? " (1048576 on a GPU)" : "");
  const Samples signal = support::MakeTones(count);
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<std::complex<float>> samples,
                           DeviceBuffer<std::complex<float>>::CopyOf(context, signal));
  CUGUEST_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(context));

  Cast cast;
  cast.Name("X", x.get());
  cast.Name("A", a.get());
  support::HostStack stack(driver, {});
  CufftPlans plans;
  ThereAndBack(House{device, x.get(), cast, stack, plans, stream, samples}, signal);
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample("How does a driver-API program call cuFFT?", &Demonstrate);
}
