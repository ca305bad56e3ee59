// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What texture and surface objects are made of.                                        tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_RESOURCE_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_RESOURCE_H_

#include <cuda.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "lib/status/object_text.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

inline CUDA_RESOURCE_DESC ResourceOf(CUarray array) noexcept {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

// Why the driver refused one in `context`.
inline std::string ResourceReason(CUresult code, const ContextRef& context) {
  return absl::StrCat(ContextText(context.get()), code == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
                                                      ? ", which the array is not of"
                                                      : "");
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_RESOURCE_H_
