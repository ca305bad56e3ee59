// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A report in the Static Analysis Results Interchange Format, SARIF 2.1.0, for forges and viewers
// that show findings beside the code.

#ifndef CUGUEST_AUDIT_COMMAND_REPORT_SARIF_H_
#define CUGUEST_AUDIT_COMMAND_REPORT_SARIF_H_

#include <string>

#include "audit/command/report.h"

namespace cuguest::audit {

// `version`: of cuguest-audit. Files below `root`, the absolute path of a folder, are relative to
// it, as forges expect of those of the repository.
[[nodiscard]] std::string ReportSarif(const Report& report, const std::string& version,
                                      const std::string& root);

// What stays of a finding from one run and build to the next: its kind, and the library and
// function of the culprit and of the victim, libraries without a version.
[[nodiscard]] std::string Fingerprint(const NamedFinding& named);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_REPORT_SARIF_H_
