// SPDX-License-Identifier: Apache-2.0
//
// CHECK for examples: an example states what it shows, and is wrong if it is not so.
// A claim that does not hold is printed with its file and line, the example goes on,
// and main() ends with ExitCode().

#ifndef CUGUEST_EXAMPLES_SUPPORT_CHECK_H_
#define CUGUEST_EXAMPLES_SUPPORT_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace support {

// Both return whether the claim holds. Threads: any.
bool Check(bool holds, const char* claim, const char* file, int line);
bool CheckOk(const absl::Status& status, const char* call, const char* file, int line);

// "check.h" of "examples/support/check.h".
const char* BaseName(const char* path);

// For cuguest::testing::UndisturbedScope: the host finds something it did not do.
void ReportDisturbance(const std::string& difference);

// How many claims were checked, and whether all of them hold (0) or not (1).
[[nodiscard]] int ChecksMade();
[[nodiscard]] int ExitCode();

}  // namespace support

#define CHECK(claim) ::support::Check((claim), #claim, __FILE__, __LINE__)
#define CHECK_OK(call) ::support::CheckOk((call), #call, __FILE__, __LINE__)

#endif  // CUGUEST_EXAMPLES_SUPPORT_CHECK_H_
