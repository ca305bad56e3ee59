// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two libraries in one process, each with its own copy of cuguest: one is written with the
// driver API and links no CUDA library, the other with the runtime API. They exchange
// buffers: each allocates what the other frees, and each reads what the other wrote. The
// results are checked on the host every round, and nothing of the callers' has changed
// afterwards.

#include <dlfcn.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/primary_context.h"
#include "cuguest/testing/stack_probe.h"
#include "test/interop/fixtures/side.h"
#include "test/runtime/host_kernels.h"
#include "test/support/files.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

namespace {

using cudasim::Sim;
using cuguest::Device;
using cuguest::DeviceView;
using cuguest::PrimaryContext;
using cuguest_test::GetStack;
using cuguest_test::OnlyIf;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using exchange::Side;
using Numbers = std::vector<float>;
using Stack = std::vector<CUcontext>;

constexpr std::size_t kCount = 1000;
constexpr int kRounds = 50;
constexpr int kTurns = 4;  // of each side in a round: the numbers stay exact
constexpr int kThreads = 8;

// Never unloaded: a runtime is not made for it.
exchange::OpenSide* Load(const std::string& name) {
  const std::string path = cuguest_test::FindBeside("test/" + name + ".so");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  BOOST_TEST_REQUIRE(library != nullptr, dlerror());
  void* const symbol = dlsym(library, "OpenSide");
  BOOST_TEST_REQUIRE(symbol != nullptr);
  return reinterpret_cast<exchange::OpenSide*>(symbol);
}

struct Libraries {
  exchange::OpenSide* driver;
  exchange::OpenSide* runtime;
};
Libraries LoadBoth() { return {Load("driver_side"), Load("runtime_side")}; }

enum class Order { kWaiting, kInStreams };

struct Work {
  Order order;
  int rounds = kRounds;
  std::size_t count = kCount;
};

// Both sides in one context. Keeps the first thing that went wrong, since Boost.Test is for
// one thread only.
class Exchange {
 public:
  Exchange(const Libraries& libraries, CUcontext home, std::size_t count = kCount)
      : driver_(libraries.driver(home)), runtime_(libraries.runtime(home)), count_(count) {
    if (driver_ == nullptr || runtime_ == nullptr) Fail("a side could not be opened");
  }

  void Round(int number, Order order) {
    if (!failure_.empty()) return;
    // The maker of the first buffer frees the second.
    Side& maker = number % 2 == 0 ? *driver_ : *runtime_;
    Side& other = number % 2 == 0 ? *runtime_ : *driver_;
    float* a = nullptr;
    float* b = nullptr;
    Expect(maker.Allocate(count_, &a));
    Expect(other.Allocate(count_, &b));
    Play(number, order, a, b);
    Expect(other.Free(a, count_));
    Expect(maker.Free(b, count_));
    if (runtime_->last_error() != 0) Fail("the runtime's last error was left");
  }

  // A pointer that is none: refused by both sides, as source and as target. `good` is one.
  void Refuse(float* wrong, float* good, const char* what) {
    for (Side* side : {driver_.get(), runtime_.get()}) {
      if (side->Submit(wrong, good, count_, nullptr).empty() ||
          side->Submit(good, wrong, count_, nullptr).empty()) {
        Fail(std::string("was worked on: ") + what);
      }
    }
    if (runtime_->last_error() != 0) Fail("the runtime's last error was left");
  }

  Side& driver() { return *driver_; }
  Side& runtime() { return *runtime_; }

  void Fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }
  const std::string& failure() const { return failure_; }

 private:
  void Expect(const std::string& error) {
    if (!error.empty()) Fail(error);
  }
  void Expect(const absl::Status& status) {
    if (!status.ok()) Fail(status.ToString());
  }

  void Play(int number, Order order, float* a, float* b) {
    Numbers host_a(count_);
    Numbers host_b(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      host_a[i] = static_cast<float>((i + number) % 7);
      host_b[i] = static_cast<float>(i % 5);
    }
    Upload(host_a, a);
    Upload(host_b, b);
    for (int turn = 0; turn < kTurns; ++turn) TakeTurns(order, a, b, turn == 0);
    Expect(driver_->Wait());
    Expect(runtime_->Wait());
    for (int turn = 0; turn < kTurns; ++turn) TakeTurnsOnHost(&host_a, &host_b);
    if (Download(a) != host_a || Download(b) != host_b) Fail("wrong numbers");
  }

  static void TakeTurnsOnHost(Numbers* a, Numbers* b) {
    for (std::size_t i = 0; i < a->size(); ++i) {
      (*a)[i] += 2.0F * (*b)[i];
      (*b)[i] = 3.0F * (*a)[i];
    }
  }

  // a += 2 b by the driver's side, then b = 3 a by the runtime's.
  void TakeTurns(Order order, float* a, float* b, bool first) {
    const bool wait = order == Order::kWaiting;
    Expect(driver_->Submit(b, a, count_, wait || first ? nullptr : runtime_->done()));
    if (wait) Expect(driver_->Wait());
    Expect(runtime_->Submit(a, b, count_, wait ? nullptr : driver_->done()));
    if (wait) Expect(runtime_->Wait());
  }

  void Upload(const Numbers& numbers, float* to) {
    const auto view = DeviceView<float>::Borrow(to, count_);
    Expect(view.ok() ? cuguest::Upload(*view, numbers) : view.status());
  }
  Numbers Download(const float* from) {
    Numbers numbers(count_);
    const auto view = DeviceView<const float>::Borrow(from, count_);
    Expect(view.ok() ? cuguest::Download(*view, numbers) : view.status());
    return numbers;
  }

  std::unique_ptr<Side> driver_;
  std::unique_ptr<Side> runtime_;
  std::size_t count_;
  std::string failure_;
};

// On a caller's thread with `stack`: as many rounds, undisturbed. What went wrong.
std::string RunRounds(const Libraries& libraries, CUcontext home, const Stack& stack,
                      const Work& work) {
  SetStack(stack);
  Exchange exchange(libraries, home, work.count);
  {
    const cuguest::testing::UndisturbedScope undisturbed(
        [&](const std::string& difference) { exchange.Fail(difference); });
    for (int round = 0; round < work.rounds; ++round) exchange.Round(round, work.order);
  }
  if (GetStack() != stack) exchange.Fail("the sides' opening changed the stack");
  SetStack({});
  return exchange.failure();
}

// On every thread other rounds, with the context current, another, or none.
void OnThreads(int count, const Libraries& libraries, CUcontext home, Order order) {
  const OwnContext other;
  const std::array<Stack, 3> stacks = {Stack{home}, Stack{home, other.get()}, Stack{}};
  std::vector<std::string> failures(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back(
        [&, i] { failures[i] = RunRounds(libraries, home, stacks[i % stacks.size()], {order}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) BOOST_TEST(failure == "");
}

// Everything in one context: each way of waiting, one thread and several; nothing is left.
void ExchangeIn(const Libraries& libraries, CUcontext home) {
  // The first launch in a context loads the runtime's module there, and its first work in a
  // primary context retains that; both are the runtime's to keep.
  BOOST_TEST_REQUIRE(RunRounds(libraries, home, {home}, {Order::kWaiting, 1}) == "");
  const auto before = Sim::Live();
  for (const Order order : {Order::kWaiting, Order::kInStreams}) {
    BOOST_TEST_CONTEXT((order == Order::kWaiting ? "waiting" : "in streams")) {
      for (const Stack& stack : {Stack{}, Stack{home}}) {
        BOOST_TEST(RunRounds(libraries, home, stack, {order}) == "");
      }
      OnThreads(kThreads, libraries, home, order);
    }
  }
  BOOST_TEST((Sim::Live() == before));
}

bool PrimaryIsActive() { return PrimaryContext::Query(Device::Borrow(0)).active; }

void ExchangeInAUsersContext(const Libraries& libraries) {
  // Whatever another case's runtime still holds.
  BOOST_CHECK_EQUAL(RAW(cuDevicePrimaryCtxReset)(0), CUDA_SUCCESS);
  {
    // The first launch of all loads the library of the runtime's kernels, for good.
    const OwnContext user;
    BOOST_TEST_REQUIRE(RunRounds(libraries, user.get(), {}, {Order::kWaiting, 1}) == "");
  }
  const auto before = Sim::Live();
  {
    const OwnContext user;
    ExchangeIn(libraries, user.get());
  }
  BOOST_TEST(!PrimaryIsActive());
  BOOST_TEST((Sim::Live() == before));
}

void ExchangeInThePrimary(const Libraries& libraries) {
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  ExchangeIn(libraries, primary.get());
}

constexpr char kStaticSide[] = "runtime_side_static";
// A static runtime cannot be replaced by the simulation's.
bool HasStaticRuntime() {
  return !Sim::IsActive() &&
         !cuguest_test::FindBeside(std::string("test/") + kStaticSide + ".so").empty();
}
auto NeedsStaticRuntime() {
  return OnlyIf(&HasStaticRuntime, "needs a real driver and the toolkit's static runtime");
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(exchange, cuguest_runtime_test::HostKernels)

BOOST_AUTO_TEST_CASE(in_a_users_context) { ExchangeInAUsersContext(LoadBoth()); }

BOOST_AUTO_TEST_CASE(in_the_primary_context) { ExchangeInThePrimary(LoadBoth()); }

// Kernels that take longer than it takes to submit the next: without the events they would
// overlap on a device.
BOOST_AUTO_TEST_CASE(in_streams_with_much_to_do) {
  const OwnContext user;
  BOOST_TEST(RunRounds(LoadBoth(), user.get(), {}, {Order::kInStreams, 3, 4'000'000}) == "");
}

BOOST_AUTO_TEST_CASE(with_a_static_runtime, *NeedsStaticRuntime()) {
  const Libraries libraries{Load("driver_side"), Load(kStaticSide)};
  ExchangeInAUsersContext(libraries);
  ExchangeInThePrimary(libraries);
}

// Each with the driver's side, in one context.
BOOST_AUTO_TEST_CASE(with_both_runtimes_at_the_same_time, *NeedsStaticRuntime()) {
  const OwnContext user;
  const Libraries shared = LoadBoth();
  const Libraries with_static{shared.driver, Load(kStaticSide)};
  std::string failure;
  std::thread thread(
      [&] { failure = RunRounds(with_static, user.get(), {user.get()}, {Order::kInStreams}); });
  BOOST_TEST(RunRounds(shared, user.get(), {}, {Order::kInStreams}) == "");
  thread.join();
  BOOST_TEST(failure == "");
}

// An address may be given away again as soon as it is free, so the good memory is made first.
BOOST_AUTO_TEST_CASE(pointers_that_are_none_are_refused_by_both_sides) {
  const OwnContext user;
  const OwnContext host;
  Exchange exchange(LoadBoth(), user.get());
  exchange.Round(0, Order::kWaiting);
  BOOST_TEST_REQUIRE(exchange.failure() == "");
  float* good = nullptr;
  BOOST_TEST(exchange.driver().Allocate(kCount, &good) == "");
  const auto before = Sim::Live();
  SetStack({host.get()});
  {
    const cuguest::testing::UndisturbedScope undisturbed(
        [](const std::string& difference) { BOOST_ERROR(difference); });
    Numbers plain(kCount);
    exchange.Refuse(plain.data(), good, "memory of the host's");
    exchange.Refuse(nullptr, good, "null");

    float* values = nullptr;
    BOOST_TEST(exchange.runtime().Allocate(kCount, &values) == "");
    exchange.Refuse(values + 1, good, "one number more than there is");
    BOOST_TEST(exchange.driver().Free(values, kCount) == "");
    exchange.Refuse(values, good, "what the other side has freed");
    BOOST_TEST(exchange.runtime().Free(values, kCount) != "");
    BOOST_TEST(exchange.driver().Free(values, kCount) != "");
  }
  BOOST_TEST(exchange.runtime().last_error() == 0);
  BOOST_TEST((Sim::Live() == before));
  BOOST_TEST(exchange.runtime().Free(good, kCount) == "");
  exchange.Round(1, Order::kInStreams);
  BOOST_TEST(exchange.failure() == "");
  SetStack({});
}

BOOST_AUTO_TEST_CASE(pointers_of_a_destroyed_context_are_refused) {
  const OwnContext user;
  const Libraries libraries = LoadBoth();
  Exchange exchange(libraries, user.get());
  BOOST_TEST_REQUIRE(exchange.failure() == "");
  float* good = nullptr;
  BOOST_TEST(exchange.runtime().Allocate(kCount, &good) == "");
  float* orphan = nullptr;
  {
    const OwnContext gone;
    const std::unique_ptr<Side> side(libraries.runtime(gone.get()));
    BOOST_TEST_REQUIRE(side.get() != nullptr);
    BOOST_TEST(side->Allocate(kCount, &orphan) == "");
  }
  OwnContext::DestroyIdle();
  exchange.Refuse(orphan, good, "memory of a destroyed context");
  BOOST_TEST(exchange.driver().Free(good, kCount) == "");
  exchange.Round(0, Order::kInStreams);
  BOOST_TEST(exchange.failure() == "");
}

BOOST_AUTO_TEST_SUITE_END()
