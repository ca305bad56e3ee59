// SPDX-License-Identifier: Apache-2.0
//
// How does a program make one module of several PTX texts?
//
// Code that is put together at run time comes in pieces: a kernel that the program brings,
// and a function that its user wrote, or a generator. The driver's linker joins them. By
// hand that is an array of options and another of what they point to, with the buffers for
// its logs among them, which all have to be there until the last input was added, and to be
// large enough. `Linker` has the inputs, and the rest is its own business.
//
//   1. A kernel and the function that it calls
//
//      inputs                        kernel.ptx, function.ptx
//      linked                        a cubin         5096 bytes, in 11.3 ms
//      the linker said               this:
//        ptxas info    : Compiling entry function 'shape' for 'sm_90a'
//        ...
//      what it computed              is right
//
//   2. The same without the function, and then with it
//
//      linked                        no, it says:
//        link, kernel.ptx: CUDA_ERROR_UNKNOWN (999)
//        error   : Undefined reference to 'Shape' in 'kernel.ptx'
//      with the function             linked
//   ...
//
// The texts come from nvcc -ptx -rdc=true; NVRTC makes the like at run time.

#include <cuda.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "cuguest/code_image.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/host_span.h"
#include "cuguest/launch.h"
#include "cuguest/linker.h"
#include "cuguest/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/stream.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::HostSpan;
using cuguest::JitOptions;
using cuguest::JitReport;
using cuguest::Kernel;
using cuguest::LaunchShape;
using cuguest::Linker;
using cuguest::Module;
using cuguest::PrimaryContext;
using cuguest::Stream;
using support::PrintLines;
using support::PrintRow;
using support::PrintScene;

// extern __device__ float Shape(float);
// extern "C" __global__ void shape(unsigned n, float* values) {
//   const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//   if (i < n) values[i] = Shape(values[i]);
// }
constexpr char kKernel[] = R"(
.version 7.0
.target sm_52
.address_size 64
.extern .func (.param .f32 result) Shape(.param .f32 value);
.visible .entry shape(.param .u32 n, .param .u64 values)
{
  .reg .pred %p<2>;
  .reg .f32 %f<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u32 %r1, [n];
  ld.param.u64 %rd1, [values];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  {
    .param .f32 argument;
    .param .f32 returned;
    st.param.f32 [argument], %f1;
    call.uni (returned), Shape, (argument);
    ld.param.f32 %f2, [returned];
  }
  st.global.f32 [%rd4], %f2;
done:
  ret;
}
)";

// __device__ float Shape(float value) { return 3 * value; }
constexpr char kFunction[] = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .func (.param .f32 result) Shape(.param .f32 value)
{
  .reg .f32 %f<3>;
  ld.param.f32 %f1, [value];
  mul.f32 %f2, %f1, 0f40400000;
  st.param.f32 [result], %f2;
  ret;
}
)";

// The same function, with a mistake in the line that computes.
std::string BrokenFunction() {
  std::string text = kFunction;
  text.replace(text.find("%f2, %f1, 0f"), 3, "%q2");
  return text;
}

absl::Status AddPtx(const std::string& text, const char* name, Linker* linker) {
  absl::StatusOr<CodeImage> image = CodeImage::FromPtx(text, name);
  if (image.ok()) linker->Add(*image);
  return image.status();
}

// What a program does with an image, whoever made it.
absl::StatusOr<std::vector<float>> Run(const ContextRef& context, const CodeImage& image,
                                       std::vector<float> values) {
  const absl::StatusOr<Module> module = Module::LoadIn(context, image);
  if (!module.ok()) return module.status();
  const absl::StatusOr<Kernel> shape = module->GetKernel("shape");
  if (!shape.ok()) return shape.status();
  const absl::StatusOr<Stream> stream = Stream::Create(context);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<DeviceBuffer<float>> buffer =
      DeviceBuffer<float>::Allocate(context, values.size());
  if (!buffer.ok()) return buffer.status();
  const HostSpan<float> host(values);
  if (absl::Status status = Copy(buffer->view(), host); !status.ok()) return status;

  const auto count = static_cast<unsigned>(values.size());
  const absl::StatusOr<LaunchShape> threads = LaunchShape::ForElements(count, 128);
  if (!threads.ok()) return threads.status();
  const absl::Status launched =
      Launch(*shape, *threads, stream->ref(), count, DevicePtr<float>(buffer->view()));
  if (!launched.ok()) return launched;
  if (absl::Status status = stream->ref().Synchronize(); !status.ok()) return status;
  if (absl::Status status = Copy(host, buffer->view()); !status.ok()) return status;
  return values;
}

std::string InMilliseconds(const JitReport& report) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f ms", static_cast<double>(report.milliseconds));
  return text;
}

absl::Status BothTexts(const ContextRef& context) {
  PrintScene("A kernel and the function that it calls");
  JitOptions options;
  options.verbose = true;
  Linker linker(context, options);
  if (absl::Status status = AddPtx(kKernel, "kernel.ptx", &linker); !status.ok()) return status;
  if (absl::Status status = AddPtx(kFunction, "function.ptx", &linker); !status.ok()) return status;
  JitReport report;
  const absl::StatusOr<CodeImage> linked = linker.Complete(&report);
  if (!linked.ok()) return linked.status();

  PrintRow("inputs", linked->name());
  PrintRow("linked", ToString(linked->kind()),
           std::to_string(linked->bytes().size()) + " bytes, in " + InMilliseconds(report));
  PrintRow("the linker said", report.info_log.empty() ? "nothing" : "this:");
  PrintLines(report.info_log);
  CHECK(absl::StrContains(report.info_log, "shape"));
  CHECK(report.error_log.empty());
  CHECK(linked->kernel_names() == std::vector<std::string>{"shape"});

  const absl::StatusOr<std::vector<float>> values = Run(context, *linked, support::Ramp(1));
  if (!values.ok()) return values.status();
  PrintRow("what it computed", *values == support::Ramp(3) ? "is right" : "IS WRONG");
  CHECK(*values == support::Ramp(3));
  return absl::OkStatus();
}

// What is left out, or wrong, is named, in the linker's words and in those of cuguest.
absl::Status ShowRefusal(const Linker& linker, const std::string& name) {
  const absl::Status refused = linker.Complete().status();
  PrintRow("linked", "no, it says:");
  PrintLines(std::string(refused.message()));
  CHECK(refused.code() == absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(std::string(refused.message()), name));
  return absl::OkStatus();
}

absl::Status WithoutTheFunction(const ContextRef& context) {
  PrintScene("The same without the function, and then with it");
  Linker linker(context);
  if (absl::Status status = AddPtx(kKernel, "kernel.ptx", &linker); !status.ok()) return status;
  if (absl::Status status = ShowRefusal(linker, "Shape"); !status.ok()) return status;
  if (absl::Status status = AddPtx(kFunction, "function.ptx", &linker); !status.ok()) return status;
  const absl::StatusOr<CodeImage> linked = linker.Complete();
  PrintRow("with the function", linked.ok() ? "linked" : "NOT LINKED");
  return linked.status();
}

absl::Status WithAMistake(const ContextRef& context) {
  PrintScene("A mistake in the second text");
  Linker linker(context);
  if (absl::Status status = AddPtx(kKernel, "kernel.ptx", &linker); !status.ok()) return status;
  if (absl::Status status = AddPtx(BrokenFunction(), "function.ptx", &linker); !status.ok()) {
    return status;
  }
  return ShowRefusal(linker, "input 2 of 2, function.ptx");
}

absl::Status Demonstrate(const cuguest::Driver&, cuguest::Device device) {
  const absl::StatusOr<PrimaryContext> primary = PrimaryContext::Retain(device);
  if (!primary.ok()) return primary.status();
  const ContextRef context = primary->incarnation();
  if (absl::Status status = BothTexts(context); !status.ok()) return status;
  if (absl::Status status = WithoutTheFunction(context); !status.ok()) return status;
  return WithAMistake(context);
}

}  // namespace

int main() {
  return support::RunExample("How does a program make one module of several PTX texts?",
                             &Demonstrate);
}
