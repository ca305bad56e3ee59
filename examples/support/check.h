// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CHECK for examples. A check that fails is printed with its file and line, the example goes on,
// and main() returns ExitCode().

#ifndef CUGUEST_EXAMPLES_SUPPORT_CHECK_H_
#define CUGUEST_EXAMPLES_SUPPORT_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace support {

// Both return whether the check passed. Threads: any.
bool Check(bool holds, const char* claim, const char* file, int line);
bool CheckOk(const absl::Status& status, const char* call, const char* file, int line);

// "check.h" of "examples/support/check.h".
const char* BaseName(const char* path);

// For cuguest::testing::UndisturbedScope: the library changed something of the host's.
void ReportDisturbance(const std::string& difference);

// The number of checks; 0 if all of them passed, else 1.
[[nodiscard]] int ChecksMade();
[[nodiscard]] int ExitCode();

}  // namespace support

#define CHECK(claim) ::support::Check((claim), #claim, __FILE__, __LINE__)
#define CHECK_OK(call) ::support::CheckOk((call), #call, __FILE__, __LINE__)

#endif  // CUGUEST_EXAMPLES_SUPPORT_CHECK_H_
