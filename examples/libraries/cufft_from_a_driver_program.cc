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
//      after                         [X]<            P is inactive
//      the numbers                   right           error 2.8e-07, at most 8.4e-06
//
//   2. The inverse, on another thread, which has nothing current
//
//      before                        (empty)         P is inactive
//      ...

#include <cuda_runtime_api.h>
#include <cufft.h>

#include <complex>
#include <cstdio>
#include <thread>

#include "cudasim/sim.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/status.h"
#include "examples/libraries/tones.h"
#include "examples/support/stage.h"

// The program works in A, which need not be current.
namespace program {

using Buffer = cuguest::DeviceBuffer<std::complex<float>>;

// Transforms in place, in the order of the stream.
absl::Status Transform(Buffer& samples, const cuguest::StreamRef& stream, int direction) {
  static auto& plans = *new cuguest::runtime::CufftPlans;  // of every context
  const auto layout =
      cuguest::runtime::CufftPlans::Layout::Line(static_cast<long long>(samples.size()));
  const cuguest::runtime::CufftScope fft(plans, layout, stream);
  CUGUEST_RETURN_IF_ERROR(fft);
  auto* const data = reinterpret_cast<cufftComplex*>(samples.data());
  return cuguest::runtime::ToStatus(cufftExecC2C(fft.handle(), data, data, direction),
                                    "transform a signal");
}

}  // namespace program

namespace host {

using support::Samples;

void TransformAndCheck(const support::Stage& stage, const char* callers, program::Buffer& samples,
                       const cuguest::StreamRef& stream, int direction, const Samples& expected) {
  const support::Undisturbed undisturbed;
  CHECK(stage.Shows("before", callers, "P is inactive"));
  CHECK_OK(program::Transform(samples, stream, direction));
  CHECK(stage.Shows("after", callers, "P is inactive"));
  SUCCEEDS(cudaPeekAtLastError());

  const absl::StatusOr<Samples> result = cuguest::Download(samples.view(), stream);
  if (!CHECK_OK(result.status())) return;
  const double error = support::RelativeError(*result, expected);
  const double limit = support::TransformTolerance(static_cast<int>(samples.size())) *
                       (direction == CUFFT_FORWARD ? 1 : 2);  // the inverse is of the result
  char remark[60];
  std::snprintf(remark, sizeof(remark), "error %.1e, at most %.1e", error, limit);
  support::PrintRow("the numbers", CHECK(error <= limit) ? "right" : "WRONG", remark);
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  const support::Stage stage(driver, device, {"X", "A"});
  const auto a = cuguest::ContextRef::Borrow(stage["A"]);
  const int count = cudasim::Sim::IsActive() ? 1 << 12 : 1 << 20;
  Samples signal = support::MakeTones(count);
  CUGUEST_ASSIGN_OR_RETURN(program::Buffer samples, program::Buffer::CopyOf(a, signal));
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(a));

  support::PrintScene("A signal of four tones, and its spectrum");
  stage.Set({"X"});
  TransformAndCheck(stage, "[X]<", samples, stream, CUFFT_FORWARD, support::SpectrumOfTones(count));

  support::PrintScene("The inverse, on another thread, which has nothing current");
  // cuFFT does not divide by the number of samples.
  for (std::complex<float>& sample : signal) sample *= static_cast<float>(count);
  std::thread([&] {
    TransformAndCheck(stage, "(empty)", samples, stream, CUFFT_INVERSE, signal);
  }).join();
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a driver-API program call cuFFT?", &host::Demonstrate);
}
