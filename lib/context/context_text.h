// SPDX-License-Identifier: Apache-2.0
//
// How statuses name a context.

#ifndef CUGUEST_LIB_CONTEXT_CONTEXT_TEXT_H_
#define CUGUEST_LIB_CONTEXT_CONTEXT_TEXT_H_

#include <cuda.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

inline std::string ContextText(CUcontext context) {
  return absl::StrCat("context 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(context)));
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_CONTEXT_TEXT_H_
