// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A report as a page for a browser, which needs nothing else.

#ifndef CUGUEST_AUDIT_COMMAND_REPORT_HTML_H_
#define CUGUEST_AUDIT_COMMAND_REPORT_HTML_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "audit/command/report.h"
#include "audit/command/timeline.h"

namespace cuguest::audit {

// The stacks of a process of the report, and the contexts in it.
struct NamedTimeline {
  std::uint32_t process = 0;  // its number
  const Timeline* timeline = nullptr;
  std::map<ContextId, NamedContext> contexts;
};

struct Pictures {
  std::vector<NamedTimeline> timelines;
  bool has_others = false;  // processes without one
};

// What a page shows, so that it opens however much happened. It says what it leaves out.
inline constexpr std::size_t kPageFindings = 1000;
inline constexpr std::size_t kPageShapes = 20000;
inline constexpr std::size_t kPageLines = 500;  // of a list
inline constexpr std::size_t kPageText = 4000;  // bytes of a name

// UTF-8, whatever names hold.
[[nodiscard]] std::string ReportHtml(const Report& report, const Pictures& pictures);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_REPORT_HTML_H_
