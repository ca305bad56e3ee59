// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects of contexts that are over, by events in short notation (scenario.h): whose fault it is,
// and what the finding has.

#include "audit/analysis.h"

#include <string>
#include <vector>

#include "test/scenario.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(audit_analysis_objects)

namespace {

using cuguest::audit::Finding;
using cuguest::audit::ObjectKind;
using cuguest_test::FindingsIn;
using cuguest_test::kHost;
using cuguest_test::LogOf;
using cuguest_test::Replayed;

// "third" makes a stream in the host's context, which the host destroys on another thread.
const std::string kEnded = kHost + R"(
made cuStreamCreate before=1 value=7 | third:4 host
t2 cuCtxDestroy 0>0 context=1 | host:9
)";

const std::string kQuery = "stale cuStreamQuery context=1 setting=1 value=256 old=7 | third host\n";

std::vector<Finding> AllOf(const std::string& scenario) {
  Replayed replayed(LogOf(scenario));
  BOOST_TEST(replayed.error() == "");
  return replayed.analysis().Findings();
}

}  // namespace

BOOST_AUTO_TEST_CASE(its_user_is_the_culprit) {
  BOOST_TEST(FindingsIn(kEnded + kQuery) == "used-after-context cuStreamQuery third>-");
  BOOST_TEST(FindingsIn(kEnded + "3* " + kQuery) == "used-after-context cuStreamQuery third>- x3");
  // Another than its maker.
  BOOST_TEST(FindingsIn(kEnded + "t3 stale cuStreamDestroy context=1 setting=1 old=7 | fourth\n") ==
             "used-after-context cuStreamDestroy fourth>-");
}

BOOST_AUTO_TEST_CASE(maker_and_end_are_said) {
  const std::vector<Finding> findings = AllOf(kEnded + kQuery);
  BOOST_REQUIRE(findings.size() == 1u);
  const Finding& finding = findings[0];
  BOOST_TEST((finding.object.kind == ObjectKind::kStream));
  BOOST_TEST(finding.object.maker.object == 3u);
  BOOST_TEST(finding.object.maker.offset == 4u);
  BOOST_TEST(finding.object.ended_by == "cuCtxDestroy");
  BOOST_TEST(finding.object.ender.object == 1u);
  BOOST_TEST(finding.object.ender.offset == 9u);
  BOOST_TEST(finding.object.ended_on == 2u);
  BOOST_TEST(finding.object.ended_ns != 0u);
  BOOST_TEST(finding.object.ended_ns < finding.time_ns);
  BOOST_TEST(finding.before.id == 1u);
  BOOST_TEST(finding.before.creator.object == 1u);
  BOOST_TEST(finding.victim.object == 0u);
}

BOOST_AUTO_TEST_CASE(each_end_of_a_context) {
  const auto ended_by = [](const std::string& how) {
    const std::vector<Finding> findings = AllOf(
        "context cuDevicePrimaryCtxRetain context=1 device=0 primary=1 | host\n"
        "cuDevicePrimaryCtxRetain 0>0 context=1 device=0 primary=1 | host\n" +
        how + kQuery);
    BOOST_REQUIRE(findings.size() == 1u);
    return findings[0].object.ended_by;
  };
  BOOST_TEST(ended_by("cuDevicePrimaryCtxReset 0>0 device=0 | host\n") ==
             "cuDevicePrimaryCtxReset");
  BOOST_TEST(ended_by("cudaDeviceReset 1>1 | host\n") == "cudaDeviceReset");
  BOOST_TEST(ended_by("cuDevicePrimaryCtxRelease 0>0 device=0 | host\n") ==
             "cuDevicePrimaryCtxRelease");
  // Of which nothing was seen, but that there is another.
  BOOST_TEST(ended_by("context cudaMalloc context=2 device=0 primary=1 | host\n") == "");
  BOOST_TEST(ended_by("") == "");
}

// The caller that holds its handle is to let it go.
BOOST_AUTO_TEST_CASE(the_toolkit_acts_for_its_caller) {
  const std::string made = kHost +
                           "made cuMemHostAlloc before=1 value=2 | cublas third:4 host\n"
                           "cuCtxDestroy 1>0 context=1 | host\n";
  const std::string use = "stale cuMemFreeHost context=1 setting=4 old=2 result=1 | cublas ";
  BOOST_TEST(FindingsIn(made + use + "third host\n") == "used-after-context cuMemFreeHost third>-");
  BOOST_TEST(AllOf(made + use + "third host\n")[0].object.maker.offset == 4u);
  // Nobody called.
  BOOST_TEST(FindingsIn(made + "t2 " + use + "\n") == "used-after-context cuMemFreeHost cublas>-");
}

BOOST_AUTO_TEST_CASE(what_is_no_finding) {
  // The process ends.
  BOOST_TEST(FindingsIn(kEnded + "process_end\n" + kQuery) == "");
  // Nobody is known to have called.
  BOOST_TEST(FindingsIn(kEnded + "stale cuStreamQuery context=1 setting=1 old=7 | libc\n") == "");
  // No such kind.
  BOOST_TEST(FindingsIn(kEnded + "stale cuStreamQuery context=1 setting=10 old=7 | third\n") == "");
  BOOST_TEST(FindingsIn(kEnded + "stale cuStreamQuery context=1 old=7 | third\n") == "");
  BOOST_TEST(FindingsIn(kEnded) == "");
}

// The numbers of textures are those of other contexts', too: only who made it is known to mean it.
BOOST_AUTO_TEST_CASE(a_number_is_its_makers) {
  const std::string use = "stale cuTexObjectGetResourceDesc context=1 setting=8 value=1 old=";
  BOOST_TEST(FindingsIn(kEnded + use + "7 | third host\n") ==
             "used-after-context cuTexObjectGetResourceDesc third>-");
  BOOST_TEST(FindingsIn(kEnded + use + "7 | fourth host\n") == "");
  BOOST_TEST(FindingsIn(kEnded + use + "8 | third host\n") == "");
}

BOOST_AUTO_TEST_CASE(who_made_it_may_be_unknown) {
  const std::vector<Finding> findings =
      AllOf(kEnded + "stale cuStreamQuery context=1 setting=1 | third host\n");
  BOOST_REQUIRE(findings.size() == 1u);
  BOOST_TEST(findings[0].object.maker.object == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
