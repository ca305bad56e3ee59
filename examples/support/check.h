// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an example checks and prints. A check that fails is printed with its file and line, and the
// example goes on.

#ifndef CUGUEST_EXAMPLES_SUPPORT_CHECK_H_
#define CUGUEST_EXAMPLES_SUPPORT_CHECK_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Each is true if the check passed. Threads: any.
#define CHECK(claim) ::support::Check((claim), #claim, __FILE__, __LINE__)
#define CHECK_OK(call) ::support::CheckOk((call), #call, __FILE__, __LINE__)
// A call of the driver, the runtime, cuBLAS, cuFFT, NCCL or MPI: all return 0 for success.
#define SUCCEEDS(call) ::support::Check(static_cast<int>(call) == 0, #call, __FILE__, __LINE__)

namespace support {

bool Check(bool holds, const char* claim, const char* file, int line);
bool CheckOk(const absl::Status& status, const char* call, const char* file, int line);

// Whether `result` has this value. If it is an error, that is a failed check.
template <typename T>
[[nodiscard]] bool Has(const absl::StatusOr<T>& result, const T& value) {
  return CHECK_OK(result.status()) && *result == value;
}

// Prints that `what` was refused, the driver's error if `status` has one, and the message. Returns
// whether the status has `code`, and `words` in its message.
[[nodiscard]] bool IsRefused(const std::string& what, const absl::Status& status,
                             absl::StatusCode code, const std::string& words = "");

// Prints a numbered heading: the next scene of the example.
void PrintScene(const char* title);

// Prints "   when              [X] [A]<          remark".
void PrintRow(const std::string& when, const std::string& picture, const std::string& remark = "");

// Prints each line of `text`, indented under a row and broken between words at 80 columns.
void PrintText(std::string_view text);

// Prints how many checks there were, and returns main()'s exit code: 0 if all of them passed.
[[nodiscard]] int PrintVerdict();

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_CHECK_H_
