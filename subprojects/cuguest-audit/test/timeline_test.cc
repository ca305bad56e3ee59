// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/timeline.h"

#include <boost/test/unit_test.hpp>
#include <vector>

BOOST_AUTO_TEST_SUITE(audit_timeline)

using namespace cuguest::audit;

namespace {

// Of the process 1, whose id is 7.
struct Drawn {
  Drawn() { stacks.Tell(&timelines); }

  void Set(std::uint32_t thread, std::uint64_t time, const std::vector<ContextId>& ids) {
    std::vector<ContextNote> stack;
    for (const ContextId id : ids) stack.push_back({id, 0, false, {}});
    stacks.Set({1, 7, thread}, time, stack);
  }
  const Timeline& End(std::uint64_t time) {
    stacks.EndProcess(1, time);
    return timelines.processes().at(1);
  }

  Timelines timelines;
  StackChanges stacks;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_change_is_a_column) {
  Drawn drawn;
  drawn.Set(1, 100, {1});
  drawn.Set(1, 200, {1, 2});
  drawn.Set(2, 300, {3});
  drawn.Set(1, 900, {1});
  const Timeline& timeline = drawn.End(1000);
  BOOST_TEST(timeline.begins() == std::vector<std::uint64_t>({100, 200, 300, 900, 1000}),
             boost::test_tools::per_element());
  BOOST_TEST(timeline.changes() == 1u);
  const auto& rows = timeline.threads().at(1).rows;
  BOOST_TEST_REQUIRE(rows.size() == 2u);
  BOOST_TEST(rows[0] == Timeline::Row({1, 1, 1, 1}), boost::test_tools::per_element());
  BOOST_TEST(rows[1] == Timeline::Row({0, 2, 2}), boost::test_tools::per_element());
  BOOST_TEST(timeline.threads().at(2).rows[0] == Timeline::Row({0, 0, 3, 3}),
             boost::test_tools::per_element());
  BOOST_TEST(timeline.Contexts().size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_time_has_a_column) {
  Drawn drawn;
  drawn.Set(1, 100, {1});
  drawn.Set(1, 200, {});
  const Timeline& timeline = drawn.timelines.processes().at(1);
  BOOST_TEST(timeline.ColumnAt(0) == 0u);
  BOOST_TEST(timeline.ColumnAt(199) == 0u);
  BOOST_TEST(timeline.ColumnAt(200) == 1u);
  BOOST_TEST(timeline.ColumnAt(5000) == 1u);
}

BOOST_AUTO_TEST_CASE(a_million_changes_fit) {
  constexpr std::uint64_t kChanges = 1'000'000;
  Drawn drawn;
  drawn.Set(1, 1, {1});
  for (std::uint64_t i = 2; i < kChanges; ++i) {
    if (i % 2 == 0) {
      drawn.Set(1, i, {1, i});
    } else {
      drawn.Set(1, i, {1});
    }
  }
  const Timeline& timeline = drawn.End(kChanges);
  BOOST_TEST(timeline.changes() == 4096u);  // 245 columns
  BOOST_TEST(timeline.begins().size() == 245u);
  const auto& rows = timeline.threads().at(1).rows;
  BOOST_TEST_REQUIRE(rows.size() == 2u);
  BOOST_TEST(rows[0] == Timeline::Row(245, 1), boost::test_tools::per_element());
  BOOST_TEST(rows[1] == Timeline::Row(245, Timeline::kSeveral), boost::test_tools::per_element());
  BOOST_TEST(timeline.Contexts().size() == 1u);  // of the others no cell is left
  BOOST_TEST(timeline.remembered() < 4 * Timeline::kColumns);
}

BOOST_AUTO_TEST_CASE(columns_become_one_with_what_both_had) {
  Drawn drawn;
  drawn.Set(1, 1, {1});
  drawn.Set(1, 2, {});
  drawn.Set(1, 3, {2});
  drawn.Set(1, 4, {3});
  for (std::uint64_t i = 5; i <= Timeline::kColumns + 1; ++i) {
    drawn.Set(2, i, {i});
  }
  const Timeline& timeline = drawn.End(1000);
  BOOST_TEST(timeline.changes() == 2u);
  const Timeline::Row& row = timeline.threads().at(1).rows[0];
  BOOST_TEST(row[0] == 1u);
  BOOST_TEST(row[1] == Timeline::kSeveral);
  BOOST_TEST(row[2] == 3u);
  BOOST_TEST(timeline.begins()[1] == 3u);
}

BOOST_AUTO_TEST_CASE(what_is_kept_is_bounded) {
  Drawn drawn;
  for (std::uint32_t thread = 1; thread <= Timeline::kThreads; ++thread) {
    drawn.Set(thread, thread, {1});
  }
  BOOST_TEST(!drawn.timelines.processes().at(1).has_others());
  drawn.Set(Timeline::kThreads + 1, 100, {1});
  drawn.Set(1, 200, std::vector<ContextId>(Timeline::kRows + 1, 1));
  const Timeline& timeline = drawn.End(1000);
  BOOST_TEST(timeline.has_others());
  BOOST_TEST(timeline.threads().size() == Timeline::kThreads);
  BOOST_TEST(timeline.threads().at(1).rows.size() == Timeline::kRows);
  BOOST_TEST(timeline.threads().at(1).is_higher);
  BOOST_TEST(!timeline.threads().at(2).is_higher);

  for (std::uint32_t process = 2; process <= Timelines::kProcesses; ++process) {
    drawn.stacks.Set({process, 8, 1}, 1, {{1, 0, false, {}}});
  }
  BOOST_TEST(!drawn.timelines.has_others());
  drawn.stacks.Set({Timelines::kProcesses + 1, 8, 1}, 1, {{1, 0, false, {}}});
  BOOST_TEST(drawn.timelines.has_others());
  BOOST_TEST(drawn.timelines.processes().size() == Timelines::kProcesses);
}

BOOST_AUTO_TEST_CASE(changes_at_one_time_are_one_column) {
  Drawn drawn;
  drawn.Set(1, 100, {1});
  drawn.Set(2, 100, {2});
  drawn.Set(1, 100, {3});
  const Timeline& timeline = drawn.End(100);
  BOOST_TEST(timeline.begins().size() == 1u);
  BOOST_TEST((timeline.threads().at(1).rows[0][0] == Timeline::kSeveral));
  BOOST_TEST(timeline.threads().at(2).rows[0][0] == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
