// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cuguest-audit reports, with names for all code, and as text and JSON.
//
// Thread-safe: no; these are values.

#ifndef CUGUEST_AUDIT_COMMAND_REPORT_H_
#define CUGUEST_AUDIT_COMMAND_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "audit/command/suppressions.h"
#include "audit/command/symbols.h"
#include "audit/finding.h"
#include "audit/log.h"

namespace cuguest::audit {

// A context and what called the function that created it.
struct NamedContext {
  ContextNote note;
  Function creator;  // without an object if it is not known
};

// A finding of one process, or the same one of several.
struct NamedFinding {
  Finding finding;                 // of the first process; its count is that of all
  std::uint32_t process = 0;       // the first one's number
  std::uint32_t processes = 1;     // that it was found in
  std::uint32_t last_process = 0;  // of them
  Function culprit;
  Function returned;  // the culprit's function that another library had called
  Function victim;    // without an object if there is no one in particular
  NamedContext before;
  NamedContext after;
  Function maker;  // of Finding::object, and who ended its context; without an object if not known
  Function ender;
  // Of the call, innermost first, with inlined functions; `culprit_function` and `victim_function`
  // are indices in it, the latter its size if the victim is not among the callers.
  std::vector<Function> chain;
  std::size_t culprit_function = 0;
  std::size_t victim_function = 0;
  std::vector<Function> victim_chain;
  std::size_t consequence_of = 0;  // number of the finding without which this might not be; 0: none
  std::string suppression;         // for --gen-suppressions; empty without
  std::string suppressed_by;       // the suppression's name; empty: by none
};

struct ReportedProcess {
  Process process;
  std::string source;              // empty: none could be had
  std::vector<std::string> notes;  // what the source does not see, and why others were not taken
  std::uint64_t events = 0;
  std::uint64_t lost = 0;           // events
  std::uint64_t broken = 0;         // records
  std::uint64_t dropped = 0;        // findings beyond kLedgerLimit
  std::vector<std::string> limits;  // others that were reached, and what is missing
  std::string unaudited;            // why, if it is known; see WhyUnaudited()
};

struct Report {
  std::string subject;  // the program and its arguments, or the log
  bool is_replay = false;
  bool paths = false;   // objects are named by their paths, for a person too
  int exit_status = 0;  // of the program
  int signal = 0;       // that terminated it; 0: none
  std::vector<ReportedProcess> processes;
  std::vector<NamedFinding> findings;
  std::vector<Suppressions::Used> suppressed;
  std::vector<NamedFinding> suppressed_findings;
  std::uint64_t other_objects = 0;  // findings that --object left out
  std::vector<std::string> notes;   // of the audit as a whole
  std::vector<std::string> gaps;    // of it, too: what is missing in it
  std::vector<std::string> unused_suppressions;
  bool is_verbose = false;
};

// Why there are no events of a process that uses CUDA; empty if there are.
[[nodiscard]] std::string WhyUnaudited(const ReportedProcess& process);

// Processes that no source gave events of.
[[nodiscard]] std::size_t CountUnaudited(const Report& report);

// Whether all that happened in processes that use CUDA was seen, and all that was found is in the
// report: no event was lost, no finding dropped, no limit reached, no process left unaudited,
// unless the user left it out and there is another one.
[[nodiscard]] bool IsComplete(const Report& report);

// For a person; ends with a newline. `has_colors`: with the escapes of a terminal.
[[nodiscard]] std::string ReportText(const Report& report, bool has_colors = false);

// One of the report's findings, as that text has it after its number. `report` has the processes.
[[nodiscard]] std::string FindingText(const Report& report, const NamedFinding& named);

// By the schema audit/command/report.schema.json.
[[nodiscard]] std::string ReportJson(const Report& report);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_REPORT_H_
