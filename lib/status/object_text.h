// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How statuses name objects.                                                           tier: 2

#ifndef CUGUEST_LIB_STATUS_OBJECT_TEXT_H_
#define CUGUEST_LIB_STATUS_OBJECT_TEXT_H_

#include <cuda.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/export.h"
#include "cuguest/internal/stream_kind.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

inline std::string ContextText(CUcontext context) {
  return absl::StrCat("context 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(context)));
}

inline std::string StreamText(CUstream stream) {
  if (stream == nullptr) return "stream 0";
  if (stream == CU_STREAM_LEGACY) return "stream CU_STREAM_LEGACY";
  if (stream == CU_STREAM_PER_THREAD) return "stream CU_STREAM_PER_THREAD";
  return absl::StrCat("stream 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(stream)));
}

inline std::string PointerText(CUdeviceptr pointer) {
  return absl::StrCat("0x", absl::Hex(pointer));
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_STATUS_OBJECT_TEXT_H_
