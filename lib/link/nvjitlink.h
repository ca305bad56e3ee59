// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's linker for link-time optimisation, of a version that the driver fits.       tier: 3

#ifndef CUGUEST_LIB_LINK_NVJITLINK_H_
#define CUGUEST_LIB_LINK_NVJITLINK_H_

#include <string>

#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "lib/core/image_namespace.h"
#include "lib/image/include/cudaimage/nvjitlink.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

struct NvJitLink {
  cudaimage::NvJitLinkTable table;
  std::string name;  // "libnvJitLink.so.13 (CUDA 13.0)"
};

// The library whose images a driver of that version (13000 is CUDA 13.0) can load: of the
// driver's own major version if there is one, else of an older one. It stays loaded.
//
// Threads: any.
// Errors:  kUnavailable    none can be loaded: the text has the loader's words
//          kUnimplemented  it is older than CUDA 12.3
// Cost:    microseconds once it is loaded, by whomever.
// Source:  nvJitLink documentation, "Compatibility"; CUDA Compatibility guide.
absl::StatusOr<NvJitLink> FindNvJitLink(int driver_version);

// "NVJITLINK_ERROR_PTX_COMPILE" of 4. Never null.
const char* NvJitLinkErrorName(int result) noexcept;

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_LINK_NVJITLINK_H_
