// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>

#include "audit/command/printable.h"
#include "audit/command/report.h"
#include "audit/ledger.h"

namespace cuguest::audit {

namespace {

constexpr size_t kMaxFrames = 12;
constexpr size_t kKindWidth = 38;

std::string Counted(std::uint64_t count, const std::string& singular, const std::string& plural) {
  return std::to_string(count) + " " + (count == 1 ? singular : plural);
}

std::string Padded(const std::string& text, size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

std::string TimeText(std::uint64_t time_ns) {
  char text[32];
  const auto time = static_cast<double>(time_ns);
  std::snprintf(text, sizeof(text), time < 1e9 ? "%.3f ms" : "%.3f s",
                time < 1e9 ? time / 1e6 : time / 1e9);
  return text;
}

// "libmine.so  Encode (encode.cc:7)".
std::string InObject(const Function& function) {
  if (function.object.empty() || function.name.empty()) return Printable(function.ToString());
  return Printable(BaseName(function.object) + "  " + function.ToString());
}

// "context 7 (device 0, created by libmine.so)".
std::string ContextText(const NamedContext& context) {
  const ContextNote& note = context.note;
  if (note.id == 0) return "no context";
  std::string about = note.primary ? "primary" : "";
  if (note.device >= 0) {
    about += (note.primary ? " of device " : "device ") + std::to_string(note.device);
  }
  if (!context.creator.object.empty()) {
    about += (about.empty() ? "" : ", ") + std::string("created by ") +
             Printable(BaseName(context.creator.object));
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

struct ReportLine {
  const char* label;
  std::string text;
};

// What the victim had, and what it has now.
std::vector<ReportLine> StateLines(const NamedFinding& named) {
  const Finding& finding = named.finding;
  const std::string before = ContextText(named.before);
  const std::string after = ContextText(named.after);
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
    case FindingKind::kForkedChild:
    case FindingKind::kAfterShutdown:
    case FindingKind::kBrokeCapture:
      return {{"result:", std::to_string(finding.result)}};
    case FindingKind::kResetPrimary:
    case FindingKind::kOverReleasedPrimary:
    case FindingKind::kDestroyedContext:
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
  text += (named.finding.count > 1 ? ", first on thread " : ", thread ") +
          std::to_string(named.finding.thread) + " at " + TimeText(named.finding.time_ns);
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

// The frames [0, end) and where there are more.
std::string ChainText(const std::vector<Function>& chain, size_t end, bool is_whole) {
  std::string text;
  const size_t shown = is_whole ? end : std::min(end, kMaxFrames);
  for (size_t i = 0; i < shown; ++i) {
    text += std::string("      ") + (i == 0 ? "at " : "by ") + InObject(chain[i]) + "\n";
  }
  if (shown < end) text += "      ... " + Counted(end - shown, "frame", "frames") + " more\n";
  return text;
}

std::string SummaryText(const Report& report) {
  std::set<std::string> culprits;
  for (const NamedFinding& named : report.findings) culprits.insert(named.culprit.object);
  const std::size_t unaudited = CountUnaudited(report);
  return Counted(report.findings.size(), "finding", "findings") + ", " +
         Counted(culprits.size(), "library", "libraries") +
         (unaudited == 0
              ? ""
              : "; " + Counted(unaudited, "process was", "processes were") + " not audited") +
         "\n";
}

std::string LeftOutText(const Report& report) {
  std::string text;
  for (const Suppressions::Used& used : report.suppressed) {
    text += "suppressed: " + Counted(used.findings, "finding", "findings") + " by \"" +
            Printable(used.name) + "\"\n";
  }
  if (report.other_objects != 0) {
    text += "left out by --object: " + Counted(report.other_objects, "finding", "findings") + "\n";
  }
  return text;
}

std::string LossText(const ReportedProcess& process) {
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
  return text;
}

// Which source each process had and what it does not see, once for those of which the same is true.
std::string SourcesText(const Report& report) {
  std::map<std::string, std::vector<const ReportedProcess*>> alike;
  std::vector<std::string> order;
  for (const ReportedProcess& process : report.processes) {
    const std::string why = WhyUnaudited(process);
    std::string about = why.empty() ? "events from " + Printable(process.source)
                                    : "not audited, because " + Printable(why);
    if (report.is_verbose && why.empty()) {
      about += ", " + Counted(process.events, "event", "events") + " of " +
               Printable(process.process.program);
    }
    about += "\n";
    for (const std::string& note : process.notes) about += "  " + Printable(note) + "\n";
    const std::string loss = LossText(process);
    if (!loss.empty()) about += "  " + loss + "\n";
    if (alike[about].empty()) order.push_back(about);
    alike[about].push_back(&process);
  }
  std::string text;
  for (const std::string& about : order) {
    const auto& processes = alike[about];
    text += ProcessText(processes[0]->process);
    if (processes.size() > 1) {
      text += " and " + Counted(processes.size() - 1, "other process", "other processes");
    }
    text += ": " + about;
  }
  return text;
}

}  // namespace

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
    return process.lost + process.broken + process.dropped != 0 ||
           (!why.empty() && why != kNotFollowed);
  };
  const bool is_none_audited =
      !report.processes.empty() && CountUnaudited(report) == report.processes.size();
  return report.gaps.empty() && !is_none_audited &&
         std::none_of(report.processes.begin(), report.processes.end(), has_gap);
}

std::string FindingText(const Report& report, const NamedFinding& named) {
  std::string text =
      Padded(Name(named.finding.kind), kKindWidth) + " " + InObject(named.culprit) + "\n";
  std::vector<ReportLine> lines = {{"call:", Printable(named.finding.call)}};
  if (!named.victim.object.empty()) lines.push_back({"victim:", InObject(named.victim)});
  for (const ReportLine& line : StateLines(named)) lines.push_back(line);
  lines.push_back({"", WhenText(report, named)});
  for (const ReportLine& line : lines) text += "    " + Padded(line.label, 8) + line.text + "\n";
  const bool victim_called = named.victim_function < named.chain.size();
  text +=
      ChainText(named.chain, victim_called ? named.victim_function + 1 : EndOfProgram(named.chain),
                report.is_verbose);
  if (!victim_called && !named.victim_chain.empty()) {
    text += "    the victim:\n" +
            ChainText(named.victim_chain, EndOfProgram(named.victim_chain), report.is_verbose);
  }
  return text + named.suppression + "\n";
}

std::string ReportText(const Report& report) {
  std::string text = "\ncuguest-audit: " + Printable(report.subject) + "\n";
  if (report.signal != 0) {
    text += "the program was terminated by signal " + std::to_string(report.signal) + "\n";
  }
  text += SummaryText(report);
  for (size_t i = 0; i < report.findings.size(); ++i) {
    text += "[" + std::to_string(i + 1) + "] " + FindingText(report, report.findings[i]);
  }
  text += LeftOutText(report);
  if (report.processes.empty()) {
    text += "no process initialised CUDA: there was nothing to audit\n";
  }
  text += SourcesText(report);
  for (const std::string& gap : report.gaps) text += Printable(gap) + "\n";
  for (const std::string& note : report.notes) text += Printable(note) + "\n";
  for (const std::string& name : report.unused_suppressions) {
    text += "unused suppression: " + Printable(name) + "\n";
  }
  return text;
}

}  // namespace cuguest::audit
