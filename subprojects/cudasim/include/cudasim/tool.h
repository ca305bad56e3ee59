// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -----------------------------------------------------------------------------
// cudasim/tool.h
// -----------------------------------------------------------------------------
/// \file
/// Callbacks for tools: what CUPTI is on a real driver, for a tool that is to be tested on the
/// simulation. As a real driver does, the simulated one loads the library that
/// CUDA_INJECTION64_PATH names, inside the first cuInit that succeeds, and calls its function
/// `int InitializeInjection(void)`; a path that cannot be loaded, or has no such function, is
/// ignored. That library, or anything else in the process, subscribes:
///
///   auto* subscribe = reinterpret_cast<decltype(&cudasimSubscribe)>(
///       dlsym(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW), "cudasimSubscribe"));
///
/// Functions are called on the thread that makes the call. They may make no CUDA call, since the
/// driver holds locks while it tells of a context. A call of the runtime is reported, and so are
/// the calls of the driver that it makes, in between. Calls that were begun before the subscription
/// are not.

#ifndef CUDASIM_TOOL_H_
#define CUDASIM_TOOL_H_

#include <cuda.h>
#include <stdint.h>

#define CUDASIM_TOOL_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

enum { cudasimDriverCall = 0, cudasimRuntimeCall = 1, cudasimMaxEntries = 1024 };

typedef struct cudasimCall {
  int domain;
  unsigned index;      ///< of the entry in its domain, below cudasimMaxEntries
  const char* name;    ///< "cuCtxPushCurrent"; valid for the life of the process
  const char* symbol;  ///< "cuCtxPushCurrent_v2"; the same
  /// Pointers to the arguments, in their order. An entry that the simulation does not model shows
  /// none.
  const void* const* arguments;
  unsigned argument_count;
  uint64_t
      context;  ///< number (cuCtxGetId) of the context that is current now, dead or alive; 0: none
  int result;   ///< when the call returns
} cudasimCall;

enum { cudasimUserContext = 0, cudasimPrimaryContext = 1, cudasimGreenContext = 2 };

typedef struct cudasimContext {
  CUcontext handle;  ///< of a green context, its CUgreenCtx
  uint64_t id;
  int device;
  int kind;
} cudasimContext;

/// Null functions are not called.
typedef struct cudasimSubscriber {
  int version;  ///< CUDASIM_TOOL_VERSION
  void (*enter)(const cudasimCall*);
  void (*leave)(const cudasimCall*);
  void (*context_created)(const cudasimContext*);
  void (*context_destroyed)(const cudasimContext*);
} cudasimSubscriber;

/// There is one subscriber at a time, which must stay valid for the life of the process. Null ends
/// the subscription; calls in progress are still reported at their end. CUDA_ERROR_ALREADY_ACQUIRED
/// where there is another subscriber, CUDA_ERROR_INVALID_VALUE for another version.
CUresult cudasimSubscribe(const cudasimSubscriber* subscriber);

#ifdef __cplusplus
}
#endif

#endif  // CUDASIM_TOOL_H_
