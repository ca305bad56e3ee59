// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/channel.h"

#include <unistd.h>

#include <filesystem>

#include "audit/channel_reader.h"
#include "audit/collect/channel_writer.h"
#include "test/support/test.h"

using namespace cuguest::audit;

namespace {

struct Fixture {
  Fixture() : directory(Make()), reader(directory) {
    BOOST_REQUIRE(writer.Open(directory.c_str(), false));
  }
  ~Fixture() { std::filesystem::remove_all(directory); }

  static std::string Make() {
    char pattern[] = "/tmp/cuguest-channel-test-XXXXXX";
    BOOST_REQUIRE(mkdtemp(pattern) != nullptr);
    return pattern;
  }

  void Write(int result) {
    EventRecord record = {};
    record.result = result;
    BOOST_REQUIRE(writer.WriteEvent(record));
  }

  std::string directory;
  ChannelWriter writer;
  ChannelReader reader;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(channel, Fixture)

// So a reader that sleeps in between is never where the process writes.
BOOST_AUTO_TEST_CASE(what_is_written_during_a_poll_is_for_the_next_one) {
  std::vector<int> results;
  const auto write_another = [&](const ChannelProcess&, const Event& event) {
    results.push_back(event.result);
    Write(event.result + 10);
  };
  Write(1);
  Write(2);
  BOOST_TEST(reader.Poll(write_another) == 2u);
  BOOST_TEST(results == (std::vector<int>{1, 2}), boost::test_tools::per_element());
  BOOST_TEST(reader.Poll(write_another) == 2u);
  BOOST_TEST(results == (std::vector<int>{1, 2, 11, 12}), boost::test_tools::per_element());
}

// Several times around the ring.
BOOST_AUTO_TEST_CASE(each_event_is_read_once_in_its_order) {
  int written = 0;
  int read = 0;
  const auto expect_next = [&](const ChannelProcess&, const Event& event) {
    BOOST_TEST_REQUIRE(event.result == read);
    ++read;
  };
  for (int round = 0; round < 20; ++round) {
    for (std::uint32_t i = 0; i < kChannelSlots / 4 + 7; ++i) Write(written++);
    BOOST_TEST(reader.Poll(expect_next) >= ChannelReader::kManyEvents);
  }
  BOOST_TEST(read == written);
  BOOST_TEST(reader.processes().front()->lost == 0u);
  BOOST_TEST(reader.processes().front()->broken == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
