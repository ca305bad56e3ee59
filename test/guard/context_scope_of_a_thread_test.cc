// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A worker thread that makes a context its own.

#include "cuguest/context_scope.h"

#include <memory>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(context_scope_of_a_thread)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::ContextScope;
using cuguest::Device;
using cuguest::GuardMode;
using cuguest::Incident;
using cuguest::PrimaryContext;
using cuguest_test::GetStack;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using Stack = std::vector<CUcontext>;

ContextRef RefTo(const OwnContext& context) { return ContextRef::Borrow(context.get()); }

// What a worker does first.
struct Home : ContextScope {
  explicit Home(const ContextRef& context) {
    BOOST_TEST(Enter(context, GuardMode::kAlwaysPush) == CUDA_SUCCESS);
  }
};

template <typename Function>
void OnAnotherThread(const Function& function) {
  std::thread(function).join();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_worker_binds_once_and_its_guards_elide) {
  const OwnContext context;
  OnAnotherThread([&] {
    {
      Home home(RefTo(context));
      BOOST_TEST(home.ok());
      BOOST_TEST(home.get() == context.get());
      for (int job = 0; job < 3; ++job) {
        {
          const ContextGuard guard(context.get());
          BOOST_TEST(guard.elided());
        }
        BOOST_TEST(home.Reassert() == CUDA_SUCCESS);
      }
      BOOST_TEST(GetStack() == (Stack{context.get()}));
    }
    BOOST_TEST(GetStack().empty());
  });
}

// Whatever was current: the entry is its own, also above one of the same context.
BOOST_AUTO_TEST_CASE(leaving_restores) {
  const OwnContext x;
  const OwnContext context;
  for (const Stack& before : {Stack{}, Stack{x.get()}, Stack{x.get(), context.get()}}) {
    SetStack(before);
    Home home(RefTo(context));
    Stack inside = before;
    inside.push_back(context.get());
    BOOST_TEST(GetStack() == inside);
    BOOST_TEST(home.Leave() == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == before);
    BOOST_TEST(home.Leave() == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(home.Reassert() == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(GetStack() == before);
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(settling_takes_two_queries, *OnlySim()) {
  const OwnContext context;
  Sim::ResetCalls();
  Home home(RefTo(context));
  BOOST_TEST(Sim::TotalCalls() == 4u);  // one of them names the context
  Sim::ResetCalls();
  BOOST_TEST(home.Reassert() == CUDA_SUCCESS);
  BOOST_TEST(Sim::TotalCalls() == 2u);
  BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 1u);
  BOOST_TEST(Sim::Calls(cuguest_test::HasDriver(12000) ? "cuCtxGetId" : "cuCtxGetApiVersion") ==
             1u);
}

BOOST_AUTO_TEST_CASE(settling_repairs_what_a_job_left) {
  const OwnContext context;
  const OwnContext other;
  Home home(RefTo(context));
  BOOST_TEST(RAW(cuCtxPushCurrent)(other.get()) == CUDA_SUCCESS);
  BOOST_TEST(home.Reassert() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == (Stack{context.get()}));
  BOOST_TEST(RAW(cuCtxSetCurrent)(other.get()) == CUDA_SUCCESS);
  BOOST_TEST(home.Reassert() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == (Stack{context.get()}));
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 2u);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
  BOOST_TEST((incidents[1].kind == Incident::Kind::kReplaced));
  BOOST_TEST(home.Leave() == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(a_reset_is_noticed_and_the_thread_moves_on) {
  const OwnContext x;
  SetStack({x.get()});
  const PrimaryContext before = PrimaryContext::Retain(Device::Borrow(0));
  Home home(before.context());
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  BOOST_TEST(home.Reassert() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  const PrimaryContext after = PrimaryContext::Retain(Device::Borrow(0));
  BOOST_TEST(home.Reassert() == CUDA_ERROR_CONTEXT_IS_DESTROYED);  // another incarnation
  BOOST_TEST(home.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(!cuguest::ToStatus(home).ok());
  BOOST_TEST(home.MoveTo(after.context()) == CUDA_SUCCESS);
  BOOST_TEST(home.ok());
  BOOST_TEST(home.Reassert() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == (Stack{x.get(), after.get()}));
  BOOST_TEST(home.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == (Stack{x.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(its_context_is_destroyed) {
  OwnContext context;
  const OwnContext next;
  Home home(RefTo(context));
  const CUcontext dead = context.release();
  OnAnotherThread([&] { BOOST_TEST(RAW(cuCtxDestroy)(dead) == CUDA_SUCCESS); });
  BOOST_TEST(home.Reassert() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(GetStack().empty());  // what it had before
  BOOST_TEST(home.Leave() == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(home.MoveTo(RefTo(next)) == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == (Stack{next.get()}));
  BOOST_TEST(home.Leave() == CUDA_SUCCESS);
}

// A job destroyed what the thread had before; its own context is alive.
BOOST_AUTO_TEST_CASE(what_the_thread_had_is_destroyed) {
  OwnContext before;
  const OwnContext context;
  const OwnContext after;
  SetStack({before.get()});
  Home home(RefTo(context));
  RAW(cuCtxPopCurrent)(nullptr);
  RAW(cuCtxPopCurrent)(nullptr);
  BOOST_TEST(RAW(cuCtxDestroy)(before.release()) == CUDA_SUCCESS);
  SetStack({after.get()});
  BOOST_TEST(home.Reassert() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == (Stack{after.get(), context.get()}));
  BOOST_TEST(home.Leave() == CUDA_ERROR_CONTEXT_IS_DESTROYED);  // what it had is over
  BOOST_TEST(GetStack() == Stack{after.get()});
  static_cast<void>(cuguest_test::TakeIncidents());
  SetStack({});
}

// Another thread can neither use nor leave it, and its own stack is left alone.
BOOST_AUTO_TEST_CASE(it_is_bound_to_its_thread) {
  const OwnContext context;
  const OwnContext other;
  auto home = std::make_unique<Home>(RefTo(context));
  OnAnotherThread([&] {
    SetStack({other.get(), context.get()});
    BOOST_TEST(home->Reassert() == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(home->MoveTo(RefTo(other)) == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(TakeIncidents().empty());
    BOOST_TEST(home->Leave() == CUDA_ERROR_NOT_READY);
    home.reset();
    BOOST_TEST(GetStack() == (Stack{other.get(), context.get()}));
    SetStack({});
  });
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1u);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kElsewhere));
  BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_READY);
  BOOST_TEST(incidents[0].expected == context.get());
  BOOST_TEST(GetStack() == (Stack{context.get()}));
  {
    const ContextGuard next(other.get());
    BOOST_TEST(next.caller() == nullptr);
  }
  BOOST_TEST(GetStack().empty());
}

// glibc gives the pthread_t, and the address of a thread_local, of a thread that was joined to the
// next one.
BOOST_AUTO_TEST_CASE(a_thread_is_not_mistaken_for_one_that_has_ended) {
  const OwnContext context;
  const OwnContext x;
  const OwnContext y;
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::unique_ptr<Home> home;
    OnAnotherThread([&] {
      home = std::make_unique<Home>(RefTo(context));
      BOOST_TEST(home->ok());
    });
    OnAnotherThread([&] {
      SetStack({x.get(), context.get(), y.get()});
      BOOST_TEST(home->Reassert() == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(home->Leave() == CUDA_ERROR_NOT_READY);
      home.reset();
      BOOST_TEST(GetStack() == (Stack{x.get(), context.get(), y.get()}));
      SetStack({});
    });
    for (const auto& incident : TakeIncidents()) {
      BOOST_TEST((incident.kind == Incident::Kind::kElsewhere));
    }
  }
}

BOOST_AUTO_TEST_CASE(any_driver_call_fails, *OnlySim()) {
  const OwnContext x;
  const OwnContext context;
  const OwnContext next;
  for (const char* entry :
       {"cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuCtxGetId"}) {
    for (unsigned nth = 1; nth <= 6; ++nth) {
      BOOST_TEST_CONTEXT(entry << " fails at call " << nth) {
        SetStack({x.get()});
        const ContextRef first = RefTo(context);
        const ContextRef second = RefTo(next);
        Sim::FailCall(entry, nth, CUDA_ERROR_OPERATING_SYSTEM);
        {
          ContextScope home;
          static_cast<void>(home.Enter(first, GuardMode::kAlwaysPush));
          static_cast<void>(home.Reassert());
          static_cast<void>(home.MoveTo(second));
        }
        Sim::ClearFaults();
        BOOST_TEST(GetStack() == (Stack{x.get()}));
        static_cast<void>(TakeIncidents());
      }
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
