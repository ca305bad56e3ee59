// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: testing
/// \file
/// `Audit` runs a callable under the auditor and returns what it, and the libraries that it calls,
/// left behind for their callers: the findings of the command `cuguest-audit` (docs/audit.md), in a
/// test. It works with Boost.Test, GoogleTest or neither, on a real driver and the simulation.
///
///   BOOST_AUTO_TEST_CASE(encode_leaves_nothing_behind) {
///     const auto findings = cuguest::testing::Audit([] { encoder.Encode(frame); });
///     BOOST_REQUIRE_MESSAGE(findings.ok(), findings.status());
///     for (const auto& finding : *findings) BOOST_ERROR(finding);
///   }
///
/// With GoogleTest the last two lines are `ASSERT_TRUE(findings.ok()) << findings.status();` and
/// `EXPECT_TRUE(findings->empty()) << findings->front();`.

#ifndef CUGUEST_TESTING_AUDIT_H_
#define CUGUEST_TESTING_AUDIT_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace testing {

/// The culprit's object if it is code of the test program that the callable called. It
/// distinguishes a library that is linked statically into the program from the test.
CUGUEST_HIDE inline constexpr char kAuditedCallable[] = "(audited callable)";

/// One line of docs/audit.md, "What it finds": who did what to whom.
struct AuditFinding {
  CUGUEST_HIDE AuditFinding() = default;
  CUGUEST_HIDE AuditFinding(const AuditFinding&) = default;
  CUGUEST_HIDE AuditFinding(AuditFinding&&) = default;
  CUGUEST_HIDE AuditFinding& operator=(const AuditFinding&) = default;
  CUGUEST_HIDE AuditFinding& operator=(AuditFinding&&) = default;
  CUGUEST_HIDE ~AuditFinding() = default;

  std::string kind;              ///< its identifier there: "leaked-push"
  std::string call;              ///< of CUDA, that did it: "cuCtxPushCurrent"
  std::string culprit_object;    ///< path of a library or program, or kAuditedCallable
  std::string culprit_function;  ///< "Encoder::Encode"; empty if the object has no symbol for it
  std::string victim_object;     ///< the same; both empty if it is about the process as a whole
  std::string victim_function;
  std::uint64_t count = 0;  ///< times that the culprit's function did the same to the victim's
  std::string text;         ///< lines for people, with the contexts and the call chain

  CUGUEST_HIDE friend std::ostream& operator<<(std::ostream& out, const AuditFinding& finding) {
    return out << finding.text;
  }
};

/// Calls `callable` once, in the calling thread. An empty result means that nothing was disturbed.
/// The caller of Audit() counts as a victim of all changes of its thread's stack, and of each
/// primary context that is created. What is on its stack of contexts is its own. All code of the
/// program that runs meanwhile, in the thread below the callable or in other threads, counts as the
/// callable's; a separate library that is called is a party of its own.
///
/// The collector is libcuguest-audit.so: the one that the environment variable
/// CUGUEST_AUDIT_LIBRARY names, else the installed one, else the one that the dynamic linker finds
/// by this name. It stays loaded. The environment variable CUGUEST_AUDIT_SUPPRESSIONS may name a
/// file of suppressions, as for the command; findings that it suppresses are left out.
/// Stack:   left as the callable leaves it. Before the callable each entry is taken off and put
///          back, and so is each active primary context.
/// Count:   each active primary context is retained and released once before the callable.
/// Threads: any; one audit at a time. One more thread runs meanwhile.
/// Errors:  those of Driver::GetInitialized() and these; the callable ran only with kDataLoss.
///          kInvalidArgument     the file of suppressions cannot be read, or has an error: the
///                               message has its name and the line
///          kFailedPrecondition  another audit is in progress, in any thread; the process runs
///                               under `cuguest-audit`; the current context is destroyed, or the
///                               stack of calls cannot be followed
///          kNotFound            the collector cannot be loaded
///          kUnavailable         no source of events: another tool, such as a profiler, has
///                               subscribed, or there is no CUPTI
///          kInternal            the collector could not make its files in $TMPDIR, or /tmp
///          kUnimplemented       cuguest was built without the auditor
///          kDataLoss            events were lost: what the callable did is not known
///          An exception of the callable passes through, and ends the audit.
/// Cost:    driver calls before the callable: one for the number of devices and one for each of
///          them, four for each active primary context, and those of StackProbe::Take(). The file
///          of suppressions is read each time. Between audits, too, each call of CUDA costs what
///          docs/audit.md says.
/// Limits:  processes that the callable forks are not seen. Of what was there before, only the
///          contexts on the caller's stack and the active primary contexts are known: no holders of
///          references, and no captures in progress. A last error that the callable leaves is found
///          only where it is read before the callable returns.
///
/// It is in the dependency `cuguest-testing`, where that is built with Meson's option `audit`,
/// which is enabled where cuguest is built by itself; `-Dcuguest:audit=enabled` for a subproject,
/// whose dependency's variable `audit_library` is the value for CUGUEST_AUDIT_LIBRARY. CMake's
/// add_subdirectory() does not build it.
[[nodiscard]] absl::StatusOr<std::vector<AuditFinding>> Audit(absl::FunctionRef<void()> callable);

}  // namespace testing
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_TESTING_AUDIT_H_
