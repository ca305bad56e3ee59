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

struct Rule {
  FindingKind kind;
  const char* level;
  const char* meaning;
};

// An error breaks the victim; a warning costs memory, or is seen later.
constexpr Rule kRules[] = {
    {FindingKind::kLeakedPush, "error",
     "Contexts are on the stack that were not there when the library was called: later pops of "
     "its caller take the wrong entries."},
    {FindingKind::kExtraPop, "error",
     "Entries of the context stack are gone that the caller had pushed: it works in another "
     "context, or in none."},
    {FindingKind::kReplacedContext, "error",
     "Another context is current than before the call: the caller's streams and modules are "
     "invalid in it."},
    {FindingKind::kLeftContext, "error",
     "No context was current before the call, and one is now: the caller works in a context that "
     "it did not choose."},
    {FindingKind::kCreatedPrimary, "warning",
     "A primary context was created in a process in which another library manages contexts. It "
     "takes some 500 MB of the device until exit."},
    {FindingKind::kQueryCreatedPrimary, "warning",
     "A call that only asks, chooses or frees created a primary context, which takes some 500 MB "
     "of the device until exit."},
    {FindingKind::kTouchedDeviceZero, "warning",
     "The primary context of device 0 was created, and nothing was done in it. It takes some 500 "
     "MB of the device until exit."},
    {FindingKind::kResetPrimary, "error",
     "A primary context was reset while others hold it: their memory, streams and modules are "
     "gone."},
    {FindingKind::kOverReleasedPrimary, "error",
     "A primary context was released more often than retained: it may be destroyed while others "
     "use it."},
    {FindingKind::kDestroyedContext, "error",
     "A context of another library was destroyed: its next call in it fails, or crashes."},
    {FindingKind::kDestroyedWork, "error",
     "Memory, streams and modules of the caller were destroyed with a context that the library "
     "had made current."},
    {FindingKind::kDestroyedInUse, "error",
     "A context was destroyed that is on the stack of another thread: the next call there fails, "
     "or crashes."},
    {FindingKind::kUsedDestroyedContext, "error",
     "The handle of a destroyed context was pushed or made current: an error, a crash, or work in "
     "another context at the same address."},
    {FindingKind::kChangedSetting, "warning",
     "A limit, a flag or the cache configuration of another library's context was changed: its "
     "kernels run with the new value."},
    {FindingKind::kLeftError, "warning",
     "The runtime's last error was left to another library, which reports a failure that was none "
     "of its own."},
    {FindingKind::kBrokeCapture, "error",
     "A stream capture of another library was invalidated: it ends with an error, and there is no "
     "graph."},
    {FindingKind::kForkedChild, "error",
     "A process that was forked after CUDA's start calls CUDA: every call fails there."},
    {FindingKind::kAfterShutdown, "warning",
     "A call was made after the driver's shutdown: it has no effect, or crashes in another order "
     "of destructors."},
    {FindingKind::kLeakedReference, "warning",
     "A primary context was retained and never released: it stays until exit, with its memory."},
    {FindingKind::kLeakedContext, "warning",
     "A library was unloaded and its context was not destroyed: it stays until exit, and each "
     "loading of the library adds one."},
    {FindingKind::kForbidden, "error", "The program did what --forbid says that it does not."},
    {FindingKind::kNoisy, "note",
     "A call of CUDA failed in a library: the driver writes it into the host's error log, whether "
     "or not the library expects it."},
    {FindingKind::kUsedAfterContext, "error",
     "A call was given a stream, an event, memory or another object of a context that is over: an "
     "error, a crash, or use of what took its place."},
};
static_assert(std::size(kRules) == kFindingKinds);

constexpr bool AreRulesInOrder() {
  for (std::size_t i = 0; i < kFindingKinds; ++i) {
    if (kRules[i].kind != static_cast<FindingKind>(i)) return false;
  }
  return true;
}
static_assert(AreRulesInOrder());

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
  void AddRule(const Rule& rule);
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

void SarifLog::AddRule(const Rule& rule) {
  const Advice advice = AdviceOf(rule.kind);
  json_.BeginObject();
  json_.Add("id", Identifier(rule.kind));
  AddText("shortDescription", SectionOf(rule.kind));
  AddText("fullDescription", rule.meaning);
  AddText("help", std::string(rule.meaning) + "\nTo do: " + advice.plain + "; with cuguest: " +
                      advice.cuguest + " (audit.md, \"" + SectionOf(rule.kind) + "\").");
  json_.BeginObject("defaultConfiguration");
  json_.Add("level", rule.level);
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
  const Rule& rule = kRules[static_cast<std::size_t>(named.finding.kind)];
  const Function& where = Headline(named);
  json_.BeginObject();
  json_.Add("ruleId", Identifier(rule.kind));
  json_.Add("ruleIndex", static_cast<std::uint64_t>(rule.kind));
  json_.Add("level", rule.level);
  const std::string victim =
      named.victim.object.empty() ? std::string() : BaseName(named.victim.object);
  std::string text = MessageText(std::string(Name(rule.kind)) + " by " + words.culprit + ": " +
                                 Consequence(named, victim) + ".");
  for (const ReportLine& line : words.lines) {
    const std::string label = line.label;
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
  for (const Rule& rule : kRules) AddRule(rule);
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
