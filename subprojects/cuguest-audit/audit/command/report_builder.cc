// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/report_builder.h"

#include <algorithm>
#include <utility>

namespace cuguest::audit {

namespace {

bool IsSamePlace(const Function& a, const Function& b) {
  return a.object == b.object && a.offset == b.offset;
}

}  // namespace

std::vector<Function> ReportBuilder::Of(Place place, const std::vector<Object>& objects) {
  const bool is_known = place.object != 0 && place.object < objects.size();
  return symbols_.Of(is_known ? &objects[place.object] : nullptr, place.offset);
}

NamedContext ReportBuilder::Name(const ContextNote& note, const std::vector<Object>& objects) {
  return {note, Of(note.creator, objects)[0]};
}

std::vector<Function> ReportBuilder::Expand(const Chain& chain, const std::vector<Object>& objects,
                                            std::vector<size_t>* first) {
  std::vector<Function> functions;
  for (const Frame& frame : chain) {
    first->push_back(functions.size());
    const std::vector<Function> of_frame = Of({frame.object, frame.offset}, objects);
    functions.insert(functions.end(), of_frame.begin(), of_frame.end());
  }
  first->push_back(functions.size());
  return functions;
}

NamedFinding ReportBuilder::Name(const Finding& finding, const std::vector<Object>& objects) {
  NamedFinding named;
  named.finding = finding;
  named.culprit = Of(finding.culprit, objects)[0];
  named.victim = Of(finding.victim, objects)[0];
  named.before = Name(finding.before, objects);
  named.after = Name(finding.after, objects);
  std::vector<size_t> first;
  named.chain = Expand(*finding.chain, objects, &first);
  named.culprit_function = first[std::min(finding.culprit_frame, finding.chain->size())];
  named.victim_function = first[std::min(finding.victim_frame, finding.chain->size())];
  if (finding.victim_chain != nullptr) {
    std::vector<size_t> unused;
    named.victim_chain = Expand(*finding.victim_chain, objects, &unused);
  }
  if (generates_) named.suppression = GenerateSuppression(Identifier(finding.kind), named.chain);
  return named;
}

bool ReportBuilder::IsAsked(const NamedFinding& named) const {
  const auto matches = [&](const std::string& pattern) {
    for (const Function* function : {&named.culprit, &named.victim}) {
      if (!function->object.empty() && (MatchesWildcards(pattern, function->object) ||
                                        MatchesWildcards(pattern, BaseName(function->object)))) {
        return true;
      }
    }
    return false;
  };
  return objects_.empty() || std::any_of(objects_.begin(), objects_.end(), matches);
}

void ReportBuilder::Insert(NamedFinding named, Report* report) {
  const auto same = std::find_if(
      report->findings.begin(), report->findings.end(), [&](const NamedFinding& other) {
        return other.finding.kind == named.finding.kind &&
               other.finding.call == named.finding.call &&
               IsSamePlace(other.culprit, named.culprit) &&
               IsSamePlace(other.victim, named.victim) && other.process != named.process;
      });
  if (same == report->findings.end()) {
    report->findings.push_back(std::move(named));
    return;
  }
  same->finding.count += named.finding.count;
  ++same->processes;
}

void ReportBuilder::Add(const ReportedProcess& process, const Analysis& analysis, Report* report) {
  report->processes.push_back(process);
  report->processes.back().dropped = analysis.Dropped();
  std::vector<Finding> findings = analysis.Findings();
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.time_ns < b.time_ns; });
  for (const Finding& finding : findings) {
    NamedFinding named = Name(finding, analysis.objects());
    named.process = process.process.number;
    if (!IsAsked(named)) {
      ++report->other_objects;
    } else if (suppressions_.Find(Identifier(finding.kind), named.chain, finding.count) ==
               nullptr) {
      Insert(std::move(named), report);
    }
  }
}

}  // namespace cuguest::audit
