// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// runtime/binding.h                                                     tier: 4
// -----------------------------------------------------------------------------
/// \file
/// The namespace of the headers under runtime/. They are headers only, without a
/// library behind them: what they call is the CUDA runtime that the including file is
/// linked with, shared or static. They need the <cuda_runtime_api.h> of CUDA 12.0 or newer
/// (test/headers/toolkits_test.py).
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

/// Note [Bound to one runtime]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// An inline function that calls the runtime means something else in every file that
/// includes it, in two ways:
///
///   - One process may hold several copies of the runtime, each with its own last error
///     and its own idea of the device: a shared libcudart beside any number of static ones.
///     The dynamic linker makes equal inline functions of two shared objects one, which
///     would send one object's calls to the other's runtime. So the whole namespace is
///     hidden, whatever -fvisibility is; that holds for gcc's unique symbols too.
///   - CUDA_API_PER_THREAD_DEFAULT_STREAM chooses other functions, and what stream 0 is,
///     file by file. The linker makes equal inline functions of two files one. So an inline
///     namespace that no user has to name tells them apart.
///
/// What follows for the embedder: a type of this namespace cannot be part of an interface
/// between shared objects. gcc warns (-Wattributes, "greater visibility than the type of its
/// field") of a class outside a header that has one as a member and is visible itself: put
/// that class in an unnamed namespace, or compile with -fvisibility=hidden.
///
/// Source: test/headers/binding_test.py.
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define CUGUEST_RUNTIME_DEFAULT_STREAM per_thread_stream
#else
#define CUGUEST_RUNTIME_DEFAULT_STREAM legacy_stream
#endif

#define CUGUEST_BEGIN_RUNTIME_NAMESPACE                     \
  CUGUEST_BEGIN_NAMESPACE                                   \
  namespace runtime __attribute__((visibility("hidden"))) { \
    inline namespace CUGUEST_RUNTIME_DEFAULT_STREAM {
#define CUGUEST_END_RUNTIME_NAMESPACE \
  } /* inline namespace */            \
  } /* namespace runtime */           \
  CUGUEST_END_NAMESPACE

#endif  // CUGUEST_RUNTIME_BINDING_H_
