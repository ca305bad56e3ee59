// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/channel.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <string>
#include <thread>

#include "audit/channel_reader.h"
#include "audit/channel_server.h"
#include "audit/collect/channel_writer.h"
#include "audit/collect/clock.h"
#include "audit/collect/object_table.h"
#include "test/support/test.h"

using namespace cuguest::audit;

namespace {

struct Fixture {
  Fixture() : memory(MakeChannelMemory(kChannelSlots)) {
    BOOST_REQUIRE(memory >= 0);
    BOOST_REQUIRE(reader.Add(memory, getpid(), ""));
    BOOST_REQUIRE(writer.Use(memory, false));
  }
  ~Fixture() { close(memory); }

  void Write(int result) {
    EventRecord record = {};
    record.result = result;
    BOOST_REQUIRE(writer.WriteEvent(record));
  }

  const int memory;
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

BOOST_AUTO_TEST_CASE(threads_limits_and_functions_of_python) {
  ObjectTable objects;
  const KnownObject* function = objects.FindFunction("/no/folder/a.py", "Encoder.encode");
  BOOST_REQUIRE(function != nullptr);
  BOOST_TEST(objects.FindFunction("/no/folder/a.py", "Encoder.encode") == function);
  BOOST_TEST(objects.FindFunction("/no/folder/b.py", "Encoder.encode") != function);
  BOOST_TEST(objects.FindFunction("/no/folder/a.py", "Encoder.decode") != function);
  ObjectTable::Define(*function, 1, &writer);
  const ThreadRecord record = {0, 4711};
  const std::string name = "worker";
  writer.Write(RecordKind::kThread, &record, sizeof(record), name.data(), name.size());
  writer.WriteNote(RecordKind::kLimit, "too many");
  Write(1);
  EventRecord end = {};
  end.kind = static_cast<std::uint8_t>(EventKind::kThreadEnd);
  writer.WriteEvent(end);
  Write(2);
  std::vector<std::string> threads;
  reader.Poll([&](const ChannelProcess& process, const Event& event) {
    threads.push_back(event.os_thread == nullptr
                          ? ""
                          : std::to_string(event.os_thread->id) + event.os_thread->name);
    BOOST_REQUIRE(process.objects.size() == function->number + 1);
    const Object& object = process.objects[function->number];
    BOOST_TEST(object.path == "/no/folder/a.py");
    BOOST_TEST(object.function == "Encoder.encode");
    BOOST_TEST(object.package == 0u);
    BOOST_TEST(process.limits == std::vector<std::string>{"too many"},
               boost::test_tools::per_element());
  });
  BOOST_TEST(threads == (std::vector<std::string>{"4711worker", "4711worker", ""}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(table_that_is_full_tells_so_once) {
  ObjectTable objects;
  for (int i = 0; i < 4095; ++i) {
    BOOST_REQUIRE(objects.FindFunction("a.py", std::to_string(i).c_str()) != nullptr);
  }
  const auto limits = [&] {
    objects.TellLimits(1, &writer);
    reader.Poll([](const ChannelProcess&, const Event&) {});
    return reader.processes().front()->limits.size();
  };
  BOOST_TEST(limits() == 0u);
  BOOST_TEST(objects.FindFunction("a.py", "one more") == nullptr);
  BOOST_TEST(objects.FindFunction("a.py", "7") != nullptr);
  BOOST_TEST(limits() == 1u);
  BOOST_TEST(limits() == 1u);
}

// A truncated file would end a reader and a writer, by SIGBUS.
BOOST_AUTO_TEST_CASE(memory_cannot_be_truncated) {
  for (const off_t size : {0, 1 << 30}) {
    errno = 0;
    BOOST_TEST(ftruncate(memory, size) == -1);
    BOOST_TEST(errno == EPERM);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(channel_server)

// Writers for one address, in threads, since Open() waits for the answer.
struct Asking {
  Asking(ChannelServer* server, ChannelReader* reader, const std::string& address)
      : place(address) {
    std::atomic<bool> is_over{false};
    std::thread writes([&] {
      errno = 42;
      is_open = writer.Open(place.c_str(), false);
      error = errno;
      is_over = true;
    });
    while (!is_over) server->Serve(reader);
    writes.join();
    server->Serve(reader);
    reader->Poll([](const ChannelProcess&, const Event&) {});
  }

  const std::string place;
  ChannelWriter writer;
  bool is_open = false;
  int error = 0;
};

BOOST_AUTO_TEST_CASE(process_that_asks_gets_a_channel) {
  ChannelServer server(1 << 13);
  ChannelReader reader;
  const Asking asking(&server, &reader, server.address());
  BOOST_TEST(server.error() == "");
  BOOST_TEST(asking.is_open);
  BOOST_TEST(asking.error == 42);
  BOOST_REQUIRE(reader.processes().size() == 1u);
  BOOST_TEST(reader.processes()[0]->pid == getpid());
  BOOST_TEST(reader.processes()[0]->started);
  BOOST_TEST(!reader.AllEnded());
}

BOOST_AUTO_TEST_CASE(wrong_address_gets_no_channel) {
  ChannelServer server(1 << 13);
  ChannelReader reader;
  const std::string address = server.address();
  for (const std::string& wrong :
       {address + "0", address.substr(0, address.find(':')),
        address.substr(0, address.find(':') + 1), std::string("cuguest-audit-nobody:key"),
        std::string(200, 'x') + ":key"}) {
    BOOST_TEST_CONTEXT(wrong) {
      const Asking asking(&server, &reader, wrong);
      BOOST_TEST(!asking.is_open);
      BOOST_TEST(asking.error == 42);
    }
  }
  BOOST_TEST(reader.processes().empty());
  BOOST_TEST(server.refusals().empty());
}

BOOST_AUTO_TEST_CASE(file_size_limit_is_a_reason) {
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {4096, before.rlim_max};
  ChannelServer server(1 << 13);
  ChannelReader reader;
  setrlimit(RLIMIT_FSIZE, &small);
  const Asking asking(&server, &reader, server.address());
  setrlimit(RLIMIT_FSIZE, &before);
  BOOST_TEST(!asking.is_open);
  BOOST_REQUIRE(server.refusals().size() == 1u);
  BOOST_TEST(server.refusals()[0].pid == getpid());
  BOOST_TEST(server.refusals()[0].program == ProgramOf(getpid()));
  BOOST_TEST(server.refusals()[0].why ==
             "the file-size limit (ulimit -f) is below the 1 MiB of a channel");
}

// The key is sent, and the process does not wait for the answer.
BOOST_AUTO_TEST_CASE(late_answer_is_a_reason) {
  ChannelServer server(1 << 13);
  ChannelReader reader;
  const std::string address = server.address();
  const size_t colon = address.find(':');
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  address.copy(name.sun_path + 1, colon);
  const int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + colon);
  BOOST_REQUIRE(connect(client, reinterpret_cast<sockaddr*>(&name), size) == 0);
  const std::string key = address.substr(colon + 1);
  BOOST_REQUIRE(send(client, key.data(), key.size(), 0) == ssize_t(key.size()));
  close(client);
  server.Serve(&reader);
  BOOST_REQUIRE(server.refusals().size() == 1u);
  BOOST_TEST(server.refusals()[0].why.find("it waited in vain") == 0u);
}

// Nor do signals prolong the wait for an answer.
BOOST_AUTO_TEST_CASE(no_answer_is_waited_for_no_longer_than_patience) {
  const ChannelServer server(1 << 13);
  struct sigaction handled = {}, before = {};
  handled.sa_handler = [](int) {};
  sigaction(SIGALRM, &handled, &before);
  const itimerval often = {{0, 100'000}, {0, 100'000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  ChannelWriter writer;
  const std::uint64_t start = MonotonicNs();
  BOOST_TEST(!writer.Open(server.address().c_str(), false));
  BOOST_TEST(MonotonicNs() - start < 2 * kChannelPatienceNs);
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

// It is told as one that did not start, once it has ended.
BOOST_AUTO_TEST_CASE(process_that_ends_before_it_begins) {
  const int memory = MakeChannelMemory(1 << 13);
  ChannelReader reader;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  BOOST_REQUIRE(reader.Add(memory, child, "/bin/short"));
  waitpid(child, nullptr, 0);
  reader.Poll([](const ChannelProcess&, const Event&) {});
  BOOST_REQUIRE(reader.processes().size() == 1u);
  BOOST_TEST(!reader.processes()[0]->started);
  BOOST_TEST(reader.processes()[0]->program == "/bin/short");
  BOOST_TEST(reader.AllEnded());
  close(memory);
}

// kChannelPatience is for readers that are stopped or busy.
BOOST_AUTO_TEST_CASE(full_ring_of_a_dead_reader_is_left) {
  ChannelServer server(1 << 13);
  ChannelReader reader;
  Asking asking(&server, &reader, server.address());
  server.Close();
  const std::uint64_t start = MonotonicNs();
  errno = 42;
  for (int i = 0; i < (1 << 13) + 100; ++i) asking.writer.WriteEvent({});
  BOOST_TEST(errno == 42);
  BOOST_TEST(MonotonicNs() - start < kChannelPatienceNs / 2);
  BOOST_TEST(asking.writer.IsStalled());
}

BOOST_AUTO_TEST_SUITE_END()
