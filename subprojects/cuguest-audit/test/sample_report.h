// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A report with one finding, for tests of its forms.

#ifndef CUGUEST_AUDIT_TEST_SAMPLE_REPORT_H_
#define CUGUEST_AUDIT_TEST_SAMPLE_REPORT_H_

#include <string>

#include "audit/command/report.h"

namespace cuguest_test {

// In /src/NAME.cc, if there is a line.
inline cuguest::audit::Function SampleFunction(const std::string& object, const std::string& name,
                                               int line = 0) {
  cuguest::audit::Function function;
  function.object = object;
  function.offset = 0x1a2b;
  function.name = name;
  function.symbol = name;
  if (line != 0) function.file = "/src/" + name + ".cc";
  function.line = line;
  return function;
}

// A library that leaves the context 2 in place of its caller's, 1, at 2 ms.
inline cuguest::audit::NamedFinding SampleFinding() {
  cuguest::audit::NamedFinding named;
  named.finding.kind = cuguest::audit::FindingKind::kReplacedContext;
  named.finding.call = "cudaSetDevice";
  named.finding.count = 3;
  named.finding.thread = 1;
  named.finding.time_ns = 2'000'000;
  named.process = 1;
  named.culprit = SampleFunction("/lib/libguest.so.1.2", "guest::Work", 7);
  named.returned = named.culprit;
  named.victim = SampleFunction("/opt/libhost.so", "host::Call", 9);
  named.before.note = {1, 0, false, {}};
  named.after.note = {2, 0, true, {}};
  named.chain = {named.culprit, named.victim, SampleFunction("/bin/app", "main")};
  named.victim_function = 1;
  return named;
}

inline cuguest::audit::Report SampleReport() {
  cuguest::audit::Report report;
  report.subject = "app --fast";
  cuguest::audit::ReportedProcess process;
  process.process.number = 1;
  process.process.pid = 4711;
  process.process.start_ns = 1'000'000;
  process.process.program = "/bin/app";
  process.source = "cupti";
  process.notes = {"does not see calls of a static runtime"};
  process.events = 10;
  report.processes.push_back(process);
  report.findings.push_back(SampleFinding());
  return report;
}

}  // namespace cuguest_test

#endif  // CUGUEST_AUDIT_TEST_SAMPLE_REPORT_H_
