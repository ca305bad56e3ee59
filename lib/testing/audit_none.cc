// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the auditor is not built.

#include "cuguest/testing/audit.h"

#include "absl/status/status.h"

CUGUEST_BEGIN_NAMESPACE
namespace testing {

absl::StatusOr<std::vector<AuditFinding>> Audit(absl::FunctionRef<void()>) {
  return absl::UnimplementedError(
      "cuguest was built without the auditor: configure it with -Daudit=enabled, or as a "
      "subproject "
      "-Dcuguest:audit=enabled");
}

}  // namespace testing
CUGUEST_END_NAMESPACE
