// SPDX-License-Identifier: Apache-2.0

#include "lib/link/lto_link.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuguest/device.h"
#include "cuguest/error.h"
#include "lib/core/status_macros.h"
#include "lib/link/driver_link.h"
#include "lib/link/nvjitlink.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

constexpr int kInternal = 6;  // the nvJitLinkResult that an undefined symbol gives, mostly

int InputType(CodeKind kind) {
  using Input = cudaimage::NvJitLinkInput;
  constexpr Input kTypes[] = {Input::kPtx,    Input::kCubin,   Input::kCubin, Input::kFatbin,
                              Input::kObject, Input::kArchive, Input::kLtoIr};
  return static_cast<int>(kTypes[static_cast<int>(kind)]);
}

// CU_COMPUTE_FAMILY_TARGET_BASE: newer than the <cuda.h> of CUDA 12.8.
constexpr unsigned kFamily = 0x20000;

// "sm_90" of 90, "sm_90a" of CU_TARGET_COMPUTE_90A.
std::string TargetText(CUjit_target target) {
  const unsigned number = static_cast<unsigned>(target);
  const unsigned features = number & ~0xffffu;
  return absl::StrCat("sm_", number & 0xffffu,
                      features == CU_COMPUTE_ACCELERATED_TARGET_BASE ? "a"
                      : features == kFamily                          ? "f"
                                                                     : "");
}

// The architecture of the current context's device.
absl::StatusOr<CUjit_target> CurrentTarget(const Driver& driver) {
  constexpr char kDoing[] = "find the compute capability of the current context's device";
  CUdevice device = 0;
  int major = 0;
  int minor = 0;
  CUresult code = driver.CtxGetDevice(&device);
  if (code != CUDA_SUCCESS) return ToStatus(code, kDoing);
  code = driver.DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (code != CUDA_SUCCESS) return ToStatus(code, kDoing);
  code = driver.DeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  if (code != CUDA_SUCCESS) return ToStatus(code, kDoing);
  return static_cast<CUjit_target>(10 * major + minor);
}

const char* CacheText(CUjit_cacheMode mode) { return mode == CU_JIT_CACHE_OPTION_CG ? "cg" : "ca"; }

// The options as nvJitLink takes them. Those of ptxas are passed on to it.
// Source: <nvJitLink.h>, "Supported Link Options"; ptxas --help.
std::vector<std::string> LinkOptions(const JitOptions& options, CUjit_target target) {
  std::vector<std::string> texts = {"-lto", "-arch=" + TargetText(target)};
  const auto add = [&texts](const auto&... parts) { texts.push_back(absl::StrCat(parts...)); };
  if (options.max_registers) add("-maxrregcount=", *options.max_registers);
  if (options.optimization_level) add("-O", *options.optimization_level == 0 ? 0 : 3);
  if (options.split_compile) add("-split-compile=", *options.split_compile);
  if (options.cache_mode && *options.cache_mode != CU_JIT_CACHE_OPTION_NONE) {
    add("-Xptxas=--def-load-cache=", CacheText(*options.cache_mode));
  }
  if (options.min_blocks_per_multiprocessor) {
    add("-Xptxas=--minnctapersm=", *options.min_blocks_per_multiprocessor);
  }
  if (options.max_threads_per_block) add("-Xptxas=--maxntid=", *options.max_threads_per_block);
  if (options.override_directives) add("-Xptxas=--override-directive-values");
  if (options.position_independent) add("-Xptxas=--position-independent-code=true");
  if (options.debug_info) add("-g");
  if (options.line_info) add("-lineinfo");
  if (options.verbose) add("-verbose");
  return texts;
}

using Table = cudaimage::NvJitLinkTable;

// An nvJitLinkHandle.
class LinkState {
 public:
  LinkState(const NvJitLink& library, const std::vector<std::string>& options)
      : library_(library.table) {
    std::vector<const char*> texts;
    texts.reserve(options.size());
    for (const std::string& option : options) texts.push_back(option.c_str());
    result_ = library_.Create(&state_, static_cast<std::uint32_t>(texts.size()), texts.data());
  }
  LinkState(const LinkState&) = delete;
  LinkState& operator=(const LinkState&) = delete;
  // There may be a state, with a log, also where creating failed.
  ~LinkState() {
    if (state_ != nullptr) static_cast<void>(library_.Destroy(&state_));
  }

  int result() const { return result_; }

  int Add(const CodeImage& input) {
    const HostSpan<const unsigned char> bytes = input.bytes();
    return library_.AddData(state_, InputType(input.kind()), bytes.data(), bytes.size(),
                            input.name().c_str());
  }

  int Complete(std::vector<unsigned char>* image) {
    int result = library_.Complete(state_);
    size_t size = 0;
    if (result == 0 && SaysError(ErrorLog())) result = kInternal;
    if (result == 0) result = library_.GetLinkedCubinSize(state_, &size);
    image->resize(size);
    return result == 0 ? library_.GetLinkedCubin(state_, image->data()) : result;
  }

  std::string ErrorLog() const {
    return Table::Log(state_, library_.GetErrorLogSize, library_.GetErrorLog);
  }
  std::string InfoLog() const {
    return Table::Log(state_, library_.GetInfoLogSize, library_.GetInfoLog);
  }

 private:
  const Table& library_;
  cudaimage::NvJitLinkState* state_ = nullptr;
  int result_ = 0;
};

// What the author can do about it: change an input or an option, most of the time. An
// undefined symbol comes as an internal error with a log.
absl::StatusCode CodeFor(int result, bool has_log) {
  constexpr int kThreadPool = 7;
  constexpr int kOutdatedLibrary = 14;
  constexpr int kUnsupportedArchitecture = 17;
  switch (result) {
    case kThreadPool:
      return absl::StatusCode::kResourceExhausted;
    case kOutdatedLibrary:
    case kUnsupportedArchitecture:
      return absl::StatusCode::kUnimplemented;
    case kInternal:
      return has_log ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kInternal;
    default:
      return absl::StatusCode::kInvalidArgument;
  }
}

absl::Status LinkStatus(int result, const std::string& object, const NvJitLink& library,
                        const LinkState& state) {
  const std::string log = LogText(state.ErrorLog());
  return absl::Status(CodeFor(result, !log.empty()),
                      absl::StrCat("link, ", object, ": ", NvJitLinkErrorName(result), " (", result,
                                   ") of ", library.name, log));
}

absl::StatusOr<CodeImage> LinkIn(LinkState* state, const NvJitLink& library,
                                 const std::vector<CodeImage>& inputs) {
  if (state->result() != 0) {
    return LinkStatus(state->result(), InputsText(inputs), library, *state);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int result = state->Add(inputs[i]);
    if (result != 0) return LinkStatus(result, InputText(inputs, i), library, *state);
  }
  std::vector<unsigned char> image;
  const int result = state->Complete(&image);
  if (result != 0) return LinkStatus(result, InputsText(inputs), library, *state);
  return CodeImage::Copy({image.data(), image.size()}, InputsText(inputs));
}

}  // namespace

absl::StatusOr<CodeImage> LinkByNvJitLink(const LinkJob& job, JitReport* report) {
  if (job.options.threads_per_block) {
    return absl::UnimplementedError(
        absl::StrCat("link, ", InputsText(job.inputs),
                     ": there is LTO IR, and nvJitLink knows no threads_per_block: set "
                     "max_registers instead"));
  }
  CUGUEST_ASSIGN_OR_RETURN(const CUjit_target target,
                           job.options.target ? absl::StatusOr<CUjit_target>(*job.options.target)
                                              : CurrentTarget(job.driver));
  CUGUEST_ASSIGN_OR_RETURN(const NvJitLink library, FindNvJitLink(job.driver.version));
  const auto without_lto_ir =
      std::count_if(job.inputs.begin(), job.inputs.end(),
                    [](const CodeImage& input) { return !input.has_lto_ir(); });
  if (without_lto_ir > 1) {
    CUGUEST_RETURN_IF_ERROR(CheckDefinedOnce(job));
  }
  const auto start = std::chrono::steady_clock::now();
  LinkState state(library, LinkOptions(job.options, target));
  absl::StatusOr<CodeImage> image = LinkIn(&state, library, job.inputs);
  if (report != nullptr) {
    const std::chrono::duration<float, std::milli> taken = std::chrono::steady_clock::now() - start;
    report->info_log = state.InfoLog();
    report->error_log = state.ErrorLog();
    report->milliseconds = taken.count();
  }
  return image;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
