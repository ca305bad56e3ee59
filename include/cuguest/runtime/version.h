// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
/// \file
/// Whether CUDA can work in this process, with its driver and the runtime that the including file
/// is linked with. See compatibility.h for what is checked, and how.
///
///   if (absl::Status s = cuguest::runtime::CanWork(); !s.ok()) return s;
///
/// Every function here initialises the driver as QueryVersions() does, creates no context, and
/// leaves the stack and the runtime's last error as they are. Threads: any.

#ifndef CUGUEST_RUNTIME_VERSION_H_
#define CUGUEST_RUNTIME_VERSION_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "cuguest/compatibility.h"
#include "cuguest/runtime/binding.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// cuguest::QueryVersions() with the version of the including file's runtime, which answers without
/// a driver too. Cost: that of cuguest::QueryVersions().
[[nodiscard]] inline Versions QueryVersions() {
  int version = 0;
  // Cannot fail: it is given where to write.
  cudaRuntimeGetVersion(&version);
  return ::cuguest::QueryVersions(CUDART_VERSION, version);
}

/// OK, or what stands in the way and what to do; the codes are CheckCompatibility()'s.
[[nodiscard]] inline absl::Status CanWork() { return CheckCompatibility(QueryVersions()); }

/// The answer of CanWork() in one sentence, also where CUDA can work.
[[nodiscard]] inline std::string Explain() { return ::cuguest::Explain(QueryVersions()); }

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_VERSION_H_
