// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes a report of what the analyses of processes found.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_REPORT_BUILDER_H_
#define CUGUEST_AUDIT_COMMAND_REPORT_BUILDER_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "audit/analysis.h"
#include "audit/command/report.h"
#include "audit/command/suppressions.h"
#include "audit/command/symbols.h"

namespace cuguest::audit {

// Whether `object` has a path or name that one of `patterns` matches; any object if there are none.
[[nodiscard]] bool IsAskedObject(const std::vector<std::string>& patterns,
                                 const std::string& object);

class ReportBuilder {
 public:
  // Findings are reported whose culprit or victim is in one of `objects`, patterns; all if there
  // are none. Each gets the text of a suppression if `generates`.
  // `suppressions` must outlive it.
  ReportBuilder(std::vector<std::string> objects, bool generates, Suppressions* suppressions)
      : objects_(std::move(objects)), generates_(generates), suppressions_(*suppressions) {}

  // Whether what is never given back is a finding.
  void SetLeaks(bool leaks) { leaks_ = leaks; }
  // Whether a call that failed is one.
  void SetNoise(bool noise) { noise_ = noise; }
  // What is a finding where it is done first: "init", "context", "context:N", "api:PATTERN".
  void SetForbidden(std::vector<std::string> forbidden) { forbidden_ = std::move(forbidden); }

  // Adds the findings of a process to `report`, which is the same in all calls: the same finding
  // in another process is counted there.
  void Add(const ReportedProcess& process, const Analysis& analysis, Report* report);

  // Adds to what is missing in `report` what the end of the process hides: findings if those who
  // made the last calls had returned.
  void AddUnsettled(const ReportedProcess& process, const Analysis& analysis, Report* report);

  // Of a process with these objects.
  NamedContext Name(const ContextNote& note, const std::vector<Object>& objects);

 private:
  using Known = std::unordered_map<std::string, std::size_t>;

  NamedFinding Name(const Finding& finding, const std::vector<Object>& objects);
  std::vector<Function> Of(Place place, const std::vector<Object>& objects);
  // The functions of a chain's frames; `first` gets the index of the first function of each.
  std::vector<Function> Expand(const Chain& chain, const std::vector<Object>& objects,
                               std::vector<size_t>* first);
  [[nodiscard]] bool IsForbidden(const Analysis::FirstUse& use) const;
  [[nodiscard]] bool IsAsked(const NamedFinding& named) const;
  // At the place where it is then, or one that is the same to a reader.
  // `known`: those of `findings` by what is one finding, and their indices.
  static void Insert(NamedFinding named, std::vector<NamedFinding>* findings, Known* known);
  // Which finding of the process each one follows from.
  void Link(std::uint32_t process, const std::vector<Object>& objects, Report* report);

  const std::vector<std::string> objects_;
  const bool generates_;
  Suppressions& suppressions_;
  bool leaks_ = false;
  bool noise_ = false;
  std::vector<std::string> forbidden_;
  Symbols symbols_;
  Known inserted_;
  Known suppressed_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_REPORT_BUILDER_H_
