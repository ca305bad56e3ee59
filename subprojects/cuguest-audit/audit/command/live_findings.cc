// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/live_findings.h"

#include <algorithm>
#include <cstdio>

#include "audit/command/printable.h"
#include "audit/command/report_builder.h"

namespace cuguest::audit {

namespace {

const std::string& PathOf(const Place& place, const std::vector<Object>& objects) {
  static const std::string kNone;
  return place.object != 0 && place.object < objects.size() ? objects[place.object].path : kNone;
}

// "libmine.so+0x1a2b", as addr2line takes it.
std::string PlaceText(const Place& place, const std::vector<Object>& objects) {
  const std::string& path = PathOf(place, objects);
  char offset[32];
  std::snprintf(offset, sizeof(offset), "0x%llx", static_cast<unsigned long long>(place.offset));
  return path.empty() ? offset : BaseName(path) + "+" + offset;
}

std::string LiveText(const Finding& finding, const std::vector<Object>& objects) {
  std::string text = std::string(Name(finding.kind)) + " by " +
                     PlaceText(finding.culprit, objects) + " (" + finding.call + ")";
  if (finding.victim.object != 0) text += ", victim " + PlaceText(finding.victim, objects);
  return text;
}

}  // namespace

std::string LiveFindings::Look(const std::map<std::uint32_t, Session::AuditedProcess>& processes) {
  std::string lines;
  std::size_t shown = 0;
  std::size_t more = 0;
  for (const auto& [number, process] : processes) {
    Looked& looked = looked_[number];
    if (looked.events == process.about.events && looked.waiting.empty()) continue;
    looked.events = process.about.events;
    std::set<std::string> waiting;
    const std::vector<Object>& objects = process.analysis->objects();
    for (const Finding& finding : process.analysis->Findings()) {
      if (!IsAskedObject(objects_, PathOf(finding.culprit, objects)) &&
          !IsAskedObject(objects_, PathOf(finding.victim, objects))) {
        continue;
      }
      const std::string text = LiveText(finding, objects);
      if (told_.count(text) != 0) continue;
      if (looked.waiting.count(text) == 0) {
        waiting.insert(text);
        continue;
      }
      told_.insert(text);
      if (shown == kLines) {
        ++more;
        continue;
      }
      ++shown;
      lines += "cuguest-audit: " + Printable(text) + ", thread " + std::to_string(finding.thread) +
               " of process " + std::to_string(process.about.process.pid) + "\n";
    }
    looked.waiting = std::move(waiting);
  }
  if (more != 0) {
    lines += "cuguest-audit: " + std::to_string(more) + (more == 1 ? " finding" : " findings") +
             " more, for the report\n";
  }
  return lines;
}

}  // namespace cuguest::audit
