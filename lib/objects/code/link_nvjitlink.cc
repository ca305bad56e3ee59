// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Links by nvJitLink, NVIDIA's linker for link-time optimisation, of a version that the driver
// fits.                                                                 tier: 3

#include "lib/objects/code/link.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "cuguest/status.h"
#include "lib/core/image_namespace.h"
#include "lib/image/include/cudaimage/nvjitlink.h"
#include "lib/objects/code/function_in_context.h"
#include "lib/objects/code/image_status.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using Table = cudaimage::NvJitLinkTable;

struct NvJitLink {
  Table table;
  std::string name;  // "libnvJitLink.so.13 (CUDA 13.0)"
};

absl::StatusOr<NvJitLink> Load(const std::string& soname) {
  NvJitLink library;
  const cudaimage::Status loaded = Table::Load(soname.c_str(), &library.table);
  if (loaded.code() == cudaimage::Status::Code::kUnavailable) {
    return absl::UnavailableError(loaded.message());
  }
  if (!loaded.ok() || library.table.Version == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(loaded.ok() ? soname + " has no nvJitLinkVersion" : loaded.message(),
                     ": it is older than CUDA 12.3"));
  }
  unsigned major = 0;
  unsigned minor = 0;
  static_cast<void>(library.table.Version(&major, &minor));
  library.name = absl::StrCat(soname, " (CUDA ", major, ".", minor, ")");
  return library;
}

// The library whose images a driver of that version (13000 is CUDA 13.0) can load: of the
// driver's own major version if there is one, else of an older one. It stays loaded.
//
// Threads: any.
// Errors:  kUnavailable    none can be loaded: the text has the loader's words
//          kUnimplemented  it is older than CUDA 12.3
// Cost:    microseconds once it is loaded, by whomever.
// Source:  nvJitLink documentation, "Compatibility"; CUDA Compatibility guide.
absl::StatusOr<NvJitLink> FindNvJitLink(int driver_version) {
  constexpr int kOldestMajor = 12;  // the first that there is
  std::string tried;
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  for (int major = driver_version / 1000; major >= kOldestMajor; --major) {
    absl::StatusOr<NvJitLink> found = Load(absl::StrCat("libnvJitLink.so.", major));
    if (found.ok()) return found;
    absl::StrAppend(&tried, tried.empty() ? "" : "; ", found.status().message());
    if (absl::IsUnimplemented(found.status())) code = absl::StatusCode::kUnimplemented;
  }
  return absl::Status(
      code, absl::StrCat("load nvJitLink, which links LTO IR: ",
                         tried.empty() ? "there is none for a driver this old" : tried,
                         ". It comes with the CUDA Toolkit: install it, or put its directory on "
                         "LD_LIBRARY_PATH"));
}

int NvJitLinkInput(CodeImage::Kind kind) {
  using Input = cudaimage::NvJitLinkInput;
  constexpr Input kTypes[] = {Input::kPtx,    Input::kCubin,   Input::kCubin, Input::kFatbin,
                              Input::kObject, Input::kArchive, Input::kLtoIr};
  return static_cast<int>(kTypes[static_cast<int>(kind)]);
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

// An nvJitLinkHandle.
class NvJitLinkWork {
 public:
  NvJitLinkWork(const NvJitLink& library, const std::vector<std::string>& options)
      : library_(library.table) {
    std::vector<const char*> texts;
    texts.reserve(options.size());
    for (const std::string& option : options) texts.push_back(option.c_str());
    result_ = library_.Create(&state_, static_cast<std::uint32_t>(texts.size()), texts.data());
  }
  NvJitLinkWork(const NvJitLinkWork&) = delete;
  NvJitLinkWork& operator=(const NvJitLinkWork&) = delete;
  // There may be a state, with a log, also where creating failed.
  ~NvJitLinkWork() {
    if (state_ != nullptr) static_cast<void>(library_.Destroy(&state_));
  }

  int result() const { return result_; }

  int Add(const CodeImage& input) {
    const HostSpan<const unsigned char> bytes = input.bytes();
    return library_.AddData(state_, NvJitLinkInput(input.kind()), bytes.data(), bytes.size(),
                            input.name().c_str());
  }

  int Complete(HostSpan<const unsigned char>* image) {
    int result = library_.Complete(state_);
    size_t size = 0;
    if (result == 0 && SaysError(ErrorLog())) result = Table::kInternalError;
    if (result == 0) result = library_.GetLinkedCubinSize(state_, &size);
    image_.resize(size);
    *image = {image_.data(), size};
    return result == 0 ? library_.GetLinkedCubin(state_, image_.data()) : result;
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
  std::vector<unsigned char> image_;
};

// What the author can do about it: change an input or an option, most of the time. An
// undefined symbol comes as an internal error with a log.
absl::StatusCode CodeFor(int result, bool has_log) {
  switch (result) {
    case Table::kThreadPool:
      return absl::StatusCode::kResourceExhausted;
    case Table::kOutdatedLibrary:
    case Table::kUnsupportedArchitecture:
      return absl::StatusCode::kUnimplemented;
    case Table::kInternalError:
      return has_log ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kInternal;
    default:
      return absl::StatusCode::kInvalidArgument;
  }
}

}  // namespace

absl::StatusOr<CodeImage> LinkByNvJitLink(const LinkJob& job, JitReport* report) {
  if (job.options.threads_per_block) {
    return absl::UnimplementedError(
        absl::StrCat("link, ", InputsText(job.inputs),
                     ": there is LTO IR, and nvJitLink knows no threads_per_block: set "
                     "max_registers instead"));
  }
  int capability = 0;
  CUdevice device = 0;
  if (!job.options.target) {
    CUGUEST_RETURN_IF_CUDA_ERROR(AskComputeCapability(job.driver, &device, &capability),
                                 "find the compute capability of the current context's device");
  }
  const CUjit_target target = job.options.target.value_or(static_cast<CUjit_target>(capability));
  CUGUEST_ASSIGN_OR_RETURN(const NvJitLink library, FindNvJitLink(job.driver.version));
  const auto without_lto_ir =
      std::count_if(job.inputs.begin(), job.inputs.end(),
                    [](const CodeImage& input) { return !input.has_lto_ir(); });
  if (without_lto_ir > 1) {
    CUGUEST_RETURN_IF_ERROR(CheckDefinedOnce(job));
  }
  const auto start = std::chrono::steady_clock::now();
  NvJitLinkWork state(library, LinkOptions(job.options, target));
  const auto failed = [&](int result, const std::string& object, const CodeImage* /*input*/) {
    const std::string log = LogText(state.ErrorLog());
    return absl::Status(CodeFor(result, !log.empty()),
                        absl::StrCat("link, ", object, ": ", Table::ErrorName(result), " (", result,
                                     ") of ", library.name, log));
  };
  absl::StatusOr<CodeImage> image = LinkIn(&state, job.inputs, failed);
  if (report != nullptr) {
    const std::chrono::duration<float, std::milli> taken = std::chrono::steady_clock::now() - start;
    report->info_log = state.InfoLog();
    report->error_log = state.ErrorLog();
    report->milliseconds = taken.count();
  }
  return image;
}

CUGUEST_END_INTERNAL_NAMESPACE
