// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/objects/code/link.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "cuguest/status.h"
#include "lib/objects/code/function_in_context.h"
#include "lib/objects/code/image_status.h"
#include "lib/objects/code/jit.h"
#include "lib/status/error_status.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

CUjitInputType InputType(CodeImage::Kind kind) {
  constexpr CUjitInputType kTypes[] = {CU_JIT_INPUT_PTX,      CU_JIT_INPUT_CUBIN,
                                       CU_JIT_INPUT_CUBIN,    CU_JIT_INPUT_FATBINARY,
                                       CU_JIT_INPUT_OBJECT,   CU_JIT_INPUT_LIBRARY,
                                       CU_JIT_NUM_INPUT_TYPES};  // LTO IR is for nvJitLink
  return kTypes[static_cast<int>(kind)];
}

// A CUlinkState. The driver writes to `call` for as long as it is there.
class LinkState {
 public:
  LinkState(const ObjectDriver& driver, JitCall* call)
      : driver_(driver),
        call_(*call),
        result_(driver.LinkCreate(call->count(), call->names(), call->values(), &state_)) {}
  LinkState(const LinkState&) = delete;
  LinkState& operator=(const LinkState&) = delete;
  ~LinkState() {
    if (result_ == CUDA_SUCCESS) static_cast<void>(driver_.LinkDestroy(state_));
  }

  CUresult result() const { return result_; }

  CUresult Add(const CodeImage& input) {
    const HostSpan<const unsigned char> bytes = input.bytes();
    return Verdict(driver_.LinkAddData(state_, InputType(input.kind()),
                                       const_cast<unsigned char*>(bytes.data()), bytes.size(),
                                       input.name().c_str(), 0, nullptr, nullptr));
  }

  CUresult Complete(HostSpan<const unsigned char>* image) {
    void* data = nullptr;
    size_t size = 0;
    const CUresult code = driver_.LinkComplete(state_, &data, &size);
    *image = {static_cast<const unsigned char*>(data), size};
    return Verdict(code);
  }

 private:
  // What the driver's answer to an input or to the end of a link comes to.
  CUresult Verdict(CUresult code) const {
    return code == CUDA_SUCCESS && SaysError(call_.error_log()) ? CUDA_ERROR_UNKNOWN : code;
  }

  const ObjectDriver& driver_;
  const JitCall& call_;
  CUlinkState state_ = nullptr;
  CUresult result_;
};

// What the link is for: the target, or else the current context's device.
std::string ForText(const LinkJob& job) {
  if (job.options.target) return ", for " + TargetText(*job.options.target);
  CUdevice device = 0;
  int capability = 0;
  if (AskComputeCapability(job.driver, &device, &capability) != CUDA_SUCCESS) return "";
  return absl::StrCat(", for device ", device, " (compute capability ", capability / 10, ".",
                      capability % 10, ")");
}

// Of an input, or of all where it is null. CUDA_ERROR_UNKNOWN with a log is about the inputs: a
// symbol is undefined or defined twice.
absl::Status LinkStatus(CUresult code, const LinkJob& job, const std::string& object,
                        const CodeImage* input, const JitCall& call) {
  const std::string_view log = call.error_log();
  if (code == CUDA_ERROR_NO_BINARY_FOR_GPU && input != nullptr) {
    return ImageStatus(code, "link", object + ForText(job), log, TargetsText(*input));
  }
  if (code != CUDA_ERROR_UNKNOWN || log.empty()) return CodeStatus(code, "link", object, log);
  const absl::Status said =
      ErrorStatus(code, "link", object,
                  absl::StrCat(ErrorName(code), " (", static_cast<int>(code), ")", LogText(log)));
  absl::Status status(absl::StatusCode::kInvalidArgument, said.message());
  said.ForEachPayload(
      [&status](auto url, const absl::Cord& payload) { status.SetPayload(url, payload); });
  return status;
}

absl::StatusOr<CodeImage> LinkOnce(const LinkJob& job, JitCall* call) {
  LinkState state(job.driver, call);
  return LinkIn(&state, job.inputs,
                [&job, call](CUresult code, const std::string& object, const CodeImage* input) {
                  return LinkStatus(code, job, object, input, *call);
                });
}

// What a linker says of a symbol that an input defines, and an earlier one did.
constexpr std::string_view kDefinedTwice = "Multiple definition";

}  // namespace

std::string TargetText(CUjit_target target) {
  // CU_COMPUTE_FAMILY_TARGET_BASE: newer than the <cuda.h> of CUDA 12.8.
  constexpr unsigned kFamily = 0x20000;
  const unsigned number = static_cast<unsigned>(target);
  const unsigned features = number & ~0xffffu;
  return absl::StrCat("sm_", number & 0xffffu,
                      features == CU_COMPUTE_ACCELERATED_TARGET_BASE ? "a"
                      : features == kFamily                          ? "f"
                                                                     : "");
}

std::string InputsText(const std::vector<CodeImage>& inputs) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(inputs.size(), kNamed); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", inputs[i].name());
  }
  if (inputs.size() > kNamed) absl::StrAppend(&text, " and ", inputs.size() - kNamed, " more");
  return text;
}

std::string InputText(const std::vector<CodeImage>& inputs, std::size_t index) {
  return absl::StrCat("input ", index + 1, " of ", inputs.size(), ", ", inputs[index].name());
}

bool SaysError(std::string_view log) {
  return log.find("error   :") != std::string_view::npos ||
         log.find("fatal   :") != std::string_view::npos;
}

absl::Status CheckDefinedOnce(const LinkJob& job) {
  JitOptions options;
  options.target = job.options.target;
  JitCall call(options, job.driver.version);
  LinkState state(job.driver, &call);
  if (state.result() != CUDA_SUCCESS) {
    return LinkStatus(state.result(), job, InputsText(job.inputs), nullptr, call);
  }
  for (std::size_t i = 0; i < job.inputs.size(); ++i) {
    if (job.inputs[i].has_lto_ir()) continue;
    const CUresult code = state.Add(job.inputs[i]);
    if (call.error_log().find(kDefinedTwice) != std::string_view::npos) {
      return LinkStatus(code, job, InputText(job.inputs, i), &job.inputs[i], call);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CodeImage> LinkByDriver(const LinkJob& job, JitReport* report) {
  JitCall call(job.options, job.driver.version);
  absl::StatusOr<CodeImage> image = LinkOnce(job, &call);
  while ((report != nullptr || !image.ok()) && call.GrowFullLogs()) image = LinkOnce(job, &call);
  if (report != nullptr) *report = call.Report();
  return image;
}

CUGUEST_END_INTERNAL_NAMESPACE
