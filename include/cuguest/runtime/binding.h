// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// The namespace of the headers under runtime/. Only their inline functions call the CUDA runtime,
/// so it is the one that the including file is linked with, shared or static: the library cuguest
/// is linked with none. They need the <cuda_runtime_api.h> of CUDA 12.0 or newer.
///
///   #include <cuda_runtime_api.h>
///   #include "cuguest/runtime/binding.h"
///
///   CUGUEST_BEGIN_RUNTIME_NAMESPACE
///   inline int RuntimeVersion() { ... }   // cuguest::runtime::RuntimeVersion()
///   CUGUEST_END_RUNTIME_NAMESPACE

#ifndef CUGUEST_RUNTIME_BINDING_H_
#define CUGUEST_RUNTIME_BINDING_H_

#include <cuda_runtime_api.h>

#include "cuguest/export.h"

#if CUDART_VERSION < 12000
#error "The headers under cuguest/runtime/ need the CUDA runtime headers of CUDA 12.0 or newer."
#endif

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define CUGUEST_RUNTIME_DEFAULT_STREAM per_thread_stream
#else
#define CUGUEST_RUNTIME_DEFAULT_STREAM legacy_stream
#endif

#define CUGUEST_BEGIN_RUNTIME_NAMESPACE                     \
  CUGUEST_BEGIN_NAMESPACE                                   \
  namespace runtime __attribute__((visibility("hidden"))) { \
    inline namespace CUGUEST_INTERNAL_RELEASE {             \
    inline namespace CUGUEST_RUNTIME_DEFAULT_STREAM {
#define CUGUEST_END_RUNTIME_NAMESPACE \
  } /* inline namespace */            \
  } /* inline namespace */            \
  } /* namespace runtime */           \
  CUGUEST_END_NAMESPACE

#endif  // CUGUEST_RUNTIME_BINDING_H_
