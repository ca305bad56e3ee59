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
// A driver of CUDA 13.1 or newer copies and relocates large machine code with as many threads as
// JitOptions::loader_threads says; 0 is one for each processor. An older one always uses one.

#include <string>
#include <vector>

#include "cuguest/objects/code_image.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/support/check.h"
#include "examples/support/example.h"

namespace program {

using cuguest::ContextRef;
using Numbers = std::vector<float>;

absl::StatusOr<Numbers> RunFrom(const ContextRef& context, const std::string& path,
                                const Numbers& numbers, const cuguest::JitOptions& options = {}) {
  CUGUEST_ASSIGN_OR_RETURN(const auto image, cuguest::CodeImage::FromFile(path));
  CUGUEST_ASSIGN_OR_RETURN(const auto module, cuguest::Module::LoadIn(context, image, options));
  CUGUEST_ASSIGN_OR_RETURN(const auto kernel, module.GetKernel("my_kernel"));
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(context));
  CUGUEST_ASSIGN_OR_RETURN(auto data, cuguest::DeviceBuffer<float>::CopyOfAsync(stream, numbers));
  CUGUEST_RETURN_IF_ERROR(
      cuguest::LaunchForElements(kernel, numbers.size(), stream, data, numbers.size()));
  return cuguest::Download(data.view(), stream);
}

}  // namespace program

namespace host {

using program::Numbers;
using support::Beside;

void Doubles(const std::string& what, const std::string& file, const cuguest::ContextRef& context,
             const cuguest::JitOptions& options = {}) {
  const auto doubled = program::RunFrom(context, Beside(file), Numbers(1024, 1), options);
  const bool is_right = CHECK(support::Has(doubled, Numbers(1024, 2)));
  support::PrintRow(what, is_right ? "right" : "WRONG", "1024 numbers");
}

void RefusesFile(const std::string& file, const cuguest::ContextRef& context,
                 absl::StatusCode code) {
  const absl::Status status = program::RunFrom(context, Beside(file), Numbers(1024)).status();
  CHECK(support::IsRefused(file, status, code, Beside(file)));
}

absl::Status RefusesHalf(const std::string& file) {
  CUGUEST_ASSIGN_OR_RETURN(const auto whole, cuguest::CodeImage::FromFile(Beside(file)));
  const std::string name = "half of " + file;
  const absl::Status status =
      cuguest::CodeImage::Copy({whole.bytes().data(), whole.bytes().size() / 2}, name).status();
  CHECK(support::IsRefused(name, status, absl::StatusCode::kInvalidArgument, name));
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::ObjectDriver&, cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const auto context, cuguest::SharedContext::Create(device));
  support::PrintScene("The file is there");
  Doubles("my_kernel.ptx", "my_kernel.ptx", context);
  for (const unsigned threads : {1U, 2U, 0U}) {
    cuguest::JitOptions options;
    options.loader_threads = threads;
    Doubles("my_kernel.cubin, threads: " + std::to_string(threads), "my_kernel.cubin", context,
            options);
  }
  support::PrintScene("It is missing, or it is something else");
  RefusesFile("no_such_kernel.ptx", context, absl::StatusCode::kNotFound);
  RefusesFile("run_kernel_from_a_file", context, absl::StatusCode::kInvalidArgument);
  return RefusesHalf("my_kernel.cubin");
}

}  // namespace host

int main() {
  return support::RunExample("How does a program run a kernel that it finds in a file?",
                             &host::Demonstrate);
}
