// SPDX-License-Identifier: Apache-2.0
//
// How is machine code loaded with all the cores of the machine?
//
// A driver of CUDA 13.1 or newer copies and relocates large machine code with several threads
// if it is told to: CU_JIT_BINARY_LOADER_THREAD_COUNT, where 0 means as many as there are
// cores. An older driver refuses the option, and with it the load; cuguest leaves it out
// there, since it changes nothing but the time.
//
//   driver                        CUDA 13.0       loads with one thread, whatever is asked
//   one thread                    0.4 ms          is right
//   two threads                   0.3 ms          is right
//   as many as there are cores    0.3 ms          is right

#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/code_image.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/host_span.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/stream.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

namespace {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::HostSpan;
using cuguest::JitOptions;
using cuguest::Kernel;
using cuguest::LaunchShape;
using cuguest::Module;
using cuguest::PrimaryContext;
using cuguest::Stream;
using support::PrintRow;

// y = 2 * x + y
absl::StatusOr<std::vector<float>> Saxpy(const ContextRef& context, const Module& module,
                                         const std::vector<float>& x, std::vector<float> y) {
  const absl::StatusOr<Kernel> saxpy = module.GetKernel("saxpy");
  if (!saxpy.ok()) return saxpy.status();
  const absl::StatusOr<Stream> stream = Stream::Create(context);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<DeviceBuffer<float>> device_x = DeviceBuffer<float>::Allocate(context, x.size());
  if (!device_x.ok()) return device_x.status();
  absl::StatusOr<DeviceBuffer<float>> device_y = DeviceBuffer<float>::Allocate(context, y.size());
  if (!device_y.ok()) return device_y.status();
  if (absl::Status status = Copy(device_x->view(), x); !status.ok()) return status;
  if (absl::Status status = Copy(device_y->view(), HostSpan<const float>(y)); !status.ok())
    return status;

  const auto count = static_cast<unsigned>(x.size());
  const absl::StatusOr<LaunchShape> shape = LaunchShape::ForElements(count, 128);
  if (!shape.ok()) return shape.status();
  const absl::Status launched =
      Launch(*saxpy, *shape, stream->ref(), count, 2.0F, DevicePtr<float>(device_x->view()),
             DevicePtr<float>(device_y->view()));
  if (!launched.ok()) return launched;
  if (absl::Status status = stream->ref().Synchronize(); !status.ok()) return status;
  if (absl::Status status = Copy(HostSpan<float>(y), device_y->view()); !status.ok()) return status;
  return y;
}

absl::Status LoadWith(const ContextRef& context, unsigned threads, const char* name) {
  const absl::StatusOr<CodeImage> image = CodeImage::Borrow(
      {cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy.fatbin");
  if (!image.ok()) return image.status();
  JitOptions options;
  options.loader_threads = threads;
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<Module> module = Module::LoadIn(context, *image, options);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  if (!module.ok()) return module.status();
  const absl::StatusOr<std::vector<float>> y =
      Saxpy(context, *module, support::Ramp(1), support::Ramp(3));
  if (!y.ok()) return y.status();
  char took[32];
  std::snprintf(took, sizeof(took), "%.1f ms", taken.count());
  PrintRow(name, took, *y == support::Ramp(5) ? "is right" : "IS WRONG");
  CHECK(*y == support::Ramp(5));
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::Driver& driver, cuguest::Device device) {
  const absl::StatusOr<PrimaryContext> primary = PrimaryContext::Retain(device);
  if (!primary.ok()) return primary.status();
  const ContextRef context = primary->incarnation();
  std::printf("\n");
  constexpr int kHasLoaderThreads = 13010;
  PrintRow("driver",
           "CUDA " + std::to_string(driver.version / 1000) + "." +
               std::to_string(driver.version % 1000 / 10),
           driver.version >= kHasLoaderThreads ? "" : "loads with one thread, whatever is asked");
  if (absl::Status status = LoadWith(context, 1, "one thread"); !status.ok()) return status;
  if (absl::Status status = LoadWith(context, 2, "two threads"); !status.ok()) return status;
  return LoadWith(context, 0, "as many as there are cores");
}

}  // namespace

int main() {
  return support::RunExample("How is machine code loaded with all the cores of the machine?",
                             &Demonstrate);
}
