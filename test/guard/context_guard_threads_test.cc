// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guards and threads: contexts that are current on other threads, and guards that end there.

#include "cuguest/context_guard.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/guard/guard_kinds.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(context_guard_threads)

namespace {

using cuguest::ContextGuard;
using cuguest::GuardMode;
using cuguest::Incident;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using guard_kinds::EachKind;
using guard_kinds::GuardOf;
using Stack = std::vector<CUcontext>;

// The own thread, on which a scope ended elsewhere, begins and ends another one.
void BeginAndEnd(CUcontext context) {
  const ContextGuard guard(context);
  BOOST_TEST(guard.ok());
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kReportsLostMemory = true;
#else
constexpr bool kReportsLostMemory = false;
#endif

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
BOOST_AUTO_TEST_CASE(ended_elsewhere_leaves_both_stacks_alone) {
  const OwnContext a;
  const OwnContext b;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    for (const Stack& own : {Stack{a.get()}, Stack{b.get()}}) {
      for (const Stack& others : {Stack{}, Stack{a.get()}, Stack{a.get(), b.get()}}) {
        for (const bool is_asked : {false, true}) {
          for (const bool own_thread_has_ended : {false, true}) {
            // What it remembers of the stack is lost with its thread.
            if (own_thread_has_ended && Guard::kIsExact && kReportsLostMemory) continue;
            std::optional<Guard> guard;
            const auto enter = [&] {
              SetStack(own);
              guard.emplace(b.get(), cuguest::Location{__FILE__, 4711});
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
              BOOST_TEST(guard->Reassert() == CUDA_ERROR_ILLEGAL_STATE);
              BOOST_TEST(guard->ok());
              if (is_asked) {
                BOOST_TEST(guard->Leave() == CUDA_ERROR_NOT_READY);
                BOOST_TEST(guard->Leave() == CUDA_SUCCESS);
                BOOST_TEST(guard->Reassert() == CUDA_ERROR_ILLEGAL_STATE);
              }
              guard.reset();
              BOOST_TEST(GetStack() == others);
              SetStack({});
            }).join();
            BOOST_TEST(GetStack() == inside);
            const auto incidents = TakeIncidents();
            BOOST_TEST_REQUIRE(incidents.size() == 1U);
            BOOST_TEST((incidents[0].kind == Incident::Kind::kElsewhere));
            BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kUnrepaired));
            BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_READY);
            BOOST_TEST(incidents[0].expected == b.get());
            BOOST_TEST(incidents[0].line == 4711);
            if (own_thread_has_ended) continue;
            BeginAndEnd(a.get());
            BOOST_TEST(GetStack() == own);
            SetStack({});
          }
        }
      }
    }
  });
}

// A callee has left a push meanwhile: an incident of the own thread's, which names no file.
BOOST_AUTO_TEST_CASE(own_thread_repairs_what_it_closes) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  ContextGuard guard(b.get());
  SetStack({a.get(), b.get(), c.get()});
  std::thread([&] { BOOST_TEST(guard.Leave() == CUDA_ERROR_NOT_READY); }).join();
  BOOST_TEST(TakeIncidents().size() == 1U);
  BeginAndEnd(b.get());
  BOOST_TEST(GetStack() == Stack{a.get()});
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
  BOOST_TEST(incidents[0].line == 0);
  BOOST_TEST(std::string(incidents[0].file) != __FILE__);
  SetStack({});
}

// A guard that is inside it keeps it open, whether it was there before or not.
BOOST_AUTO_TEST_CASE(ended_elsewhere_below_another_guard) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  ContextGuard outer(b.get());
  ContextGuard inner(c.get());
  std::thread([&] { BOOST_TEST(outer.Leave() == CUDA_ERROR_NOT_READY); }).join();
  BOOST_TEST(TakeIncidents().size() == 1U);
  BeginAndEnd(a.get());
  BOOST_TEST((GetStack() == Stack{a.get(), b.get(), c.get()}));
  BOOST_TEST(inner.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// Its memory is another guard's by then.
BOOST_AUTO_TEST_CASE(next_guard_at_the_address_ends_once) {
  const OwnContext a;
  const OwnContext b;
  std::optional<ContextGuard> guard;
  SetStack({a.get()});
  guard.emplace(b.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
  std::thread([&] { guard.reset(); }).join();
  BOOST_TEST(TakeIncidents().size() == 1U);
  guard.emplace(b.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
  BOOST_TEST((GetStack() == Stack{a.get(), b.get()}));
  BOOST_TEST(guard->caller() == a.get());
  BOOST_TEST(guard->Leave() == CUDA_SUCCESS);
  guard.reset();
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// What was told to a thread that has ended meanwhile is nobody's, and its memory is used again.
BOOST_AUTO_TEST_CASE(threads_end_with_scopes_ended_elsewhere) {
  const OwnContext a;
  const OwnContext b;
  for (int round = 0; round < 100; ++round) {
    std::optional<ContextGuard> guard;
    std::thread([&] {
      SetStack({a.get()});
      guard.emplace(b.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
      std::thread([&] { guard.reset(); }).join();
    }).join();
  }
  BOOST_TEST(TakeIncidents().size() == 100U);
  SetStack({a.get()});
  {
    const ContextGuard outer(b.get());
    BeginAndEnd(a.get());
    BOOST_TEST((GetStack() == Stack{a.get(), b.get()}));
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// One that is never ended keeps those open that it is inside of, and its thread 64 bytes.
BOOST_AUTO_TEST_CASE(leaked_guard_keeps_those_below_open) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  std::thread([&] {
    SetStack({a.get()});
    ContextGuard* leaked = nullptr;
    {
      ContextGuard asked(b.get());
      ContextGuard implied(b.get(), GuardMode::kAlwaysPush, cuguest::Location{__FILE__, 4711});
      leaked = new ContextGuard(c.get());
      BOOST_TEST(asked.Leave() == CUDA_ERROR_NOT_READY);
      BOOST_TEST(asked.Leave() == CUDA_SUCCESS);
    }
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kOutOfTurn));
    BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_READY);
    BOOST_TEST(incidents[0].line == 4711);
    const Stack left = {a.get(), b.get(), b.get(), c.get()};
    BOOST_TEST(GetStack() == left);
    for (int i = 0; i < 40; ++i) {
      const ContextGuard next(b.get());
      BOOST_TEST(next.ok());
      BOOST_TEST(next.caller() == c.get());
    }
    BOOST_TEST(GetStack() == left);
    delete leaked;  // late is not too late
    BOOST_TEST(GetStack() == Stack{a.get()});
    SetStack({});
  }).join();
}

namespace {

// As a GPrivate's: its destructor is called when the thread_locals are gone, the simulated driver's
// stack of the thread among them.
struct AtThreadsEnd {
  pthread_key_t key;
  CUcontext context;
  Stack after_thread_locals;
  bool is_clean;
};
void EnterAtThreadsEnd(void* given) {
  auto* const at_end = static_cast<AtThreadsEnd*>(given);
  const Stack found = GetStack();
  {
    const ContextGuard guard(at_end->context);
    Stack inside = found;
    inside.push_back(at_end->context);
    at_end->is_clean = guard.ok() && !guard.elided() && GetStack() == inside &&
                       guard.caller() == (found.empty() ? nullptr : found.back());
  }
  at_end->is_clean = at_end->is_clean && GetStack() == found;
  SetStack({});
}
// Ends its guards in one order or the other.
struct Late {
  ~Late() {
    if (at_end == nullptr) return;
    (in_turn ? inner : outer).reset();
    (in_turn ? outer : inner).reset();
    at_end->after_thread_locals = GetStack();
  }
  AtThreadsEnd* at_end = nullptr;
  bool in_turn = true;
  std::optional<ContextGuard> outer;
  std::optional<ContextGuard> inner;
};
thread_local Late t_late;

}  // namespace

BOOST_AUTO_TEST_CASE(guards_end_with_their_thread) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  for (const bool in_turn : {false, true}) {
    AtThreadsEnd at_end = {};
    at_end.context = c.get();
    BOOST_TEST_REQUIRE(pthread_key_create(&at_end.key, &EnterAtThreadsEnd) == 0);
    std::thread([&] {
      SetStack({a.get()});
      pthread_setspecific(at_end.key, &at_end);
      t_late.at_end = &at_end;
      t_late.in_turn = in_turn;
      t_late.outer.emplace(b.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
      t_late.inner.emplace(c.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
    }).join();
    BOOST_TEST(at_end.after_thread_locals == Stack{a.get()});
    BOOST_TEST(at_end.is_clean);
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == (in_turn ? 0U : 1U));
    if (!in_turn) BOOST_TEST((incidents[0].kind == Incident::Kind::kOutOfTurn));
    BOOST_TEST(pthread_key_delete(at_end.key) == 0);
  }
}

// Its memory is somebody else's by then: a guard that its thread has leaked is not read.
BOOST_AUTO_TEST_CASE(enters_above_a_leaked_guard) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  AtThreadsEnd at_end = {};
  at_end.context = c.get();
  BOOST_TEST_REQUIRE(pthread_key_create(&at_end.key, &EnterAtThreadsEnd) == 0);
  std::thread([&] {
    SetStack({a.get()});
    pthread_setspecific(at_end.key, &at_end);
    alignas(ContextGuard) unsigned char leaked[sizeof(ContextGuard)];
    new (leaked) ContextGuard(b.get());
    std::memset(leaked, 0xDD, sizeof(leaked));
    BeginAndEnd(c.get());
    BOOST_TEST((GetStack() == Stack{a.get(), b.get()}));
  }).join();
  BOOST_TEST(at_end.is_clean);
  BOOST_TEST(pthread_key_delete(at_end.key) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
