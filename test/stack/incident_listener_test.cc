// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/incident_listener.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(incident_listener)

namespace {

using cuguest::ContextGuard;
using cuguest::Incident;
using cuguest::IncidentListener;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;

// One incident, kUnrepaired by nobody: a push that is left behind.
void CauseIncident(const OwnContext& context) {
  {
    const ContextGuard guard(context.get());
    cuguest_test::TheDriver().CtxPushCurrent(context.get());
    cuguest_test::TheDriver().CtxPopCurrent(nullptr);
    cuguest_test::TheDriver().CtxPopCurrent(nullptr);
  }
}

struct Heard {
  int count = 0;
  Incident::Kind kind{};
};
void Hear(const Incident& incident, void* user) {
  auto* const heard = static_cast<Heard*>(user);
  ++heard->count;
  heard->kind = incident.kind;
}

void Wait(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_listener_is_called_with_its_own_pointer) {
  const OwnContext context;
  Heard first;
  Heard second;
  {
    const IncidentListener one(&Hear, &first);
    {
      const IncidentListener two(&Hear, &second);
      CauseIncident(context);
    }
    CauseIncident(context);
  }
  CauseIncident(context);
  BOOST_TEST(first.count == 2);
  BOOST_TEST(second.count == 1);
  BOOST_TEST((first.kind == Incident::Kind::kExtraPop));
  BOOST_TEST(TakeIncidents().size() == 3U);  // by the suite's own listener
}

BOOST_AUTO_TEST_CASE(they_are_called_in_the_order_of_registration) {
  const OwnContext context;
  std::string order;
  struct Letter {
    std::string* text;
    char letter;
  };
  const auto write = [](const Incident&, void* user) {
    const auto* const it = static_cast<Letter*>(user);
    *it->text += it->letter;
  };
  Letter a{&order, 'a'};
  Letter b{&order, 'b'};
  Letter c{&order, 'c'};
  std::optional<IncidentListener> first;
  first.emplace(+write, &a);
  const IncidentListener second(+write, &b);
  CauseIncident(context);
  first.reset();
  first.emplace(+write, &c);
  CauseIncident(context);
  BOOST_TEST(order == "abbc");
  static_cast<void>(TakeIncidents());
}

// Afterwards neither the callback nor what the pointer names is used.
BOOST_AUTO_TEST_CASE(removal_waits_for_a_call_in_progress) {
  const OwnContext context;
  struct State {
    std::atomic<bool> inside{false};
    std::atomic<bool> may_return{false};
    std::atomic<bool> returned{false};
  } state;
  auto listener = std::make_unique<IncidentListener>(
      [](const Incident&, void* user) {
        auto* const it = static_cast<State*>(user);
        it->inside = true;
        Wait(it->may_return);
        it->returned = true;
      },
      &state);
  std::thread guest([&] { CauseIncident(context); });
  Wait(state.inside);
  bool had_returned = false;
  std::thread remover([&] {
    listener.reset();
    had_returned = state.returned;
  });
  // No lock is held while it waits or while the callback runs: others register and are called.
  Heard heard;
  {
    const IncidentListener other(&Hear, &heard);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    BOOST_TEST(!state.returned);
  }
  state.may_return = true;
  remover.join();
  guest.join();
  BOOST_TEST(had_returned);
  CauseIncident(context);
  static_cast<void>(TakeIncidents());
}

BOOST_AUTO_TEST_CASE(a_listener_may_end_itself_and_others) {
  const OwnContext context;
  struct State {
    std::unique_ptr<IncidentListener> self;
    std::unique_ptr<IncidentListener> next;
    int calls = 0;
    Heard next_heard;
    Heard last_heard;
  } state;
  state.self = std::make_unique<IncidentListener>(
      [](const Incident&, void* user) {
        auto* const it = static_cast<State*>(user);
        ++it->calls;
        it->self.reset();
        it->next.reset();
      },
      &state);
  state.next = std::make_unique<IncidentListener>(&Hear, &state.next_heard);
  const IncidentListener last(&Hear, &state.last_heard);
  CauseIncident(context);
  CauseIncident(context);
  BOOST_TEST(state.calls == 1);
  BOOST_TEST(state.next_heard.count == 0);
  BOOST_TEST(state.last_heard.count == 2);
  static_cast<void>(TakeIncidents());
}

// A callback that uses guards may cause incidents of its own.
BOOST_AUTO_TEST_CASE(an_incident_in_a_callback_is_told_too) {
  const OwnContext context;
  struct State {
    const OwnContext* context;
    int depth = 0;
    int calls = 0;
  } state{&context};
  const IncidentListener listener(
      [](const Incident&, void* user) {
        auto* const it = static_cast<State*>(user);
        ++it->calls;
        if (it->depth++ == 0) CauseIncident(*it->context);
      },
      &state);
  CauseIncident(context);
  BOOST_TEST(state.calls == 2);
  static_cast<void>(TakeIncidents());
}

// More at one time than there is room for beforehand, and each of them in a callback of another.
BOOST_AUTO_TEST_CASE(many_are_called_at_one_time) {
  constexpr int kThreads = 40;
  const OwnContext context;
  struct State {
    const OwnContext* context;
    std::atomic<int> inside{0};
    std::atomic<int> calls{0};
  } state{&context};
  for (int round = 1; round <= 2; ++round) {
    const IncidentListener listener(
        [](const Incident&, void* user) {
          thread_local bool is_nested = false;
          auto* const it = static_cast<State*>(user);
          ++it->calls;
          if (std::exchange(is_nested, true)) return;
          ++it->inside;
          while (it->inside % kThreads != 0) std::this_thread::yield();
          CauseIncident(*it->context);
        },
        &state);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&] { CauseIncident(context); });
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(state.calls == 2 * kThreads * round);
  }
  static_cast<void>(TakeIncidents());
}

// Registering, removing and telling from several threads at once; for the thread sanitizer.
BOOST_AUTO_TEST_CASE(listeners_come_and_go_while_incidents_are_told) {
  const OwnContext context;
  std::atomic<bool> stop{false};
  std::thread guest([&] {
    while (!stop) CauseIncident(context);
  });
  std::vector<std::thread> libraries;
  std::atomic<int> stray{0};
  for (int i = 0; i < 3; ++i) {
    libraries.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        struct Owner {
          std::atomic<bool> is_alive{true};
          std::atomic<int>* stray;
        };
        auto owner = std::make_unique<Owner>();
        owner->stray = &stray;
        {
          const IncidentListener listener(
              [](const Incident&, void* user) {
                auto* const it = static_cast<Owner*>(user);
                if (!it->is_alive) ++*it->stray;
              },
              owner.get());
          std::this_thread::yield();
        }
        owner->is_alive = false;
      }
    });
  }
  for (std::thread& library : libraries) library.join();
  stop = true;
  guest.join();
  BOOST_TEST(stray == 0);
  static_cast<void>(TakeIncidents());
}

BOOST_AUTO_TEST_SUITE_END()
