// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>

#include "audit/command/advice.h"
#include "audit/command/printable.h"
#include "audit/command/report.h"
#include "audit/command/report_words.h"
#include "audit/command/result_name.h"
#include "audit/ledger.h"

namespace cuguest::audit {

namespace {

constexpr size_t kMaxFrames = 12;
constexpr size_t kKindWidth = 39;
constexpr size_t kNameWidth = 60;
constexpr size_t kColumns = 120;
constexpr size_t kLabelled = 12;  // where the text behind a label begins

std::string Counted(std::uint64_t count, const std::string& singular, const std::string& plural) {
  return std::to_string(count) + " " + (count == 1 ? singular : plural);
}

std::string Padded(const std::string& text, size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

// How objects are called: by their file names, or as much of their paths as tells them apart.
class ObjectNames {
 public:
  explicit ObjectNames(const Report& report) : paths_(report.paths) {
    for (const NamedFinding& named : report.findings) Add(named);
  }
  // Of a finding that the report need not have.
  void Add(const NamedFinding& named) {
    for (const Function* function : {&named.culprit, &named.victim, &named.before.creator,
                                     &named.after.creator, &named.maker, &named.ender}) {
      Add(function->object);
    }
    for (const Function& function : named.chain) Add(function.object);
    for (const Function& function : named.victim_chain) Add(function.object);
  }

  [[nodiscard]] std::string Of(const std::string& path) const {
    const auto alike = alike_.find(BaseName(path));
    if (paths_ || alike == alike_.end()) return paths_ ? path : BaseName(path);
    for (size_t at = path.rfind('/'); at != std::string::npos; at = path.rfind('/', at - 1)) {
      const std::string end = path.substr(at);
      const bool is_unique =
          std::count_if(alike->second.begin(), alike->second.end(), [&](const std::string& other) {
            return other.size() >= end.size() &&
                   other.compare(other.size() - end.size(), end.size(), end) == 0;
          }) == 1;
      if (is_unique || at == 0) return is_unique ? end.substr(1) : path;
    }
    return BaseName(path);
  }

  // "libmine.so  Encode (encode.cc:7)".
  [[nodiscard]] std::string Of(const Function& function) const {
    if (function.object.empty()) return function.ToString();
    if (!function.name.empty()) return Of(function.object) + "  " + InObject(function);
    const std::string text = function.ToString();  // "libmine.so+0x1a2b"
    return Of(function.object) + text.substr(BaseName(function.object).size());
  }

  // "Encode (encode.cc:7)", of a function with a name.
  [[nodiscard]] static std::string InObject(const Function& function) {
    Function brief = function;
    brief.name = ShortName(function.name, kNameWidth);
    return brief.ToString();
  }

 private:
  void Add(const std::string& path) { alike_[BaseName(path)].insert(path); }

  const bool paths_;
  std::map<std::string, std::set<std::string>> alike_;
};

// Colours of a terminal, if it is to have any.
struct Paint {
  bool is_on;

  [[nodiscard]] std::string Bad(const std::string& text) const { return In("\x1b[1;31m", text); }
  [[nodiscard]] std::string Good(const std::string& text) const { return In("\x1b[1;32m", text); }
  [[nodiscard]] std::string Doubtful(const std::string& text) const {
    return In("\x1b[1;33m", text);
  }
  [[nodiscard]] std::string Code(const std::string& text) const { return In("\x1b[1m", text); }
  [[nodiscard]] std::string Label(const std::string& text) const { return In("\x1b[36m", text); }

 private:
  [[nodiscard]] std::string In(const char* style, const std::string& text) const {
    return is_on ? style + text + "\x1b[0m" : text;
  }
};

// Lines of at most kColumns, where there are blanks to break them at; what follows the first begins
// below the text behind a label.
std::string Wrapped(const std::string& label, const std::string& unprintable, const Paint& paint) {
  const std::string text = Printable(unprintable);
  std::string line = "    " + Padded(label, kLabelled - 4);
  std::string lines;
  size_t at = 0;
  bool is_first = true;
  while (at < text.size()) {
    size_t end = std::min(text.find(' ', at), text.size());
    while (end < text.size() && text[end] == ' ') ++end;  // two blanks behind an object
    std::string word = text.substr(at, end - at);
    const size_t visible = word.find_last_not_of(' ') + 1;
    if (!is_first && line.size() + visible > kColumns) {
      lines += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = std::string(kLabelled, ' ');
    }
    line += word;
    is_first = false;
    at = end;
  }
  lines += line + "\n";
  return label.empty() ? lines : lines.replace(4, label.size(), paint.Label(label));
}

// "context 7 (device 0, created by libmine.so in Create (mine.cc:3))".
std::string ContextText(const NamedContext& context, const ObjectNames& names) {
  const ContextNote& note = context.note;
  if (note.id == 0) return "no context";
  std::string about = note.primary ? "primary" : "";
  if (note.device >= 0) {
    about += (note.primary ? " of device " : "device ") + std::to_string(note.device);
  }
  if (!context.creator.object.empty()) {
    about +=
        (about.empty() ? "" : ", ") + std::string("created by ") + names.Of(context.creator.object);
    if (!context.creator.name.empty()) about += " in " + ObjectNames::InObject(context.creator);
  }
  return "context " + std::to_string(note.id) + (about.empty() ? "" : " (" + about + ")");
}

std::string DepthText(const Finding& finding) {
  const auto entries = static_cast<std::uint64_t>(std::abs(finding.depth));
  return Counted(entries, "entry ", "entries ") + (finding.depth > 0 ? "more" : "fewer") +
         " on the context stack";
}

// As CUlimit numbers them.
constexpr const char* kLimits[] = {
    "CU_LIMIT_STACK_SIZE",
    "CU_LIMIT_PRINTF_FIFO_SIZE",
    "CU_LIMIT_MALLOC_HEAP_SIZE",
    "CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH",
    "CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT",
    "CU_LIMIT_MAX_L2_FETCH_GRANULARITY",
    "CU_LIMIT_PERSISTING_L2_CACHE_SIZE",
};

std::string SettingText(const Finding& finding) {
  const auto setting = static_cast<size_t>(finding.setting);
  const bool is_limit = finding.call.find("Limit") != std::string::npos;
  std::string text = is_limit && setting < std::size(kLimits) ? kLimits[setting] : "the setting";
  text += " is " + std::to_string(finding.value);
  if (finding.old_value == kUnknownValue) return text;
  return text + ", was " + std::to_string(finding.old_value);
}

// Who made the object, and who ended its context.
std::vector<ReportLine> ObjectLines(const NamedFinding& named, const std::string& context,
                                    const ObjectNames& names) {
  const ObjectNote& object = named.finding.object;
  std::string what = std::string(Name(object.kind)) + " of " + context;
  if (object.maker.object != 0) what += ", made by " + names.Of(named.maker);
  if (object.ended_by.empty()) return {{"of:", what}};
  return {{"of:", what},
          {"ended:", "by " + names.Of(named.ender) + ", with " + object.ended_by + " on thread " +
                         std::to_string(object.ended_on) + " at " + TimeInWords(object.ended_ns)}};
}

// What the victim had, and what it has now.
std::vector<ReportLine> StateLines(const NamedFinding& named, const ObjectNames& names) {
  const Finding& finding = named.finding;
  const std::string before = ContextText(named.before, names);
  const std::string after = ContextText(named.after, names);
  switch (finding.kind) {
    case FindingKind::kLeakedPush:
    case FindingKind::kExtraPop:
      return {{"had:", before + " was current"}, {"left:", after + "; " + DepthText(finding)}};
    case FindingKind::kReplacedContext:
    case FindingKind::kLeftContext:
      return {{"had:", before + " was current"}, {"left:", after}};
    case FindingKind::kCreatedPrimary:
    case FindingKind::kQueryCreatedPrimary:
    case FindingKind::kTouchedDeviceZero:
      return {{"left:", named.after.note.id != 0 ? after : before}};
    case FindingKind::kChangedSetting:
      return {{"of:", before}, {"left:", SettingText(finding)}};
    case FindingKind::kLeftError:
    case FindingKind::kNoisy:
    case FindingKind::kForkedChild:
    case FindingKind::kAfterShutdown:
      return {{"result:", ResultName(finding.call, finding.result)}};
    case FindingKind::kBrokeCapture:
      if (named.victim_chain.empty()) {
        return {{"result:", ResultName(finding.call, finding.result)}};
      }
      return {{"of:", "the capture that was begun by " + names.Of(named.victim_chain[0])},
              {"result:", ResultName(finding.call, finding.result)}};
    case FindingKind::kUsedAfterContext:
      return ObjectLines(named, before, names);
    case FindingKind::kForbidden:
      if (named.after.note.id != 0) return {{"made:", after}};
      return {};
    case FindingKind::kLeakedReference:
    case FindingKind::kLeakedContext:
    case FindingKind::kResetPrimary:
    case FindingKind::kOverReleasedPrimary:
    case FindingKind::kDestroyedContext:
    case FindingKind::kDestroyedWork:
    case FindingKind::kDestroyedInUse:
    case FindingKind::kUsedDestroyedContext:
      break;
  }
  return {{"of:", before}};
}

const ReportedProcess* ProcessOf(const Report& report, std::uint32_t number) {
  const auto found =
      std::find_if(report.processes.begin(), report.processes.end(),
                   [&](const ReportedProcess& one) { return one.process.number == number; });
  return found == report.processes.end() ? nullptr : &*found;
}

std::string ProcessText(const Process& process) {
  const std::string name = process.program.empty() ? "a process" : BaseName(process.program);
  return Printable(name) + " (" + std::to_string(process.pid) + ")";
}

std::string WhenText(const Report& report, const NamedFinding& named) {
  std::string text = Counted(named.finding.count, "time", "times");
  text += (named.finding.count > 1 ? ", first on " : ", ") + ThreadText(named.finding) + " at " +
          TimeInWords(named.finding.time_ns);
  const ReportedProcess* process = ProcessOf(report, named.process);
  if (report.processes.size() > 1 && process != nullptr) {
    text += " of " + ProcessText(process->process);
  }
  if (named.processes > 1) text += "; in " + std::to_string(named.processes) + " processes";
  return text;
}

// Behind main(), whose callers are the C library's.
size_t EndOfProgram(const std::vector<Function>& chain) {
  const auto main = std::find_if(chain.begin(), chain.end(),
                                 [](const Function& function) { return function.name == "main"; });
  return static_cast<size_t>(main - chain.begin()) + (main == chain.end() ? 0 : 1);
}

// The frames [0, end).
std::vector<std::string> FramesIn(const std::vector<Function>& chain, size_t end,
                                  const ObjectNames& names) {
  std::vector<std::string> frames;
  for (size_t i = 0; i < end; ++i) frames.push_back(names.Of(chain[i]));
  return frames;
}

// And where there are more.
std::string ChainText(const std::vector<std::string>& chain, bool is_whole) {
  std::string text;
  const size_t shown = is_whole ? chain.size() : std::min(chain.size(), kMaxFrames);
  for (size_t i = 0; i < shown; ++i) {
    text += std::string("      ") + (i == 0 ? "at " : "by ") + Printable(chain[i]) + "\n";
  }
  if (shown < chain.size()) {
    text += "      ... " + Counted(chain.size() - shown, "frame", "frames") + " more\n";
  }
  return text;
}

// What is missing, in a line for the counts and one for each limit.
std::vector<std::string> LossLines(const ReportedProcess& process) {
  std::string text;
  if (process.lost != 0) {
    text += Counted(process.lost, "event was", "events were") + " lost";
  }
  if (process.broken != 0) {
    text += (text.empty() ? "" : "; ") + Counted(process.broken, "event was", "events were") +
            " cut off by the process's end";
  }
  if (process.dropped != 0) {
    text += (text.empty() ? "" : "; ") + Counted(process.dropped, "time", "times") +
            " a finding was dropped, of which there are more than " + std::to_string(kLedgerLimit);
  }
  std::vector<std::string> lines;
  if (!text.empty()) lines.push_back(text);
  for (const std::string& limit : process.limits) {
    lines.push_back("a limit was reached: " + limit);
  }
  return lines;
}

}  // namespace

std::string TimeInWords(std::uint64_t time_ns) {
  char text[32];
  const auto time = static_cast<double>(time_ns);
  std::snprintf(text, sizeof(text), time < 1e9 ? "%.3f ms" : "%.3f s",
                time < 1e9 ? time / 1e6 : time / 1e9);
  return text;
}

std::string SummaryInWords(const Report& report) {
  std::set<std::string> culprits;
  for (const NamedFinding& named : report.findings) culprits.insert(named.culprit.object);
  const std::size_t unaudited = CountUnaudited(report);
  return Counted(report.findings.size(), "finding", "findings") + ", " +
         Counted(culprits.size(), "library", "libraries") +
         (unaudited == 0
              ? ""
              : "; " + Counted(unaudited, "process was", "processes were") + " not audited");
}

std::vector<std::string> LeftOutInWords(const Report& report) {
  std::vector<std::string> words;
  for (const Suppressions::Used& used : report.suppressed) {
    words.push_back("suppressed: " + Counted(used.findings, "finding", "findings") + " by \"" +
                    used.name + "\"");
  }
  if (report.other_objects != 0) {
    words.push_back("left out by --object: " +
                    Counted(report.other_objects, "finding", "findings"));
  }
  return words;
}

// Which source each process had and what it does not see, once for those of which the same is true.
std::vector<ProcessWords> ProcessesInWords(const Report& report) {
  std::map<std::pair<std::string, std::vector<std::string>>, size_t> known;
  std::vector<ProcessWords> all;
  std::vector<size_t> others;
  for (const ReportedProcess& process : report.processes) {
    ProcessWords words;
    const std::string why = WhyUnaudited(process);
    words.about = why.empty() ? "events from " + process.source : "not audited, because " + why;
    if (report.is_verbose && why.empty()) {
      words.about +=
          ", " + Counted(process.events, "event", "events") + " of " + process.process.program;
    }
    words.notes = process.notes;
    const std::vector<std::string> losses = LossLines(process);
    words.is_whole = why.empty() && losses.empty();
    words.notes.insert(words.notes.end(), losses.begin(), losses.end());
    const auto [at, is_new] = known.insert({{words.about, words.notes}, all.size()});
    if (!is_new) {
      ++others[at->second];
      continue;
    }
    words.who = ProcessText(process.process);
    all.push_back(std::move(words));
    others.push_back(0);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (others[i] == 0) continue;
    all[i].who += " and " + Counted(others[i], "other process", "other processes");
  }
  return all;
}

std::vector<std::string> NotesInWords(const Report& report) {
  std::vector<std::string> words = report.gaps;
  words.insert(words.end(), report.notes.begin(), report.notes.end());
  for (const std::string& name : report.unused_suppressions) {
    words.push_back("unused suppression: " + name);
  }
  return words;
}

std::string WhyUnaudited(const ReportedProcess& process) {
  if (!process.unaudited.empty()) return process.unaudited;
  return process.source.empty() ? "no source of events could be had" : "";
}

std::size_t CountUnaudited(const Report& report) {
  return static_cast<std::size_t>(
      std::count_if(report.processes.begin(), report.processes.end(),
                    [](const ReportedProcess& process) { return !WhyUnaudited(process).empty(); }));
}

bool IsComplete(const Report& report) {
  const auto has_gap = [](const ReportedProcess& process) {
    const std::string why = WhyUnaudited(process);
    return process.lost + process.broken + process.dropped != 0 || !process.limits.empty() ||
           (!why.empty() && why != kNotFollowed);
  };
  const bool is_none_audited =
      !report.processes.empty() && CountUnaudited(report) == report.processes.size();
  return report.gaps.empty() && !is_none_audited &&
         std::none_of(report.processes.begin(), report.processes.end(), has_gap);
}

namespace {

// Of these the function that returned is the one to repair: the call may be in a helper that every
// push goes through.
bool IsOfReturn(FindingKind kind) {
  return kind == FindingKind::kLeakedPush || kind == FindingKind::kExtraPop ||
         kind == FindingKind::kReplacedContext || kind == FindingKind::kLeftContext;
}

}  // namespace

const Function& Headline(const NamedFinding& named) {
  const bool is_named = !named.returned.object.empty() &&
                        (!named.returned.name.empty() || named.culprit.name.empty());
  return IsOfReturn(named.finding.kind) && is_named ? named.returned : named.culprit;
}

namespace {

std::string AdviceText(const NamedFinding& named) {
  const Function& where = Headline(named);
  const std::string in = where.name.empty() ? "" : "in " + ShortName(where.name, kNameWidth) + ": ";
  return in + InWords(AdviceOf(named.finding));
}

FindingWords WordsOf(const Report& report, const NamedFinding& named, const ObjectNames& names) {
  FindingWords words;
  words.culprit = names.Of(Headline(named));
  std::vector<ReportLine>& lines = words.lines;
  lines = {{"call:", named.finding.call}};
  const bool has_victim = !named.victim.object.empty();
  if (has_victim) lines.push_back({"victim:", names.Of(named.victim)});
  for (const ReportLine& line : StateLines(named, names)) lines.push_back(line);
  lines.push_back(
      {"why:", Consequence(named, has_victim ? names.Of(named.victim.object) : std::string())});
  if (named.consequence_of != 0 && named.consequence_of <= report.findings.size()) {
    const NamedFinding& cause = report.findings[named.consequence_of - 1];
    lines.push_back({"cause:", "[" + std::to_string(named.consequence_of) + "] " +
                                   Name(cause.finding.kind) + " by " + names.Of(Headline(cause)) +
                                   ": repair that first"});
  }
  lines.push_back({"to do:", AdviceText(named)});
  lines.push_back({"", WhenText(report, named)});
  const bool victim_called = named.victim_function < named.chain.size();
  words.chain = FramesIn(
      named.chain, victim_called ? named.victim_function + 1 : EndOfProgram(named.chain), names);
  if (!victim_called) {
    words.victim_chain = FramesIn(named.victim_chain, EndOfProgram(named.victim_chain), names);
  }
  return words;
}

std::string TextOf(const Report& report, const NamedFinding& named, const FindingWords& words,
                   const Paint& paint) {
  const std::string name = Name(named.finding.kind);
  const std::string culprit = Printable(words.culprit);
  const std::string padding(std::max(kKindWidth, name.size()) + 1 - name.size(), ' ');
  // "[12] " precedes it.
  const bool is_long = 5 + name.size() + padding.size() + culprit.size() > kColumns;
  std::string text = paint.Bad(name) + (is_long ? "\n    " : padding) + paint.Code(culprit) + "\n";
  for (const ReportLine& line : words.lines) text += Wrapped(line.label, line.text, paint);
  text += ChainText(words.chain, report.is_verbose);
  if (!words.victim_chain.empty()) {
    text += "    the victim:\n" + ChainText(words.victim_chain, report.is_verbose);
  }
  return text + named.suppression + "\n";
}

std::string PaintedSummary(const Report& report, const Paint& paint) {
  const std::string summary = SummaryInWords(report);
  if (!report.findings.empty()) return paint.Bad(summary);
  return IsComplete(report) ? paint.Good(summary) : paint.Doubtful(summary);
}

}  // namespace

std::vector<FindingWords> FindingsInWords(const Report& report,
                                          const std::vector<NamedFinding>& findings,
                                          std::size_t limit) {
  const ObjectNames names(report);
  std::vector<FindingWords> words;
  for (std::size_t i = 0; i < std::min(limit, findings.size()); ++i) {
    words.push_back(WordsOf(report, findings[i], names));
  }
  return words;
}

std::vector<std::string> ContextsInWords(const Report& report,
                                         const std::vector<NamedContext>& contexts) {
  const ObjectNames names(report);
  std::vector<std::string> words;
  words.reserve(contexts.size());
  for (const NamedContext& context : contexts) words.push_back(ContextText(context, names));
  return words;
}

std::string FindingText(const Report& report, const NamedFinding& named) {
  ObjectNames names(report);
  names.Add(named);
  return TextOf(report, named, WordsOf(report, named, names), {false});
}

std::string ReportText(const Report& report, bool has_colors) {
  const Paint paint = {has_colors};
  std::string text = "\ncuguest-audit: " + Printable(report.subject) + "\n";
  if (report.signal != 0) {
    text += "the program was terminated by signal " + std::to_string(report.signal) + "\n";
  }
  text += PaintedSummary(report, paint) + "\n";
  const ObjectNames names(report);
  for (size_t i = 0; i < report.findings.size(); ++i) {
    const NamedFinding& named = report.findings[i];
    text += "[" + std::to_string(i + 1) + "] " +
            TextOf(report, named, WordsOf(report, named, names), paint);
  }
  for (const std::string& words : LeftOutInWords(report)) text += Printable(words) + "\n";
  if (report.processes.empty()) {
    text += "no process initialised CUDA: there was nothing to audit\n";
  }
  for (const ProcessWords& process : ProcessesInWords(report)) {
    const std::string about = Printable(process.about);
    text +=
        Printable(process.who) + ": " + (process.is_whole ? about : paint.Doubtful(about)) + "\n";
    for (const std::string& note : process.notes) text += "  " + Printable(note) + "\n";
  }
  for (const std::string& words : NotesInWords(report)) text += Printable(words) + "\n";
  return text;
}

}  // namespace cuguest::audit
