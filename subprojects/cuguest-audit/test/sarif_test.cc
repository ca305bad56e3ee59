// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>

#include "audit/command/report_sarif.h"
#include "test/sample_report.h"

BOOST_AUTO_TEST_SUITE(audit_sarif)

using namespace cuguest::audit;
using cuguest_test::SampleFinding;
using cuguest_test::SampleFunction;
using cuguest_test::SampleReport;

namespace {

// Without line breaks and indentation.
std::string SarifOf(const Report& report, const std::string& root = "/repository") {
  const std::string lines = ReportSarif(report, "1.2.3", root);
  std::string json;
  for (std::size_t at = 0; at < lines.size();) {
    if (lines[at] == '\n') {
      at = std::min(lines.find_first_not_of(' ', at + 1), lines.size());
    } else {
      json += lines[at++];
    }
  }
  return json;
}

bool SarifHas(const std::string& text, const std::string& part) {
  const bool has = text.find(part) != std::string::npos;
  if (!has) BOOST_TEST_MESSAGE(part << "\nis not in\n" << text);
  return has;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_finding_is_a_result) {
  const std::string sarif = SarifOf(SampleReport());
  BOOST_TEST(SarifHas(sarif, R"("version": "2.1.0")"));
  BOOST_TEST(SarifHas(sarif, R"("semanticVersion": "1.2.3")"));
  BOOST_TEST(SarifHas(
      sarif,
      R"("ruleId": "replaced-context","ruleIndex": 2,"level": "error","message": {"text": )"
      R"("replaced current context by libguest.so.1.2  guest::Work (guest::Work.cc:7): libhost)"));
  BOOST_TEST(SarifHas(sarif, R"("occurrenceCount": 3)"));
  BOOST_TEST(SarifHas(sarif, R"("suppressions": [])"));
  BOOST_TEST(SarifHas(sarif, R"("executionSuccessful": true)"));
}

BOOST_AUTO_TEST_CASE(a_message_has_no_repetition) {
  const std::string sarif = SarifOf(SampleReport());
  const std::size_t results = sarif.find("\"results\"");
  const std::size_t begin = sarif.find("\"message\"", results);
  const std::string message = sarif.substr(begin, sarif.find("\"locations\"", begin) - begin);
  const std::string consequence = "next launch runs on GPU 0, in context 2, not 1";
  BOOST_TEST(SarifHas(message, consequence));
  BOOST_TEST(message.rfind(consequence) == message.find(consequence));
  BOOST_TEST(message.find("why:") == std::string::npos);
  BOOST_TEST(SarifHas(message, "\\u000ato do: in guest::Work: cuCtxGetCurrent before"));
}

BOOST_AUTO_TEST_CASE(rules_have_the_calls_advice) {
  const std::string sarif = SarifOf(SampleReport());
  BOOST_TEST(SarifHas(sarif, "To do, cuCtxSetCurrent: cuCtxGetCurrent before"));
  BOOST_TEST(SarifHas(sarif, "To do: destroy only what you created; with cuguest: SharedContext."));
  BOOST_TEST(sarif.find(".md") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(files_of_the_repository_are_relative) {
  Report report = SampleReport();
  BOOST_TEST(SarifHas(SarifOf(report, "/src"),
                      R"("artifactLocation": {"uri": "guest%3A%3AWork.cc","uriBaseId": "SRCROOT"},)"
                      R"("region": {"startLine": 7})"));
  BOOST_TEST(SarifHas(SarifOf(report, "/src"), R"("SRCROOT": {"uri": "file:///src/"})"));
  report.findings[0].returned.file = "/src/../src dir/%x.cc";
  BOOST_TEST(SarifHas(SarifOf(report, "/src"), R"({"uri": "file:///src%20dir/%25x.cc"})"));
  report.findings[0].returned.file = "../x.cc";
  report.findings[0].returned.folder = "/src/build";
  BOOST_TEST(SarifHas(SarifOf(report, "/src"), R"({"uri": "x.cc","uriBaseId": "SRCROOT"})"));
  report.findings[0].returned.folder = "";
  report.findings[0].returned.file = "relative/x.cc";
  BOOST_TEST(SarifHas(SarifOf(report, "/src"), R"({"uri": "relative/x.cc"})"));
}

BOOST_AUTO_TEST_CASE(a_function_without_a_line_is_a_logical_location) {
  Report report = SampleReport();
  report.findings[0].returned = SampleFunction("/lib/libguest.so", "");
  report.findings[0].culprit = report.findings[0].returned;
  const std::string sarif = SarifOf(report);
  BOOST_TEST(SarifHas(sarif, R"("locations": [{"logicalLocations": [{"name": "libguest.so",)"
                             R"("fullyQualifiedName": "/lib/libguest.so","kind": "module"}]}])"));
}

BOOST_AUTO_TEST_CASE(a_chain_is_a_stack_and_a_code_flow) {
  const std::string sarif = SarifOf(SampleReport());
  const std::size_t stacks = sarif.find("\"stacks\"");
  const std::size_t flows = sarif.find("\"codeFlows\"");
  BOOST_TEST_REQUIRE(stacks < flows);
  const std::string stack = sarif.substr(stacks, flows - stacks);
  const std::string flow = sarif.substr(flows, sarif.find("partialFingerprints") - flows);
  BOOST_TEST(stack.find("guest::Work") < stack.find("\"main\""));
  BOOST_TEST(flow.find("\"main\"") < flow.find("guest::Work"));
  BOOST_TEST(SarifHas(stack, R"("module": "libguest.so.1.2")"));
}

BOOST_AUTO_TEST_CASE(fingerprints_outlive_builds) {
  NamedFinding named = SampleFinding();
  const std::string first = Fingerprint(named);
  BOOST_TEST(first == "replaced-context libguest.so guest::Work > libhost.so host::Call");
  for (const char* path : {"/other/libguest.so.2", "/lib/libguest-1.2.so", "libguest-3.so.4.5"}) {
    named.culprit = named.returned = SampleFunction(path, "guest::Work", 99);
    named.returned.offset = 0x77;
    named.finding.thread = 9;
    named.finding.call = "cuCtxSetCurrent";
    BOOST_TEST(Fingerprint(named) == first);
  }
  for (const char* path : {"/lib/libguest2.so", "/lib/libguest.so2", "/lib/lib-guest.so", ""}) {
    named.culprit = named.returned = SampleFunction(path, "guest::Work");
    BOOST_TEST(Fingerprint(named) != first, path);
  }
  named = SampleFinding();
  named.victim.name = "host::Other";
  BOOST_TEST(Fingerprint(named) != first);
}

BOOST_AUTO_TEST_CASE(suppressed_findings_are_suppressed_results) {
  Report report = SampleReport();
  report.suppressed_findings.push_back(SampleFinding());
  report.suppressed_findings[0].suppressed_by = "known";
  BOOST_TEST(SarifHas(SarifOf(report),
                      R"("suppressions": [{"kind": "external","justification": "known"}])"));
}

BOOST_AUTO_TEST_CASE(what_is_incomplete_is_a_notification) {
  Report report = SampleReport();
  report.findings.clear();
  report.processes[0].lost = 7;
  std::string sarif = SarifOf(report);
  BOOST_TEST(SarifHas(sarif, R"("executionSuccessful": false)"));
  BOOST_TEST(SarifHas(sarif, R"({"level": "error","message": {"text": "app (4711): events from )"));
  BOOST_TEST(SarifHas(sarif, R"(\u000a7 events were lost)"));
  BOOST_TEST(SarifHas(sarif, R"("results": [])"));
  report = Report();
  report.gaps = {"the log was cut off"};
  report.unused_suppressions = {"old (f:1)"};
  sarif = SarifOf(report);
  BOOST_TEST(SarifHas(sarif, R"({"level": "error","message": {"text": "the log was cut off"}})"));
  BOOST_TEST(SarifHas(sarif, "\"text\": \"unused suppression: old (f:1)\""));
  BOOST_TEST(SarifHas(sarif, R"("text": "no process initialised CUDA")"));
}

BOOST_AUTO_TEST_CASE(a_cause_is_related) {
  Report report = SampleReport();
  report.findings.push_back(SampleFinding());
  report.findings[1].consequence_of = 1;
  const std::string sarif = SarifOf(report);
  BOOST_TEST(SarifHas(sarif, R"("message": {"text": "the victim"})"));
  BOOST_TEST(SarifHas(sarif, R"("message": {"text": "the cause: replaced current context"})"));
}

BOOST_AUTO_TEST_CASE(names_are_no_placeholders_and_no_links) {
  Report report = SampleReport();
  report.findings[0].culprit.name = report.findings[0].returned.name = "f::{lambda()#1}::[](1)";
  report.findings[0].finding.call = "a\nb\x1b\xff";
  const std::string sarif = SarifOf(report);
  BOOST_TEST(
      SarifHas(sarif, "replaced current context by libguest.so.1.2  f::{{lambda()#1}}::[] (1)"));
  BOOST_TEST(SarifHas(sarif, R"(call: a\\nb\\x1b\ufffd)"));
}

BOOST_AUTO_TEST_SUITE_END()
