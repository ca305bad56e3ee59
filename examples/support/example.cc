// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/support/example.h"

#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "cudasim/sim.h"
#include "cudasim/sim_library.h"
#include "cuguest/devices.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"

namespace support {
namespace {

using cudasim::Sim;
using cudasim::SimLibrary;
using cuguest::Driver;
using cuguest::ObjectDriver;

// Whether the machine lacks something that the example needs.
bool IsMissing(Driver::Problem problem) {
  return problem == Driver::Problem::kNoLibrary || problem == Driver::Problem::kStub ||
         problem == Driver::Problem::kTooOld || problem == Driver::Problem::kNoDevice;
}

int ReportNoDriver(const absl::Status& status) {
  const bool missing = IsMissing(cuguest::ProblemOf(status));
  const std::string reason(status.message());
  std::fprintf(stderr, "%s: %s\n", missing ? "skipped" : "failed", reason.c_str());
  return missing ? kSkipped : 1;
}

void PrintDriver(const Driver& driver, cuguest::Device device) {
  const absl::StatusOr<std::string> name = NameOf(device);
  std::printf("   driver: %s, CUDA %d.%d\n", Sim::IsActive() ? "simulated" : "real",
              driver.version / 1000, driver.version % 1000 / 10);
  std::printf("   device: %s\n", name.ok() ? name->c_str() : name.status().ToString().c_str());
}

// Whether a library keeps references to a primary context, as cuBLAS and NCCL do.
bool KeepsReferences() {
  return SimLibrary::IsActive("libcublas.so.13") || SimLibrary::IsActive("libnccl.so.2");
}

// The thread's stack is empty again. On the simulation nothing else is left either, except the
// libraries of kernels that are linked into the program, which the runtime keeps; and references
// that a library keeps, so that the primary contexts must only be inactive.
void CheckNothingLeft() {
  const auto probe = cuguest::testing::StackProbe::Take();
  CHECK(probe.stack().empty() && !probe.cut());
  if (!Sim::IsActive()) return;
  cudasim::SimLive left = Sim::Live();
  left.libraries = 0;
  bool any_active = false;
  for (const auto& primary : probe.primaries()) any_active = any_active || primary.active;
  if (KeepsReferences() && !any_active) left.primary_references = 0;
  CHECK(left == cudasim::SimLive{});
}

}  // namespace

int RunExample(const char* question, Demonstration demonstration) {
  std::printf("%s\n\n", question);
  const absl::StatusOr<const ObjectDriver*> driver = ObjectDriver::GetInitialized();
  if (!driver.ok()) return ReportNoDriver(driver.status());
  const absl::StatusOr<cuguest::Device> device = cuguest::DeviceAt(cuguest::Device::Ordinal{0});
  if (!device.ok()) return ReportNoDriver(device.status());

  PrintDriver(**driver, *device);
  RegisterHostKernels();
  if (CHECK_OK(demonstration(**driver, *device))) CheckNothingLeft();
  return PrintVerdict();
}

std::string Beside(const std::string& file) {
  char self[PATH_MAX] = {};
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0) return file;
  const std::string program = self;
  return program.substr(0, program.rfind('/') + 1) + file;
}

}  // namespace support
