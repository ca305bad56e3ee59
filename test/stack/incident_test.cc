// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/incident.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>

#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/incident_listener.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(incident)

namespace {

using cuguest::ContextGuard;
using cuguest::Driver;
using cuguest::Incident;
using cuguest::IncidentCount;
using cuguest::IncidentListener;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;

Incident g_last;
int g_heard = 0;
void Listen(const Incident& incident, void*) {
  g_last = incident;
  ++g_heard;
}

// In place of the suite's own listener.
struct Listening {
  cuguest_test::Unrecorded unrecorded;
  IncidentListener listener;
};

// Leaves a push of `c` behind in a guard for `b`; returns the guard's line.
int LeakAPush(CUcontext b, CUcontext c) {
  const ContextGuard guard(b);
  (*Driver::Get())->CtxPushCurrent(c);
  return __LINE__ - 2;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_incident_holds_what_is_needed_to_find_the_culprit) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  const Listening listening{{}, IncidentListener(&Listen)};
  g_heard = 0;
  const unsigned long long count = IncidentCount(Incident::Kind::kLeakedPush);
  const unsigned long long all = IncidentCount();
  const int line = LeakAPush(b.get(), c.get());
  BOOST_TEST(g_heard == 1);
  BOOST_TEST((g_last.kind == Incident::Kind::kLeakedPush));
  BOOST_TEST((g_last.repair == Incident::Repair::kInferred));
  BOOST_TEST(g_last.result == CUDA_SUCCESS);
  BOOST_TEST(g_last.expected == b.get());
  BOOST_TEST(g_last.found == c.get());
  BOOST_TEST(g_last.current == a.get());
  BOOST_TEST(std::string(g_last.file) == __FILE__);
  BOOST_TEST(g_last.line == line);
  BOOST_TEST(g_last.thread == static_cast<unsigned long>(syscall(SYS_gettid)));
  BOOST_TEST(IncidentCount(Incident::Kind::kLeakedPush) == count + 1);
  BOOST_TEST(IncidentCount() == all + 1);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(without_a_listener_incidents_are_counted) {
  const OwnContext b;
  const OwnContext c;
  const unsigned long long count = IncidentCount();
  const cuguest_test::Unrecorded silence;
  LeakAPush(b.get(), c.get());
  BOOST_TEST(IncidentCount() == count + 1);
}

// A listener is called after the repair and may use guards of its own.
BOOST_AUTO_TEST_CASE(a_listener_may_use_cuda) {
  static CUcontext s_context = nullptr;
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  s_context = c.get();
  const auto use_cuda = [](const Incident& incident, void* user) {
    Listen(incident, user);
    const ContextGuard guard(s_context);
    BOOST_TEST(guard.ok());
    BOOST_TEST(guard.caller() == incident.current);
  };
  const Listening listening{{}, IncidentListener(use_cuda)};
  g_heard = 0;
  LeakAPush(b.get(), c.get());
  BOOST_TEST(g_heard == 1);
  BOOST_TEST(cuguest_test::GetStack() == std::vector<CUcontext>{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_guest_prints_nothing_by_itself) {
  const OwnContext b;
  const OwnContext c;
  const cuguest_test::Unrecorded silence;
  char name[] = "/tmp/cuguest-stderr-XXXXXX";
  const int file = mkstemp(name);
  BOOST_TEST_REQUIRE(file >= 0);
  const int real_stderr = dup(2);
  dup2(file, 2);
  LeakAPush(b.get(), c.get());
  { const ContextGuard refused(static_cast<CUcontext>(nullptr)); }
  dup2(real_stderr, 2);
  close(real_stderr);
  BOOST_TEST(lseek(file, 0, SEEK_END) == 0);
  close(file);
  unlink(name);
}

BOOST_AUTO_TEST_CASE(counting_from_many_threads_loses_nothing) {
  const OwnContext b;
  const OwnContext c;
  const cuguest_test::Unrecorded silence;
  const unsigned long long count = IncidentCount(Incident::Kind::kLeakedPush);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) LeakAPush(b.get(), c.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(IncidentCount(Incident::Kind::kLeakedPush) == count + 8 * 200);
}

BOOST_AUTO_TEST_CASE(every_kind_and_repair_has_a_name) {
  std::set<std::string> names;
  for (int kind = 0; kind < cuguest::Incident::kKinds; ++kind) {
    names.insert(Name(static_cast<Incident::Kind>(kind)));
  }
  for (const Incident::Repair repair :
       {Incident::Repair::kRepaired, Incident::Repair::kInferred, Incident::Repair::kUnrepaired}) {
    names.insert(Name(repair));
  }
  BOOST_TEST(names.size() == static_cast<std::size_t>(cuguest::Incident::kKinds) + 3);
}

BOOST_AUTO_TEST_SUITE_END()
