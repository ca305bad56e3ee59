// SPDX-License-Identifier: Apache-2.0

#include "lib/link/driver_link.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "lib/core/error_status.h"
#include "lib/module/image_status.h"
#include "lib/module/jit.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

CUjitInputType InputType(CodeKind kind) {
  switch (kind) {
    case CodeKind::kPtx:
      return CU_JIT_INPUT_PTX;
    case CodeKind::kCubin:
    case CodeKind::kRelocatableCubin:
      return CU_JIT_INPUT_CUBIN;
    case CodeKind::kFatbin:
      return CU_JIT_INPUT_FATBINARY;
    case CodeKind::kObject:
      return CU_JIT_INPUT_OBJECT;
    case CodeKind::kArchive:
      return CU_JIT_INPUT_LIBRARY;
    case CodeKind::kLtoIr:
      break;
  }
  return CU_JIT_NUM_INPUT_TYPES;  // LTO IR is for nvJitLink
}

// A CUlinkState. The driver writes to `call` for as long as it is there.
class LinkState {
 public:
  LinkState(const Driver& driver, JitCall* call)
      : driver_(driver),
        result_(driver.LinkCreate(call->count(), call->names(), call->values(), &state_)) {}
  LinkState(const LinkState&) = delete;
  LinkState& operator=(const LinkState&) = delete;
  ~LinkState() {
    if (result_ == CUDA_SUCCESS) static_cast<void>(driver_.LinkDestroy(state_));
  }

  CUresult result() const { return result_; }

  CUresult Add(const CodeImage& input) {
    const HostSpan<const unsigned char> bytes = input.bytes();
    return driver_.LinkAddData(state_, InputType(input.kind()),
                               const_cast<unsigned char*>(bytes.data()), bytes.size(),
                               input.name().c_str(), 0, nullptr, nullptr);
  }

  // `*image` is the state's.
  CUresult Complete(HostSpan<const unsigned char>* image) {
    void* data = nullptr;
    size_t size = 0;
    const CUresult code = driver_.LinkComplete(state_, &data, &size);
    *image = {static_cast<const unsigned char*>(data), size};
    return code;
  }

 private:
  const Driver& driver_;
  CUlinkState state_ = nullptr;
  CUresult result_;
};

// What the driver's answer to an input or to the end of a link comes to.
CUresult Verdict(CUresult code, const JitCall& call) {
  return code == CUDA_SUCCESS && SaysError(call.error_log()) ? CUDA_ERROR_UNKNOWN : code;
}

// CUDA_ERROR_UNKNOWN with a log is about the inputs: a symbol is undefined or defined twice.
absl::Status LinkStatus(CUresult code, const std::string& object, const JitCall& call) {
  const std::string_view log = call.error_log();
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
  if (state.result() != CUDA_SUCCESS) {
    return LinkStatus(state.result(), InputsText(job.inputs), *call);
  }
  for (std::size_t i = 0; i < job.inputs.size(); ++i) {
    const CUresult code = Verdict(state.Add(job.inputs[i]), *call);
    if (code != CUDA_SUCCESS) return LinkStatus(code, InputText(job.inputs, i), *call);
  }
  HostSpan<const unsigned char> image;
  const CUresult code = Verdict(state.Complete(&image), *call);
  if (code != CUDA_SUCCESS) return LinkStatus(code, InputsText(job.inputs), *call);
  return CodeImage::Copy(image, InputsText(job.inputs));
}

// What a linker says of a symbol that an input defines, and an earlier one did.
bool SaysDefinedTwice(std::string_view log) {
  return log.find("Multiple definition") != std::string_view::npos;
}

}  // namespace

absl::Status CheckDefinedOnce(const LinkJob& job) {
  JitOptions options;
  options.target = job.options.target;
  JitCall call(options, job.driver.version);
  LinkState state(job.driver, &call);
  if (state.result() != CUDA_SUCCESS) {
    return LinkStatus(state.result(), InputsText(job.inputs), call);
  }
  for (std::size_t i = 0; i < job.inputs.size(); ++i) {
    if (job.inputs[i].has_lto_ir()) continue;
    const CUresult code = Verdict(state.Add(job.inputs[i]), call);
    if (SaysDefinedTwice(call.error_log())) {
      return LinkStatus(code, InputText(job.inputs, i), call);
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

}  // namespace internal
CUGUEST_END_NAMESPACE
