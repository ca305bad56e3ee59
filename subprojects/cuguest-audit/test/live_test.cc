// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>

#include "audit/command/live_findings.h"
#include "test/scenario.h"

BOOST_AUTO_TEST_SUITE(audit_live)

using namespace cuguest::audit;

namespace {

// A session of one process, in which more and more happens.
struct Running {
  void Happens(const std::string& events) {
    scenario += events;
    session = std::make_unique<Session>(nullptr);
    LogReader reader(session.get());
    reader.Read(cuguest_test::LogOf(scenario));
    reader.Finish();
    BOOST_TEST(reader.error() == "");
  }
  std::string Look(LiveFindings* live) const { return live->Look(session->processes()); }

  std::string scenario = cuguest_test::kHost;
  std::unique_ptr<Session> session;
};

constexpr char kLeak[] = "cuCtxPushCurrent 1>2 context=2 | guest host\ncheck 2>2 | host\n";

}  // namespace

BOOST_AUTO_TEST_CASE(a_finding_that_stays_is_told_once) {
  Running running;
  LiveFindings live({});
  running.Happens(kLeak);
  BOOST_TEST(running.Look(&live) == "");
  const std::string line = running.Look(&live);
  BOOST_TEST(line.rfind("cuguest-audit: leaked push by libguest.so+0x", 0) == 0u, line);
  BOOST_TEST(line.find("(cuCtxPushCurrent), victim host+0x") != std::string::npos, line);
  BOOST_TEST(line.find(", thread 1 of process ") != std::string::npos, line);
  BOOST_TEST(running.Look(&live) == "");
  running.Happens(kLeak);
  BOOST_TEST(running.Look(&live) == "");
  BOOST_TEST(running.Look(&live) == "");
}

BOOST_AUTO_TEST_CASE(what_is_taken_back_is_not_told) {
  Running running;
  LiveFindings live({});
  running.Happens(kLeak);
  BOOST_TEST(running.Look(&live) == "");
  running.Happens("cuCtxPopCurrent 2>1 | guest host\ncheck 1>1 | host\n");
  BOOST_TEST(running.Look(&live) == "");
  BOOST_TEST(running.Look(&live) == "");
}

BOOST_AUTO_TEST_CASE(other_objects_are_left_out) {
  for (const auto& [pattern, is_told] :
       {std::pair("libguest*", true), {"host", true}, {"x", false}}) {
    Running running;
    LiveFindings live({pattern});
    running.Happens(kLeak);
    running.Look(&live);
    BOOST_TEST((running.Look(&live) != "") == is_told, pattern);
  }
}

BOOST_AUTO_TEST_CASE(many_at_once_are_counted) {
  Running running;
  LiveFindings live({});
  std::string events;
  for (int i = 0; i < 14; ++i) {
    const std::string id = std::to_string(i + 3);
    events += "cuCtxPushCurrent 1>" + id + " context=" + id + " | guest:" + std::to_string(i) +
              " host\ncheck " + id + ">" + id + " | host\ncuCtxPopCurrent " + id + ">1 | host\n";
  }
  running.Happens(events);
  BOOST_TEST(running.Look(&live) == "");
  const std::string lines = running.Look(&live);
  BOOST_TEST(std::count(lines.begin(), lines.end(), '\n') == 11);
  BOOST_TEST(lines.find("cuguest-audit: 4 findings more, for the report\n") != std::string::npos,
             lines);
  BOOST_TEST(running.Look(&live) == "");
}

BOOST_AUTO_TEST_SUITE_END()
