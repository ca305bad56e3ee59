// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The context of a thread of a library's own, in C++ and in C.

#include "cuguest/thread_home.h"

#include <functional>
#include <memory>
#include <ostream>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/c.h"
#include "cuguest/context_guard.h"
#include "cuguest/primary_context.h"
#include "test/support/driver_calls.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(thread_home)

namespace {

using cudasim::Sim;
using cuguest::Acquired;
using cuguest::AcquireOn;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Error;
using cuguest::Incident;
using cuguest::PrimaryContext;
using cuguest::ThreadHome;
using cuguest_test::GetStack;
using cuguest_test::NeedsDriver;
using cuguest_test::OnAnotherThread;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using IfOver = ThreadHome::IfOver;
using Keep = ThreadHome::Keep;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);

bool IsActive() { return PrimaryContext::Query(kFirst).active; }

// A home in either language.
class Home {
 public:
  Home() = default;
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;
  virtual ~Home() = default;
  virtual CUresult code() const = 0;  // of binding
  virtual CUresult Check() = 0;
  virtual CUresult MoveTo(const ContextRef& context) = 0;
  virtual CUresult Leave() = 0;
  virtual CUcontext context() = 0;
};

class InCpp final : public Home {
 public:
  template <typename What>
  InCpp(const What& what, Keep keep, IfOver if_over)
      : home_(what, keep, if_over), code_(home_.error().code) {}
  CUresult code() const override { return code_; }
  CUresult Check() override { return home_.Check().code; }
  CUresult MoveTo(const ContextRef& context) override { return home_.MoveTo(context).code; }
  CUresult Leave() override { return home_.Leave().code; }
  CUcontext context() override { return home_.context().get(); }

 private:
  ThreadHome home_;
  CUresult code_;
};

class InC final : public Home {
 public:
  template <typename Enter>
  explicit InC(Enter enter) : code_(static_cast<CUresult>(enter(&home_))) {}
  ~InC() override { cuguest_thread_home_cleanup(&home_); }
  CUresult code() const override { return code_; }
  CUresult Check() override { return static_cast<CUresult>(cuguest_thread_home_check(&home_)); }
  CUresult MoveTo(const ContextRef& context) override {
    const cuguest_ref ref = {sizeof(cuguest_ref), context.get(), context.id()};
    return static_cast<CUresult>(cuguest_thread_home_move_to(&home_, &ref));
  }
  CUresult Leave() override { return static_cast<CUresult>(cuguest_thread_home_leave(&home_)); }
  CUcontext context() override {
    cuguest_ref ref = CUGUEST_REF_INIT;
    BOOST_TEST(cuguest_thread_home_ref(&home_, &ref) == 0);
    return ref.context;
  }

 private:
  cuguest_thread_home home_ = CUGUEST_INIT(cuguest_thread_home);
  CUresult code_;
};

// What the library was handed, on another thread.
struct Handed {
  ContextRef context;
  CUstream stream = nullptr;
  CUdeviceptr pointer = 0;
};

using Bind = std::function<std::unique_ptr<Home>(const Handed&, Keep, IfOver)>;
struct Way {
  const char* name;
  Bind bind;
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

int OptionsOf(Keep keep, IfOver if_over) {
  return (keep == Keep::kReference ? CUGUEST_HOME_HOLDS : 0) |
         (if_over == IfOver::kReenter ? CUGUEST_HOME_REENTERS : 0);
}

const Way kWays[] = {
    {"context",
     [](const Handed& handed, Keep keep, IfOver if_over) -> std::unique_ptr<Home> {
       return std::make_unique<InCpp>(handed.context, keep, if_over);
     }},
    {"stream",
     [](const Handed& handed, Keep keep, IfOver if_over) -> std::unique_ptr<Home> {
       return std::make_unique<InCpp>(handed.stream, keep, if_over);
     }},
    {"pointer",
     [](const Handed& handed, Keep keep, IfOver if_over) -> std::unique_ptr<Home> {
       return std::make_unique<InCpp>(handed.pointer, keep, if_over);
     }},
    {"address",
     [](const Handed& handed, Keep keep, IfOver if_over) -> std::unique_ptr<Home> {
       const void* const at = reinterpret_cast<const void*>(handed.pointer);
       return std::make_unique<InCpp>(at, keep, if_over);
     }},
    {"C context",
     [](const Handed& handed, Keep keep, IfOver if_over) -> std::unique_ptr<Home> {
       return std::make_unique<InC>([&](cuguest_thread_home* home) {
         const cuguest_ref ref = {sizeof(cuguest_ref), handed.context.get(), handed.context.id()};
         return cuguest_thread_home_enter_ref(home, &ref, OptionsOf(keep, if_over), CUGUEST_HERE);
       });
     }},
    {"C stream",
     [](const Handed& handed, Keep keep, IfOver if_over) -> std::unique_ptr<Home> {
       return std::make_unique<InC>([&](cuguest_thread_home* home) {
         return cuguest_thread_home_enter_stream(home, handed.stream, OptionsOf(keep, if_over),
                                                 CUGUEST_HERE);
       });
     }},
    {"C pointer",
     [](const Handed& handed, Keep keep, IfOver if_over) -> std::unique_ptr<Home> {
       return std::make_unique<InC>([&](cuguest_thread_home* home) {
         return cuguest_thread_home_enter_pointer(home, handed.pointer, OptionsOf(keep, if_over),
                                                  CUGUEST_HERE);
       });
     }},
};

// Of a device: in its primary context, on a thread of one's own.
const Way kOfDevice[] = {
    {"device",
     [](const Handed&, Keep keep, IfOver if_over) -> std::unique_ptr<Home> {
       return std::make_unique<InCpp>(kFirst, keep, if_over);
     }},
    {"C device",
     [](const Handed&, Keep keep, IfOver if_over) -> std::unique_ptr<Home> {
       return std::make_unique<InC>([&](cuguest_thread_home* home) {
         return cuguest_thread_home_enter_device(home, 0, OptionsOf(keep, if_over), CUGUEST_HERE);
       });
     }},
};

std::vector<Way> AllWays() {
  std::vector<Way> all(std::begin(kWays), std::end(kWays));
  all.insert(all.end(), std::begin(kOfDevice), std::end(kOfDevice));
  return all;
}

// What is in `context`, which the caller keeps.
Handed HandedIn(CUcontext context) {
  Handed handed;
  SetStack({context});
  handed.context = ContextRef::Current();
  OK(RAW(cuStreamCreate)(&handed.stream, CU_STREAM_NON_BLOCKING));
  OK(RAW(cuMemAlloc)(&handed.pointer, 256));
  SetStack({});
  return handed;
}

}  // namespace

BOOST_AUTO_TEST_CASE(guards_inside_elide) {
  const OwnContext own;
  const Handed handed = HandedIn(own.get());
  for (const Way& way : kWays) {
    OnAnotherThread([&] {
      {
        const auto home = way.bind(handed, Keep::kNothing, IfOver::kRefuse);
        BOOST_TEST(home->code() == CUDA_SUCCESS, way);
        BOOST_TEST(home->context() == own.get(), way);
        for (int task = 0; task < 3; ++task) {
          BOOST_TEST(home->Check() == CUDA_SUCCESS, way);
          const ContextGuard guard(own.get());
          BOOST_TEST(guard.elided(), way);
        }
        BOOST_TEST(GetStack() == Stack{own.get()}, way);
      }
      BOOST_TEST(GetStack().empty(), way);
    });
  }
  BOOST_TEST(!IsActive());
}

// A task on somebody else's pool: whatever the pool's thread had comes back.
BOOST_AUTO_TEST_CASE(a_pool_has_its_stack_back) {
  const OwnContext pools;
  const OwnContext own;
  const Handed handed = HandedIn(own.get());
  for (const Way& way : kWays) {
    for (const Stack& before : {Stack{pools.get()}, Stack{pools.get(), own.get()}}) {
      SetStack(before);
      {
        const auto home = way.bind(handed, Keep::kNothing, IfOver::kRefuse);
        Stack inside = before;
        inside.push_back(own.get());
        BOOST_TEST(GetStack() == inside, way);
      }
      BOOST_TEST(GetStack() == before, way);
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_creates_nothing) {
  if (IsActive()) return;
  for (const Way& way : kOfDevice) {
    OnAnotherThread([&] {
      const auto home = way.bind({}, Keep::kReference, IfOver::kReenter);
      BOOST_TEST(home->code() == CUDA_ERROR_INVALID_CONTEXT, way);
      BOOST_TEST(GetStack().empty());
    });
    BOOST_TEST(!IsActive());
  }
}

// A worker may begin before its device has a context.
BOOST_AUTO_TEST_CASE(it_enters_what_becomes_active) {
  if (IsActive()) return;
  OnAnotherThread([] {
    ThreadHome home(kFirst, Keep::kReference, IfOver::kReenter);
    ThreadHome refused(kFirst);
    BOOST_TEST(home.error().code == CUDA_ERROR_INVALID_CONTEXT);
    BOOST_TEST(home.Check().code == CUDA_ERROR_INVALID_CONTEXT);
    BOOST_TEST(!IsActive());
    {
      const PrimaryContext hosts = PrimaryContext::Retain(kFirst);
      BOOST_TEST(refused.Check().code == CUDA_ERROR_INVALID_CONTEXT);
      BOOST_TEST(home.Check().ok());
      BOOST_TEST(home.ok());
      BOOST_TEST(GetStack() == Stack{hosts.get()});
    }
    BOOST_TEST(IsActive());
    BOOST_TEST(home.Leave().ok());
    BOOST_TEST(GetStack().empty());
  });
  BOOST_TEST(!IsActive());
}

// What it waits for is its home, too.
BOOST_AUTO_TEST_CASE(failed_move_keeps_its_wait) {
  if (IsActive()) return;
  ContextRef ended;
  {
    const OwnContext own;
    ended = ContextRef::Borrow(own.get());
  }
  OwnContext::DestroyIdle();
  OnAnotherThread([&] {
    ThreadHome home(kFirst, Keep::kNothing, IfOver::kReenter);
    BOOST_TEST(home.MoveTo(AcquireOn(Device::Borrow(1))).code != CUDA_SUCCESS);
    BOOST_TEST(home.MoveTo(ended).code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    const PrimaryContext hosts = PrimaryContext::Retain(kFirst);
    BOOST_TEST(home.Check().ok());
    BOOST_TEST(GetStack() == Stack{hosts.get()});
    BOOST_TEST(home.Leave().ok());
  });
}

// The host may give its context up while the thread waits.
BOOST_AUTO_TEST_CASE(it_holds_nothing_unless_asked) {
  if (IsActive()) return;
  for (const Way& way : AllWays()) {
    for (const Keep keep : {Keep::kNothing, Keep::kReference}) {
      PrimaryContext hosts = PrimaryContext::Retain(kFirst);
      const Handed handed = HandedIn(hosts.get());
      OnAnotherThread([&] {
        const auto home = way.bind(handed, keep, IfOver::kRefuse);
        BOOST_TEST_REQUIRE(home->code() == CUDA_SUCCESS, way);
        BOOST_TEST(hosts.Release().ok());
        const bool lasts = keep == Keep::kReference;
        BOOST_TEST(IsActive() == lasts, way);
        const CUresult expected = lasts ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
        BOOST_TEST(home->Check() == expected, way);
        BOOST_TEST(GetStack() == (lasts ? Stack{home->context()} : Stack{}), way);
      });
      BOOST_TEST(!IsActive(), way);
      static_cast<void>(TakeIncidents());
    }
  }
}

BOOST_AUTO_TEST_CASE(only_a_primary_is_held) {
  const OwnContext own;
  const Handed handed = HandedIn(own.get());
  for (const Way& way : kWays) {
    const auto refused = way.bind(handed, Keep::kReference, IfOver::kRefuse);
    BOOST_TEST(refused->code() == CUDA_ERROR_NOT_SUPPORTED, way);
    BOOST_TEST(GetStack().empty(), way);
    const auto bound = way.bind(handed, Keep::kNothing, IfOver::kReenter);
    BOOST_TEST(bound->code() == CUDA_SUCCESS, way);
    BOOST_TEST(bound->Leave() == CUDA_SUCCESS, way);
  }
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(a_reset_is_noticed, *NeedsDriver(12000, "cuCtxGetId")) {
  if (IsActive()) return;
  for (const Way& way : AllWays()) {
    for (const IfOver if_over : {IfOver::kRefuse, IfOver::kReenter}) {
      for (const Keep keep : {Keep::kNothing, Keep::kReference}) {
        PrimaryContext hosts = PrimaryContext::Retain(kFirst);
        const Handed handed = HandedIn(hosts.get());
        OnAnotherThread([&] {
          const auto home = way.bind(handed, keep, if_over);
          BOOST_TEST_REQUIRE(home->code() == CUDA_SUCCESS, way);
          OK(RAW(cuDevicePrimaryCtxReset)(0));
          const bool reenters = if_over == IfOver::kReenter;
          // Nobody has made the next one active.
          BOOST_TEST(home->Check() ==
                         (reenters ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED),
                     way);
          BOOST_TEST(!IsActive(), way);
          BOOST_TEST(GetStack().empty(), way);
          PrimaryContext next = PrimaryContext::Retain(kFirst);
          BOOST_TEST(home->Check() == (reenters ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED),
                     way);
          BOOST_TEST(GetStack() == (reenters ? Stack{next.get()} : Stack{}), way);
          BOOST_TEST(hosts.Release().ok());
          BOOST_TEST(next.Release().ok());
          BOOST_TEST(IsActive() == (keep == Keep::kReference), way);
        });
        BOOST_TEST(!IsActive(), way);
        static_cast<void>(TakeIncidents());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_destroyed_context_is_noticed) {
  for (const Way& way : kWays) {
    OwnContext own;
    const Handed handed = HandedIn(own.get());
    OnAnotherThread([&] {
      const auto home = way.bind(handed, Keep::kNothing, IfOver::kReenter);
      OK(RAW(cuCtxDestroy)(own.release()));
      BOOST_TEST(home->Check() == CUDA_ERROR_CONTEXT_IS_DESTROYED, way);
      BOOST_TEST(GetStack().empty(), way);
      const OwnContext other;
      BOOST_TEST(home->MoveTo(ContextRef::Borrow(other.get())) == CUDA_SUCCESS, way);
      BOOST_TEST(home->Check() == CUDA_SUCCESS, way);
      BOOST_TEST(GetStack() == Stack{other.get()}, way);
      BOOST_TEST(home->Leave() == CUDA_SUCCESS, way);
      BOOST_TEST(GetStack().empty(), way);
    });
    static_cast<void>(TakeIncidents());
  }
}

// What a task has left is repaired before the next.
BOOST_AUTO_TEST_CASE(a_task_that_leaves_another_current) {
  const OwnContext other;
  const OwnContext own;
  const Handed handed = HandedIn(own.get());
  for (const Way& way : kWays) {
    const auto home = way.bind(handed, Keep::kNothing, IfOver::kRefuse);
    OK(RAW(cuCtxPushCurrent)(other.get()));
    BOOST_TEST(home->Check() == CUDA_SUCCESS, way);
    BOOST_TEST(GetStack() == Stack{own.get()}, way);
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
    BOOST_TEST(home->Leave() == CUDA_SUCCESS, way);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_done_changes_nothing) {
  const OwnContext other;
  OwnContext over;
  const ContextRef dead = ContextRef::Borrow(over.get());
  OK(RAW(cuCtxDestroy)(over.release()));
  const OwnContext own;
  const Handed handed = HandedIn(own.get());
  for (const Way& way : kWays) {
    const auto home = way.bind(handed, Keep::kNothing, IfOver::kRefuse);
    {
      const ContextGuard inside(other.get());
      BOOST_TEST(home->Check() == CUDA_ERROR_ILLEGAL_STATE, way);
      BOOST_TEST(home->MoveTo(ContextRef::Borrow(other.get())) == CUDA_ERROR_ILLEGAL_STATE, way);
      BOOST_TEST(GetStack() == (Stack{own.get(), other.get()}), way);
    }
    OnAnotherThread([&] {
      BOOST_TEST(home->Check() == CUDA_ERROR_ILLEGAL_STATE, way);
      BOOST_TEST(home->MoveTo(handed.context) == CUDA_ERROR_ILLEGAL_STATE, way);
      BOOST_TEST(GetStack().empty(), way);
    });
    BOOST_TEST(home->MoveTo(ContextRef()) == CUDA_ERROR_INVALID_CONTEXT, way);
    if (dead.id() != 0) {
      BOOST_TEST(home->MoveTo(dead) != CUDA_SUCCESS, way);
    }
    BOOST_TEST(home->Check() == CUDA_SUCCESS, way);
    BOOST_TEST(GetStack() == Stack{own.get()}, way);
    BOOST_TEST(home->Leave() == CUDA_SUCCESS, way);
    BOOST_TEST(home->Check() == CUDA_ERROR_ILLEGAL_STATE, way);
    BOOST_TEST(GetStack().empty(), way);
  }
}

// A pointer of another device than the one that is current names its own context.
BOOST_AUTO_TEST_CASE(of_another_devices_pointer, *cuguest_test::NeedsDevices(2)) {
  const OwnContext own(1);
  const Handed handed = HandedIn(own.get());
  const OwnContext first;
  SetStack({first.get()});
  {
    const ThreadHome home(handed.pointer);
    BOOST_TEST(home.ok());
    BOOST_TEST(GetStack() == (Stack{first.get(), own.get()}));
  }
  BOOST_TEST(GetStack() == Stack{first.get()});
  SetStack({});
}

// One that was shared among tasks holds its primary, and so says what its next incarnation is.
BOOST_AUTO_TEST_CASE(tasks_share_what_was_acquired, *NeedsDriver(12000, "cuCtxGetId")) {
  if (IsActive()) return;
  PrimaryContext hosts = PrimaryContext::Retain(kFirst);
  const Acquired shared = AcquireOn(kFirst);
  BOOST_TEST(shared.holds());
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  const PrimaryContext next = PrimaryContext::Retain(kFirst);
  OnAnotherThread([&] {
    const ThreadHome refused(ContextRef(shared.context()));
    BOOST_TEST(refused.error().code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  });
  BOOST_TEST(hosts.Release().ok());
}

BOOST_AUTO_TEST_CASE(what_it_costs, *OnlySim() * NeedsDriver(12000, "cuCtxGetId")) {
  const OwnContext own;
  const Handed handed = HandedIn(own.get());
  const unsigned binding[] = {3, 5, 5, 5, 3, 5, 5};
  for (std::size_t i = 0; i < std::size(kWays); ++i) {
    Sim::ResetCalls();
    const auto home = kWays[i].bind(handed, Keep::kNothing, IfOver::kRefuse);
    BOOST_TEST(Sim::TotalCalls() == binding[i], kWays[i]);
    Sim::ResetCalls();
    BOOST_TEST(home->Check() == CUDA_SUCCESS);
    BOOST_TEST(Sim::TotalCalls() == 2U, kWays[i]);
    BOOST_TEST(home->Leave() == CUDA_SUCCESS);
  }
}

BOOST_AUTO_TEST_SUITE_END()
