// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The log of an audit, which --replay reads: any bytes. What is read of one can be analysed, be
// reported, and be written again, which changes no finding.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "audit/analysis.h"
#include "audit/command/report.h"
#include "audit/command/report_builder.h"
#include "audit/command/report_html.h"
#include "audit/command/report_sarif.h"
#include "audit/command/session.h"
#include "audit/command/timeline.h"
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

// An analysis of a log, and what a page shows of it.
struct Analysed {
  Timelines timelines;
  Session session{nullptr, {&timelines}};
};

std::string ReportOf(Analysed* analysed) {
  const Session& session = analysed->session;
  Suppressions none;
  ReportBuilder builder({}, /*generates=*/true, &none);
  Report report;
  for (const auto& [number, audited] : session.processes()) {
    builder.Add(audited.about, *audited.analysis, &report);
  }
  analysed->session.Finish(report);
  Pictures pictures;
  for (const auto& [number, timeline] : analysed->timelines.processes()) {
    NamedTimeline named = {number, &timeline, {}};
    for (const auto& [id, note] : timeline.Contexts()) {
      named.contexts[id] = builder.Name(note, session.processes().at(number).analysis->objects());
    }
    pictures.timelines.push_back(std::move(named));
  }
  return ReportText(report) + ReportJson(report) + ReportHtml(report, pictures) +
         ReportSarif(report, "0.0.0", "/");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view log(reinterpret_cast<const char*>(data), size);
  Analysed first;
  const std::string error = Read(log, 1 + size / 3, &first.session);
  std::string again;
  LogWriter writer(&again);
  FUZZ_CHECK(Read(log, size + 1, &writer) == error);
  writer.End();
  Analysed second;
  FUZZ_CHECK(Read(again, again.size(), &second.session).empty());
  FUZZ_CHECK(ReportOf(&first) == ReportOf(&second));
  return 0;
}
