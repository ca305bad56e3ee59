// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a status of this library is put together and read again.  tier: 0

#ifndef CUGUEST_LIB_STATUS_ERROR_STATUS_H_
#define CUGUEST_LIB_STATUS_ERROR_STATUS_H_

#include <cuda.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// "doing, object: said", without what is empty.
std::string StatusText(std::string_view doing, std::string_view object, std::string_view said);

// A status with the canonical code and the payload of `code`, and the StatusText().
absl::Status ErrorStatus(CUresult code, std::string_view doing, std::string_view object,
                         std::string_view said);

// What cuguest refuses itself with a code of the driver's, which was not asked: as ToStatus(),
// without what a DriverLog adds to that.
absl::Status RefusalStatus(CUresult code, std::string_view doing, std::string_view object);

// A status with the canonical code and the payload of `code`, of a text that is complete.
absl::Status TextStatus(CUresult code, std::string_view text);

// The same for a code of the runtime, as a plain number.
absl::Status RuntimeErrorStatus(int code, std::string_view doing, std::string_view object,
                                std::string_view said);

// `status` with another code and text, and its payloads.
absl::Status Reworded(const absl::Status& status, absl::StatusCode code, std::string_view text);

void SetNumber(const char* payload, int number, absl::Status* status);
// Nothing if `status` has no such payload, or one that is no number.
std::optional<int> NumberOf(const char* payload, const absl::Status& status);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_STATUS_ERROR_STATUS_H_
