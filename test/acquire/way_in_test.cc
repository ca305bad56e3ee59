// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A guard of a stream, a pointer, a device, in one call: in C++ and in C.

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/c.h"
#include "cuguest/device.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "test/support/capture.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(way_in)

namespace {

using cudasim::Sim;
using cuguest::Acquired;
using cuguest::AcquiredGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::GuardMode;
using cuguest::IfInactive;
using cuguest::Location;
using cuguest::PrimaryContext;
using cuguest_test::BeginCount;
using cuguest_test::GetStack;
using cuguest_test::NeedsDriver;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::ThreadMode;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);

bool IsActive() { return PrimaryContext::Query(kFirst).active; }

// A guard of either language that has entered, or says why not.
class Inside {
 public:
  Inside() = default;
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  virtual ~Inside() = default;
  virtual CUresult code() const = 0;
  virtual CUresult Leave() = 0;
};

class InCpp final : public Inside {
 public:
  template <typename... Arguments>
  explicit InCpp(Arguments... arguments) : guard_(arguments..., Location::Here()) {}
  CUresult code() const override { return guard_.error().code; }
  CUresult Leave() override { return guard_.Leave(); }

 private:
  AcquiredGuard guard_;
};

class InC final : public Inside {
 public:
  template <typename Enter>
  explicit InC(Enter enter) : code_(enter(&guard_)) {}
  ~InC() override { cuguest_guard_cleanup(&guard_); }
  CUresult code() const override { return static_cast<CUresult>(code_); }
  CUresult Leave() override { return static_cast<CUresult>(cuguest_guard_leave(&guard_)); }

 private:
  cuguest_guard guard_ = CUGUEST_INIT(cuguest_guard);
  int code_;
};

struct Handed {
  CUstream stream = nullptr;
  CUdeviceptr pointer = 0;
};

struct Way {
  const char* name;
  std::function<std::unique_ptr<Inside>(const Handed&, bool always_pushes)> enter;
  unsigned calls;  // to enter and leave where it is elided
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

GuardMode ModeOf(bool always_pushes) {
  return always_pushes ? GuardMode::kAlwaysPush : GuardMode::kElide;
}

template <typename Enter>
std::unique_ptr<Inside> EnterC(Enter enter) {
  return std::make_unique<InC>(enter);
}

// Of a stream and a pointer.
const Way kOfObjects[] = {
    {"stream",
     [](const Handed& handed, bool pushes) -> std::unique_ptr<Inside> {
       return std::make_unique<InCpp>(handed.stream, ModeOf(pushes));
     },
     4},
    {"stream and device",
     [](const Handed& handed, bool pushes) -> std::unique_ptr<Inside> {
       return std::make_unique<InCpp>(handed.stream, kFirst, IfInactive::kRefuse, ModeOf(pushes));
     },
     4},
    {"pointer",
     [](const Handed& handed, bool pushes) -> std::unique_ptr<Inside> {
       return std::make_unique<InCpp>(handed.pointer, IfInactive::kRefuse, ModeOf(pushes));
     },
     4},
    {"address",
     [](const Handed& handed, bool pushes) -> std::unique_ptr<Inside> {
       const void* const at = reinterpret_cast<const void*>(handed.pointer);
       return std::make_unique<InCpp>(at, IfInactive::kRefuse, ModeOf(pushes));
     },
     4},
    {"C stream",
     [](const Handed& handed, bool pushes) {
       return EnterC([=](cuguest_guard* guard) {
         return cuguest_guard_enter_stream(guard, handed.stream, CUGUEST_NO_DEVICE, CUGUEST_REFUSE,
                                           pushes ? 1 : 0, CUGUEST_HERE);
       });
     },
     4},
    {"C pointer",
     [](const Handed& handed, bool pushes) {
       return EnterC([=](cuguest_guard* guard) {
         return cuguest_guard_enter_pointer(guard, handed.pointer, CUGUEST_REFUSE, pushes ? 1 : 0,
                                            CUGUEST_HERE);
       });
     },
     4},
};

// Of a device, and of a stream that means the current context.
const Way kOfCurrent[] = {
    {"device",
     [](const Handed&, bool pushes) -> std::unique_ptr<Inside> {
       return std::make_unique<InCpp>(kFirst, IfInactive::kRefuse, ModeOf(pushes));
     },
     3},
    {"stream 0",
     [](const Handed&, bool pushes) -> std::unique_ptr<Inside> {
       return std::make_unique<InCpp>(CUstream{nullptr}, ModeOf(pushes));
     },
     3},
    {"stream 0 of a device",
     [](const Handed&, bool pushes) -> std::unique_ptr<Inside> {
       return std::make_unique<InCpp>(CU_STREAM_PER_THREAD, kFirst, IfInactive::kRefuse,
                                      ModeOf(pushes));
     },
     3},
    {"C device",
     [](const Handed&, bool pushes) {
       return EnterC([=](cuguest_guard* guard) {
         return cuguest_guard_enter_device(guard, 0, CUGUEST_REFUSE, pushes ? 1 : 0, CUGUEST_HERE);
       });
     },
     3},
    {"C stream 0 of a device",
     [](const Handed&, bool pushes) {
       return EnterC([=](cuguest_guard* guard) {
         return cuguest_guard_enter_stream(guard, nullptr, 0, CUGUEST_REFUSE, pushes ? 1 : 0,
                                           CUGUEST_HERE);
       });
     },
     3},
};

// A stream and memory of a context of its own.
class Given {
 public:
  Given() {
    SetStack({context_.get()});
    BOOST_TEST(RAW(cuStreamCreate)(&handed_.stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuMemAlloc)(&handed_.pointer, 256) == CUDA_SUCCESS);
    SetStack({});
  }
  CUcontext context() const { return context_.get(); }
  const Handed& handed() const { return handed_; }

 private:
  OwnContext context_;  // ends with what is in it
  Handed handed_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_inside_what_was_meant) {
  const OwnContext other;
  const Given given;
  for (const Way& way : kOfObjects) {
    for (const Stack& before : {Stack{}, Stack{other.get()}, Stack{given.context()}}) {
      for (const bool pushes : {false, true}) {
        SetStack(before);
        {
          const auto inside = way.enter(given.handed(), pushes);
          BOOST_TEST(inside->code() == CUDA_SUCCESS, way);
          Stack expected = before;
          const bool is_current = !before.empty() && before.back() == given.context();
          if (pushes || !is_current) expected.push_back(given.context());
          BOOST_TEST(GetStack() == expected, way);
        }
        BOOST_TEST(GetStack() == before, way);
      }
    }
  }
  for (const Way& way : kOfCurrent) {
    SetStack({other.get()});
    {
      const auto inside = way.enter({}, true);
      BOOST_TEST(inside->code() == CUDA_SUCCESS, way);
      BOOST_TEST(GetStack() == (Stack{other.get(), other.get()}), way);
      BOOST_TEST(inside->Leave() == CUDA_SUCCESS);
    }
    BOOST_TEST(GetStack() == Stack{other.get()}, way);
  }
  BOOST_TEST(!IsActive());
  SetStack({});
}

// Entering asks no function of the driver twice, and the end looks once.
BOOST_AUTO_TEST_CASE(nothing_is_asked_twice, *OnlySim() * NeedsDriver(12000, "cuCtxGetId")) {
  const OwnContext other;
  const Given given;
  std::vector<Way> ways(std::begin(kOfObjects), std::end(kOfObjects));
  ways.insert(ways.end(), std::begin(kOfCurrent), std::end(kOfCurrent));
  for (const Way& way : ways) {
    SetStack({given.context()});
    { const auto seen = way.enter(given.handed(), false); }
    Sim::ResetCalls();
    {
      const auto inside = way.enter(given.handed(), false);
      for (const char* const call : {"cuStreamGetCtx", "cuPointerGetAttribute", "cuCtxGetCurrent",
                                     "cuCtxGetId", "cuCtxGetDevice", "cuCtxPushCurrent"}) {
        BOOST_TEST(Sim::Calls(call) <= 1U, way << ": " << call);
      }
    }
    BOOST_TEST(Sim::TotalCalls() == way.calls, way);
  }
  for (const Way& way : kOfObjects) {
    SetStack({other.get()});
    Sim::ResetCalls();
    { const auto inside = way.enter(given.handed(), false); }
    BOOST_TEST(Sim::TotalCalls() == way.calls + 2U, way);  // a push, and a pop
  }
  SetStack({});
}

// Whose memory a pool's is the device says; what is current is asked once for both.
BOOST_AUTO_TEST_CASE(pool_memory_is_asked_once, *OnlySim() * NeedsDriver(12000, "cuCtxGetId")) {
  const OwnContext context;
  SetStack({context.get()});
  CUdeviceptr pooled = 0;
  BOOST_TEST_REQUIRE(RAW(cuMemAllocAsync)(&pooled, 64, nullptr) == CUDA_SUCCESS);
  { const AcquiredGuard seen(kFirst); }
  Sim::ResetCalls();
  {
    const AcquiredGuard guard(pooled);
    BOOST_TEST(guard.ok());
    BOOST_TEST(guard.guard().elided());
    BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 1U);
    BOOST_TEST(Sim::Calls("cuCtxGetId") == 1U);
  }
  BOOST_TEST(RAW(cuMemFree)(pooled) == CUDA_SUCCESS);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(what_is_refused_changes_nothing) {
  const OwnContext other;
  int on_the_host = 0;
  const Handed plain{nullptr, reinterpret_cast<CUdeviceptr>(&on_the_host)};
  SetStack({other.get()});
  for (const Way& way : kOfObjects) {
    if (std::string(way.name).find("stream") != std::string::npos) continue;
    const auto inside = way.enter(plain, false);
    BOOST_TEST(inside->code() == CUDA_ERROR_INVALID_VALUE, way);
    BOOST_TEST(GetStack() == Stack{other.get()}, way);
  }
  SetStack({});
  for (const Way& way : kOfCurrent) {
    const auto inside = way.enter({}, false);
    BOOST_TEST(inside->code() == CUDA_ERROR_INVALID_CONTEXT, way);
    BOOST_TEST(GetStack().empty());
    BOOST_TEST(!IsActive(), way);
  }
}

BOOST_AUTO_TEST_CASE(a_created_primary_lasts) {
  if (IsActive()) return;
  for (const bool in_c : {false, true}) {
    {
      std::unique_ptr<Inside> inside;
      if (in_c) {
        inside = EnterC([](cuguest_guard* guard) {
          return cuguest_guard_enter_device(guard, 0, CUGUEST_CREATE, CUGUEST_ELIDE, CUGUEST_HERE);
        });
      } else {
        inside = std::make_unique<InCpp>(kFirst, IfInactive::kCreate, GuardMode::kElide);
      }
      BOOST_TEST(inside->code() == CUDA_SUCCESS);
      BOOST_TEST(IsActive());
      BOOST_TEST(GetStack().size() == 1U);
    }
    BOOST_TEST(!IsActive());
    BOOST_TEST(GetStack().empty());
  }
}

BOOST_AUTO_TEST_CASE(in_c_of_an_acquired) {
  const OwnContext context;
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  BOOST_TEST(cuguest_guard_enter_acquired(&guard, &acquired, CUGUEST_ELIDE, CUGUEST_HERE) ==
             CUDA_ERROR_ILLEGAL_STATE);
  SetStack({context.get()});
  BOOST_TEST(cuguest_acquire_any(&acquired) == 0);
  SetStack({});
  BOOST_TEST(cuguest_guard_enter_acquired(&guard, &acquired, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  BOOST_TEST(GetStack() == Stack{context.get()});
  BOOST_TEST(cuguest_guard_leave(&guard) == 0);
  BOOST_TEST(cuguest_acquired_release(&acquired) == 0);
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(in_c_captures_are_relaxed, *NeedsDriver(10010, "capture modes")) {
  const Given given;
  BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_GLOBAL);
  for (const int also : {CUGUEST_ELIDE, CUGUEST_ALWAYS_PUSH}) {
    cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
    BOOST_TEST(cuguest_guard_relax(&guard, CUGUEST_HERE) == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(cuguest_guard_enter_stream(&guard, given.handed().stream, CUGUEST_NO_DEVICE,
                                          CUGUEST_REFUSE, also, CUGUEST_HERE) == 0);
    std::thread([&] {
      BOOST_TEST(cuguest_guard_relax(&guard, CUGUEST_HERE) == CUDA_ERROR_ILLEGAL_STATE);
    }).join();
    for (int i = 0; i < 2; ++i) {
      BOOST_TEST(cuguest_guard_relax(&guard, CUGUEST_HERE) == 0);
      BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_RELAXED);
    }
    BOOST_TEST(GetStack() == Stack{given.context()});
    BOOST_TEST(cuguest_guard_leave(&guard) == 0);
    BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_GLOBAL);
    BOOST_TEST(cuguest_guard_relax(&guard, CUGUEST_HERE) == CUDA_ERROR_ILLEGAL_STATE);
  }
  BOOST_TEST(ThreadMode() == CU_STREAM_CAPTURE_MODE_GLOBAL);
  SetStack({});
}

// A guard of a loop over tasks holds what it works in; what it held before is given back.
BOOST_AUTO_TEST_CASE(a_guard_moves_with_its_reference) {
  if (IsActive()) return;
  const OwnContext own;
  AcquiredGuard guard;
  BOOST_TEST(!guard.ok());
  BOOST_TEST(guard.MoveTo(AcquireOn(kFirst, IfInactive::kCreate)).ok());
  BOOST_TEST(guard.ok());
  BOOST_TEST(IsActive());
  BOOST_TEST(GetStack() == Stack{guard.context().get()});
  BOOST_TEST(!guard.MoveTo(Acquired()).ok());
  BOOST_TEST(guard.ok());
  BOOST_TEST(IsActive());
  const Acquired next(ContextRef::Borrow(own.get()), Acquired::Source::kCurrent, kFirst);
  BOOST_TEST(guard.MoveTo(next).ok());
  BOOST_TEST(!IsActive());
  BOOST_TEST(GetStack() == Stack{own.get()});
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_SUITE_END()
