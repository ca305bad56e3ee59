// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the reader of device images, which is compiled into this library, has its names: in the
// namespace of the release.                                                            tier: 0

// Include it before a header of cudaimage; its own sources are compiled with
// CUDAIMAGE_NAMESPACE_HEADER naming it.

#ifndef CUGUEST_LIB_CORE_IMAGE_NAMESPACE_H_
#define CUGUEST_LIB_CORE_IMAGE_NAMESPACE_H_

#include "cuguest/export.h"

#define CUDAIMAGE_BEGIN_NAMESPACE \
  CUGUEST_BEGIN_NAMESPACE         \
  namespace internal {            \
  namespace cudaimage {
#define CUDAIMAGE_END_NAMESPACE \
  } /* namespace cudaimage */   \
  } /* namespace internal */    \
  CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CORE_IMAGE_NAMESPACE_H_
