// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVIDIA's compiler and linker of device code, nvJitLink, found at run time: nothing is linked with
// it, and <nvJitLink.h> is not needed to build.

#ifndef CUDAIMAGE_NVJITLINK_H_
#define CUDAIMAGE_NVJITLINK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "status.h"

CUDAIMAGE_BEGIN_NAMESPACE

struct NvJitLinkState;  // the library's own

// X(Name, (parameters)): the function nvJitLink<Name>, which returns an nvJitLinkResult.
// Source: <nvJitLink.h> of CUDA 13.0. The header calls names with a version in them
// (__nvJitLinkCreate_13_0); every release since 12.0 also exports these, without one.
#define CUDAIMAGE_NVJITLINK_ENTRIES(X)                                                         \
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
  X(GetInfoLog, (NvJitLinkState * state, char* log))

// As nvJitLinkInputType has them.
enum class NvJitLinkInput : int { kCubin = 1, kPtx, kLtoIr, kFatbin, kObject, kArchive };

struct NvJitLinkTable {
  // Of nvJitLinkResult, those that a caller tells apart.
  enum Result : int {
    kInternalError = 6,  // an undefined symbol gives it, mostly
    kThreadPool = 7,
    kOutdatedLibrary = 14,
    kUnsupportedArchitecture = 17,
  };

  using GetSize = int (*)(NvJitLinkState* state, size_t* size);
  using GetText = int (*)(NvJitLinkState* state, char* text);

  // By the dynamic linker, which counts; the library stays loaded.
  //
  // Threads: any; no lock is held.
  // Errors:  kUnavailable  it cannot be loaded: the message has the loader's words
  //          kTooOld       it lacks a function
  static Status Load(const char* soname, NvJitLinkTable* table);

  // "NVJITLINK_ERROR_PTX_COMPILE" of 4. Never null.
  static const char* ErrorName(int result) noexcept;

  // A log, without the NULs at its end; empty where nothing was said.
  static std::string Log(NvJitLinkState* state, GetSize get_size, GetText get_text);

#define CUDAIMAGE_DECLARE_ENTRY(Name, parameters) int(*Name) parameters = nullptr;
  CUDAIMAGE_NVJITLINK_ENTRIES(CUDAIMAGE_DECLARE_ENTRY)
#undef CUDAIMAGE_DECLARE_ENTRY
  int (*Version)(unsigned* major, unsigned* minor) = nullptr;  // since 12.3
};

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_NVJITLINK_H_
