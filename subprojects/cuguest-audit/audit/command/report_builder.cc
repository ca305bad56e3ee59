// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/report_builder.h"

#include <algorithm>
#include <utility>

#include "audit/party.h"

namespace cuguest::audit {

namespace {

// The same for what is one place to a reader: two calls on one line.
std::string PlaceKey(const Function& function) {
  const std::string place =
      function.line != 0 ? function.file + ":" + std::to_string(function.line) + " " + function.name
                         : std::to_string(function.offset);
  return function.object + '\0' + place + '\0';
}

std::string CulpritKey(FindingKind kind, const std::string& call, const Function& culprit) {
  return std::to_string(static_cast<int>(kind)) + call + '\0' + PlaceKey(culprit);
}

Function OfPython(const Object& object, std::uint64_t line) {
  Function function;
  function.object = PackageOf(object);
  function.offset = line;
  function.symbol = function.name = object.function;
  function.file = object.path;
  function.line = static_cast<int>(line);
  return function;
}

}  // namespace

std::vector<Function> ReportBuilder::Of(Place place, const std::vector<Object>& objects) {
  const bool is_known = place.object != 0 && place.object < objects.size();
  if (is_known && !objects[place.object].function.empty()) {
    return {OfPython(objects[place.object], place.offset)};
  }
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
  named.maker = Of(finding.object.maker, objects)[0];
  named.ender = Of(finding.object.ender, objects)[0];
  std::vector<size_t> first;
  named.chain = Expand(*finding.chain, objects, &first);
  named.culprit_function = first[std::min(finding.culprit_frame, finding.chain->size())];
  const size_t returned = std::min(finding.returned_frame, finding.chain->size());
  // A callable that is audited is called by what audits it, which has nothing to repair.
  const bool is_callable =
      finding.culprit.object < objects.size() && !objects[finding.culprit.object].file.empty();
  named.returned = returned < finding.chain->size() && !is_callable
                       ? named.chain[first[returned + 1] - 1]
                       : named.culprit;
  named.victim_function = first[std::min(finding.victim_frame, finding.chain->size())];
  if (finding.victim_chain != nullptr) {
    std::vector<size_t> unused;
    named.victim_chain = Expand(*finding.victim_chain, objects, &unused);
  }
  if (generates_) named.suppression = GenerateSuppression(Identifier(finding.kind), named.chain);
  return named;
}

bool IsAskedObject(const std::vector<std::string>& patterns, const std::string& object) {
  const auto matches = [&](const std::string& pattern) {
    return !object.empty() &&
           (MatchesWildcards(pattern, object) || MatchesWildcards(pattern, BaseName(object)));
  };
  return patterns.empty() || std::any_of(patterns.begin(), patterns.end(), matches);
}

bool ReportBuilder::IsAsked(const NamedFinding& named) const {
  return IsAskedObject(objects_, named.culprit.object) ||
         IsAskedObject(objects_, named.victim.object);
}

bool ReportBuilder::IsForbidden(const Analysis::FirstUse& use) const {
  const auto is_meant = [&](const std::string& what) {
    switch (use.what) {
      case Analysis::FirstUse::kInitialized:
        return what == "init";
      case Analysis::FirstUse::kContext:
        return what == "context" || what == "context:" + std::to_string(use.finding.device);
      case Analysis::FirstUse::kCall:
        return what.rfind("api:", 0) == 0 && MatchesWildcards(what.substr(4), use.finding.call);
    }
    return false;
  };
  return std::any_of(forbidden_.begin(), forbidden_.end(), is_meant);
}

void ReportBuilder::Insert(NamedFinding named, std::vector<NamedFinding>* findings, Known* known) {
  const std::string key = CulpritKey(named.finding.kind, named.finding.call, named.culprit) +
                          PlaceKey(named.returned) + PlaceKey(named.victim);
  const auto [first, is_new] = known->emplace(key, findings->size());
  if (is_new) {
    findings->push_back(std::move(named));
    return;
  }
  NamedFinding* const same = &(*findings)[first->second];
  same->finding.count += named.finding.count;
  if (same->last_process != named.process) ++same->processes;
  same->last_process = named.process;
}

void ReportBuilder::Link(std::uint32_t process, const std::vector<Object>& objects,
                         Report* report) {
  std::unordered_map<std::string, std::vector<size_t>> by_culprit;
  for (size_t i = 0; i < report->findings.size(); ++i) {
    const NamedFinding& named = report->findings[i];
    by_culprit[CulpritKey(named.finding.kind, named.finding.call, named.culprit)].push_back(i);
  }
  for (size_t i = 0; i < report->findings.size(); ++i) {
    NamedFinding& named = report->findings[i];
    const FindingRef& cause = named.finding.cause;
    if (named.process != process || cause.call.empty()) continue;
    const Function culprit = Of(cause.culprit, objects)[0];
    for (const size_t other : by_culprit[CulpritKey(cause.kind, cause.call, culprit)]) {
      if (other != i) named.consequence_of = other + 1;
    }
  }
}

void ReportBuilder::Add(const ReportedProcess& process, const Analysis& analysis, Report* report) {
  report->processes.push_back(process);
  ReportedProcess& reported = report->processes.back();
  reported.dropped = analysis.Dropped();
  const std::vector<std::string> limits = analysis.Limits();
  reported.limits.insert(reported.limits.end(), limits.begin(), limits.end());
  std::vector<Finding> findings = analysis.Findings();
  if (leaks_) {
    const std::vector<Finding> leaks = analysis.Leaks();
    findings.insert(findings.end(), leaks.begin(), leaks.end());
  }
  if (noise_) {
    const std::vector<Finding> noise = analysis.Noise();
    findings.insert(findings.end(), noise.begin(), noise.end());
    reported.dropped += analysis.DroppedNoise();
  }
  for (const Analysis::FirstUse& use : analysis.FirstUses()) {
    if (IsForbidden(use)) findings.push_back(use.finding);
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.time_ns < b.time_ns; });
  for (const Finding& finding : findings) {
    NamedFinding named = Name(finding, analysis.objects());
    named.process = process.process.number;
    named.last_process = named.process;
    if (!IsAsked(named)) {
      ++report->other_objects;
    } else if (const std::string* name =
                   suppressions_.Find(Identifier(finding.kind), named.chain, finding.count)) {
      named.suppressed_by = *name;
      Insert(std::move(named), &report->suppressed_findings, &suppressed_);
    } else {
      Insert(std::move(named), &report->findings, &inserted_);
    }
  }
  Link(process.process.number, analysis.objects(), report);
}

void ReportBuilder::AddUnsettled(const ReportedProcess& process, const Analysis& analysis,
                                 Report* report) {
  for (const Finding& finding : analysis.Unsettled()) {
    const NamedFinding named = Name(finding, analysis.objects());
    const std::string library = BaseName(named.culprit.object);
    if (!IsAsked(named) ||
        suppressions_.Find(Identifier(finding.kind), named.chain, finding.count) != nullptr) {
      continue;
    }
    report->gaps.push_back(BaseName(process.process.program) + " (" +
                           std::to_string(process.process.pid) + "): nothing tells whether " +
                           library + " had returned from " + named.returned.ToString() +
                           "; if it had, its " + finding.call +
                           " is a finding: " + cuguest::audit::Name(finding.kind));
  }
}

}  // namespace cuguest::audit
