// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 1
/// \file
/// Can CUDA work in this process, with the driver that is here and the toolkit that the caller was
/// built with? And if not, what is to be done?
///
///   const cuguest::Versions versions = cuguest::QueryVersions();
///   CUGUEST_RETURN_IF_ERROR(cuguest::CheckCompatibility(versions));
///   LOG(INFO) << cuguest::Explain(versions);
///   // "CUDA can work here: driver 580.159.04 (CUDA 13.0), 1 device"
///
/// A library that calls the runtime asks runtime/version.h, which knows its version too. A positive
/// answer is no promise: a driver may still refuse a context for want of memory, or a kernel that
/// has no code for the device.

#ifndef CUGUEST_COMPATIBILITY_H_
#define CUGUEST_COMPATIBILITY_H_

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// What decides whether CUDA can work in a process. In an API version, 13000 is CUDA 13.0.
struct Versions {
  CUGUEST_HIDE Versions() = default;
  CUGUEST_HIDE Versions(const Versions&) = default;
  CUGUEST_HIDE Versions(Versions&&) = default;
  CUGUEST_HIDE Versions& operator=(const Versions&) = default;
  CUGUEST_HIDE Versions& operator=(Versions&&) = default;
  CUGUEST_HIDE ~Versions() = default;

  int toolkit = 0;            ///< that the caller was compiled with: its CUDA_VERSION
  int runtime = 0;            ///< cudaRuntimeGetVersion's; 0 where no runtime is used
  int driver = 0;             ///< cuDriverGetVersion's; 0 where no driver could be loaded
  int devices = 0;            ///< that the process sees
  std::string kernel_module;  ///< "580.159.04"; empty if none is loaded or none is to be seen
  std::string library;        ///< the file that libcuda was loaded from; empty if none was
  absl::Status problem;       ///< what Driver::GetInitialized() or counting the devices gave

  /// Whether `library` is that of a forward-compatibility package: it is in a directory `compat`,
  /// or its name has a later release than the kernel module.
  [[nodiscard]] CUGUEST_API bool uses_forward_compatibility() const;
};

/// The versions of this process. `toolkit` is the including file's by default. Initialises the
/// driver, as Driver::GetInitialized() does, with the same effect on children that are forked
/// later. Creates no context.
/// Stack, count: never touched.
/// Threads: any.
/// Errors:  none; what failed is in `problem`.
/// Cost:    reads a file under /proc, loads and initialises the driver if need be; one driver call.
[[nodiscard]] CUGUEST_API Versions QueryVersions(int toolkit = CUDA_VERSION, int runtime = 0);

/// Whether CUDA can work with `versions`, on which alone the answer depends: OK, or what stands in
/// the way, with CodeOf() and ProblemOf(), and Explain() as its message. Touches no driver.
///
///   `problem`'s code     `problem` is not OK: no driver, a stub, too old, a forked child, no
///                        device, 803, 804 or another failure of cuInit
///   kUnknown             the driver does not tell its version, CUDA_ERROR_UNKNOWN
///   kNotFound            no device, CUDA_ERROR_NO_DEVICE
///   kUnimplemented       the runtime is of a newer major version than the driver,
///                        CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER (cudaErrorInsufficientDriver, by
///                        runtime::RuntimeCodeOf)
///   kFailedPrecondition  the caller was compiled with the headers of another major version than
///                        the runtime's; no code of CUDA
[[nodiscard]] CUGUEST_API absl::Status CheckCompatibility(const Versions& versions);

/// The same in a sentence: "CUDA can work here: ..." and with what, or "CUDA cannot work here:
/// ...", why, and what to do.
[[nodiscard]] CUGUEST_API std::string Explain(const Versions& versions);

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_COMPATIBILITY_H_
