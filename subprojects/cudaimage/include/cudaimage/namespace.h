// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The namespace of everything here: `cudaimage`, unless the library that compiles these sources
// into itself defines the two macros before, or names a header with CUDAIMAGE_NAMESPACE_HEADER that
// does. So two libraries in one process that carry different releases share no symbol.

#ifndef CUDAIMAGE_NAMESPACE_H_
#define CUDAIMAGE_NAMESPACE_H_

#if defined(CUDAIMAGE_NAMESPACE_HEADER)
#include CUDAIMAGE_NAMESPACE_HEADER
#elif !defined(CUDAIMAGE_BEGIN_NAMESPACE)
#define CUDAIMAGE_BEGIN_NAMESPACE namespace cudaimage {
#define CUDAIMAGE_END_NAMESPACE } /* namespace cudaimage */
#endif

#endif  // CUDAIMAGE_NAMESPACE_H_
