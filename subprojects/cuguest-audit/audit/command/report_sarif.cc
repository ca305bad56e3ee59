// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/report_sarif.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <utility>

#include "audit/command/advice.h"
#include "audit/command/json.h"
#include "audit/command/printable.h"
#include "audit/command/report_words.h"

namespace cuguest::audit {

namespace {

// An error breaks the victim; a warning costs memory, or is seen later.
const char* LevelOf(FindingKind kind) {
  switch (kind) {
    case FindingKind::kCreatedPrimary:
    case FindingKind::kQueryCreatedPrimary:
    case FindingKind::kTouchedDeviceZero:
    case FindingKind::kChangedSetting:
    case FindingKind::kLeftError:
    case FindingKind::kAfterShutdown:
    case FindingKind::kLeakedReference:
    case FindingKind::kLeakedContext:
      return "warning";
    case FindingKind::kNoisy:
      return "note";
    default:
      return "error";
  }
}

constexpr char kRoot[] = "SRCROOT";

// A line of a message, in which a single brace is a placeholder's and "](" a link's.
std::string MessageText(const std::string& unprintable) {
  std::string text;
  for (const char c : Printable(unprintable)) {
    if (c == '{' || c == '}') text += c;
    if (c == '(' && !text.empty() && text.back() == ']') text += ' ';
    text += c;
  }
  return text;
}

// The characters that a path of a URI may have stay; the rest is bytes.
std::string UriPath(const std::string& path) {
  std::string uri;
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
        std::string("/-._~!$&'()*+,;=@").find(c) != std::string::npos) {
      uri += c;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "%%%02X",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      uri += escaped;
    }
  }
  return uri;
}

// "libmine.so" of "/usr/lib/libmine-1.2.so.3.4".
std::string WithoutVersion(const std::string& path) {
  std::string name = BaseName(path);
  const size_t end = name.find(".so.");
  if (end != std::string::npos) name.resize(end + 3);
  const size_t stem = name.size() >= 3 && name.compare(name.size() - 3, 3, ".so") == 0
                          ? name.size() - 3
                          : name.size();
  const size_t digits = name.find_last_not_of("0123456789.", stem == 0 ? 0 : stem - 1);
  const bool is_version = digits != std::string::npos && digits + 1 < stem && name[digits] == '-';
  return is_version ? name.erase(digits, stem - digits) : name;
}

class SarifLog {
 public:
  SarifLog(const Report& report, std::string root) : report_(report), root_(std::move(root)) {
    if (!root_.empty() && root_.back() != '/') root_ += '/';
  }

  std::string Write(const std::string& version);

 private:
  void AddText(const std::string& name, const std::string& text) {
    json_.BeginObject(name);
    json_.Add("text", text);
    json_.End();
  }
  void AddRule(FindingKind kind);
  void AddInvocation();
  void AddNotification(const char* level, const std::string& text);
  void AddPlace(const Function& function);
  void AddLocation(const std::string& name, const Function& function, const std::string& message);
  void AddStack(const char* message, const std::vector<Function>& chain);
  void AddCodeFlow(const std::vector<Function>& chain);
  void AddRelated(const NamedFinding& named);
  void AddResult(const NamedFinding& named, const FindingWords& words);
  void AddResults(const std::vector<NamedFinding>& findings);

  const Report& report_;
  std::string root_;
  JsonWriter json_;
};

void SarifLog::AddRule(FindingKind kind) {
  json_.BeginObject();
  json_.Add("id", Identifier(kind));
  AddText("shortDescription", SectionOf(kind));
  AddText("fullDescription", MeaningOf(kind));
  std::string help = MeaningOf(kind);
  for (const AdviceRow& row : AdviceRows()) {
    if (row.kind != kind) continue;
    const std::string of = row.of.words;
    help += "\nTo do" + (of.empty() ? "" : ", " + of) + ": " + InWords(row.advice) + ".";
  }
  AddText("help", help);
  json_.BeginObject("defaultConfiguration");
  json_.Add("level", LevelOf(kind));
  json_.End();
  json_.End();
}

void SarifLog::AddNotification(const char* level, const std::string& text) {
  json_.BeginObject();
  json_.Add("level", level);
  AddText("message", text);
  json_.End();
}

// What the audit could not see is an error of its execution; notes are none.
void SarifLog::AddInvocation() {
  json_.BeginArray("invocations");
  json_.BeginObject();
  json_.Add("executionSuccessful", IsComplete(report_));
  json_.BeginArray("toolExecutionNotifications");
  for (const ProcessWords& process : ProcessesInWords(report_)) {
    std::string text = MessageText(process.who + ": " + process.about);
    for (const std::string& note : process.notes) text += "\n" + MessageText(note);
    AddNotification(process.is_whole ? "note" : "error", text);
  }
  for (const std::string& gap : report_.gaps) AddNotification("error", MessageText(gap));
  for (const std::string& note : report_.notes) AddNotification("note", MessageText(note));
  for (const std::string& name : report_.unused_suppressions) {
    AddNotification("note", MessageText("unused suppression: " + name));
  }
  if (report_.processes.empty()) AddNotification("warning", "no process initialised CUDA");
  json_.End();
  json_.BeginObject("properties");
  json_.Add("program", report_.subject);
  json_.Add("programExitStatus", report_.exit_status);
  json_.End();
  json_.End();
  json_.End();
}

// Members of a location.
void SarifLog::AddPlace(const Function& function) {
  if (!function.file.empty()) {
    const std::filesystem::path file = std::filesystem::path(function.folder) / function.file;
    const std::string path = file.lexically_normal().string();
    const bool is_below = root_.size() > 1 && path.compare(0, root_.size(), root_) == 0;
    json_.BeginObject("physicalLocation");
    json_.BeginObject("artifactLocation");
    if (is_below) {
      json_.Add("uri", UriPath(path.substr(root_.size())));
      json_.Add("uriBaseId", kRoot);
    } else {
      json_.Add("uri", (path[0] == '/' ? "file://" : "") + UriPath(path));
    }
    json_.End();
    if (function.line > 0) {
      json_.BeginObject("region");
      json_.Add("startLine", function.line);
      json_.End();
    }
    json_.End();
  }
  json_.BeginArray("logicalLocations");
  if (!function.name.empty()) {
    json_.BeginObject();
    json_.Add("fullyQualifiedName", function.name);
    json_.Add("decoratedName", function.symbol.empty() ? function.name : function.symbol);
    json_.Add("kind", "function");
    json_.End();
  }
  json_.BeginObject();
  json_.Add("name", function.object.empty() ? function.ToString() : BaseName(function.object));
  if (!function.object.empty()) json_.Add("fullyQualifiedName", function.object);
  json_.Add("kind", "module");
  json_.End();
  json_.End();
}

void SarifLog::AddLocation(const std::string& name, const Function& function,
                           const std::string& message) {
  json_.BeginObject(name);
  AddPlace(function);
  if (!message.empty()) AddText("message", message);
  json_.End();
}

// Innermost first.
void SarifLog::AddStack(const char* message, const std::vector<Function>& chain) {
  if (chain.empty()) return;
  json_.BeginObject();
  AddText("message", message);
  json_.BeginArray("frames");
  for (const Function& function : chain) {
    json_.BeginObject();
    AddLocation("location", function, "");
    if (!function.object.empty()) json_.Add("module", BaseName(function.object));
    json_.End();
  }
  json_.End();
  json_.End();
}

// In the order of execution.
void SarifLog::AddCodeFlow(const std::vector<Function>& chain) {
  json_.BeginArray("codeFlows");
  json_.BeginObject();
  json_.BeginArray("threadFlows");
  json_.BeginObject();
  json_.BeginArray("locations");
  for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
    json_.BeginObject();
    AddLocation("location", *at, MessageText(at->ToString()));
    json_.End();
  }
  for (int open = 0; open < 5; ++open) json_.End();
}

void SarifLog::AddRelated(const NamedFinding& named) {
  const bool has_cause =
      named.consequence_of != 0 && named.consequence_of <= report_.findings.size();
  if (named.victim.object.empty() && !has_cause) return;
  json_.BeginArray("relatedLocations");
  if (!named.victim.object.empty()) AddLocation("", named.victim, "the victim");
  if (has_cause) {
    const NamedFinding& cause = report_.findings[named.consequence_of - 1];
    AddLocation("", Headline(cause), std::string("the cause: ") + Name(cause.finding.kind));
  }
  json_.End();
}

void SarifLog::AddResult(const NamedFinding& named, const FindingWords& words) {
  const FindingKind kind = named.finding.kind;
  const Function& where = Headline(named);
  json_.BeginObject();
  json_.Add("ruleId", Identifier(kind));
  json_.Add("ruleIndex", static_cast<std::uint64_t>(kind));
  json_.Add("level", LevelOf(kind));
  const std::string victim =
      named.victim.object.empty() ? std::string() : BaseName(named.victim.object);
  std::string text = MessageText(std::string(Name(kind)) + " by " + words.culprit + ": " +
                                 Consequence(named, victim) + ".");
  for (const ReportLine& line : words.lines) {
    const std::string label = line.label;
    if (label == "why:") continue;  // the message begins with it
    text += "\n" + label + (label.empty() ? "" : " ") + MessageText(line.text);
  }
  AddText("message", text);
  json_.BeginArray("locations");
  AddLocation("", where, "");
  json_.End();
  AddRelated(named);
  if (!named.chain.empty()) {
    json_.BeginArray("stacks");
    AddStack("the call", named.chain);
    AddStack("the call that made the victim one", named.victim_chain);
    json_.End();
    AddCodeFlow(named.chain);
  }
  json_.BeginObject("partialFingerprints");
  json_.Add("cuguestAudit/v1", Fingerprint(named));
  json_.End();
  json_.Add("occurrenceCount", named.finding.count);
  // Of all results of a log, or of none.
  json_.BeginArray("suppressions");
  if (!named.suppressed_by.empty()) {
    json_.BeginObject();
    json_.Add("kind", "external");
    json_.Add("justification", named.suppressed_by);
    json_.End();
  }
  json_.End();
  json_.End();
}

void SarifLog::AddResults(const std::vector<NamedFinding>& findings) {
  const std::vector<FindingWords> words = FindingsInWords(report_, findings, findings.size());
  for (std::size_t i = 0; i < words.size(); ++i) AddResult(findings[i], words[i]);
}

std::string SarifLog::Write(const std::string& version) {
  json_.BeginObject();
  json_.Add("$schema",
            "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
            "sarif-schema-2.1.0.json");
  json_.Add("version", "2.1.0");
  json_.BeginArray("runs");
  json_.BeginObject();
  json_.BeginObject("tool");
  json_.BeginObject("driver");
  json_.Add("name", "cuguest-audit");
  json_.Add("semanticVersion", version);
  json_.BeginArray("rules");
  for (std::size_t i = 0; i < kFindingKinds; ++i) AddRule(static_cast<FindingKind>(i));
  json_.End();
  json_.End();
  json_.End();
  AddInvocation();
  if (root_.size() > 1) {
    json_.BeginObject("originalUriBaseIds");
    json_.BeginObject(kRoot);
    json_.Add("uri", "file://" + UriPath(root_));
    json_.End();
    json_.End();
  }
  json_.BeginArray("results");
  AddResults(report_.findings);
  AddResults(report_.suppressed_findings);
  json_.End();
  json_.End();
  json_.End();
  json_.End();
  return json_.Take();
}

}  // namespace

std::string Fingerprint(const NamedFinding& named) {
  const Function& where = Headline(named);
  return std::string(Identifier(named.finding.kind)) + " " + WithoutVersion(where.object) + " " +
         where.name + " > " + WithoutVersion(named.victim.object) + " " + named.victim.name;
}

std::string ReportSarif(const Report& report, const std::string& version, const std::string& root) {
  return SarifLog(report, root).Write(version);
}

}  // namespace cuguest::audit
