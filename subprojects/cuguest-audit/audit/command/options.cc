// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/options.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <utility>

namespace cuguest::audit {

const char kUsage[] =
    R"(usage: cuguest-audit [OPTION...] -- PROGRAM [ARGUMENT...]
       cuguest-audit [OPTION...] --replay=LOG
Runs PROGRAM unchanged and reports, when it has ended, which library disturbed
the CUDA contexts of which other one. docs/audit.md in the sources has more.

What is found:
  --object=PATTERN      only what has its culprit or victim in such an object
  --suppressions=FILE   leave out known findings
  --leaks=yes           also what is never given back
  --noise               also calls that failed in libraries
  --forbid=WHAT         who first does WHAT: init, context[:DEVICE], api:PATTERN
  --no-follow-fork      only the program itself, not the processes it starts
  --source=SOURCE       cupti, sanitizer or cudasim; else the first there is
  --buffer=MIB          how far a process may be ahead: 1, 2 (default), 4, 8...
How it is reported:
  --output=FILE         write the report there, not to standard error
  --html=FILE           a page for a browser, with a picture of the stacks
  --json=FILE           JSON, for scripts
  --sarif=FILE          SARIF 2.1.0, for forges and editors
  --trace=FILE          a trace for https://ui.perfetto.dev
  --log=FILE            the events, from which --replay=LOG makes a report
  --live                print findings while the program runs, too
  --color=WHEN          auto (default), always or never
  --paths               name libraries by their full paths
  --gen-suppressions    print a suppression for each finding
  -q, --quiet           no report if there is nothing to report
  -v, --verbose         whole call chains, and the events of each process
When the audit fails:
  --error-exitcode=N    exit with N if there is a finding, or the audit is
                        incomplete; --accept-incomplete: for findings only
  -h, --help, --version

In the name of a FILE that is written %p is the process id of cuguest-audit, %h
the host, %% a percent sign. Defaults: .cuguest-audit, CUGUEST_AUDIT_OPTIONS.
The exit status is the program's, or 128 and its signal; 125: a wrong option,
or a file cannot be opened; 126: PROGRAM cannot be run; 127: it is not found.
)";

namespace {

namespace fs = std::filesystem;

struct Option {
  const char* name;
  bool has_value;
};

constexpr Option kOptions[] = {
    {"--error-exitcode", true},  // a line for each, also for clang-format
    {"--accept-incomplete", false},
    {"--suppressions", true},
    {"--gen-suppressions", false},
    {"--object", true},
    {"--paths", false},
    {"--leaks", true},
    {"--noise", false},
    {"--forbid", true},
    {"--live", false},
    {"--color", true},
    {"--html", true},
    {"--json", true},
    {"--sarif", true},
    {"--trace", true},
    {"--log", true},
    {"--replay", true},
    {"--output", true},
    {"--source", true},
    {"--buffer", true},
    {"--quiet", false},
    {"--follow-fork", false},
    {"--no-follow-fork", false},
    {"--verbose", false},
    {"--help", false},
    {"--version", false},
};

constexpr std::pair<const char*, const char*> kShort[] = {
    {"-q", "--quiet"}, {"-v", "--verbose"}, {"-h", "--help"}};

constexpr int kLargestBuffer = 1024;  // MiB

constexpr const char* kSources[] = {"cupti", "sanitizer", "cudasim"};

// 0 if it is none, or has more than four digits.
int Number(const std::string& text) {
  const bool is_number = !text.empty() && text.size() <= 4 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::stoi(text) : 0;
}

std::string SetExitCode(const std::string& text, Options* options) {
  const int code = Number(text);
  if (code < 1 || code > 255) return "--error-exitcode=" + text + ": a number from 1 to 255";
  options->error_exitcode = code;
  return "";
}

std::string SetBuffer(const std::string& text, Options* options) {
  const int size = Number(text);
  if (size < 1 || size > kLargestBuffer || (size & (size - 1)) != 0) {
    return "--buffer=" + text + ": 1, 2, 4, 8 and so on to " + std::to_string(kLargestBuffer) +
           " MiB";
  }
  options->buffer = size;
  return "";
}

std::string SetSource(const std::string& text, Options* options) {
  const bool is_known = std::any_of(std::begin(kSources), std::end(kSources),
                                    [&](const char* source) { return text == source; });
  if (!is_known) return "--source=" + text + ": cupti, sanitizer or cudasim";
  options->source = text;
  return "";
}

std::string SetColor(const std::string& text, Options* options) {
  if (text != "auto" && text != "always" && text != "never") {
    return "--color=" + text + ": auto, always or never";
  }
  options->color = text;
  return "";
}

std::string SetLeaks(const std::string& text, Options* options) {
  if (text != "yes" && text != "no") return "--leaks=" + text + ": yes or no";
  options->leaks = text == "yes";
  return "";
}

std::string AddForbidden(const std::string& text, Options* options) {
  // As a finding's device is written: another text would forbid nothing.
  const std::string number = text.size() > 8 ? text.substr(8) : "";
  const bool is_device = text == "context:" + std::to_string(Number(number));
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
  if (name == "--color") return SetColor(value, options);
  if (name == "--forbid") return AddForbidden(value, options);
  if (name == "--buffer") return SetBuffer(value, options);
  if (name == "--help") options->help = true;
  if (name == "--version") options->version = true;
  if (name == "--quiet") options->verbosity = -1;
  if (name == "--verbose") options->verbosity = 1;
  if (name == "--accept-incomplete") options->accept_incomplete = true;
  if (name == "--gen-suppressions") options->gen_suppressions = true;
  if (name == "--follow-fork") options->follow_fork = true;
  if (name == "--no-follow-fork") options->follow_fork = false;
  if (name == "--suppressions") options->suppressions.push_back(value);
  if (name == "--object") options->objects.push_back(value);
  if (name == "--noise") options->noise = true;
  if (name == "--paths") options->paths = true;
  if (name == "--live") options->live = true;
  if (name == "--html") options->html = value;
  if (name == "--json") options->json = value;
  if (name == "--sarif") options->sarif = value;
  if (name == "--trace") options->trace = value;
  if (name == "--log") options->log = value;
  if (name == "--replay") options->replay = value;
  if (name == "--output") options->output = value;
  return "";
}

using Words = std::vector<std::string>;

// Reads the option at `*at`, and moves it to the last word of that.
std::string ParseOption(const Words& words, size_t* at, Options* options) {
  const std::string& text = words[*at];
  const size_t equals = text.find('=');
  std::string name = text.substr(0, equals);
  for (const auto& [letter, whole] : kShort) {
    if (name == letter) name = whole;
  }
  const auto* option = std::find_if(std::begin(kOptions), std::end(kOptions),
                                    [&](const Option& one) { return name == one.name; });
  if (option == std::end(kOptions)) {
    return (text.rfind('-', 0) == 0 ? "there is no option " : "-- is missing before ") + name;
  }
  if (!option->has_value) {
    return equals == std::string::npos ? Set(name, "", options) : name + " takes no value";
  }
  std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (equals == std::string::npos && *at + 1 < words.size()) value = words[++*at];
  return value.empty() ? name + " needs a value" : Set(name, value, options);
}

std::string ParseWords(const Words& words, Options* options) {
  for (size_t i = 0; i < words.size(); ++i) {
    std::string error = ParseOption(words, &i, options);
    if (!error.empty()) return error;
  }
  return "";
}

// "--name=value" or "--name value", in which the value may have blanks.
Words WordsOf(const std::string& line) {
  constexpr char kBlanks[] = " \t\r";
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string::npos || line[begin] == '#') return {};
  const size_t end = line.find_last_not_of(kBlanks) + 1;
  const size_t name_end = std::min(line.find_first_of(" \t\r=", begin), end);
  if (name_end == end || line[name_end] == '=') return {line.substr(begin, end - begin)};
  const size_t value = line.find_first_not_of(kBlanks, name_end);
  return {line.substr(begin, name_end - begin), line.substr(value, end - value)};
}

// Not of a terminal or /dev/null, which any number of options may name.
bool IsOneFile(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (fs::is_character_file(a, ignored)) return false;
  return fs::equivalent(a, b, ignored) ||
         fs::weakly_canonical(fs::absolute(a, ignored), ignored) ==
             fs::weakly_canonical(fs::absolute(b, ignored), ignored);
}

std::string Expand(const std::string& option, int pid, const std::string& host, std::string* name) {
  std::string expanded;
  for (size_t i = 0; i < name->size(); ++i) {
    if ((*name)[i] != '%') {
      expanded += (*name)[i];
      continue;
    }
    switch (++i < name->size() ? (*name)[i] : '\0') {
      case 'p':
        expanded += std::to_string(pid);
        break;
      case 'h':
        expanded += host;
        break;
      case '%':
        expanded += '%';
        break;
      default:
        return option + "=" + *name + ": after a % there is p, h or another %";
    }
  }
  *name = expanded;
  return "";
}

}  // namespace

std::string ParseOptions(char** words, Options* options) {
  char** end = words;
  while (*end != nullptr && std::strcmp(*end, "--") != 0) ++end;
  std::string error = ParseWords(Words(words, end), options);
  if (!error.empty() || options->help || options->version) return error;
  const bool has_program = *end != nullptr && end[1] != nullptr;
  if (!options->replay.empty()) {
    return has_program ? "--replay runs no program, which is after --" : "";
  }
  if (!has_program) return "there is no program after --";
  options->program = end + 1;
  return "";
}

std::string ParseOptionsFile(const std::string& file, const std::string& text, Options* options) {
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::string error = ParseWords(WordsOf(line), options);
    if (!error.empty()) return error.insert(0, file + ":" + std::to_string(number) + ": ");
  }
  return "";
}

std::string ParseOptionsVariable(const std::string& text, Options* options) {
  std::istringstream words(text);
  const std::string error = ParseWords(
      Words(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()),
      options);
  return error.empty() ? "" : std::string(kOptionsVariable) + ": " + error;
}

std::string LargerBuffer(int mib) {
  const int larger = std::min(4 * mib, kLargestBuffer);
  return larger > mib ? "--buffer=" + std::to_string(larger) : "";
}

std::string ResolveFiles(int pid, const std::string& host, Options* options) {
  const std::pair<const char*, std::string*> files[] = {
      {"--output", &options->output}, {"--html", &options->html},   {"--json", &options->json},
      {"--sarif", &options->sarif},   {"--trace", &options->trace}, {"--log", &options->log},
      {"--replay", &options->replay}};
  for (const auto& [option, name] : files) {
    if (name == &options->replay) continue;  // is read
    std::string error = Expand(option, pid, host, name);
    if (!error.empty()) return error;
  }
  for (const auto* a = std::begin(files); a != std::end(files); ++a) {
    for (const auto* b = a + 1; b != std::end(files); ++b) {
      if (a->second->empty() || b->second->empty() || !IsOneFile(*a->second, *b->second)) continue;
      return std::string(a->first) + " and " + b->first + " name one file, " + *a->second;
    }
  }
  return "";
}

}  // namespace cuguest::audit
