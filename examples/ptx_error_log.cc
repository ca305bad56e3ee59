// SPDX-License-Identifier: Apache-2.0
//
// Why does this PTX not load?
//
// The driver compiles PTX when it is loaded, and all that the call returns is a number; what
// the compiler has to say it writes to a buffer, if it was given one, and if that was large
// enough. `Module::LoadIn` always gives it one: a status has the compiler's words, and a
// report has them where the load succeeded.
//
//   1. A mistake
//
//      loaded                        no, it says:
//        load PTX "mistaken.ptx": CUDA_ERROR_INVALID_PTX (218): the PTX does not
//        compile
//        ptxas application ptx input, line 9; error   : Unknown symbol '%rd9'
//        ...
//   3. The same without the mistake
//
//      loaded                        in 4.2 ms
//      ...
//      what it computed              is right

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
#include "cuguest/error.h"
#include "cuguest/host_span.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/stream.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
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

std::string With(const std::string& was, const std::string& is) {
  std::string text = kAnswer;
  return text.replace(text.find(was), was.size(), is);
}

// Loading `text` fails with `code`, and the status says `words`.
absl::Status ShowRefusal(const ContextRef& context, const std::string& text, const char* name,
                         CUresult code, const std::string& words) {
  const absl::StatusOr<CodeImage> image = CodeImage::FromPtx(text, name);
  if (!image.ok()) return image.status();
  const absl::Status refused = Module::LoadIn(context, *image).status();
  PrintRow("loaded", "no, it says:");
  PrintLines(std::string(refused.message()));
  CHECK(cuguest::CodeOf(refused) == code);
  CHECK(absl::StrContains(std::string(refused.message()), name));
  CHECK(absl::StrContains(std::string(refused.message()), words));
  return absl::OkStatus();
}

absl::StatusOr<int> Ask(const ContextRef& context, const Module& module) {
  const absl::StatusOr<Kernel> answer = module.GetKernel("answer");
  if (!answer.ok()) return answer.status();
  const absl::StatusOr<Stream> stream = Stream::Create(context);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<DeviceBuffer<int>> to = DeviceBuffer<int>::Allocate(context, 1);
  if (!to.ok()) return to.status();
  const LaunchShape one{/*grid=*/1, /*block=*/1};
  const absl::Status launched = Launch(*answer, one, stream->ref(), DevicePtr<int>(to->view()));
  if (!launched.ok()) return launched;
  if (absl::Status status = stream->ref().Synchronize(); !status.ok()) return status;
  std::vector<int> said(1);
  if (absl::Status status = Copy(HostSpan<int>(said), to->view()); !status.ok()) return status;
  return said[0];
}

absl::Status WithoutMistake(const ContextRef& context) {
  PrintScene("The same without the mistake");
  const absl::StatusOr<CodeImage> image = CodeImage::FromPtx(kAnswer, "answer.ptx");
  if (!image.ok()) return image.status();
  JitOptions options;
  options.verbose = true;
  JitReport report;
  const absl::StatusOr<Module> module = Module::LoadIn(context, *image, options, &report);
  if (!module.ok()) return module.status();
  // The driver keeps what it has compiled, and answers from that the second time.
  char took[32];
  std::snprintf(took, sizeof(took), "in %.1f ms", static_cast<double>(report.milliseconds));
  PrintRow("loaded", report.milliseconds > 0 ? took : "from the driver's cache");
  PrintLines(report.info_log);
  CHECK(report.error_log.empty());
  const absl::StatusOr<int> answer = Ask(context, *module);
  if (!answer.ok()) return answer.status();
  PrintRow("what it computed", *answer == 42 ? "is right" : "IS WRONG");
  CHECK(*answer == 42);
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::Driver&, cuguest::Device device) {
  const absl::StatusOr<PrimaryContext> primary = PrimaryContext::Retain(device);
  if (!primary.ok()) return primary.status();
  const ContextRef context = primary->incarnation();
  PrintScene("A mistake");
  absl::Status status = ShowRefusal(context, With("%rd2, %rd1", "%rd9, %rd1"), "mistaken.ptx",
                                    CUDA_ERROR_INVALID_PTX, "line 9");
  if (!status.ok()) return status;
  PrintScene("A toolkit newer than the driver");
  status = ShowRefusal(context, With("7.0", "99.0"), "newer.ptx",
                       CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "newer.ptx");
  if (!status.ok()) return status;
  return WithoutMistake(context);
}

}  // namespace

int main() { return support::RunExample("Why does this PTX not load?", &Demonstrate); }
