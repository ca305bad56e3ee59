// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/suppressions.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "audit/command/printable.h"
#include "audit/command/text_file.h"
#include "audit/finding.h"

namespace cuguest::audit {

namespace {

constexpr char kTool[] = "cuguest-audit";
constexpr size_t kMaxGeneratedFrames = 24;

using Line = Suppression::Line;
using Place = Suppression::Place;

std::string Trimmed(const std::string& text) {
  constexpr char kBlanks[] = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool MatchesFunction(const std::string& pattern, const Function& function) {
  return !function.name.empty() &&
         (MatchesWildcards(pattern, function.name) || MatchesWildcards(pattern, function.symbol));
}

bool MatchesObject(const std::string& pattern, const Function& function) {
  return MatchesWildcards(pattern, function.object) ||
         MatchesWildcards(pattern, BaseName(function.object));
}

bool MatchesSource(const std::string& pattern, const Function& function) {
  if (function.file.empty()) return false;
  const std::string line = ":" + std::to_string(function.line);
  for (const std::string& file : {function.file, BaseName(function.file)}) {
    if (MatchesWildcards(pattern, file) || MatchesWildcards(pattern, file + line)) return true;
  }
  return false;
}

bool MatchesLine(const Line& line, const Function& function) {
  switch (line.place) {
    case Place::kFunction:
      return MatchesFunction(line.pattern, function);
    case Place::kObject:
      return MatchesObject(line.pattern, function);
    case Place::kSource:
      return MatchesSource(line.pattern, function);
    case Place::kAnyFrames:
      break;
  }
  return false;
}

// Greedy from the inside, as for wildcards: a "..." that matched too few frames is tried with one
// more.
bool MatchesChain(const std::vector<Line>& lines, const std::vector<Function>& chain) {
  size_t line = 0;
  size_t frame = 0;
  size_t retry_line = lines.size();
  size_t retry_frame = 0;
  while (line < lines.size()) {
    if (lines[line].place == Place::kAnyFrames) {
      retry_line = ++line;
      retry_frame = frame;
    } else if (frame < chain.size() && MatchesLine(lines[line], chain[frame])) {
      ++line;
      ++frame;
    } else if (retry_line < lines.size() && retry_frame < chain.size()) {
      line = retry_line;
      frame = ++retry_frame;
    } else {
      return false;
    }
  }
  return true;
}

bool IsKind(const std::string& text) {
  for (size_t i = 0; i < kFindingKinds; ++i) {
    if (text == Identifier(static_cast<FindingKind>(i))) return true;
  }
  return false;
}

// Reads a file line by line, and makes its errors.
class Reader {
 public:
  Reader(const std::string& file, const std::string& text) : file_(file), text_(text) {}

  // "", or what is wrong.
  std::string Read(std::vector<Suppression>* suppressions);

 private:
  // The next line that is neither empty nor a comment; false at the end.
  bool Next(std::string* line);
  std::string Error(const std::string& what) const {
    return file_ + ":" + std::to_string(number_) + ": " + what;
  }
  std::string ReadOne(std::vector<Suppression>* suppressions);
  std::string ReadKind(const std::string& line, bool* is_ours, Suppression* suppression) const;
  std::string ReadFrame(const std::string& line, Suppression* suppression) const;

  const std::string& file_;
  std::istringstream text_;
  int number_ = 0;
};

bool Reader::Next(std::string* line) {
  while (std::getline(text_, *line)) {
    ++number_;
    *line = Trimmed(*line);
    if (!line->empty() && (*line)[0] != '#') return true;
  }
  return false;
}

std::string Reader::Read(std::vector<Suppression>* suppressions) {
  std::string line;
  while (Next(&line)) {
    if (line != "{") return Error("expected {, found \"" + line + "\"");
    std::string error = ReadOne(suppressions);
    if (!error.empty()) return error;
  }
  return "";
}

// What follows the opening brace.
std::string Reader::ReadOne(std::vector<Suppression>* suppressions) {
  const std::string unfinished =
      "the suppression that begins in line " + std::to_string(number_) + " has no }";
  Suppression one;
  one.place = file_ + ":" + std::to_string(number_);
  if (!Next(&one.name)) return Error(unfinished);
  if (one.name == "}") return Error("a suppression has a name, a kind, and frames");
  std::string line;
  bool is_ours = false;
  if (!Next(&line)) return Error(unfinished);
  std::string error = ReadKind(line, &is_ours, &one);
  if (!error.empty()) return error;
  while (true) {
    if (!Next(&line)) return Error(unfinished);
    if (line == "}") break;
    error = is_ours ? ReadFrame(line, &one) : "";
    if (!error.empty()) return error;
  }
  if (!is_ours) return "";
  if (one.lines.empty()) return Error("a suppression needs a frame: fun:, obj:, src: or ...");
  suppressions->push_back(std::move(one));
  return "";
}

// "tool,tool:kind".
std::string Reader::ReadKind(const std::string& line, bool* is_ours,
                             Suppression* suppression) const {
  const size_t colon = line.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == line.size()) {
    return Error("expected " + std::string(kTool) + ":KIND, found \"" + line + "\"");
  }
  std::istringstream tools(line.substr(0, colon));
  for (std::string tool; std::getline(tools, tool, ',');) {
    *is_ours = *is_ours || Trimmed(tool) == kTool;
  }
  suppression->kind = Trimmed(line.substr(colon + 1));
  if (*is_ours && suppression->kind.find_first_of("*?") == std::string::npos &&
      !IsKind(suppression->kind)) {
    return Error("there is no kind of finding \"" + suppression->kind + "\"");
  }
  return "";
}

std::string Reader::ReadFrame(const std::string& line, Suppression* suppression) const {
  if (line == "...") {
    suppression->lines.push_back({Place::kAnyFrames, ""});
    return "";
  }
  constexpr std::pair<const char*, Place> kPlaces[] = {
      {"fun:", Place::kFunction}, {"obj:", Place::kObject}, {"src:", Place::kSource}};
  for (const auto& [prefix, place] : kPlaces) {
    if (line.rfind(prefix, 0) != 0) continue;
    const std::string pattern = Trimmed(line.substr(4));
    if (pattern.empty()) return Error(std::string(prefix) + " needs a pattern");
    suppression->lines.push_back({place, pattern});
    return "";
  }
  return Error("expected fun:, obj:, src:, ... or }, found \"" + line + "\"");
}

}  // namespace

bool MatchesWildcards(const std::string& pattern, const std::string& text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string::npos;
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

bool Suppression::Matches(const std::string& finding_kind,
                          const std::vector<Function>& chain) const {
  return MatchesWildcards(kind, finding_kind) && MatchesChain(lines, chain);
}

std::string Suppressions::Add(const std::string& file, const std::string& text) {
  std::vector<Suppression> read;
  std::string error = Reader(file, text).Read(&read);
  if (!error.empty()) return error;
  for (Suppression& one : read) {
    const std::string name = one.name;
    entries_.push_back({std::move(one), {name}});
  }
  return "";
}

std::string Suppressions::AddFile(const std::string& file) {
  std::string text;
  const std::string error = ReadTextFile(file, &text);
  return error.empty() ? Add(file, text) : error;
}

const std::string* Suppressions::Find(const std::string& kind, const std::vector<Function>& chain,
                                      std::uint64_t times) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.suppression.Matches(kind, chain);
  });
  if (found == entries_.end()) return nullptr;
  ++found->used.findings;
  found->used.times += times;
  return &found->used.name;
}

std::vector<Suppressions::Used> Suppressions::used() const {
  std::vector<Used> all;
  for (const Entry& entry : entries_) {
    if (entry.used.findings != 0) all.push_back(entry.used);
  }
  return all;
}

std::vector<std::string> Suppressions::unused() const {
  std::vector<std::string> all;
  for (const Entry& entry : entries_) {
    if (entry.used.findings != 0) continue;
    all.push_back(entry.suppression.name + " (" + entry.suppression.place + ")");
  }
  return all;
}

std::string GenerateSuppression(const std::string& kind, const std::vector<Function>& chain) {
  std::string text =
      "{\n   <a name of this suppression>\n   " + std::string(kTool) + ":" + kind + "\n";
  const size_t frames = std::min(chain.size(), kMaxGeneratedFrames);
  for (size_t i = 0; i < frames; ++i) {
    const Function& function = chain[i];
    if (!function.name.empty()) {
      text += "   fun:" + PrintablePattern(function.name) + "\n";
    } else {
      text +=
          "   obj:" + (function.object.empty() ? "*" : PrintablePattern(function.object)) + "\n";
    }
  }
  if (frames == 0) text += "   ...\n";
  return text + "}\n";
}

}  // namespace cuguest::audit
