// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The log of an audit, which --replay reads: any bytes. What is read of one can be analysed, be
// reported, and be written again, which changes no finding.

#include <memory>
#include <string>
#include <string_view>

#include "audit/analysis.h"
#include "audit/command/report.h"
#include "audit/command/report_builder.h"
#include "audit/command/session.h"
#include "audit/log.h"
#include "test/fuzz/input.h"

namespace {

using namespace cuguest::audit;

// In pieces, which may end in a line.
std::string Read(std::string_view log, std::size_t piece, EventSink* sink) {
  LogReader reader(sink);
  for (; !log.empty(); log.remove_prefix(log.size() < piece ? log.size() : piece)) {
    reader.Read(log.substr(0, piece));
  }
  reader.Finish();
  return reader.error();
}

std::string ReportOf(const Session& session) {
  Suppressions none;
  ReportBuilder builder({}, /*generates=*/true, &none);
  Report report;
  for (const auto& [number, audited] : session.processes()) {
    builder.Add(audited.about, *audited.analysis, &report);
  }
  return ReportText(report) + ReportJson(report);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view log(reinterpret_cast<const char*>(data), size);
  Session first(nullptr);
  const std::string error = Read(log, 1 + size / 3, &first);
  std::string again;
  LogWriter writer(&again);
  FUZZ_CHECK(Read(log, size + 1, &writer) == error);
  writer.End();
  Session second(nullptr);
  FUZZ_CHECK(Read(again, again.size(), &second).empty());
  FUZZ_CHECK(ReportOf(first) == ReportOf(second));
  return 0;
}
