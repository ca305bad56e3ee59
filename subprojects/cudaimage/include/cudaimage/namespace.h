// SPDX-License-Identifier: Apache-2.0
//
// The namespace of everything here: `cudaimage`, unless the library that compiles these sources
// into itself names a header with CUDAIMAGE_NAMESPACE_HEADER that defines the two macros. So two
// libraries in one process that carry different releases share no symbol.

#ifndef CUDAIMAGE_NAMESPACE_H_
#define CUDAIMAGE_NAMESPACE_H_

#if defined(CUDAIMAGE_NAMESPACE_HEADER)
#include CUDAIMAGE_NAMESPACE_HEADER
#else
#define CUDAIMAGE_BEGIN_NAMESPACE namespace cudaimage {
#define CUDAIMAGE_END_NAMESPACE } /* namespace cudaimage */
#endif

#endif  // CUDAIMAGE_NAMESPACE_H_
