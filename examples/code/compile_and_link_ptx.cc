// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a program compile and link PTX, and read what the compiler and the linker report?
//
// The driver compiles PTX when it loads it, and links several texts with cuLinkCreate,
// cuLinkAddData and cuLinkComplete. The calls return a number; the words of the compiler go to a
// buffer, if an option names one and another option gives its size. Module and Linker always give
// the driver those buffers: a failure is a status with the compiler's words, and a JitReport has
// the log of a success. NVRTC writes such texts at run time (generate_code_at_run_time.cc).

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/linker.h"
#include "cuguest/objects/module.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/support/check.h"
#include "examples/support/example.h"

namespace program {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::Module;
using Texts = std::vector<std::pair<const char*, std::string>>;  // name and PTX of each

cuguest::JitOptions Verbose() {
  cuguest::JitOptions options;
  options.verbose = true;
  return options;
}

absl::StatusOr<Module> Load(const ContextRef& context, const char* name, const std::string& ptx,
                            cuguest::JitReport* report = nullptr) {
  return Module::LoadIn(context, ptx, name, Verbose(), report);
}

absl::StatusOr<Module> Link(const ContextRef& context, const Texts& texts,
                            cuguest::JitReport* report = nullptr) {
  cuguest::Linker linker(context, Verbose());
  for (const auto& [name, ptx] : texts) {
    CUGUEST_ASSIGN_OR_RETURN(CodeImage image, CodeImage::FromPtx(ptx, name));
    linker.Add(std::move(image));
  }
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage linked, linker.Complete(report));
  return Module::LoadIn(context, linked);
}

absl::StatusOr<int> Run(const ContextRef& context, const Module& module) {
  CUGUEST_ASSIGN_OR_RETURN(const auto answer, module.GetKernel("answer"));
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(context));
  CUGUEST_ASSIGN_OR_RETURN(auto to, cuguest::DeviceBuffer<int>::AllocateAsync(stream, 1));
  CUGUEST_RETURN_IF_ERROR(cuguest::LaunchForElements(answer, 1, stream, to));
  CUGUEST_ASSIGN_OR_RETURN(const auto result, cuguest::Download(to.view(), stream));
  return result.front();
}

}  // namespace program

namespace host {

using cuguest::ContextRef;
using program::Link;
using program::Load;
using support::IsRefused;

constexpr char kHeader[] = ".version 7.0\n.target sm_52\n.address_size 64\n";
constexpr char kDeclaration[] = ".extern .func (.param .b32 result) Answer();\n";

// __device__ int Answer() { return 42; }
constexpr char kFunction[] = R"(.visible .func (.param .b32 result) Answer()
{
  st.param.b32 [result], 42;
  ret;
}
)";

// extern "C" __global__ void answer(int* to) { *to = Answer(); }
constexpr char kKernel[] = R"(.visible .entry answer(.param .u64 to)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  .param .b32 returned;
  ld.param.u64 %rd1, [to];
  cvta.to.global.u64 %rd2, %rd1;
  call.uni (returned), Answer;
  ld.param.b32 %r1, [returned];
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

absl::Status Demonstrate(const cuguest::ObjectDriver&, cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const auto context, cuguest::SharedContext::Create(device));
  const std::string whole = absl::StrCat(kHeader, kFunction, kKernel);
  const std::string kernel = absl::StrCat(kHeader, kDeclaration, kKernel);
  const std::string function = absl::StrCat(kHeader, kFunction);
  const std::string mistaken = absl::StrReplaceAll(whole, {{"%rd2, %rd1", "%rd9, %rd1"}});
  const std::string newer = absl::StrReplaceAll(whole, {{"7.0", "99.0"}});
  const std::string broken = absl::StrReplaceAll(function, {{"42", "%q2"}});

  support::PrintScene("One text");
  CHECK(IsRefused("a mistake", Load(context, "mistaken.ptx", mistaken).status(),
                  absl::StatusCode::kInvalidArgument, "line 15"));
  CHECK(IsRefused("newer than the driver", Load(context, "newer.ptx", newer).status(),
                  absl::StatusCode::kUnimplemented, "newer.ptx"));
  cuguest::JitReport report;
  CUGUEST_ASSIGN_OR_RETURN(const auto loaded, Load(context, "whole.ptx", whole, &report));
  CUGUEST_ASSIGN_OR_RETURN(const int loaded_answer, program::Run(context, loaded));
  support::PrintRow("without the mistake", std::to_string(loaded_answer), "and the log:");
  support::PrintText(report.info_log);
  CHECK(loaded_answer == 42 && report.error_log.empty());

  support::PrintScene("A kernel and the function that it calls, in two texts");
  CHECK(IsRefused("without the function", Link(context, {{"kernel.ptx", kernel}}).status(),
                  absl::StatusCode::kInvalidArgument, "Answer"));
  CHECK(IsRefused("a mistake in the second",
                  Link(context, {{"kernel.ptx", kernel}, {"function.ptx", broken}}).status(),
                  absl::StatusCode::kInvalidArgument, "input 2 of 2, function.ptx"));
  CUGUEST_ASSIGN_OR_RETURN(
      const auto linked,
      Link(context, {{"kernel.ptx", kernel}, {"function.ptx", function}}, &report));
  CUGUEST_ASSIGN_OR_RETURN(const int linked_answer, program::Run(context, linked));
  support::PrintRow("both", std::to_string(linked_answer), "and the log:");
  support::PrintText(report.info_log);
  CHECK(linked_answer == 42 && report.error_log.empty());
  CHECK(report.info_log.find("answer") != std::string::npos);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How does a program compile and link PTX, and read what the compiler and the linker report?",
      &host::Demonstrate);
}
