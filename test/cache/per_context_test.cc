// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PerContext: making values and finding them, also by many threads.

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "cuguest/status.h"
#include "test/cache/per_context.h"

BOOST_AUTO_TEST_SUITE(per_context)

using namespace per_context_test;

static_assert(!std::is_copy_constructible_v<Cache>);
static_assert(!std::is_copy_constructible_v<Cache::Pin>);
static_assert(std::is_nothrow_move_constructible_v<Cache::Pin>);
static_assert(std::is_nothrow_move_assignable_v<Cache::Pin>);
static_assert(!std::is_convertible_v<Cache::Pin, bool>);

BOOST_AUTO_TEST_CASE(a_value_is_made_once_and_found_again) {
  Ledger ledger;
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  SetStack({a.get()});
  {
    Cache cache;
    BOOST_TEST(!cache.Find(ref));
    BOOST_TEST(!cache.Find(a.get()));
    BOOST_TEST(cache.size() == 0U);
    const auto made = cache.GetOrMake(ref, Maker(&ledger));
    BOOST_TEST_REQUIRE(made.ok());
    BOOST_TEST((*made)->IsWhole());
    BOOST_TEST(((*made)->context() == ref));
    BOOST_TEST(cache.GetOrMake(ref, Maker(&ledger))->get() == made->get());
    BOOST_TEST(cache.GetOrMake(a.get(), Maker(&ledger))->get() == made->get());
    BOOST_TEST(cache.Find(ref).get() == made->get());
    BOOST_TEST(cache.Find(a.get()).get() == made->get());
    BOOST_TEST(cache.size() == 1U);
    BOOST_TEST(ledger.made == 1);
  }
  BOOST_TEST(ledger.destroyed == 1);
  BOOST_TEST(ledger.elsewhere == 0);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(each_context_has_its_own) {
  Ledger ledger;
  const OwnContext a;
  const OwnContext b;
  Cache cache;
  const auto of_a = cache.GetOrMake(a.get(), Maker(&ledger)).value().get();
  const auto of_b = cache.GetOrMake(b.get(), Maker(&ledger)).value().get();
  BOOST_TEST(of_a != of_b);
  BOOST_TEST(cache.Find(a.get()).get() == of_a);
  BOOST_TEST(cache.Find(b.get()).get() == of_b);
  BOOST_TEST(of_a->context().get() == a.get());
  BOOST_TEST(of_b->context().get() == b.get());
  BOOST_TEST(cache.size() == 2U);
}

BOOST_AUTO_TEST_CASE(the_callers_stack_stays_as_it_was) {
  Ledger ledger;
  const OwnContext x;
  const OwnContext a;
  const OwnContext b;
  const ContextRef ref = ContextRef::Borrow(a.get());
  for (const Stack& caller : {Stack{}, Stack{x.get()}, Stack{x.get(), a.get()}, Stack{a.get()}}) {
    SetStack(caller);
    {
      Cache cache;
      BOOST_TEST(cache.GetOrMake(ref, Maker(&ledger)).ok());
      BOOST_TEST(GetStack() == caller);
      BOOST_TEST(cache.GetOrMake(b.get(), Maker(&ledger)).ok());
      BOOST_TEST(static_cast<bool>(cache.Find(a.get())));
      BOOST_TEST(GetStack() == caller);
      BOOST_TEST(cache.Forget(ref));
      BOOST_TEST(GetStack() == caller);
      BOOST_TEST(cache.DropDead() == 0U);
      BOOST_TEST(GetStack() == caller);
      BOOST_TEST(cache.ForgetAll() == 1U);
      BOOST_TEST(GetStack() == caller);
    }
    BOOST_TEST(GetStack() == caller);
  }
  BOOST_TEST(ledger.elsewhere == 0);
  BOOST_TEST(ledger.destroyed == ledger.made);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(any_kind_of_value) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  // A handle: nothing to destroy. And one that needs more alignment than the entry has.
  PerContext<CUstream> handles;
  const auto stream = handles.GetOrMake(ref, [](const ContextRef&) -> absl::StatusOr<CUstream> {
    CUstream made = nullptr;
    const CUresult code = TheDriver().StreamCreate(&made, 0);
    if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "create a stream");
    return made;
  });
  BOOST_TEST_REQUIRE(stream.ok());
  BOOST_TEST(TheDriver().StreamSynchronize(**stream) == CUDA_SUCCESS);
  struct alignas(256) Wide {
    unsigned char bytes[300];
  };
  PerContext<Wide> wides;
  const auto wide =
      wides.GetOrMake(ref, [](const ContextRef&) -> absl::StatusOr<Wide> { return Wide{{7}}; });
  BOOST_TEST_REQUIRE(wide.ok());
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(wide->get()) % 256 == 0U);
  BOOST_TEST((*wide)->bytes[0] == 7);
}

BOOST_AUTO_TEST_CASE(a_context_without_incarnation_is_refused) {
  Ledger ledger;
  Cache cache;
  const auto refused = [&](const auto& context, CUresult code) {
    const absl::Status status = cache.GetOrMake(context, Maker(&ledger)).status();
    BOOST_TEST((cuguest::CodeOf(status) == code), status);
    BOOST_TEST(!cache.Find(context));
  };
  refused(static_cast<CUcontext>(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  refused(ContextRef(), CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(!cache.Forget(ContextRef()));
  BOOST_TEST(!cache.ForgetDestroyed(ContextRef()));
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  refused(primary.context(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  refused(primary.get(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(ledger.made == 0);
  BOOST_TEST(cache.size() == 0U);
}

BOOST_AUTO_TEST_SUITE(making)

BOOST_AUTO_TEST_CASE(sixteen_threads_make_one_value) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  for (int round = 0; round < 20; ++round) {
    Ledger ledger;
    Cache cache;
    std::atomic<int> ready{0};
    std::vector<Worker*> got(16);
    std::vector<std::thread> threads;
    for (Worker*& mine : got) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < 16) std::this_thread::yield();
        const auto pin = cache.GetOrMake(ref, Maker(&ledger));
        if (pin.ok() && (*pin)->IsWhole()) mine = pin->get();
      });
    }
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(ledger.made == 1);
    BOOST_TEST(got[0] != nullptr);
    for (const Worker* mine : got) BOOST_TEST(mine == got[0]);
  }
}

BOOST_AUTO_TEST_CASE(a_make_that_fails_leaves_nothing) {
  Ledger ledger;
  const OwnContext a;
  Cache cache;
  const auto fails = [](const ContextRef&) -> absl::StatusOr<Worker> {
    return absl::UnavailableError("not today");
  };
  const absl::Status status = cache.GetOrMake(a.get(), fails).status();
  BOOST_TEST((status == absl::UnavailableError("not today")));
  BOOST_TEST(cache.size() == 0U);
  BOOST_TEST(!cache.Find(a.get()));
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(cache.GetOrMake(a.get(), Maker(&ledger)).ok());
  BOOST_TEST(ledger.made == 1);
}

BOOST_AUTO_TEST_CASE(each_waiter_tries_for_itself) {
  Ledger ledger;
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  Cache cache;
  std::atomic<int> called{0};
  std::atomic<int> tries{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      ++called;
      const auto pin = cache.GetOrMake(ref, [&](const ContextRef& context) {
        const bool fails = ++tries <= 3;
        while (called < 8) std::this_thread::yield();
        // Long enough for some of the others to wait; if they do not, nothing fails.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return fails ? absl::UnavailableError("") : Worker::Make(context, &ledger);
      });
      if (!pin.ok()) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(tries == 4);
  BOOST_TEST(failed == 3);
  BOOST_TEST(ledger.made == 1);
}

BOOST_AUTO_TEST_CASE(a_make_that_throws_leaves_nothing) {
  Ledger ledger;
  const OwnContext a;
  const OwnContext x;
  Cache cache;
  SetStack({x.get()});
  const auto throws = [](const ContextRef&) -> absl::StatusOr<Worker> {
    throw std::runtime_error("an embedder's own");
  };
  BOOST_CHECK_THROW(static_cast<void>(cache.GetOrMake(a.get(), throws)), std::runtime_error);
  BOOST_TEST(cache.size() == 0U);
  BOOST_TEST(GetStack() == Stack{x.get()});
  BOOST_TEST(cache.GetOrMake(a.get(), Maker(&ledger)).ok());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_make_may_not_ask_for_its_own_context) {
  Ledger ledger;
  const OwnContext a;
  const OwnContext b;
  Cache cache;
  absl::Status inner;
  const auto made = cache.GetOrMake(a.get(), [&](const ContextRef& context) {
    inner = cache.GetOrMake(context, Maker(&ledger)).status();
    BOOST_TEST(!cache.Find(context));
    BOOST_TEST(!cache.Forget(context));
    // Another context's is another matter, and so is what lies two deep.
    const auto other = cache.GetOrMake(b.get(), [&](const ContextRef& of_b) {
      BOOST_TEST(IsPrecondition(cache.GetOrMake(context, Maker(&ledger)).status()));
      return Worker::Make(of_b, &ledger);
    });
    BOOST_TEST(other.ok());
    return Worker::Make(context, &ledger);
  });
  BOOST_TEST(made.ok());
  BOOST_TEST(IsPrecondition(inner));
  BOOST_TEST(absl::StrContains(std::string(inner.message()), "already being made"), inner);
  BOOST_TEST(ledger.made == 2);
}

BOOST_AUTO_TEST_CASE(two_makes_that_ask_for_each_others_context_do_not_hang) {
  Ledger ledger;
  const OwnContext a;
  const OwnContext b;
  Cache cache;
  std::atomic<int> inside{0};
  std::atomic<int> refused{0};
  const auto cross = [&](CUcontext mine, CUcontext others) {
    const auto made = cache.GetOrMake(mine, [&](const ContextRef& context) {
      ++inside;
      while (inside < 2) std::this_thread::yield();
      const auto other = cache.GetOrMake(others, Maker(&ledger));
      if (!other.ok() && IsPrecondition(other.status())) ++refused;
      return Worker::Make(context, &ledger);
    });
    if (!made.ok()) ++ledger.damaged;
  };
  std::thread thread([&] { cross(b.get(), a.get()); });
  cross(a.get(), b.get());
  thread.join();
  BOOST_TEST(refused == 1);
  BOOST_TEST(ledger.damaged == 0);
  BOOST_TEST(ledger.made == 2);
}

// A wait that is over must not be mistaken for one that goes on: the first thread has waited
// for b and still makes a, when the second makes b anew and asks for a.
BOOST_AUTO_TEST_CASE(a_wait_that_is_over_refuses_nobody) {
  Ledger ledger;
  const OwnContext a;
  const OwnContext b;
  const ContextRef ref_b = ContextRef::Borrow(b.get());
  Cache cache;
  std::atomic<int> step{0};
  std::atomic<int> refused{0};
  const auto wait_for = [&step](int wanted) {
    while (step < wanted) std::this_thread::yield();
  };
  // Long enough for the other thread to wait; if it does not, nothing fails.
  const auto let_it_wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  std::thread first([&] {
    wait_for(1);
    const auto made = cache.GetOrMake(a.get(), [&](const ContextRef& context) {
      step = 2;
      if (!cache.GetOrMake(ref_b, Maker(&ledger)).ok()) ++refused;
      step = 3;
      wait_for(4);
      let_it_wait();
      return Worker::Make(context, &ledger);
    });
    if (!made.ok()) ++refused;
  });
  const auto made = cache.GetOrMake(ref_b, [&](const ContextRef& context) {
    step = 1;
    wait_for(2);
    let_it_wait();
    return Worker::Make(context, &ledger);
  });
  wait_for(3);
  BOOST_TEST(cache.Forget(ref_b));
  const auto again = cache.GetOrMake(ref_b, [&](const ContextRef& context) {
    step = 4;
    if (!cache.GetOrMake(a.get(), Maker(&ledger)).ok()) ++refused;
    return Worker::Make(context, &ledger);
  });
  first.join();
  BOOST_TEST(made.ok());
  BOOST_TEST(again.ok());
  BOOST_TEST(refused == 0);
  BOOST_TEST(ledger.made == 3);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(many_threads)

// Sixteen threads find, make, forget and drop at random, and keep pins for a while, also
// over a reset. A reset excludes the calls of the cache, because a host that resets a
// context while others enter it has no defined outcome; it does not exclude the pins.
BOOST_AUTO_TEST_CASE(
    at_random,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  constexpr int kThreads = 16;
  constexpr int kOperations = 20000;
  const unsigned operations_a_reset = Sim::IsActive() ? 1000 : 10000;  // a real one takes long
  Ledger ledger;
  std::vector<OwnContext> own(5);
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  std::vector<ContextRef> refs;
  for (const OwnContext& context : own) refs.push_back(ContextRef::Borrow(context.get()));
  std::optional<Cache> cache(std::in_place);
  std::shared_mutex hosts;
  std::atomic<int> wrong{0};
  std::atomic<int> resets{0};
  const auto work = [&](unsigned seed) {
    std::minstd_rand random(seed);
    std::vector<Cache::Pin> kept;
    for (int i = 0; i < kOperations; ++i) {
      const unsigned dice = random() % 1000;
      if (random() % operations_a_reset == 0) {
        const std::lock_guard<std::shared_mutex> alone(hosts);
        if (RAW(cuDevicePrimaryCtxReset)(0) != CUDA_SUCCESS || !primary.Release().ok()) ++wrong;
        primary = PrimaryContext::Retain(kFirst);
        ++resets;
        continue;
      }
      {
        const std::shared_lock<std::shared_mutex> shared(hosts);
        const unsigned which = random() % (own.size() + 1);
        const ContextRef ref = which < own.size() ? refs[which] : primary.context();
        Cache::Pin pin;
        if (dice < 600) {
          pin = cache->Find(ref);
        } else if (dice < 900) {
          auto made = cache->GetOrMake(ref, Maker(&ledger));
          if (made.ok()) {
            pin = *std::move(made);
          } else {
            ++wrong;
          }
        } else if (dice < 920) {
          static_cast<void>(cache->GetOrMake(ref, [](const ContextRef&) -> absl::StatusOr<Worker> {
            return absl::CancelledError();
          }));
        } else if (dice < 990) {
          cache->Forget(ref);
        } else {
          cache->DropDead();
        }
        if (pin && pin->context() != ref) ++wrong;
        if (pin && !pin->IsWhole()) ++wrong;
        if (pin && dice % 3 == 0) kept.push_back(std::move(pin));
        // A value that others forget and make again meanwhile may be counted twice.
        if (cache->size() > own.size() + 1 + 2 * kThreads) ++wrong;
      }
      for (const Cache::Pin& pin : kept) {
        if (!pin->IsWhole()) ++wrong;
      }
      if (kept.size() > 8) kept.clear();
    }
    if (CurrentContext() != nullptr) ++wrong;
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(work, i + 1);
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(resets > 0);
  BOOST_TEST(ledger.made > 100);
  cache.reset();
  BOOST_TEST(ledger.alive() == 0);
  BOOST_TEST(ledger.damaged == 0);
  BOOST_TEST(ledger.elsewhere == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
