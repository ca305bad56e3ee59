// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a report says, in words, which its forms for people lay out. Names are in it as they are:
// they may hold control characters.

#ifndef CUGUEST_AUDIT_COMMAND_REPORT_WORDS_H_
#define CUGUEST_AUDIT_COMMAND_REPORT_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "audit/command/report.h"

namespace cuguest::audit {

struct ReportLine {
  const char* label;  // "why:"; empty: how often, where and when
  std::string text;
};

struct FindingWords {
  std::string culprit;            // the function to repair
  std::vector<ReportLine> lines;  // in their order
  // Innermost first, up to the victim, or main(); `victim_chain` if the victim did not call.
  std::vector<std::string> chain;
  std::vector<std::string> victim_chain;
};

// Processes of which the same is true.
struct ProcessWords {
  std::string who;    // "app (4711) and 1 other process"
  std::string about;  // "events from cupti"
  std::vector<std::string> notes;
  bool is_whole = true;  // audited, with all of its events
};

// The first ones of `findings`, which are the report's, at most `limit`.
[[nodiscard]] std::vector<FindingWords> FindingsInWords(const Report& report,
                                                        const std::vector<NamedFinding>& findings,
                                                        std::size_t limit);

// As a finding names them: "context 7 (device 0, created by libmine.so in Create (mine.cc:3))".
[[nodiscard]] std::vector<std::string> ContextsInWords(const Report& report,
                                                       const std::vector<NamedContext>& contexts);

// "3 findings, 1 library".
[[nodiscard]] std::string SummaryInWords(const Report& report);

// "12.345 ms", or in seconds.
[[nodiscard]] std::string TimeInWords(std::uint64_t time_ns);

[[nodiscard]] std::vector<ProcessWords> ProcessesInWords(const Report& report);

// What suppressions and --object left out.
[[nodiscard]] std::vector<std::string> LeftOutInWords(const Report& report);

// What is said of the audit as a whole, after its processes: what is missing, notes, and unused
// suppressions.
[[nodiscard]] std::vector<std::string> NotesInWords(const Report& report);

// The function to repair.
[[nodiscard]] const Function& Headline(const NamedFinding& named);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_REPORT_WORDS_H_
