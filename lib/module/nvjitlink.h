// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's linker for link-time optimisation, found at run time: nothing is linked with it,
// and <nvJitLink.h> is not needed to build.

#ifndef CUGUEST_LIB_MODULE_NVJITLINK_H_
#define CUGUEST_LIB_MODULE_NVJITLINK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

struct NvJitLinkState;  // the library's own

// X(Name, (parameters)): the function nvJitLink<Name>, which returns an nvJitLinkResult.
// Source: <nvJitLink.h> of CUDA 13.0. The header calls names with a version in them
// (__nvJitLinkCreate_13_0); every release since 12.0 also exports these, without one.
// Version is the youngest: it came with 12.3.
#define CUGUEST_NVJITLINK_ENTRIES(X)                                                           \
  X(Create, (NvJitLinkState * *state, std::uint32_t count, const char* const* options))        \
  X(Destroy, (NvJitLinkState * *state))                                                        \
  X(AddData,                                                                                   \
    (NvJitLinkState * state, int input_type, const void* data, size_t size, const char* name)) \
  X(Complete, (NvJitLinkState * state))                                                        \
  X(GetLinkedCubinSize, (NvJitLinkState * state, size_t * size))                               \
  X(GetLinkedCubin, (NvJitLinkState * state, void* cubin))                                     \
  X(GetErrorLogSize, (NvJitLinkState * state, size_t * size))                                  \
  X(GetErrorLog, (NvJitLinkState * state, char* log))                                          \
  X(GetInfoLogSize, (NvJitLinkState * state, size_t * size))                                   \
  X(GetInfoLog, (NvJitLinkState * state, char* log))                                           \
  X(Version, (unsigned* major, unsigned* minor))

struct NvJitLink {
#define CUGUEST_DECLARE_ENTRY(Name, parameters) int(*Name) parameters = nullptr;
  CUGUEST_NVJITLINK_ENTRIES(CUGUEST_DECLARE_ENTRY)
#undef CUGUEST_DECLARE_ENTRY

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

#endif  // CUGUEST_LIB_MODULE_NVJITLINK_H_
