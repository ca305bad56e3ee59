// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/compatibility.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_release.h"
#include "lib/status/driver_status.h"
#include "lib/status/error_status.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::FloorOf;
using internal::VersionText;

constexpr char kCannot[] = "CUDA cannot work here";
constexpr int kInsufficientDriver = 35;  // cudaErrorInsufficientDriver

std::string KernelModule() {
  std::ifstream file("/proc/driver/nvidia/version");
  return internal::FindRelease(file);
}

// The file, not the link, that `function` was loaded from.
std::string FileOf(CUresult (*function)(unsigned)) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(function), &info) == 0) return "";
  char* path = realpath(info.dli_fname, nullptr);
  const std::string file = path != nullptr ? path : info.dli_fname;
  free(path);
  return file;
}

int Major(int version) { return version / 1000; }

// Versions differ from one minor version to the next; the last digit is for patches.
bool IsOlder(int a, int b) { return a / 10 < b / 10; }

// The driver's API version that a runtime needs at least.
int NeededBy(int runtime) { return Major(runtime) >= 11 ? Major(runtime) * 1000 : runtime; }

std::string DriverText(const Versions& versions) {
  const std::string version = VersionText(versions.driver);
  const std::string& module = versions.kernel_module;
  if (versions.uses_forward_compatibility()) {
    return absl::StrCat(versions.library, " (", version, ")",
                        module.empty() ? "" : " over kernel module ", module);
  }
  return module.empty() ? "a driver of " + version
                        : absl::StrCat("driver ", module, " (", version, ")");
}

std::string NoLibraryText(const Versions& versions) {
  if (versions.kernel_module.empty()) {
    return absl::StrCat(
        "libcuda.so.1 cannot be loaded and no NVIDIA kernel module is to be seen: install the "
        "driver, or start the container with its GPUs",
        internal::kElsewhereText);
  }
  return absl::StrCat("kernel module ", versions.kernel_module,
                      " is loaded but libcuda.so.1 cannot be: let the container have the driver's "
                      "libraries (NVIDIA_DRIVER_CAPABILITIES with compute)",
                      internal::kElsewhereText);
}

// What to say of 803 and 804, which a compatibility package mostly is behind.
std::string PackageText(const Versions& versions, CUresult code) {
  std::string misfit = " supports data-centre GPUs only, and not this one";
  if (code == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) {
    const std::string& module = versions.kernel_module;
    misfit = " does not fit kernel module " + (module.empty() ? "of this machine" : module);
  }
  return absl::StrCat("the forward-compatibility library ", versions.library, misfit,
                      ": take its directory out of LD_LIBRARY_PATH, or update the driver");
}

std::string ProblemText(const Versions& versions) {
  const Driver::Problem problem = ProblemOf(versions.problem);
  const CUresult code = CodeOf(versions.problem).value_or(CUDA_ERROR_UNKNOWN);
  if (problem == Driver::Problem::kNoLibrary) return NoLibraryText(versions);
  if (problem == Driver::Problem::kStub || problem == Driver::Problem::kForkedChild ||
      problem == Driver::Problem::kNoDevice) {
    return ErrorText(code);
  }
  const bool of_package = code == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ||
                          code == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE;
  if (of_package && versions.uses_forward_compatibility()) return PackageText(versions, code);
  return std::string(versions.problem.message());
}

// How an older or a layered driver can work; empty for a plain one.
std::string Means(const Versions& versions, int newest) {
  if (versions.uses_forward_compatibility()) return ", by a forward-compatibility package";
  if (!IsOlder(versions.driver, newest)) return "";
  return Major(versions.driver) == Major(newest) ? ", by minor-version compatibility"
                                                 : ", with what the older driver has";
}

std::string CanText(const Versions& versions) {
  const int newest = std::max(versions.toolkit, versions.runtime);
  std::string text =
      absl::StrCat("CUDA can work here", Means(versions, newest), ": ", DriverText(versions),
                   versions.runtime == 0 ? "" : ", runtime of " + VersionText(versions.runtime),
                   ", ", versions.devices, versions.devices == 1 ? " device" : " devices");
  if (IsOlder(versions.driver, newest)) {
    absl::StrAppend(&text, "; PTX of ", VersionText(newest),
                    " may not load (CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222), and calls newer "
                    "than ",
                    VersionText(versions.driver), " are missing");
  }
  return text;
}

}  // namespace

bool Versions::uses_forward_compatibility() const {
  if (library.find("/compat/") != std::string::npos) return true;
  const std::string release = internal::ReleaseOfFile(library);
  return !release.empty() && !kernel_module.empty() && internal::IsNewer(release, kernel_module);
}

Versions QueryVersions(int toolkit, int runtime) {
  Versions versions;
  versions.toolkit = toolkit;
  versions.runtime = runtime;
  versions.kernel_module = KernelModule();
  if (const auto driver = Driver::Get(); driver.ok()) {
    versions.driver = (*driver)->version;
    versions.library = FileOf((*driver)->Init);
  }
  versions.problem = Driver::GetInitialized().status();
  if (!versions.problem.ok()) return versions;
  const absl::StatusOr<int> devices = CountDevices();
  versions.problem = devices.status();
  versions.devices = devices.value_or(0);
  return versions;
}

absl::Status CheckCompatibility(const Versions& versions) {
  const int runtime = versions.runtime;
  if (!versions.problem.ok()) {
    return internal::Reworded(versions.problem, versions.problem.code(),
                              absl::StrCat(kCannot, ": ", ProblemText(versions)));
  }
  if (versions.driver <= 0) {
    return internal::ErrorStatus(CUDA_ERROR_UNKNOWN, kCannot, "",
                                 "the driver does not tell its version: install it again");
  }
  if (versions.devices <= 0) {
    return internal::ErrorStatus(CUDA_ERROR_NO_DEVICE, kCannot, "",
                                 ErrorText(CUDA_ERROR_NO_DEVICE));
  }
  if (runtime == 0) return absl::OkStatus();
  if (versions.driver < NeededBy(runtime)) {
    return internal::RuntimeErrorStatus(
        kInsufficientDriver, kCannot, "",
        absl::StrCat("the runtime is of ", VersionText(runtime), " and needs driver ",
                     FloorOf(NeededBy(runtime)).driver, " or newer, and there is ",
                     DriverText(versions), ": update the driver, install cuda-compat-",
                     Major(runtime), "-", runtime % 1000 / 10,
                     " on a data-centre GPU, or use a runtime of CUDA ", Major(versions.driver)));
  }
  if (versions.toolkit == 0 || Major(runtime) == Major(versions.toolkit)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      kCannot, ": the program was compiled with the headers of ", VersionText(versions.toolkit),
      " and runs with the runtime of ", VersionText(runtime),
      ", whose functions and structures differ: link the runtime of the toolkit that "
      "it is compiled with"));
}

std::string Explain(const Versions& versions) {
  const absl::Status status = CheckCompatibility(versions);
  return status.ok() ? CanText(versions) : std::string(status.message());
}

CUGUEST_END_NAMESPACE
