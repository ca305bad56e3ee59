// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a program compile and link PTX, and read what the compiler and the linker report?
//
// The driver compiles PTX when it loads it, and links several texts with cuLinkCreate,
// cuLinkAddData and cuLinkComplete. The calls return a number; the words of the compiler go to a
// buffer, if an option names one and another option gives its size. Module::LoadIn and Linker
// always give the driver those buffers: a failure is a status with the compiler's words, and a
// JitReport has the log and the time of a success.
//
//   1. A mistake
//
//      loaded                        no:
//        load PTX "mistaken.ptx": CUDA_ERROR_INVALID_PTX (218): the PTX does not
//        compile
//        ptxas application ptx input, line 9; error   : Unknown symbol '%rd9'
//        ...
//   4. A kernel and the function that it calls, in two texts
//
//      inputs                        kernel.ptx, function.ptx
//      linked                        a cubin         5096 bytes, in 11.3 ms
//      the linker reports            ptxas info    : Compiling entry function 'shape' ...
//      the result                    right
//   5. Without the function, and then with it
//
//      linked                        no:
//        link, kernel.ptx: CUDA_ERROR_UNKNOWN (999)
//        error   : Undefined reference to 'Shape' in 'kernel.ptx'
//      with the function             linked
//   ...
//
// The texts are what nvcc -ptx -rdc=true writes; NVRTC writes the like at run time
// (generate_code_at_run_time.cc).

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
#include "cuguest/launch.h"
#include "cuguest/linker.h"
#include "cuguest/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
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

// extern "C" __global__ void answer(int* to) { *to = 42; }
constexpr char kAnswer[] = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry answer(.param .u64 to)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [to];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 42;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

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

std::string Replaced(std::string text, const std::string& was, const std::string& is) {
  return text.replace(text.find(was), was.size(), is);
}

std::string InMilliseconds(const JitReport& report) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f ms", static_cast<double>(report.milliseconds));
  return text;
}

// The status has `code`, and the compiler's or linker's `words`.
void ShowRefusal(const char* what, const absl::Status& refused, absl::StatusCode code,
                 const std::string& words) {
  PrintRow(what, "no:");
  PrintLines(std::string(refused.message()));
  CHECK(refused.code() == code);
  CHECK(absl::StrContains(std::string(refused.message()), words));
}

void ShowResult(bool is_right) {
  PrintRow("the result", is_right ? "right" : "WRONG");
  CHECK(is_right);
}

// Loads a text that does not compile.
absl::Status LoadBad(const ContextRef& context, const std::string& text, const char* name,
                     absl::StatusCode code, const std::string& words) {
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage image, CodeImage::FromPtx(text, name));
  ShowRefusal("loaded", Module::LoadIn(context, image).status(), code, words);
  return absl::OkStatus();
}

absl::StatusOr<int> RunAnswer(const ContextRef& context, const Module& module) {
  CUGUEST_ASSIGN_OR_RETURN(const Kernel answer, module.GetKernel("answer"));
  CUGUEST_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(context));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<int> to, DeviceBuffer<int>::Allocate(context, 1));
  const LaunchShape one{/*grid=*/1, /*block=*/1};
  absl::Status status = cuguest::Launch(answer, one, stream.ref(), DevicePtr(to.view()));
  if (status.ok()) status = stream.ref().Synchronize();
  if (!status.ok()) return status;
  CUGUEST_ASSIGN_OR_RETURN(const std::vector<int> result, cuguest::Download(to.view()));
  return result.front();
}

absl::Status LoadGood(const ContextRef& context) {
  PrintScene("The same without the mistake");
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage image, CodeImage::FromPtx(kAnswer, "answer.ptx"));
  JitOptions options;
  options.verbose = true;
  JitReport report;
  CUGUEST_ASSIGN_OR_RETURN(const Module module, Module::LoadIn(context, image, options, &report));
  // The driver caches what it has compiled, and does not compile it again.
  PrintRow("loaded",
           report.milliseconds > 0 ? "in " + InMilliseconds(report) : "from the driver's cache");
  PrintLines(report.info_log);
  CHECK(report.error_log.empty());
  CUGUEST_ASSIGN_OR_RETURN(const int answer, RunAnswer(context, module));
  ShowResult(answer == 42);
  return absl::OkStatus();
}

absl::Status AddPtx(const std::string& text, const char* name, Linker* linker) {
  const absl::StatusOr<CodeImage> image = CodeImage::FromPtx(text, name);
  if (image.ok()) linker->Add(*image);
  return image.status();
}

// A linked image is loaded like any other.
absl::StatusOr<std::vector<float>> RunShape(const ContextRef& context, const CodeImage& image,
                                            const std::vector<float>& values) {
  CUGUEST_ASSIGN_OR_RETURN(const Module module, Module::LoadIn(context, image));
  CUGUEST_ASSIGN_OR_RETURN(const Kernel shape, module.GetKernel("shape"));
  CUGUEST_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(context));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> buffer,
                           DeviceBuffer<float>::CopyOf(context, values));
  absl::Status status =
      cuguest::LaunchForElements(shape, values.size(), stream.ref(),
                                 static_cast<unsigned>(values.size()), DevicePtr(buffer.view()));
  if (status.ok()) status = stream.ref().Synchronize();
  if (!status.ok()) return status;
  return cuguest::Download(buffer.view());
}

absl::Status LinkBoth(const ContextRef& context) {
  PrintScene("A kernel and the function that it calls, in two texts");
  JitOptions options;
  options.verbose = true;
  Linker linker(context, options);
  CUGUEST_RETURN_IF_ERROR(AddPtx(kKernel, "kernel.ptx", &linker));
  CUGUEST_RETURN_IF_ERROR(AddPtx(kFunction, "function.ptx", &linker));
  JitReport report;
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage linked, linker.Complete(&report));

  PrintRow("inputs", linked.name());
  PrintRow("linked", Name(linked.kind()),
           std::to_string(linked.bytes().size()) + " bytes, in " + InMilliseconds(report));
  PrintRow("the linker reports", report.info_log.empty() ? "nothing" : "this:");
  PrintLines(report.info_log);
  CHECK(absl::StrContains(report.info_log, "shape"));
  CHECK(report.error_log.empty());
  CHECK(linked.kernel_names() == std::vector<std::string>{"shape"});

  CUGUEST_ASSIGN_OR_RETURN(const std::vector<float> values,
                           RunShape(context, linked, support::Ramp(1)));
  ShowResult(values == support::Ramp(3));
  return absl::OkStatus();
}

absl::Status LinkWithoutTheFunction(const ContextRef& context) {
  PrintScene("Without the function, and then with it");
  Linker linker(context);
  CUGUEST_RETURN_IF_ERROR(AddPtx(kKernel, "kernel.ptx", &linker));
  ShowRefusal("linked", linker.Complete().status(), absl::StatusCode::kInvalidArgument, "Shape");
  CUGUEST_RETURN_IF_ERROR(AddPtx(kFunction, "function.ptx", &linker));
  const absl::StatusOr<CodeImage> linked = linker.Complete();
  PrintRow("with the function", linked.ok() ? "linked" : "NOT LINKED");
  return linked.status();
}

absl::Status LinkWithAMistake(const ContextRef& context) {
  PrintScene("A mistake in the second text");
  Linker linker(context);
  const std::string broken = Replaced(kFunction, "mul.f32 %f2", "mul.f32 %q2");
  CUGUEST_RETURN_IF_ERROR(AddPtx(kKernel, "kernel.ptx", &linker));
  CUGUEST_RETURN_IF_ERROR(AddPtx(broken, "function.ptx", &linker));
  ShowRefusal("linked", linker.Complete().status(), absl::StatusCode::kInvalidArgument,
              "input 2 of 2, function.ptx");
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::Driver&, cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const PrimaryContext primary, PrimaryContext::Retain(device));
  const ContextRef context = primary.context();
  PrintScene("A mistake");
  absl::Status status = LoadBad(context, Replaced(kAnswer, "%rd2, %rd1", "%rd9, %rd1"),
                                "mistaken.ptx", absl::StatusCode::kInvalidArgument, "line 9");
  if (!status.ok()) return status;
  PrintScene("A toolkit newer than the driver");
  status = LoadBad(context, Replaced(kAnswer, "7.0", "99.0"), "newer.ptx",
                   absl::StatusCode::kUnimplemented, "newer.ptx");
  if (status.ok()) status = LoadGood(context);
  if (status.ok()) status = LinkBoth(context);
  if (status.ok()) status = LinkWithoutTheFunction(context);
  if (status.ok()) status = LinkWithAMistake(context);
  return status;
}

}  // namespace

int main() {
  return support::RunExample(
      "How does a program compile and link PTX, and read what the compiler and the linker report?",
      &Demonstrate);
}
