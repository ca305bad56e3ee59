// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of cuguest-audit.

#ifndef CUGUEST_AUDIT_COMMAND_OPTIONS_H_
#define CUGUEST_AUDIT_COMMAND_OPTIONS_H_

#include <string>
#include <vector>

namespace cuguest::audit {

extern const char kUsage[];

// Where defaults are: words in a variable, and a file in the current folder with an option in each
// line, in which empty lines and those that begin with # are skipped.
inline constexpr char kOptionsVariable[] = "CUGUEST_AUDIT_OPTIONS";
inline constexpr char kOptionsFile[] = ".cuguest-audit";

struct Options {
  bool help = false;
  bool version = false;
  int verbosity = 0;       // -1: no report if there is nothing to report; 1: more in the report
  int error_exitcode = 0;  // 0: the program's exit status, whatever was found
  bool accept_incomplete = false;
  std::vector<std::string> suppressions;
  bool gen_suppressions = false;
  std::vector<std::string> objects;  // patterns; empty: every finding is reported
  bool paths = false;
  bool leaks = false;
  bool noise = false;
  std::vector<std::string> forbidden;  // "init", "context", "context:N", "api:PATTERN"
  bool live = false;
  std::string color = "auto";  // or "always", "never"
  std::string html;
  std::string json;
  std::string sarif;
  std::string trace;
  std::string log;
  std::string replay;
  std::string source;  // empty: the first that can be had
  int buffer = 2;      // MiB of a channel
  bool follow_fork = true;
  std::string output;        // empty: standard error
  char** program = nullptr;  // with its arguments, as for execvp; null with --replay and --help
};

// Reads the words after the command's name; options take their value as --name=value or as the next
// word. Returns "", or what is wrong.
std::string ParseOptions(char** words, Options* options);

// Reads the content of a file of defaults. Returns "", or "FILE:LINE: what is wrong".
std::string ParseOptionsFile(const std::string& file, const std::string& text, Options* options);
// Reads the value of kOptionsVariable, words that blanks part.
std::string ParseOptionsVariable(const std::string& text, Options* options);

// The option with which a channel of `mib` is four times as large, or as large as there are; empty
// where it is that already.
std::string LargerBuffer(int mib);

// Replaces %p by `pid`, %h by `host` and %% by % in the names of files that are written. Returns
// "", or what is wrong: another letter, or that two options name one file.
std::string ResolveFiles(int pid, const std::string& host, Options* options);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_OPTIONS_H_
