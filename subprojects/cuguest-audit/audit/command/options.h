// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of cuguest-audit.

#ifndef CUGUEST_AUDIT_COMMAND_OPTIONS_H_
#define CUGUEST_AUDIT_COMMAND_OPTIONS_H_

#include <string>
#include <vector>

namespace cuguest::audit {

extern const char kUsage[];

struct Options {
  bool help = false;
  int error_exitcode = 0;  // 0: the program's exit status, whatever was found
  std::vector<std::string> suppressions;
  bool gen_suppressions = false;
  std::vector<std::string> objects;  // patterns; empty: every finding is reported
  bool paths = false;
  bool leaks = false;
  std::vector<std::string> forbidden;  // "init", "context", "context:N", "api:PATTERN"
  std::string json;
  std::string trace;
  std::string log;
  std::string replay;
  std::string source;  // empty: the first that can be had
  bool follow_fork = true;
  std::string output;        // empty: standard error
  char** program = nullptr;  // with its arguments, as for execvp; null with --replay and --help
};

// Reads the words after the command's name; options take their value as --name=value or as the next
// word. Returns "", or what is wrong.
std::string ParseOptions(char** words, Options* options);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_OPTIONS_H_
