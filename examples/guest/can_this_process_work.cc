// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Can CUDA work in this process, and if not, why not?
//
// A program asks this first when it does not find its GPU, and a library may log the answer: which
// toolkit it was compiled with, which runtime, driver and kernel module are here, which devices,
// and whether this process uses them already. One sentence says what follows. No context is
// created, where cudaFree(0) would create one on the first device.
//
//   toolkit                       CUDA 13.0
//   runtime                       CUDA 13.0
//   driver                        CUDA 13.0       /usr/lib/x86_64-linux-gnu/libcuda.so.1
//   kernel module                 580.159.04
//   device 0                      NVIDIA H100 80GB HBM3
//     UUID                        GPU-5d8aff98-...
//     PCI bus id                  0000:65:00.0
//     its primary context         inactive
//
//     CUDA can work here: ...
//
// It exits with 0 where CUDA cannot work, too, and with 1 if the answers contradict each other.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/compatibility.h"
#include "cuguest/devices.h"
#include "cuguest/primary_context.h"
#include "cuguest/runtime/version.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"

namespace {

using cudasim::Sim;
using cudasim::SimLive;
using cuguest::Device;
using cuguest::PrimaryContext;
using cuguest::Versions;
using cuguest::testing::StackProbe;
using support::PrintRow;

std::string VersionText(int version) {
  if (version == 0) return "none";
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string OrNone(const std::string& text) { return text.empty() ? "none" : text; }

void PrintVersions(const Versions& versions) {
  PrintRow("toolkit", VersionText(versions.toolkit));
  PrintRow("runtime", VersionText(versions.runtime));
  PrintRow("driver", VersionText(versions.driver), versions.library);
  PrintRow("kernel module", OrNone(versions.kernel_module),
           versions.uses_forward_compatibility() ? "with a forward-compatibility package" : "");
  CHECK(versions.toolkit == CUDART_VERSION);
  CHECK(versions.runtime >= 12000);
  CHECK(versions.driver == 0 || !versions.library.empty());
}

template <typename T>
std::string TextOf(const absl::StatusOr<T>& result, const std::string& text) {
  return result.ok() ? text : std::string(result.status().message());
}

void PrintDevice(Device device) {
  const absl::StatusOr<std::string> name = NameOf(device);
  const absl::StatusOr<cuguest::Device::Uuid> uuid = UuidOf(device);
  const absl::StatusOr<std::string> bus = PciBusIdOf(device);
  PrintRow("device " + std::to_string(device.get()), TextOf(name, name.value_or("")));
  PrintRow("  UUID", TextOf(uuid, uuid.ok() ? uuid->ToString() : ""));
  PrintRow("  PCI bus id", TextOf(bus, bus.value_or("")));
  CHECK_OK(name.status());
  CHECK_OK(bus.status());

  const PrimaryContext::State state = PrimaryContext::Query(device);
  if (!CHECK_OK(cuguest::ToStatus(state))) return;
  PrintRow("  its primary context", state.active ? "active" : "inactive");
  CHECK(!state.active);  // nothing in this process has used it, nor did the queries
}

void PrintDevices(int count) {
  for (int i = 0; i < count; ++i) {
    const absl::StatusOr<Device> device = DeviceAt(cuguest::Device::Ordinal{i});
    if (CHECK_OK(device.status())) PrintDevice(*device);
  }
}

// The sentence is for people, the status for programs.
void PrintAnswer(const Versions& versions) {
  const std::string sentence = cuguest::runtime::Explain();
  const absl::Status status = cuguest::runtime::CanWork();
  std::printf("\n");
  support::PrintText(sentence);
  if (status.ok()) {
    CHECK(absl::StartsWith(sentence, "CUDA can work here: "));
    CHECK(versions.problem.ok() && versions.devices > 0);
  } else {
    CHECK(absl::StartsWith(sentence, "CUDA cannot work here: "));
    CHECK(sentence == status.message());
  }
}

void CheckNothingWasCreated() {
  const StackProbe probe = StackProbe::Take();
  CHECK(probe.stack().empty());
  for (const StackProbe::Primary& primary : probe.primaries()) CHECK(!primary.active);
  if (Sim::IsActive()) CHECK(Sim::Live() == SimLive{});
}

}  // namespace

int main() {
  std::printf("Can CUDA work in this process, and if not, why not?\n\n");
  const Versions versions = cuguest::runtime::QueryVersions();
  PrintVersions(versions);
  PrintDevices(versions.devices);
  PrintAnswer(versions);
  CheckNothingWasCreated();
  return support::PrintVerdict();
}
