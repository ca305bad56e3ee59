// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/peer_access.h"

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cuguest/c.h"
#include "cuguest/context_guard.h"
#include "test/objects/memory/memories.h"

BOOST_AUTO_TEST_SUITE(peer_access)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::PeerAccess;
using namespace cuguest_test;

const Device kFirst = Device::Borrow(0);
const Device kSecond = Device::Borrow(1);

// Whether the driver says that it is enabled; leaves it as it was.
bool IsEnabled(const Owner& from, const Owner& to) {
  from.Enter();
  const CUresult code = RAW(cuCtxEnablePeerAccess)(to.get(), 0);
  if (code == CUDA_SUCCESS) OK(RAW(cuCtxDisablePeerAccess)(to.get()));
  SetStack({});
  return code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

PeerAccess Enabled(const Owner& from, const Owner& to) {
  absl::StatusOr<PeerAccess> access = PeerAccess::Enable(from.ref(), to.ref());
  BOOST_TEST_REQUIRE(access.ok(), access.status().ToString());
  return *std::move(access);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_device_has_no_link_to_itself) {
  const Undisturbed undisturbed;
  const absl::StatusOr<PeerAccess::Link> link = PeerAccess::Query(kFirst, kFirst);
  BOOST_TEST_REQUIRE(link.ok(), link.status().ToString());
  BOOST_TEST(!link->access);
  BOOST_TEST(!link->atomics);
  BOOST_TEST(!link->arrays);
  REFUSES(PeerAccess::Query(kFirst, Device::Borrow(77)).status(), kNotFound, "device 0",
          "device 77");
}

BOOST_AUTO_TEST_CASE(why_there_is_no_access) {
  const Undisturbed undisturbed;
  REFUSES(PeerAccess::Check(kFirst, kFirst), kUnimplemented, "check peer access",
          "device 0 to device 0", "the same one", "PEER_ACCESS_UNSUPPORTED");
  BOOST_TEST(cuguest_peer_access_check(0, 0) == int{CUDA_ERROR_PEER_ACCESS_UNSUPPORTED});
  for (const int none : {-1, 77}) {
    REFUSES(PeerAccess::Check(kFirst, Device::Borrow(none)), kNotFound, "device 0");
    REFUSES(PeerAccess::Check(Device::Borrow(none), kFirst), kNotFound, "device 0");
    BOOST_TEST(cuguest_peer_access_check(0, none) == int{CUDA_ERROR_INVALID_DEVICE});
  }
}

BOOST_AUTO_TEST_CASE(access_is_possible_and_not_enabled, *NeedsPeers()) {
  const Owner a(0);
  const Owner b(1);
  {
    const Undisturbed undisturbed;
    BOOST_TEST(PeerAccess::Check(kFirst, kSecond).ok());
    BOOST_TEST(cuguest_peer_access_check(0, 1) == 0);
  }
  BOOST_TEST(!IsEnabled(a, b));
}

BOOST_AUTO_TEST_CASE(contexts_of_one_device) {
  const Owner a;
  const Owner b;
  const Undisturbed undisturbed;
  REFUSES(PeerAccess::Enable(a.ref(), b.ref()).status(), kUnimplemented, "enable peer access",
          "PEER_ACCESS_UNSUPPORTED");
  REFUSES(PeerAccess::Enable(a.ref(), ContextRef()).status(), kFailedPrecondition,
          "enable peer access");
  REFUSES(PeerAccess::Enable(ContextRef(), b.ref()).status(), kFailedPrecondition,
          "enable peer access");
}

BOOST_AUTO_TEST_CASE(a_context_that_ended) {
  const Owner a;
  ContextRef dead;
  {
    const Owner b;
    dead = b.ref();
  }
  OwnContext::DestroyIdle();
  const Undisturbed undisturbed;
  for (const absl::Status& status :
       {PeerAccess::Enable(a.ref(), dead).status(), PeerAccess::Enable(dead, a.ref()).status()}) {
    REFUSES(status, kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  }
}

BOOST_AUTO_TEST_CASE(a_link_needs_no_context, *NeedsDevices(2)) {
  const Undisturbed undisturbed;
  const absl::StatusOr<PeerAccess::Link> there = PeerAccess::Query(kFirst, kSecond);
  const absl::StatusOr<PeerAccess::Link> back = PeerAccess::Query(kSecond, kFirst);
  BOOST_TEST_REQUIRE(there.ok(), there.status().ToString());
  BOOST_TEST_REQUIRE(back.ok(), back.status().ToString());
  BOOST_TEST(there->access == back->access);
  BOOST_TEST(!IsActive(1));
}

BOOST_AUTO_TEST_CASE(for_a_scope_whatever_is_current, *NeedsPeers()) {
  const Owner a(0);
  const Owner b(1);
  for (const Stack& stack : {Stack{}, Stack{a.get()}, Stack{b.get()}}) {
    SetStack(stack);
    {
      const Undisturbed undisturbed;
      const PeerAccess access = Enabled(a, b);
      BOOST_TEST(!access.was_enabled());
      BOOST_TEST((access.context() == a.ref()));
      BOOST_TEST((access.peer() == b.ref()));
    }
    BOOST_TEST(!IsEnabled(a, b));
    BOOST_TEST(!IsEnabled(b, a));
  }
}

// The driver does not count: what the first of two users disables would be gone for the other.
BOOST_AUTO_TEST_CASE(it_lasts_as_long_as_one_of_a_pair, *NeedsPeers()) {
  const Owner a(0);
  const Owner b(1);
  for (const std::size_t first : {0, 1, 2}) {
    std::array<PeerAccess, 3> all = {Enabled(a, b), Enabled(a, b), Enabled(a, b)};
    for (const PeerAccess& one : all) BOOST_TEST(!one.was_enabled());
    for (std::size_t i = 0; i < all.size(); ++i) {
      BOOST_TEST(IsEnabled(a, b));
      SUCCEEDS(all[(first + i) % all.size()].Release());
    }
    BOOST_TEST(!IsEnabled(a, b));
  }
  {
    const PeerAccess there = Enabled(a, b);
    SUCCEEDS(Enabled(b, a).Release());
    BOOST_TEST(IsEnabled(a, b));
  }
  BOOST_TEST(!IsEnabled(a, b));
}

BOOST_AUTO_TEST_CASE(on_many_threads, *NeedsPeers()) {
  const Owner a(0);
  const Owner b(1);
  std::atomic<int> lost{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int times = 0; times < 500; ++times) {
        absl::StatusOr<PeerAccess> access = PeerAccess::Enable(a.ref(), b.ref());
        const ContextGuard guard(a.ref());
        const bool is_on =
            access.ok() && guard.ok() && !access->was_enabled() &&
            RAW(cuCtxEnablePeerAccess)(b.get(), 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
        if (!is_on) ++lost;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(lost == 0);
  BOOST_TEST(!IsEnabled(a, b));
}

// Inside of the driver's call, where a tool is told of it.
BOOST_AUTO_TEST_CASE(in_a_tools_callback_it_is_refused, *OnlySim() * NeedsPeers()) {
  static const Owner* s_pair[2] = {};
  static absl::Status s_status;
  const Owner a(0);
  const Owner b(1);
  s_pair[0] = &a;
  s_pair[1] = &b;
  Sim::OnEveryCall([](const char* entry) {
    if (std::string(entry) != "cuCtxEnablePeerAccess") return;
    Sim::OnEveryCall(nullptr);
    s_status = PeerAccess::Enable(s_pair[1]->ref(), s_pair[0]->ref()).status();
  });
  PeerAccess access = Enabled(a, b);
  REFUSES(s_status, kFailedPrecondition, "enable peer access", "ILLEGAL_STATE");
  BOOST_TEST(!IsEnabled(b, a));
  BOOST_TEST(IsEnabled(a, b));
  SUCCEEDS(access.Release());
  BOOST_TEST(!Enabled(b, a).was_enabled());
}

BOOST_AUTO_TEST_CASE(what_somebody_else_enabled_stays, *NeedsPeers()) {
  const Owner a(0);
  const Owner b(1);
  a.Enter();
  OK(RAW(cuCtxEnablePeerAccess)(b.get(), 0));
  SetStack({});
  PeerAccess access = Enabled(a, b);
  BOOST_TEST(access.was_enabled());
  SUCCEEDS(access.Release());
  BOOST_TEST(IsEnabled(a, b));
  a.Enter();
  OK(RAW(cuCtxDisablePeerAccess)(b.get()));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(moves_leaks_and_ends_once, *NeedsPeers()) {
  const Owner a(0);
  const Owner b(1);
  PeerAccess access = Enabled(a, b);
  PeerAccess moved = std::move(access);
  SUCCEEDS(access.Release());
  BOOST_TEST(IsEnabled(a, b));
  moved = PeerAccess();
  BOOST_TEST(!IsEnabled(a, b));
  moved = Enabled(a, b);
  moved.Leak();
  SUCCEEDS(moved.Release());
  BOOST_TEST(IsEnabled(a, b));
  a.Enter();
  OK(RAW(cuCtxDisablePeerAccess)(b.get()));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_ends_with_either_context, *NeedsPeers()) {
  const Owner a(0);
  PeerAccess to_dead;
  PeerAccess from_dead;
  PeerAccess disabled;
  const Owner c(1);
  {
    const Owner b(1);
    to_dead = Enabled(a, b);
    from_dead = Enabled(b, a);
    disabled = Enabled(a, c);
  }
  OwnContext::DestroyIdle();
  a.Enter();
  OK(RAW(cuCtxDisablePeerAccess)(c.get()));
  SetStack({});
  const Undisturbed undisturbed;
  Sim::ResetCalls();
  SUCCEEDS(to_dead.Release());
  SUCCEEDS(from_dead.Release());
  BOOST_TEST(Sim::Calls("cuCtxDisablePeerAccess") == 0u);
  SUCCEEDS(disabled.Release());
}

BOOST_AUTO_TEST_CASE(invalidates_no_capture, *NeedsPeers()) {
  const Owner a(0);
  const Owner b(1);
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    for (const Owner* capturing : {&a, &b}) {
      const Capture capture(capturing->stream(), mode);
      PeerAccess access = Enabled(a, b);
      SUCCEEDS(access.Release());
      BOOST_TEST(!Enabled(b, a).was_enabled());
      std::thread([&] { BOOST_TEST(PeerAccess::Enable(a.ref(), b.ref()).ok()); }).join();
    }
  }
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim() * NeedsPeers()) {
  const Owner a(0);
  const Owner b(1);
  const ContextRef from = a.ref();
  const ContextRef to = b.ref();
  for (const Stack& stack : {Stack{a.get()}, Stack{b.get()}, Stack{}}) {
    SetStack(stack);
    const std::uint64_t expected = stack == Stack{a.get()} ? 7 : 9;
    cuguest_test::BeginCount();
    PeerAccess access = PeerAccess::Enable(from, to).value();
    BOOST_TEST(Sim::TotalCalls() == expected);
    cuguest_test::BeginCount();
    SUCCEEDS(access.Release());
    BOOST_TEST(Sim::TotalCalls() == expected);
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(every_call_fails_once, *OnlySim() * NeedsPeers()) {
  const Owner a(0);
  const Owner b(1);
  const ContextRef from = a.ref();
  const ContextRef to = b.ref();
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuCtxEnablePeerAccess"},
               [&] { return PeerAccess::Enable(from, to); });
  BOOST_TEST(!IsEnabled(a, b));
  FailEachCall({"cuDeviceCanAccessPeer", "cuDeviceGetP2PAttribute"},
               [] { return PeerAccess::Query(kFirst, kSecond); });
  PeerAccess access = Enabled(a, b);
  for (const char* entry : {"cuCtxGetId", "cuCtxPushCurrent", "cuCtxDisablePeerAccess"}) {
    if (!HasDriver(12000) && std::string(entry) == "cuCtxGetId") continue;
    Sim::FailCall(entry, 1, CUDA_ERROR_OPERATING_SYSTEM);
    REFUSES(access.Release(), kInternal, "disable peer access", "OPERATING_SYSTEM");
    Sim::ClearFaults();
  }
  BOOST_TEST(IsEnabled(a, b));
  SUCCEEDS(access.Release());
  BOOST_TEST(!IsEnabled(a, b));
}

BOOST_AUTO_TEST_SUITE_END()
