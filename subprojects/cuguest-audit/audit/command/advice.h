// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a finding means to the victim, and what to do about it.
//
// Thread-safe: yes.

#ifndef CUGUEST_AUDIT_COMMAND_ADVICE_H_
#define CUGUEST_AUDIT_COMMAND_ADVICE_H_

#include <optional>
#include <string>
#include <vector>

#include "audit/call_rule.h"
#include "audit/command/report.h"
#include "audit/finding.h"

namespace cuguest::audit {

// In the culprit's code.
struct Advice {
  const char* plain;    // without cuguest
  const char* cuguest;  // with it; "": it has nothing for that
};

// Calls by what they begin with behind "cu" or "cuda", with "|" between beginnings, by what they
// returned, and by what they are for.
struct CallsMeant {
  const char* words = "";  // for people
  const char* calls = "";  // "": whatever
  int result = 0;          // 0: whatever
  std::optional<Purpose> purpose = {};

  [[nodiscard]] constexpr bool IsAnything() const {
    return *calls == '\0' && result == 0 && !purpose;
  }
};

// test/advice_table.py has a program for each that does what it says.
struct AdviceRow {
  FindingKind kind;
  CallsMeant of;
  Advice advice;
};
// In the order of the kinds. Of those of a kind that fit the first counts; the last fits always.
std::vector<AdviceRow> AdviceRows();
Advice AdviceOf(const Finding& finding);
// As a sentence without a period: "pop it; with cuguest: ContextGuard".
std::string InWords(const Advice& advice);

// What a finding of the kind is: sentences.
const char* MeaningOf(FindingKind kind);

// The heading of the kind's section in docs/audit.md: "Leaked push".
std::string SectionOf(FindingKind kind);

// What `victim` will see: "host's next launch runs on GPU 0, in context 2, ...". `victim`: its
// name, or "" if there is no one in particular.
std::string Consequence(const NamedFinding& named, const std::string& victim);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_ADVICE_H_
