// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Findings while the program runs, a line each, for --live.
//
// Note [What is told at once]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A finding may go away as long as its victim has not returned: a library with an enter and a leave
// function takes its change back. So one is told that was there the last time, too. What the
// program does after that may still take it back; the report has the last word. Names of functions
// are not looked up, which takes too long, so suppressions do not apply.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_LIVE_FINDINGS_H_
#define CUGUEST_AUDIT_COMMAND_LIVE_FINDINGS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "audit/command/session.h"

namespace cuguest::audit {

// As the report, of which it leaves out the same.
class LiveFindings {
 public:
  static constexpr std::size_t kLines = 10;  // at one time; of more their number is told

  // Patterns of --object.
  explicit LiveFindings(std::vector<std::string> objects) : objects_(std::move(objects)) {}

  // Lines for what is new, each of another kind, place or victim; to be called now and then.
  std::string Look(const std::map<std::uint32_t, Session::AuditedProcess>& processes);

 private:
  // Told of a process.
  struct Looked {
    std::uint64_t events = 0;
    std::set<std::string> waiting;  // that were there, and are not told
  };

  const std::vector<std::string> objects_;
  std::map<std::uint32_t, Looked> looked_;
  std::set<std::string> told_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_LIVE_FINDINGS_H_
