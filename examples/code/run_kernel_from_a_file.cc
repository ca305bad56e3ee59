// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a program run a kernel that it finds in a file?
//
// The build compiles my_kernel.cu twice, and puts the files beside this program:
//
//   nvcc -ptx my_kernel.cu -o my_kernel.ptx       # text, which the driver compiles: any GPU
//   nvcc -cubin my_kernel.cu -o my_kernel.cubin   # machine code: GPUs of one generation
//
// CodeImage::FromFile reads either. A file that is missing, truncated or no device code gives a
// status that names the file, where the driver returns CUDA_ERROR_FILE_NOT_FOUND without a name,
// or crashes. (For a file from a source that is not trusted, call CodeImage::Validate() as well.)
//
//   1. The file is there
//
//      my_kernel.ptx                 right           1024 numbers, by my_kernel
//      my_kernel.cubin               right           1024 numbers, by my_kernel
//
//   2. It is missing, or it is something else
//
//      no_such_kernel.ptx            refused
//        read device code from ".../no_such_kernel.ptx": No such file or directory
//
//   3. Loaded with several threads
//
//      1 thread                      0.4 ms          the driver is of CUDA 13.0: always 1 thread

#include <chrono>
#include <cstddef>
#include <cstdio>
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
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/picture.h"

namespace {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::JitOptions;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::SharedContext;
using cuguest::Stream;
using support::Beside;
using support::PrintRow;
using support::PrintScene;
using Numbers = std::vector<float>;

constexpr std::size_t kCount = 1024;

absl::StatusOr<Kernel> LoadFrom(const ContextRef& context, const std::string& path,
                                const JitOptions& options = {}) {
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage image, CodeImage::FromFile(path));
  CUGUEST_ASSIGN_OR_RETURN(const Module module, Module::LoadIn(context, image, options));
  return module.GetKernel("my_kernel");
}

absl::StatusOr<Numbers> RunOn(const ContextRef& context, const Kernel& kernel,
                              const Numbers& numbers) {
  CUGUEST_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(context));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> data, DeviceBuffer<float>::CopyOf(context, numbers));
  absl::Status status = cuguest::LaunchForElements(kernel, numbers.size(), stream.ref(),
                                                   DevicePtr(data.view()), numbers.size());
  if (status.ok()) status = stream.ref().Synchronize();
  if (!status.ok()) return status;
  return cuguest::Download(data.view());
}

void RunFrom(const ContextRef& context, const std::string& file) {
  const absl::StatusOr<Kernel> kernel = LoadFrom(context, Beside(file));
  if (!CHECK_OK(kernel.status())) return;
  const absl::StatusOr<Numbers> doubled = RunOn(context, *kernel, Numbers(kCount, 1));
  if (!CHECK_OK(doubled.status())) return;
  CHECK(*doubled == Numbers(kCount, 2));
  PrintRow(file, "right", std::to_string(kCount) + " numbers, by " + kernel->name());
}

void Refused(const std::string& what, const std::string& named, const absl::Status& status,
             absl::StatusCode expected) {
  PrintRow(what, "refused");
  support::PrintParagraph(std::string(status.message()));
  CHECK(status.code() == expected);
  CHECK(std::string(status.message()).find(named) != std::string::npos);
}

void RefusedFile(const ContextRef& context, const std::string& file, absl::StatusCode expected) {
  Refused(file, Beside(file), LoadFrom(context, Beside(file)).status(), expected);
}

void RefusedHalf(const std::string& file) {
  const absl::StatusOr<CodeImage> whole = CodeImage::FromFile(Beside(file));
  if (!CHECK_OK(whole.status())) return;
  const std::string name = "half of " + file;
  const cuguest::HostSpan<const unsigned char> bytes = whole->bytes();
  Refused(name, name, CodeImage::Copy({bytes.data(), bytes.size() / 2}, name).status(),
          absl::StatusCode::kInvalidArgument);
}

// A driver of CUDA 13.1 or newer copies and relocates large machine code with as many threads as
// CU_JIT_BINARY_LOADER_THREAD_COUNT says; 0 is one for each processor. An older driver refuses the
// option; cuguest does not pass it on there, since it changes the time only.
void WithThreads(const ContextRef& context, int version) {
  constexpr int kHasLoaderThreads = 13010;
  const std::string driver = "the driver is of CUDA " + std::to_string(version / 1000) + "." +
                             std::to_string(version % 1000 / 10) +
                             (version < kHasLoaderThreads ? ": always 1 thread" : "");
  for (const unsigned threads : {1U, 2U, 0U}) {
    JitOptions options;
    options.loader_threads = threads;
    const auto start = std::chrono::steady_clock::now();
    const absl::StatusOr<Kernel> kernel = LoadFrom(context, Beside("my_kernel.cubin"), options);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (!CHECK_OK(kernel.status())) return;
    const absl::StatusOr<Numbers> doubled = RunOn(context, *kernel, Numbers(kCount, 1));
    if (!CHECK_OK(doubled.status())) return;
    CHECK(*doubled == Numbers(kCount, 2));
    char time[32];
    std::snprintf(time, sizeof(time), "%.1f ms", took.count());
    PrintRow(threads == 0 ? "a thread for each processor" : std::to_string(threads) + " thread(s)",
             time, driver);
  }
}

absl::Status Demonstrate(const cuguest::Driver& driver, cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const SharedContext context, SharedContext::Create(device));
  const ContextRef& here = context.context();

  PrintScene("The file is there");
  RunFrom(here, "my_kernel.ptx");
  RunFrom(here, "my_kernel.cubin");

  PrintScene("It is missing, or it is something else");
  RefusedFile(here, "no_such_kernel.ptx", absl::StatusCode::kNotFound);
  RefusedFile(here, "run_kernel_from_a_file", absl::StatusCode::kInvalidArgument);
  RefusedHalf("my_kernel.cubin");

  PrintScene("Loaded with several threads");
  WithThreads(here, driver.version);
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample("How does a program run a kernel that it finds in a file?",
                             &Demonstrate);
}
