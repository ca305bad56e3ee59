// SPDX-License-Identifier: Apache-2.0

#include "lib/link/nvjitlink.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

constexpr int kOldestMajor = 12;  // the first that there is

absl::StatusOr<NvJitLink> Load(const std::string& soname) {
  NvJitLink library;
  const cudaimage::Status loaded = cudaimage::NvJitLinkTable::Load(soname.c_str(), &library.table);
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

}  // namespace

absl::StatusOr<NvJitLink> FindNvJitLink(int driver_version) {
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

const char* NvJitLinkErrorName(int result) noexcept {
  static constexpr const char* kNames[] = {
      "NVJITLINK_SUCCESS",
      "NVJITLINK_ERROR_UNRECOGNIZED_OPTION",
      "NVJITLINK_ERROR_MISSING_ARCH",
      "NVJITLINK_ERROR_INVALID_INPUT",
      "NVJITLINK_ERROR_PTX_COMPILE",
      "NVJITLINK_ERROR_NVVM_COMPILE",
      "NVJITLINK_ERROR_INTERNAL",
      "NVJITLINK_ERROR_THREADPOOL",
      "NVJITLINK_ERROR_UNRECOGNIZED_INPUT",
      "NVJITLINK_ERROR_FINALIZE",
      "NVJITLINK_ERROR_NULL_INPUT",
      "NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS",
      "NVJITLINK_ERROR_INCORRECT_INPUT_TYPE",
      "NVJITLINK_ERROR_ARCH_MISMATCH",
      "NVJITLINK_ERROR_OUTDATED_LIBRARY",
      "NVJITLINK_ERROR_MISSING_FATBIN",
      "NVJITLINK_ERROR_UNRECOGNIZED_ARCH",
      "NVJITLINK_ERROR_UNSUPPORTED_ARCH",
      "NVJITLINK_ERROR_LTO_NOT_ENABLED",
  };
  constexpr int kCount = sizeof(kNames) / sizeof(kNames[0]);
  return result >= 0 && result < kCount ? kNames[result] : "an nvJitLink error of no known name";
}

}  // namespace internal
CUGUEST_END_NAMESPACE
