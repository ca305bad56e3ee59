// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a finding means to the victim, and what to do about it.
//
// Thread-safe: yes.

#ifndef CUGUEST_AUDIT_COMMAND_ADVICE_H_
#define CUGUEST_AUDIT_COMMAND_ADVICE_H_

#include <string>

#include "audit/command/report.h"
#include "audit/finding.h"

namespace cuguest::audit {

// In the culprit's code.
struct Advice {
  const char* plain;    // without cuguest
  const char* cuguest;  // with it
};
Advice AdviceOf(FindingKind kind);

// The heading of the kind's section in docs/audit.md: "Leaked push".
std::string SectionOf(FindingKind kind);

// What `victim` will see: "host's next launch runs on GPU 0, in context 2, ...". `victim`: its
// name, or "" if there is no one in particular.
std::string Consequence(const NamedFinding& named, const std::string& victim);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_ADVICE_H_
