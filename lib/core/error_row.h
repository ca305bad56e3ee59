// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of each CUresult.                                                      tier: 0

#ifndef CUGUEST_LIB_CORE_ERROR_ROW_H_
#define CUGUEST_LIB_CORE_ERROR_ROW_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Those of absl::StatusCode that are used, with its values: google.rpc.Code.
enum class Canonical : signed char {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

struct ErrorRow {
  int code;
  const char* name;
  Canonical canonical;
  const char* text;
};

// Of a code that is newer than cuguest, one that says so (in error.cc).
ErrorRow ErrorRowOf(CUresult code) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_ERROR_ROW_H_
