// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <boost/test/unit_test.hpp>
#include <string>

#include "audit/command/report_html.h"
#include "test/sample_report.h"

BOOST_AUTO_TEST_SUITE(audit_html)

using namespace cuguest::audit;
using cuguest_test::SampleFinding;
using cuguest_test::SampleFunction;
using cuguest_test::SampleReport;

namespace {

std::size_t CountIn(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

bool HtmlHas(const std::string& text, const std::string& part) {
  const bool has = CountIn(text, part) != 0;
  if (!has) BOOST_TEST_MESSAGE(part << "\nis not in\n" << text);
  return has;
}

// The stacks of the process of SampleReport(), in which nothing has happened yet.
struct Pictured {
  Pictured() { stacks.Tell(&timeline); }

  void Set(std::uint32_t thread, std::uint64_t time, const std::vector<ContextId>& ids) {
    std::vector<ContextNote> stack;
    for (const ContextId id : ids) stack.push_back({id, 0, false, {}});
    stacks.Set({1, 4711, thread}, time, stack);
  }
  std::string Page(const Report& report) {
    NamedTimeline named = {1, &timeline, {}};
    for (const auto& [id, note] : timeline.Contexts()) {
      named.contexts[id] = {note, SampleFunction("/opt/libhost.so", "host::Create")};
    }
    return ReportHtml(report, {{named}, false});
  }

  Timeline timeline;
  StackChanges stacks;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_page_has_verdict_and_finding) {
  const std::string page = ReportHtml(SampleReport(), {});
  BOOST_TEST(HtmlHas(page, "<h1 class=\"bad\">1 finding, 1 library</h1>"));
  BOOST_TEST(HtmlHas(page, "<article id=\"finding-1\">"));
  BOOST_TEST(HtmlHas(page, "<code>libguest.so.1.2  guest::Work (guest::Work.cc:7)</code>"));
  BOOST_TEST(HtmlHas(page, "<dt>why</dt><dd>libhost.so&#39;s next launch runs on GPU 0"));
  BOOST_TEST(HtmlHas(page, "<dt>to do</dt><dd>in guest::Work: cuCtx"));
  BOOST_TEST(HtmlHas(page, "<a href=\"#replaced-context\">replaced current context</a></h3>"));
  BOOST_TEST(HtmlHas(
      page, "<dt id=\"replaced-context\">replaced current context</dt><dd>Another context"));
  BOOST_TEST(HtmlHas(page, "<details><summary>Call chain, 2 frames</summary>"));
  BOOST_TEST(HtmlHas(page, "3 times, first on thread 1 at 2.000 ms"));
  BOOST_TEST(HtmlHas(page, "app (4711): <span class=\"\">events from cupti</span>"));
  BOOST_TEST(HtmlHas(page, "<li>does not see calls of a static runtime</li>"));
  BOOST_TEST(page.find("1 finding, 1 library") < page.find("<article"));
}

BOOST_AUTO_TEST_CASE(a_page_loads_nothing) {
  Pictured pictured;
  pictured.Set(1, 2'000'000, {1});
  pictured.stacks.EndProcess(1, 4'000'000);
  const std::string page = pictured.Page(SampleReport());
  for (const char* part : {"<script", "<link", "src=", "url(", "@import", "http:", "https:"}) {
    BOOST_TEST(CountIn(page, part) == 0u, part);
  }
  BOOST_TEST(HtmlHas(page, "content=\"default-src 'none'; style-src 'unsafe-inline'\""));
}

BOOST_AUTO_TEST_CASE(causes_are_links) {
  Report report = SampleReport();
  report.findings.push_back(SampleFinding());
  report.findings[1].consequence_of = 1;
  BOOST_TEST(HtmlHas(ReportHtml(report, {}),
                     "<dt>cause</dt><dd><a href=\"#finding-1\">[1] replaced current context by"));
}

BOOST_AUTO_TEST_CASE(hostile_names_are_text) {
  const std::string evil = "<script>alert('\"&')</script>\x1b[31m\n\xff\xc2\x9b";
  const std::string shown =
      "&lt;script&gt;alert(&#39;&quot;&amp;&#39;)&lt;/script&gt;\\x1b[31m\\n\xef\xbf\xbd\\xc2\\x9b";
  Report report = SampleReport();
  NamedFinding& named = report.findings[0];
  named.culprit = named.returned = SampleFunction("/lib/" + evil, evil, 3);
  named.victim = SampleFunction(evil, "");
  named.finding.call = evil;
  named.chain = {named.culprit};
  named.victim_function = 1;
  named.victim_chain = {named.victim};
  named.after.creator = named.culprit;
  named.suppression = "{\n   " + evil + "\n}\n";
  report.subject = evil;
  report.processes[0].process.program = "/" + evil;
  report.processes[0].source = report.processes[0].notes[0] = evil;
  report.suppressed = {{evil, 1, 1}};
  report.gaps = report.notes = report.unused_suppressions = {evil};
  Pictured pictured;
  pictured.Set(1, 2'000'000, {1});
  pictured.stacks.EndProcess(1, 4'000'000);
  NamedTimeline picture = {1, &pictured.timeline, {}};
  picture.contexts[1] = {{1, 0, false, {}}, named.culprit};
  const std::string page = ReportHtml(report, {{picture}, false});
  BOOST_TEST(CountIn(page, "<script") == 0u);
  BOOST_TEST(CountIn(page, "alert('") == 0u);
  BOOST_TEST(CountIn(page, "\x1b") == 0u);
  BOOST_TEST(CountIn(page, "\xff") == 0u);
  BOOST_TEST(CountIn(page, shown) >= 10u, page);
  BOOST_TEST(HtmlHas(page, "<title>context 1 (device 0, created by "));
  BOOST_TEST(HtmlHas(page, "<li>unused suppression: " + shown + "</li>"));
}

BOOST_AUTO_TEST_CASE(stacks_are_a_picture) {
  Pictured pictured;
  pictured.Set(1, 1'500'000, {1});
  pictured.Set(1, 2'000'000, {1, 2});
  pictured.Set(1, 3'000'000, {1, 3});  // in which the finding is
  pictured.stacks.EndProcess(1, 4'000'000);
  const std::string page = pictured.Page(SampleReport());
  // Four columns; the outermost entry is the lowest row, below a row of marks.
  BOOST_TEST(HtmlHas(page,
                     "<title>context 1 (device 0, created by libhost.so in host::Create)"
                     "</title><rect x=\"0.00%\" y=\"38\" width=\"75.00%\" height=\"17\"/>"));
  BOOST_TEST(HtmlHas(page,
                     "<rect x=\"25.00%\" y=\"20\" width=\"25.00%\" height=\"17\"/>"
                     "<text x=\"25.00%\" dx=\"3\" y=\"33\">2</text>"));
  BOOST_TEST(HtmlHas(page,
                     "<a class=\"m\" href=\"#finding-1\"><title>[1] replaced current context"
                     "</title><line x1=\"62.50%\""));
  BOOST_TEST(HtmlHas(page, "<span>0.500 ms</span><span>2.000 ms</span><span>3.000 ms</span>"));
  BOOST_TEST(HtmlHas(page, "<summary>3 contexts</summary>"));
  BOOST_TEST(CountIn(page, "more threads, processes or marks") == 0u);
}

BOOST_AUTO_TEST_CASE(a_thread_without_contexts_has_marks) {
  Pictured pictured;
  pictured.Set(2, 1'500'000, {1});
  pictured.stacks.EndProcess(1, 4'000'000);
  const std::string page = pictured.Page(SampleReport());
  BOOST_TEST(HtmlHas(page, "<h4>thread 1</h4>"));
  BOOST_TEST(HtmlHas(page, "href=\"#finding-1\"><title>"));
}

BOOST_AUTO_TEST_CASE(a_page_is_bounded) {
  Report report = SampleReport();
  report.findings.assign(3 * kPageFindings, SampleFinding());
  report.findings[0].consequence_of = kPageFindings + 1;
  report.processes.assign(3 * kPageLines, report.processes[0]);
  for (std::size_t i = 0; i < report.processes.size(); ++i) {
    report.processes[i].notes = {std::to_string(i)};
  }
  report.notes.assign(3 * kPageLines, "note");
  report.subject.assign(1'000'000, 'x');
  Pictured pictured;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    pictured.Set(static_cast<std::uint32_t>(i % 40), 2'000'000 + i,
                 std::vector<ContextId>(20, i / 40 % 7 + 1));
  }
  pictured.stacks.EndProcess(1, 4'000'000);
  const std::string page = pictured.Page(report);
  BOOST_TEST(page.size() < 1'500'000u);
  BOOST_TEST(CountIn(page, "<article") == kPageFindings);
  BOOST_TEST(HtmlHas(page, "2000 findings more are not on this page; --json has all"));
  BOOST_TEST(HtmlHas(page, "<li>1000 more are not on this page</li>"));
  BOOST_TEST(HtmlHas(page, "There are more threads, processes or marks than this page shows"));
  BOOST_TEST(HtmlHas(page, "whose stack is higher than 8 entries"));
  BOOST_TEST(HtmlHas(page, "Each column stands for 256 changes."));
  BOOST_TEST(CountIn(page, "href=\"#finding-1001\"") == 0u);
  BOOST_TEST(CountIn(page, "<rect") <= kPageShapes + Timeline::kRows * Timeline::kColumns);
}

BOOST_AUTO_TEST_CASE(a_page_without_findings) {
  Report report = SampleReport();
  report.findings.clear();
  const std::string good = ReportHtml(report, {});
  BOOST_TEST(HtmlHas(good, "<h1 class=\"good\">0 findings, 0 libraries</h1>"));
  BOOST_TEST(CountIn(good, "The audit is incomplete") == 0u);
  report.processes[0].lost = 5;
  const std::string lost = ReportHtml(report, {});
  BOOST_TEST(HtmlHas(lost, "<h1 class=\"doubtful\">0 findings, 0 libraries</h1>"));
  BOOST_TEST(HtmlHas(lost, "The audit is incomplete"));
  BOOST_TEST(HtmlHas(lost, "<li>5 events were lost</li>"));
  report.processes[0].unaudited = "of a reason";
  BOOST_TEST(HtmlHas(ReportHtml(report, {}), "not audited, because of a reason"));
  const std::string none = ReportHtml(Report(), {});
  BOOST_TEST(HtmlHas(none, "no process initialised CUDA: there was nothing to audit"));
}

BOOST_AUTO_TEST_SUITE_END()
