// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/options.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace cuguest::audit {

const char kUsage[] =
    R"(usage: cuguest-audit [OPTION...] -- PROGRAM [ARGUMENT...]
       cuguest-audit [OPTION...] --replay=LOG

Runs PROGRAM unchanged and reports, when it has ended, which library disturbed the CUDA contexts of
which other one: the function that did it, what it left behind, how often, and where it happened first.

  --error-exitcode=N     exit with N, 1 to 255, if there is a finding, or a process that uses
                         CUDA could not be audited
  --suppressions=FILE    findings that are not to be reported; may be given more than once
  --gen-suppressions     print a suppression for each finding
  --object=PATTERN       only findings whose culprit or victim is an object of this name or path, in
                         which * is any text; may be given more than once
  --leaks=yes            also report what is never released or destroyed; no is the default
  --forbid=WHAT          report who is the first to do this, which the program is to do without: init,
                         context, context:N of device N, api:PATTERN of calls; may be given more than once
  --paths                name libraries by their full paths
  --json=FILE            the report as JSON
  --trace=FILE           a trace for https://ui.perfetto.dev: the context stack of each thread
  --log=FILE             the events, for --replay
  --replay=LOG           report on a log, instead of running a program
  --source=SOURCE        where events come from: cupti, sanitizer or cudasim; otherwise the first that can be had
  --follow-fork          also audit the program's children (default)
  --no-follow-fork       only the program itself
  --output=FILE          write the report there, not to standard error
  --help                 print this

The exit status is the program's, or 128 and the number of the signal that terminated it; 125 if an
option is wrong or a file cannot be opened, 126 if the program cannot be run, 127 if it is not found.
)";

namespace {

struct Option {
  const char* name;
  bool has_value;
};

constexpr Option kOptions[] = {
    {"--error-exitcode", true},
    {"--suppressions", true},
    {"--gen-suppressions", false},
    {"--object", true},
    {"--leaks", true},
    {"--forbid", true},
    {"--paths", false},
    {"--json", true},
    {"--trace", true},
    {"--log", true},
    {"--replay", true},
    {"--source", true},
    {"--follow-fork", false},
    {"--no-follow-fork", false},
    {"--output", true},
    {"--help", false},
};

constexpr const char* kSources[] = {"cupti", "sanitizer", "cudasim"};

std::string SetExitCode(const std::string& text, Options* options) {
  const bool is_number = !text.empty() && text.size() <= 3 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  const int code = is_number ? std::stoi(text) : 0;
  if (code < 1 || code > 255) return "--error-exitcode=" + text + ": a number from 1 to 255";
  options->error_exitcode = code;
  return "";
}

std::string SetSource(const std::string& text, Options* options) {
  const bool is_known = std::any_of(std::begin(kSources), std::end(kSources),
                                    [&](const char* source) { return text == source; });
  if (!is_known) return "--source=" + text + ": cupti, sanitizer or cudasim";
  options->source = text;
  return "";
}

std::string SetLeaks(const std::string& text, Options* options) {
  if (text != "yes" && text != "no") return "--leaks=" + text + ": yes or no";
  options->leaks = text == "yes";
  return "";
}

std::string AddForbidden(const std::string& text, Options* options) {
  const bool is_device = text.rfind("context:", 0) == 0 && text.size() > 8 &&
                         text.find_first_not_of("0123456789", 8) == std::string::npos;
  const bool is_call =
      text.rfind("api:", 0) == 0 && text.size() > 4 && text.find(',') == std::string::npos;
  if (text != "init" && text != "context" && !is_device && !is_call) {
    return "--forbid=" + text + ": init, context, context:N or api:PATTERN";
  }
  options->forbidden.push_back(text);
  return "";
}

std::string Set(const std::string& name, const std::string& value, Options* options) {
  if (name == "--error-exitcode") return SetExitCode(value, options);
  if (name == "--source") return SetSource(value, options);
  if (name == "--leaks") return SetLeaks(value, options);
  if (name == "--forbid") return AddForbidden(value, options);
  if (name == "--help") options->help = true;
  if (name == "--gen-suppressions") options->gen_suppressions = true;
  if (name == "--follow-fork") options->follow_fork = true;
  if (name == "--no-follow-fork") options->follow_fork = false;
  if (name == "--suppressions") options->suppressions.push_back(value);
  if (name == "--object") options->objects.push_back(value);
  if (name == "--paths") options->paths = true;
  if (name == "--json") options->json = value;
  if (name == "--trace") options->trace = value;
  if (name == "--log") options->log = value;
  if (name == "--replay") options->replay = value;
  if (name == "--output") options->output = value;
  return "";
}

// Reads the option at *word, and moves *word to its last word.
std::string ParseOption(char*** word, Options* options) {
  const std::string text = **word;
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const auto* option = std::find_if(std::begin(kOptions), std::end(kOptions),
                                    [&](const Option& one) { return name == one.name; });
  if (option == std::end(kOptions)) {
    return (text.rfind('-', 0) == 0 ? "there is no option " : "-- is missing before ") + name;
  }
  if (!option->has_value) {
    return equals == std::string::npos ? Set(name, "", options) : name + " takes no value";
  }
  std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  const char* next = (*word)[1];
  if (equals == std::string::npos && next != nullptr && std::strcmp(next, "--") != 0) {
    value = next;
    ++*word;
  }
  return value.empty() ? name + " needs a value" : Set(name, value, options);
}

}  // namespace

std::string ParseOptions(char** words, Options* options) {
  char** word = words;
  for (; *word != nullptr && std::strcmp(*word, "--") != 0; ++word) {
    std::string error = ParseOption(&word, options);
    if (!error.empty()) return error;
  }
  if (options->help) return "";
  const bool has_program = *word != nullptr && word[1] != nullptr;
  if (!options->replay.empty()) {
    return has_program ? "--replay runs no program, which is after --" : "";
  }
  if (!has_program) return "there is no program after --";
  options->program = word + 1;
  return "";
}

}  // namespace cuguest::audit
