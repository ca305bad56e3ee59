// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library on the simulated driver, or on a real one. Its caller has another context current.

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "scale.h"

namespace {

using cudasim::Sim;

// What the simulation runs in place of the kernel.
CUresult HostScale(const cudasim::SimLaunch& launch) {
  const size_t count = *static_cast<const size_t*>(launch.parameters[0]);
  const float factor = *static_cast<const float*>(launch.parameters[1]);
  float* const values = *static_cast<float* const*>(launch.parameters[2]);
  for (size_t i = 0; i < count; ++i) values[i] *= factor;
  return CUDA_SUCCESS;
}

CUresult HostSmooth(const cudasim::SimLaunch& launch) {
  const size_t count = *static_cast<const size_t*>(launch.parameters[0]);
  const float* const from = *static_cast<const float* const*>(launch.parameters[1]);
  float* const to = *static_cast<float* const*>(launch.parameters[2]);
  for (size_t i = 0; i < count; ++i) {
    to[i] = (from[std::max<size_t>(i, 1) - 1] + from[i] + from[std::min(i + 1, count - 1)]) / 3;
  }
  return CUDA_SUCCESS;
}

absl::Status Expect(bool holds, const char* what) {
  return holds ? absl::OkStatus() : absl::InternalError(what);
}

// Once by itself, and by a graph that the host captures and launches twice.
absl::Status TestSmooth(const cuguest::Stream& stream) {
  if (Sim::IsActive()) Sim::RegisterKernel("smooth", &HostSmooth);
  CUGUEST_ASSIGN_OR_RETURN(auto values, cuguest::DeviceBuffer<float>::CopyOf(
                                            stream.context(), std::vector<float>{0, 81, 0, 0}));
  char text[500] = "";
  const auto smooth = [&] {
    const cuguest::testing::UndisturbedScope scope;
    return acme_smooth(stream.get(), values.data(), values.size(), text, sizeof text);
  };
  const auto holds = [&](const std::vector<float>& expected) -> absl::Status {
    CUGUEST_RETURN_IF_ERROR(stream.ref().Synchronize());
    CUGUEST_ASSIGN_OR_RETURN(const auto means, cuguest::Download(values.view()));
    return Expect(means == expected, "makes means of each value and its neighbours");
  };
  CUGUEST_RETURN_IF_ERROR(Expect(smooth() == CUDA_SUCCESS, text));
  CUGUEST_RETURN_IF_ERROR(holds({27, 27, 27, 0}));
  CUGUEST_ASSIGN_OR_RETURN(auto capture, cuguest::CaptureScope::Begin(stream));
  CUGUEST_RETURN_IF_ERROR(Expect(smooth() == CUDA_SUCCESS, text));
  CUGUEST_ASSIGN_OR_RETURN(const auto graph, capture.End());
  CUGUEST_ASSIGN_OR_RETURN(auto ready, graph.Instantiate());
  for (int launch = 0; launch < 2; ++launch) CUGUEST_RETURN_IF_ERROR(ready.Launch(stream));
  return holds({27, 24, 18, 12});
}

absl::Status Test() {
  CUGUEST_RETURN_IF_ERROR(cuguest::Driver::GetInitialized());
  const cuguest::Device device = cuguest::Device::Borrow(0);
  CUGUEST_ASSIGN_OR_RETURN(const auto hosts, cuguest::SharedContext::Create(device));
  CUGUEST_ASSIGN_OR_RETURN(const auto other, cuguest::SharedContext::Create(device));
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(hosts.context()));
  CUGUEST_ASSIGN_OR_RETURN(auto values, cuguest::DeviceBuffer<float>::CopyOf(
                                            hosts.context(), std::vector<float>{1, 2, 3}));
  const cuguest::ContextGuard guard(other);  // what the library's caller has current
  CUGUEST_RETURN_IF_ERROR(guard);
  char text[500] = "";
  const auto scale = [&, pointer = values.view().data()] {
    const cuguest::testing::UndisturbedScope scope;  // prints a difference, and aborts
    return acme_scale(stream.get(), pointer, values.size(), 2, text, sizeof text);
  };

  if (Sim::IsActive()) {
    Sim::RegisterKernel("scale", &HostScale);
    Sim::FailCall("cuLibraryLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY);
    CUGUEST_RETURN_IF_ERROR(Expect(scale() == CUDA_ERROR_OUT_OF_MEMORY, "reports a failure"));
    std::printf("a failure: %s\n", text);
  }
  CUGUEST_RETURN_IF_ERROR(Expect(scale() == CUDA_SUCCESS, text));
  CUGUEST_RETURN_IF_ERROR(stream.ref().Synchronize());
  CUGUEST_ASSIGN_OR_RETURN(const auto products, cuguest::Download(values.view()));
  CUGUEST_RETURN_IF_ERROR(Expect(products == std::vector<float>{2, 4, 6}, "multiplies each value"));
  CUGUEST_RETURN_IF_ERROR(TestSmooth(stream));

  // Before the library is unloaded.
  const auto close = [] {
    const cuguest::testing::UndisturbedScope scope;
    return acme_scale_close();
  };
  CUGUEST_RETURN_IF_ERROR(Expect(close() == CUDA_SUCCESS, "unloads its kernel"));
  return Expect(Sim::Live().libraries == 0, "leaves nothing loaded");
}

}  // namespace

int main() {
  const absl::Status status = Test();
  std::printf("%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
