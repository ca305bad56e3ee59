// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PerContext: how values end, and pins that keep them.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuguest/status.h"
#include "test/cache/per_context.h"

BOOST_AUTO_TEST_SUITE(per_context_drop)

using namespace per_context_test;

BOOST_AUTO_TEST_SUITE(dropping)

BOOST_AUTO_TEST_CASE(
    a_reset_primary_gets_a_new_value,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  Ledger ledger;
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  Cache cache;
  const ContextRef old_life = primary.context();
  BOOST_TEST(cache.GetOrMake(old_life, Maker(&ledger)).ok());
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  BOOST_TEST(primary.Release().ok());
  primary = PrimaryContext::Retain(kFirst);
  Sim::ResetCalls();
  const auto made = cache.GetOrMake(primary.get(), Maker(&ledger));
  BOOST_TEST_REQUIRE(made.ok());
  BOOST_TEST(((*made)->context() == primary.context()));
  BOOST_TEST(Sim::Calls("cuStreamDestroy") == 0U);
  BOOST_TEST(ledger.given_up == 1);
  BOOST_TEST(ledger.destroyed == 0);
  BOOST_TEST(ledger.made == 2);
  BOOST_TEST(!cache.Find(old_life));
  BOOST_TEST(cache.size() == 1U);
}

BOOST_AUTO_TEST_CASE(
    a_reused_handle_gets_a_new_value,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  Ledger ledger;
  OwnContext first;
  const CUcontext handle = first.get();
  Cache cache;
  BOOST_TEST(cache.GetOrMake(handle, Maker(&ledger)).ok());
  BOOST_TEST(TheDriver().CtxDestroy(first.release()) == CUDA_SUCCESS);
  std::vector<OwnContext> others;
  if (!ReuseHandle(handle, &others)) {
    BOOST_TEST_MESSAGE("this driver did not reuse the handle");
    return;
  }
  BOOST_TEST(!cache.Find(handle));
  const auto made = cache.GetOrMake(handle, Maker(&ledger));
  BOOST_TEST_REQUIRE(made.ok());
  BOOST_TEST(((*made)->context() == ContextRef::Borrow(handle)));
  BOOST_TEST(ledger.given_up == 1);
  BOOST_TEST(ledger.made == 2);
  BOOST_TEST(cache.size() == 1U);
}

BOOST_AUTO_TEST_CASE(forget_destroys_in_the_living_context) {
  Ledger ledger;
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  Cache cache;
  BOOST_TEST(!cache.Forget(ref));
  BOOST_TEST(cache.GetOrMake(ref, Maker(&ledger)).ok());
  BOOST_TEST(cache.Forget(ref));
  BOOST_TEST(!cache.Forget(ref));
  BOOST_TEST(!cache.Find(ref));
  BOOST_TEST(cache.size() == 0U);
  BOOST_TEST(ledger.destroyed == 1);
  BOOST_TEST(ledger.elsewhere == 0);
  BOOST_TEST(cache.GetOrMake(ref, Maker(&ledger)).ok());
  BOOST_TEST(ledger.made == 2);
}

BOOST_AUTO_TEST_CASE(forget_gives_up_what_is_dead) {
  Ledger ledger;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  Cache cache;
  BOOST_TEST(cache.GetOrMake(primary.context(), Maker(&ledger)).ok());
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  BOOST_TEST(cache.Forget(primary.context()));
  BOOST_TEST(ledger.given_up == 1);
  BOOST_TEST(ledger.destroyed == 0);
}

BOOST_AUTO_TEST_CASE(forget_destroyed_asks_the_driver_nothing) {
  Ledger ledger;
  OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  Cache cache;
  BOOST_TEST(cache.GetOrMake(ref, Maker(&ledger)).ok());
  BOOST_TEST(TheDriver().CtxDestroy(a.release()) == CUDA_SUCCESS);
  Sim::ResetCalls();
  BOOST_TEST(cache.ForgetDestroyed(ref));
  BOOST_TEST(Sim::TotalCalls() == 0U);
  BOOST_TEST(!cache.ForgetDestroyed(ref));
  BOOST_TEST(ledger.given_up == 1);
}

BOOST_AUTO_TEST_CASE(drop_dead_finds_the_dead_and_no_others) {
  Ledger ledger;
  const OwnContext a;
  OwnContext b;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  Cache cache;
  BOOST_TEST(cache.DropDead() == 0U);
  for (const CUcontext context : {a.get(), b.get(), primary.get()}) {
    BOOST_TEST(cache.GetOrMake(context, Maker(&ledger)).ok());
  }
  BOOST_TEST(cache.DropDead() == 0U);
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  const CUcontext dead = b.release();
  SetStack({dead});
  std::thread([dead] { TheDriver().CtxDestroy(dead); }).join();
  BOOST_TEST(cache.DropDead() == 2U);
  BOOST_TEST(cache.DropDead() == 0U);
  BOOST_TEST(cache.size() == 1U);
  BOOST_TEST(ledger.given_up == 2);
  BOOST_TEST(ledger.destroyed == 0);
  BOOST_TEST(static_cast<bool>(cache.Find(a.get())));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(without_an_answer_a_context_is_not_dead, *cuguest_test::OnlySim()) {
  Ledger ledger;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  Cache cache;
  BOOST_TEST(cache.GetOrMake(primary.get(), Maker(&ledger)).ok());
  const char* const entry = cuguest_test::HasDriver(12000) ? "cuCtxGetId" : "cuCtxGetApiVersion";
  for (const CUresult code :
       {CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_OPERATING_SYSTEM}) {
    Sim::ResetCalls();
    Sim::FailCall(entry, 1, code);
    BOOST_TEST(cache.DropDead() == 0U);
    BOOST_TEST(Sim::Calls(entry) == 1U);
  }
  BOOST_TEST(cache.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(pins)

BOOST_AUTO_TEST_CASE(a_pin_that_is_assigned_to_itself_still_holds) {
  Ledger ledger;
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  Cache cache;
  Cache::Pin pin = cache.GetOrMake(ref, Maker(&ledger)).value();
  Cache::Pin& same = pin;
  pin = std::move(same);
  BOOST_TEST(cache.Forget(ref));
  BOOST_REQUIRE(ledger.alive() == 1);
  BOOST_TEST(pin->IsWhole());
  pin = Cache::Pin();
  BOOST_TEST(!cache.Forget(ref));
  BOOST_TEST(ledger.alive() == 0);
}

BOOST_AUTO_TEST_CASE(a_pin_keeps_a_dropped_value) {
  Ledger ledger;
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  Cache cache;
  {
    Cache::Pin pin = cache.GetOrMake(ref, Maker(&ledger)).value();
    const Cache::Pin second = cache.Find(ref);
    BOOST_TEST(cache.Forget(ref));
    BOOST_TEST(cache.DropDead() == 0U);
    BOOST_TEST(ledger.alive() == 1);
    BOOST_TEST(pin->IsWhole());
    BOOST_TEST(!cache.Find(ref));
    // The context has room for another meanwhile.
    const auto next = cache.GetOrMake(ref, Maker(&ledger));
    BOOST_TEST(next->get() != pin.get());
    pin = Cache::Pin();
    BOOST_TEST(cache.Forget(ref));
    BOOST_TEST(ledger.alive() == 2, "both are still pinned");
    BOOST_TEST(second->IsWhole());
  }
  BOOST_TEST(ledger.alive() == 2, "letting go ends nothing");
  BOOST_TEST(!cache.Forget(ref));
  BOOST_TEST(ledger.destroyed == 2);
  BOOST_TEST(ledger.elsewhere == 0);
  BOOST_TEST(cache.size() == 0U);
}

// Somebody may have begun a capture in the context since, which ~T() would invalidate.
BOOST_AUTO_TEST_CASE(dropped_value_ends_only_by_its_name) {
  Ledger ledger;
  const OwnContext a;
  const OwnContext b;
  const ContextRef ref = ContextRef::Borrow(a.get());
  const ContextRef other = ContextRef::Borrow(b.get());
  Cache cache;
  {
    const Cache::Pin pin = cache.GetOrMake(ref, Maker(&ledger)).value();
    BOOST_TEST(cache.Forget(ref));
  }
  BOOST_TEST(cache.GetOrMake(other, Maker(&ledger)).ok());
  BOOST_TEST(cache.GetOrMake(ref, Maker(&ledger)).ok());
  BOOST_TEST(cache.Forget(other));
  BOOST_TEST(cache.DropDead() == 0U);
  BOOST_TEST(ledger.destroyed == 1, "the other context's");
  BOOST_TEST(cache.Forget(ref));
  BOOST_TEST(ledger.destroyed == 3);
  BOOST_TEST(ledger.elsewhere == 0);
}

BOOST_AUTO_TEST_CASE(dropped_value_of_dead_context_is_found) {
  Ledger ledger;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  const ContextRef ref = primary.context();
  Cache cache;
  {
    const Cache::Pin pin = cache.GetOrMake(ref, Maker(&ledger)).value();
    BOOST_TEST(cache.Forget(ref));
  }
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  BOOST_TEST(ledger.alive() == 1);
  BOOST_TEST(cache.DropDead() == 0U, "it was dropped before");
  BOOST_TEST(ledger.given_up == 1);
}

BOOST_AUTO_TEST_CASE(
    a_pinned_value_of_a_dead_context_is_given_up_afterwards,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  Ledger ledger;
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  Cache cache;
  {
    const Cache::Pin pin = cache.GetOrMake(primary.context(), Maker(&ledger)).value();
    BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
    BOOST_TEST(primary.Release().ok());
    primary = PrimaryContext::Retain(kFirst);
    BOOST_TEST(cache.GetOrMake(primary.context(), Maker(&ledger)).ok());
    BOOST_TEST(pin->IsWhole());
    BOOST_TEST(cache.size() == 1U);
    BOOST_TEST(ledger.given_up == 0);
  }
  BOOST_TEST(cache.DropDead() == 0U);
  BOOST_TEST(ledger.given_up == 1);
  BOOST_TEST(ledger.destroyed == 0);
}

// Forgotten while it lived, and known to be dead before its last pin went.
BOOST_AUTO_TEST_CASE(what_is_learnt_of_a_dropped_value_counts) {
  Ledger ledger;
  OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  Cache cache;
  Cache::Pin pin = cache.GetOrMake(ref, Maker(&ledger)).value();
  BOOST_TEST(cache.Forget(ref));
  BOOST_TEST(TheDriver().CtxDestroy(a.release()) == CUDA_SUCCESS);
  BOOST_TEST(!cache.ForgetDestroyed(ref));
  pin = Cache::Pin();
  Sim::ResetCalls();
  BOOST_TEST(cache.DropDead() == 0U);
  BOOST_TEST(Sim::TotalCalls() == 0U);
  BOOST_TEST(ledger.given_up == 1);
}

BOOST_AUTO_TEST_CASE(pins_move_also_between_threads) {
  Ledger ledger;
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  Cache cache;
  Cache::Pin pin = cache.GetOrMake(ref, Maker(&ledger)).value();
  Cache::Pin moved = std::move(pin);
  BOOST_TEST(!pin);
  BOOST_TEST(pin.get() == nullptr);
  Cache::Pin& same = moved;
  moved = std::move(same);
  BOOST_TEST(static_cast<bool>(moved));
  BOOST_TEST((*moved).IsWhole());
  std::thread([other = std::move(moved)] { static_cast<void>(other); }).join();
  BOOST_TEST(cache.Forget(ref));
  BOOST_TEST(ledger.destroyed == 1, "no pin is left");
}

BOOST_AUTO_TEST_SUITE_END()

// What Forget() must have waited for when it returns.
BOOST_AUTO_TEST_SUITE(forgetting_at_once)

namespace {

class Signal {
 public:
  void Give() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_given_ = true;
    changed_.notify_all();
  }
  bool Wait(std::chrono::milliseconds most = std::chrono::seconds(20)) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, most, [this] { return is_given_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_given_ = false;
};

// Calls a function when it ends.
class Caller {
 public:
  explicit Caller(std::function<void()> at_end) : at_end_(std::move(at_end)) {}
  Caller(Caller&& other) noexcept : at_end_(std::exchange(other.at_end_, nullptr)) {}
  ~Caller() {
    if (at_end_ != nullptr) at_end_();
  }

 private:
  std::function<void()> at_end_;
};

using Callers = PerContext<Caller>;

void Put(Callers* cache, const ContextRef& context, const std::function<void()>& at_end) {
  const auto make = [&](const ContextRef&) -> absl::StatusOr<Caller> { return Caller(at_end); };
  BOOST_TEST(cache->GetOrMake(context, make).ok());
}

}  // namespace

BOOST_AUTO_TEST_CASE(forget_waits_for_another_threads_ending) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  for (const bool is_dead : {false, true}) {
    Callers cache;
    Signal ending;
    Signal forgotten;
    std::atomic<bool> overlaps{false};
    Put(&cache, ref, [&] {
      ending.Give();
      overlaps = forgotten.Wait(std::chrono::milliseconds(100));
    });
    std::thread other([&] { cache.Forget(ref); });
    BOOST_TEST(ending.Wait());
    BOOST_TEST(!(is_dead ? cache.ForgetDestroyed(ref) : cache.Forget(ref)));
    forgotten.Give();
    other.join();
    BOOST_TEST(!overlaps);
  }
}

BOOST_AUTO_TEST_CASE(forget_does_not_wait_for_others) {
  const OwnContext a;
  const OwnContext b;
  Callers cache;
  Signal ending;
  Signal forgotten;
  std::atomic<bool> was_forgotten{false};
  Put(&cache, ContextRef::Borrow(a.get()), [&] {
    ending.Give();
    was_forgotten = forgotten.Wait();
  });
  std::thread other([&] { cache.Forget(ContextRef::Borrow(a.get())); });
  BOOST_TEST(ending.Wait());
  cache.Forget(ContextRef::Borrow(b.get()));
  forgotten.Give();
  other.join();
  BOOST_TEST(was_forgotten);
}

BOOST_AUTO_TEST_CASE(forget_from_the_ending_itself_returns) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  Callers cache;
  int ended = 0;
  Put(&cache, ref, [&] {
    BOOST_TEST(!cache.Forget(ref));
    ++ended;
  });
  BOOST_TEST(cache.Forget(ref));
  BOOST_TEST(ended == 1);
}

// Each of two endings forgets the other's context: one of the two waits.
BOOST_AUTO_TEST_CASE(endings_that_forget_each_other_return) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef refs[] = {ContextRef::Borrow(a.get()), ContextRef::Borrow(b.get())};
  Callers cache;
  Signal ending[2];
  for (const int i : {0, 1}) {
    Put(&cache, refs[i], [&, i] {
      ending[i].Give();
      ending[1 - i].Wait();
      cache.Forget(refs[1 - i]);
    });
  }
  std::thread other([&] { cache.Forget(refs[1]); });
  cache.Forget(refs[0]);
  other.join();
  BOOST_TEST(cache.size() == 0U);
}

// A maker waits for an ending, which asks for what is being made.
BOOST_AUTO_TEST_CASE(maker_and_ending_that_need_each_other_return) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef made = ContextRef::Borrow(a.get());
  const ContextRef ended = ContextRef::Borrow(b.get());
  Callers cache;
  Signal making;
  Signal ending;
  std::atomic<bool> is_found{false};
  Put(&cache, ended, [&] {
    ending.Give();
    making.Wait();
    const auto fail = [](const ContextRef&) -> absl::StatusOr<Caller> {
      return absl::CancelledError();
    };
    is_found = cache.GetOrMake(made, fail).ok();
  });
  std::thread other([&] { cache.Forget(ended); });
  BOOST_TEST(ending.Wait());
  const auto make = [&](const ContextRef&) -> absl::StatusOr<Caller> {
    making.Give();
    cache.Forget(ended);
    return Caller(nullptr);
  };
  BOOST_TEST(cache.GetOrMake(made, make).ok());
  other.join();
  BOOST_TEST_MESSAGE("the ending " << (is_found ? "waited" : "was refused"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
