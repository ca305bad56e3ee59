// SPDX-License-Identifier: Apache-2.0
//
// Guards and threads: contexts that are current on other threads, and guards that end there.

#include "cuguest/context_guard.h"

#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(context_guard_threads)

namespace {

using cuguest::ContextGuard;
using cuguest::GuardMode;
using cuguest::IncidentKind;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using Stack = std::vector<CUcontext>;

constexpr GuardMode kModes[] = {GuardMode::kElide, GuardMode::kAlwaysPush, GuardMode::kExact};

}  // namespace

BOOST_AUTO_TEST_CASE(a_context_that_is_current_on_other_threads) {
  const OwnContext shared;
  SetStack({shared.get()});
  std::thread([&shared] {
    const ContextGuard guard(shared.get());
    if (!guard.ok() || guard.elided()) std::abort();
  }).join();
  BOOST_TEST(GetStack() == Stack{shared.get()});
  SetStack({});
}

// On a stack that has our own context on top, so that a pop would look right; and on a thread
// that has the pthread_t of the guard's own.
BOOST_AUTO_TEST_CASE(a_guard_that_ends_on_another_thread_leaves_both_stacks_alone) {
  const OwnContext a;
  const OwnContext b;
  for (const GuardMode mode : kModes) {
    for (const Stack& own : {Stack{a.get()}, Stack{b.get()}}) {
      for (const Stack& others : {Stack{}, Stack{a.get()}, Stack{a.get(), b.get()}}) {
        for (const bool own_thread_has_ended : {false, true}) {
          std::optional<ContextGuard> guard;
          const auto enter = [&] {
            SetStack(own);
            guard.emplace(b.get(), mode, __FILE__, 4711);
            BOOST_TEST(guard->ok());
          };
          if (own_thread_has_ended) {
            std::thread(enter).join();
          } else {
            enter();
          }
          const Stack inside = GetStack();
          std::thread([&] {
            SetStack(others);
            BOOST_TEST(guard->Restore() == CUDA_ERROR_ILLEGAL_STATE);
            BOOST_TEST(guard->Reassert() == CUDA_ERROR_ILLEGAL_STATE);
            guard.reset();
            BOOST_TEST(GetStack() == others);
          }).join();
          BOOST_TEST(GetStack() == inside);
          const auto incidents = TakeIncidents();
          BOOST_TEST(incidents.size() == 2U);
          for (const auto& incident : incidents) {
            BOOST_TEST((incident.kind == IncidentKind::kElsewhere));
            BOOST_TEST((incident.repair == cuguest::Repair::kUnrepaired));
            BOOST_TEST(incident.result == CUDA_ERROR_ILLEGAL_STATE);
            BOOST_TEST(incident.line == 4711);
          }
          SetStack({});
        }
      }
    }
  }
}

// The list of the own thread still names the address.
BOOST_AUTO_TEST_CASE(next_guard_at_the_address_ends_once) {
  const OwnContext a;
  const OwnContext b;
  std::optional<ContextGuard> guard;
  std::thread([&] {
    SetStack({a.get()});
    guard.emplace(b.get(), cuguest::Location::Here());
    std::thread([&] { guard.reset(); }).join();
    BOOST_TEST(TakeIncidents().size() == 1U);
    SetStack({b.get(), a.get()});
    guard.emplace(b.get(), cuguest::Location::Here());
    BOOST_TEST(guard->Restore() == CUDA_SUCCESS);
    guard.reset();
    BOOST_TEST((GetStack() == Stack{b.get(), a.get()}));
    BOOST_TEST(TakeIncidents().empty());
    SetStack({});
  }).join();
}

BOOST_AUTO_TEST_CASE(after_a_refusal_elsewhere_the_own_thread_ends_the_guard) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ContextGuard guard(b.get());
  std::thread([&] { BOOST_TEST(guard.Restore() == CUDA_ERROR_ILLEGAL_STATE); }).join();
  BOOST_TEST(TakeIncidents().size() == 1U);
  BOOST_TEST(guard.Restore() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
