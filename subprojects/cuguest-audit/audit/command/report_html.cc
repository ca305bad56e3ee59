// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/report_html.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

#include "audit/command/advice.h"
#include "audit/command/json.h"
#include "audit/command/printable.h"
#include "audit/command/report_words.h"
#include "audit/command/stack_changes.h"

namespace cuguest::audit {

namespace {

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark; --back: #fff; --text: #1c1e21; --faint: #5c636b; --line: #d9dde2;
  --card: #f6f7f9; --bad: #b3261e; --doubtful: #8a5a00; --good: #19703a; --link: #0b57c4;
  --light: 74%; --entry: #1c1e21; }
@media (prefers-color-scheme: dark) {
  :root { --back: #16181b; --text: #e4e6e9; --faint: #a0a7b0; --line: #383d44; --card: #1f2226;
    --bad: #ff8a80; --doubtful: #f0bb5a; --good: #7fd99a; --link: #8ab8ff; --light: 34%;
    --entry: #f2f3f5; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 66rem; background: var(--back);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; } details + h3 { margin-top: 1.4rem; }
h4 { font-size: .9rem; font-weight: 500; margin: .8rem 0 .2rem; color: var(--faint); }
p { margin: .3rem 0; }
a { color: var(--link); }
code, pre { font: .9em/1.45 ui-monospace, monospace; unicode-bidi: isolate; }
pre { overflow-x: auto; }
.bad { color: var(--bad); } .doubtful { color: var(--doubtful); } .good { color: var(--good); }
.faint { color: var(--faint); }
article { border: 1px solid var(--line); border-left: 4px solid var(--bad); border-radius: 6px;
  background: var(--card); padding: .7rem 1rem; margin: .8rem 0; }
article:target { outline: 2px solid var(--link); }
article h3 a { text-decoration: none; }
dl { display: grid; grid-template-columns: 4.5rem 1fr; gap: .15rem .6rem; margin: .5rem 0; }
dt { color: var(--faint); } dd { margin: 0; min-width: 0; }
@media (max-width: 30rem) { body { padding: .6rem; } article { padding: .6rem .7rem; }
  dl { grid-template-columns: 1fr; } dd { margin-left: .8rem; } }
summary { cursor: pointer; color: var(--link); }
ol, ul { margin: .3rem 0; padding-left: 1.6rem; }
svg { display: block; width: 100%; overflow: visible; border-bottom: 1px solid var(--line); }
svg text { font: 11px ui-monospace, monospace; fill: var(--entry); pointer-events: none; }
.c { fill: hsl(var(--h) 62% var(--light)); }
.several { fill: var(--faint); }
.m line { stroke: var(--bad); } .m circle { fill: var(--bad); }
.m text { fill: var(--back); text-anchor: middle; font-weight: 700; }
.key { list-style: none; padding: 0; font-size: .9rem; }
.key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem;
  border-radius: 2px; vertical-align: -1px; background: hsl(var(--h) 62% var(--light)); }
.key .several { background: var(--faint); }
.scale { display: flex; justify-content: space-between; font-size: .8rem; color: var(--faint); }
</style>
)";

// In pixels.
constexpr std::size_t kRowHeight = 18;
constexpr std::size_t kMarkHeight = 20;
constexpr std::size_t kMarkRows = 4;
// Of the width, in percent: below that there is no room for a mark beside another, or a number.
constexpr double kMarkWidth = 5;
constexpr double kLabelWidth = 4;

std::string Escaped(const std::string& text) {
  const std::string printable = Utf8(Printable(text.substr(0, kPageText)));
  std::string escaped;
  for (const char c : printable) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return text.size() > kPageText ? escaped + "..." : escaped;
}

std::string Percent(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f%%", value);
  return text;
}

class HtmlPage {
 public:
  HtmlPage(const Report& report, const Pictures& pictures) : report_(report), pictures_(pictures) {}

  std::string Write();

 private:
  struct ShownContext {
    std::string words;
    std::string color;  // as a style
  };
  struct Mark {
    std::size_t number;  // of the finding
    double at;           // percent of the width
    std::size_t row;
  };

  void Add(const std::string& html) { page_ += html; }
  void Add(std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) page_ += part;
  }
  void AddParagraph(const char* style, const std::string& text) {
    Add(std::string("<p class=\"") + style + "\">" + Escaped(text) + "</p>\n");
  }
  void AddList(const std::string& heading, const std::vector<std::string>& lines);
  void AddVerdict();
  void AddFinding(std::size_t number, const FindingWords& words);
  void AddCauseLink(const NamedFinding& named, const std::string& text);
  void AddFrames(const std::string& heading, const std::vector<std::string>& frames);
  void AddPictures();
  void AddPicture(const NamedTimeline& named);
  void AddThread(const NamedTimeline& named, std::uint32_t number, const Timeline::Thread* thread);
  void AddRows(const NamedTimeline& named, const Timeline::Thread& thread, std::size_t bottom);
  void AddKey();
  void AddKinds();
  void AddProcesses();
  // Those of the thread, which a picture has room for.
  std::vector<Mark> MarksOf(const NamedTimeline& named, std::uint32_t thread);
  // The threads that have a stack or a finding.
  [[nodiscard]] std::map<std::uint32_t, const Timeline::Thread*> ThreadsOf(
      const NamedTimeline& named) const;
  [[nodiscard]] const ReportedProcess* ProcessOfNumber(std::uint32_t number) const;

  const Report& report_;
  const Pictures& pictures_;
  std::string page_;
  std::size_t shapes_ = 0;
  std::map<ContextId, ShownContext> contexts_;  // of the picture
  bool is_cut_ = false;                         // it has no room for something
};

void HtmlPage::AddList(const std::string& heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  if (!heading.empty()) Add("<h2>" + heading + "</h2>\n");
  Add("<ul>\n");
  for (std::size_t i = 0; i < std::min(lines.size(), kPageLines); ++i) {
    Add("<li>" + Escaped(lines[i]) + "</li>\n");
  }
  if (lines.size() > kPageLines) {
    Add("<li>" + std::to_string(lines.size() - kPageLines) + " more are not on this page</li>\n");
  }
  Add("</ul>\n");
}

void HtmlPage::AddVerdict() {
  const bool is_complete = IsComplete(report_);
  const char* style = !report_.findings.empty() ? "bad" : is_complete ? "good" : "doubtful";
  Add(std::string("<h1 class=\"") + style + "\">" + Escaped(SummaryInWords(report_)) + "</h1>\n");
  Add("<p>cuguest-audit: <code>" + Escaped(report_.subject) + "</code></p>\n");
  if (report_.signal != 0) {
    AddParagraph("bad", "the program was terminated by signal " + std::to_string(report_.signal));
  }
  if (report_.processes.empty()) {
    AddParagraph("doubtful", "no process initialised CUDA: there was nothing to audit");
  }
  if (!is_complete) {
    Add("<p class=\"doubtful\">The audit is incomplete: see <a href=\"#processes\">what was "
        "audited</a>.</p>\n");
  }
}

void HtmlPage::AddCauseLink(const NamedFinding& named, const std::string& text) {
  // It may be one that is not on the page.
  if (named.consequence_of > kPageFindings) return Add(Escaped(text));
  Add("<a href=\"#finding-" + std::to_string(named.consequence_of) + "\">" + Escaped(text) +
      "</a>");
}

void HtmlPage::AddFrames(const std::string& heading, const std::vector<std::string>& frames) {
  if (frames.empty()) return;
  Add("<details><summary>" + heading + ", " + std::to_string(frames.size()) +
      (frames.size() == 1 ? " frame" : " frames") + "</summary>\n<ol>\n");
  for (std::size_t i = 0; i < std::min(frames.size(), kPageLines); ++i) {
    Add("<li><code>" + Escaped(frames[i]) + "</code></li>\n");
  }
  Add("</ol>\n");
  if (frames.size() > kPageLines) {
    Add("<p>" + std::to_string(frames.size() - kPageLines) + " more are not on this page</p>\n");
  }
  Add("</details>\n");
}

void HtmlPage::AddFinding(std::size_t number, const FindingWords& words) {
  const NamedFinding& named = report_.findings[number - 1];
  const std::string id = "finding-" + std::to_string(number);
  Add("<article id=\"" + id + "\">\n<h3><a href=\"#" + id + "\">[" + std::to_string(number) +
      "]</a> <a href=\"#" + Identifier(named.finding.kind) + "\">" +
      Escaped(Name(named.finding.kind)) + "</a></h3>\n<p><code>" + Escaped(words.culprit) +
      "</code></p>\n<dl>\n");
  for (const ReportLine& line : words.lines) {
    const std::string label = line.label;
    if (label.empty()) continue;
    Add("<dt>" + label.substr(0, label.size() - 1) + "</dt><dd>");
    if (label == "cause:") {
      AddCauseLink(named, line.text);
    } else {
      Add(Escaped(line.text));
    }
    Add("</dd>\n");
  }
  Add("</dl>\n");
  for (const ReportLine& line : words.lines) {
    if (line.label[0] == '\0') AddParagraph("faint", line.text);
  }
  AddFrames("Call chain", words.chain);
  AddFrames("Call chain of the victim", words.victim_chain);
  if (!named.suppression.empty()) {
    Add("<details><summary>Suppression</summary>\n<pre>");
    // Its lines are lines here, too.
    const std::string& text = named.suppression;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = std::min(text.find('\n', at), text.size());
      Add(Escaped(text.substr(at, end - at)) + "\n");
    }
    Add("</pre></details>\n");
  }
  Add("</article>\n");
}

const ReportedProcess* HtmlPage::ProcessOfNumber(std::uint32_t number) const {
  for (const ReportedProcess& process : report_.processes) {
    if (process.process.number == number) return &process;
  }
  return nullptr;
}

std::vector<HtmlPage::Mark> HtmlPage::MarksOf(const NamedTimeline& named, std::uint32_t thread) {
  const ReportedProcess* process = ProcessOfNumber(named.process);
  const double columns =
      static_cast<double>(std::max<std::size_t>(named.timeline->begins().size(), 1));
  std::vector<Mark> marks;
  const std::size_t shown = std::min(report_.findings.size(), kPageFindings);
  for (std::size_t i = 0; i < shown && process != nullptr; ++i) {
    const NamedFinding& finding = report_.findings[i];
    if (finding.process != named.process || finding.finding.thread != thread) continue;
    const std::size_t column =
        named.timeline->ColumnAt(process->process.start_ns + finding.finding.time_ns);
    marks.push_back({i + 1, 100 * (static_cast<double>(column) + 0.5) / columns, 0});
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& a, const Mark& b) { return a.at < b.at; });
  std::vector<double> ends(kMarkRows, 0);
  std::vector<Mark> placed;
  for (Mark& mark : marks) {
    const auto row =
        std::find_if(ends.begin(), ends.end(), [&](double end) { return end <= mark.at; });
    if (row == ends.end()) {
      is_cut_ = true;
      continue;
    }
    mark.row = static_cast<std::size_t>(row - ends.begin());
    *row = mark.at + kMarkWidth;
    placed.push_back(mark);
  }
  return placed;
}

std::map<std::uint32_t, const Timeline::Thread*> HtmlPage::ThreadsOf(
    const NamedTimeline& named) const {
  std::map<std::uint32_t, const Timeline::Thread*> threads;
  for (const auto& [number, thread] : named.timeline->threads()) threads[number] = &thread;
  for (const NamedFinding& finding : report_.findings) {
    if (threads.size() == 2 * Timeline::kThreads) break;
    if (finding.process == named.process) threads.insert({finding.finding.thread, nullptr});
  }
  return threads;
}

void HtmlPage::AddRows(const NamedTimeline& named, const Timeline::Thread& thread,
                       std::size_t bottom) {
  const auto columns = static_cast<double>(named.timeline->begins().size());
  struct Run {
    std::size_t row, begin, end;
  };
  std::map<ContextId, std::vector<Run>> runs;
  for (std::size_t i = 0; i < thread.rows.size(); ++i) {
    const Timeline::Row& row = thread.rows[i];
    for (std::size_t begin = 0, end = 0; begin < row.size(); begin = end) {
      while (end < row.size() && row[end] == row[begin]) ++end;
      if (row[begin] != 0) runs[row[begin]].push_back({i, begin, end});
    }
  }
  for (const auto& [context, of_context] : runs) {
    if (context == Timeline::kSeveral) {
      Add("<g class=\"several\"><title>several contexts</title>");
    } else {
      const ShownContext& shown = contexts_[context];
      Add("<g class=\"c\" style=\"" + shown.color + "\"><title>" + Escaped(shown.words) +
          "</title>");
    }
    for (const Run& run : of_context) {
      const double at = 100 * static_cast<double>(run.begin) / columns;
      const double width = 100 * static_cast<double>(run.end - run.begin) / columns;
      const std::size_t y = bottom - (run.row + 1) * kRowHeight;
      Add("<rect x=\"" + Percent(at) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
          Percent(width) + "\" height=\"" + std::to_string(kRowHeight - 1) + "\"/>");
      if (width < kLabelWidth || context == Timeline::kSeveral) continue;
      Add("<text x=\"" + Percent(at) + "\" dx=\"3\" y=\"" + std::to_string(y + 13) + "\">" +
          std::to_string(context) + "</text>");
    }
    Add("</g>\n");
    shapes_ += of_context.size();
  }
}

void HtmlPage::AddThread(const NamedTimeline& named, std::uint32_t number,
                         const Timeline::Thread* thread) {
  const std::vector<Mark> marks = MarksOf(named, number);
  std::size_t mark_rows = 0;
  for (const Mark& mark : marks) mark_rows = std::max(mark_rows, mark.row + 1);
  const std::size_t rows = thread == nullptr ? 0 : thread->rows.size();
  const std::size_t bottom = mark_rows * kMarkHeight + std::max<std::size_t>(rows, 1) * kRowHeight;
  Add("<h4>thread " + std::to_string(number) +
      (thread != nullptr && thread->is_higher
           ? ", whose stack is higher than " + std::to_string(Timeline::kRows) + " entries"
           : "") +
      "</h4>\n<svg height=\"" + std::to_string(bottom + 1) +
      "\" role=\"img\" aria-label=\"thread " + std::to_string(number) + "\">\n");
  if (thread != nullptr) AddRows(named, *thread, bottom);
  for (const Mark& mark : marks) {
    const std::string at = Percent(mark.at);
    const std::string link = std::to_string(mark.number);
    const std::size_t middle = mark.row * kMarkHeight + kMarkHeight / 2;
    const std::string y = std::to_string(middle);
    Add({"<a class=\"m\" href=\"#finding-", link, "\"><title>[", link, "] ",
         Escaped(Name(report_.findings[mark.number - 1].finding.kind)), "</title>"});
    Add({"<line x1=\"", at, "\" x2=\"", at, "\" y1=\"", y, "\" y2=\"", std::to_string(bottom),
         "\"/>"});
    Add({"<circle cx=\"", at, "\" cy=\"", y, "\" r=\"9\"/>"});
    Add({"<text x=\"", at, "\" y=\"", std::to_string(middle + 4), "\">", link, "</text></a>\n"});
  }
  shapes_ += marks.size();
  Add("</svg>\n");
}

void HtmlPage::AddKey() {
  Add("<details><summary>" + std::to_string(contexts_.size()) +
      (contexts_.size() == 1 ? " context" : " contexts") + "</summary>\n<ul class=\"key\">\n");
  std::size_t shown = 0;
  for (const auto& [id, context] : contexts_) {
    if (shown++ == kPageLines) break;
    Add("<li><i style=\"" + context.color + "\"></i>" + Escaped(context.words) + "</li>\n");
  }
  if (contexts_.size() > kPageLines) {
    Add("<li>" + std::to_string(contexts_.size() - kPageLines) + " more are not listed</li>\n");
  }
  Add("<li><i class=\"several\"></i>several contexts in one column</li>\n</ul></details>\n");
}

void HtmlPage::AddPicture(const NamedTimeline& named) {
  const ReportedProcess* process = ProcessOfNumber(named.process);
  const std::vector<std::uint64_t>& begins = named.timeline->begins();
  if (process == nullptr || begins.empty()) return;
  std::vector<NamedContext> contexts;
  for (const auto& [id, context] : named.contexts) contexts.push_back(context);
  const std::vector<std::string> words = ContextsInWords(report_, contexts);
  contexts_.clear();
  std::size_t next = 0;
  for (const auto& [id, context] : named.contexts) {
    // Hues of contexts that follow each other are far apart.
    contexts_[id] = {words[next], "--h:" + std::to_string((next * 137 + 210) % 360)};
    ++next;
  }
  const std::string& program = process->process.program;
  Add("<h3>" + Escaped(program.empty() ? "a process" : BaseName(program)) + " (" +
      std::to_string(process->process.pid) + ")</h3>\n");
  if (named.timeline->changes() > 1) {
    Add("<p class=\"faint\">Each column stands for " + std::to_string(named.timeline->changes()) +
        " changes.</p>\n");
  }
  for (const auto& [number, thread] : ThreadsOf(named)) {
    if (shapes_ >= kPageShapes) {
      is_cut_ = true;
      break;
    }
    AddThread(named, number, thread);
  }
  const std::uint64_t start = process->process.start_ns;
  const auto since = [&](std::uint64_t time) {
    return TimeInWords(time < start ? 0 : time - start);
  };
  Add("<div class=\"scale\"><span>" + since(begins.front()) + "</span><span>" +
      since(begins[begins.size() / 2]) + "</span><span>" + since(begins.back()) +
      "</span></div>\n");
  AddKey();
  is_cut_ = is_cut_ || named.timeline->has_others();
}

void HtmlPage::AddPictures() {
  if (pictures_.timelines.empty()) return;
  Add("<h2>Context stacks</h2>\n<p class=\"faint\">Each thread's stack, with the numbers of its "
      "contexts: the vertical axis is the stack, current context on top, and the horizontal one is "
      "time, on which each change of a stack has the same width. A mark is the first time of a "
      "finding.</p>\n");
  for (const NamedTimeline& named : pictures_.timelines) {
    if (shapes_ >= kPageShapes) {
      is_cut_ = true;
      break;
    }
    AddPicture(named);
  }
  if (is_cut_ || pictures_.has_others) {
    Add("<p class=\"faint\">There are more threads, processes or marks than this page shows; a "
        "trace (--trace) has all.</p>\n");
  }
}

// What the headings of the findings link to.
void HtmlPage::AddKinds() {
  std::set<FindingKind> kinds;
  const std::size_t shown = std::min(report_.findings.size(), kPageFindings);
  for (std::size_t i = 0; i < shown; ++i) kinds.insert(report_.findings[i].finding.kind);
  if (kinds.empty()) return;
  Add("<h2>What it means</h2>\n<dl>\n");
  for (const FindingKind kind : kinds) {
    Add(std::string("<dt id=\"") + Identifier(kind) + "\">" + Escaped(Name(kind)) + "</dt><dd>" +
        Escaped(MeaningOf(kind)) + "</dd>\n");
  }
  Add("</dl>\n");
}

void HtmlPage::AddProcesses() {
  const std::vector<ProcessWords> processes = ProcessesInWords(report_);
  Add("<h2 id=\"processes\">What was audited</h2>\n");
  if (processes.empty()) AddParagraph("doubtful", "no process initialised CUDA");
  Add("<ul>\n");
  for (std::size_t i = 0; i < std::min(processes.size(), kPageLines); ++i) {
    const ProcessWords& process = processes[i];
    Add("<li>" + Escaped(process.who) + ": <span class=\"" + (process.is_whole ? "" : "doubtful") +
        "\">" + Escaped(process.about) + "</span>\n");
    AddList("", process.notes);
    Add("</li>\n");
  }
  if (processes.size() > kPageLines) {
    Add("<li>" + std::to_string(processes.size() - kPageLines) +
        " more are not on this page</li>\n");
  }
  Add("</ul>\n");
}

std::string HtmlPage::Write() {
  Add(kHead);
  Add("<title>cuguest-audit: " + Escaped(report_.subject.substr(0, 100)) +
      "</title>\n</head>\n<body>\n");
  AddVerdict();
  const std::vector<FindingWords> findings =
      FindingsInWords(report_, report_.findings, kPageFindings);
  for (std::size_t i = 0; i < findings.size(); ++i) AddFinding(i + 1, findings[i]);
  if (findings.size() < report_.findings.size()) {
    AddParagraph("doubtful", std::to_string(report_.findings.size() - findings.size()) +
                                 " findings more are not on this page; --json has all");
  }
  AddKinds();
  AddPictures();
  AddProcesses();
  AddList("Left out", LeftOutInWords(report_));
  AddList("Notes", NotesInWords(report_));
  Add("</body>\n</html>\n");
  return std::move(page_);
}

}  // namespace

std::string ReportHtml(const Report& report, const Pictures& pictures) {
  return HtmlPage(report, pictures).Write();
}

}  // namespace cuguest::audit
