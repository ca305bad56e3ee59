// SPDX-License-Identifier: Apache-2.0
//
// How statuses name memory.

#ifndef CUGUEST_LIB_MEMORY_MEMORY_TEXT_H_
#define CUGUEST_LIB_MEMORY_MEMORY_TEXT_H_

#include <cuda.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

inline std::string PointerText(CUdeviceptr pointer) {
  return absl::StrCat("0x", absl::Hex(pointer));
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MEMORY_MEMORY_TEXT_H_
