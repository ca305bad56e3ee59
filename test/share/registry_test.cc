// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the registry does that no public function shows: with words that a later layout may write
// into it, see Note [The layout is an ABI] in lib/share/registry.h, and with ids. Copies of several
// layouts in one process are in test/process/other_releases_test.cc.

#include "lib/share/registry.h"

#include "cuguest/shared_context.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cuguest::ContextRef;
using cuguest::SharedContext;
using cuguest::internal::Ending;
using cuguest::internal::Reference;
using cuguest::internal::Registry;

constexpr auto kUnknownEnding = static_cast<Ending>(77);

bool IsAlive(CUcontext context) { return ContextRef::Borrow(context).IsAlive(); }

// The last holder does nothing, and the slot can be joined again, and used for another context.
void UnknownEndingDestroysNothing() {
  const CUcontext context = cuguest_test::MakeContext();
  Reference opened;
  CHECK(Registry::OfProcess()->JoinOrOpen(ContextRef::Borrow(context), kUnknownEnding, 0,
                                          &opened) == Registry::Outcome::kOpened);
  {
    const auto joined = SharedContext::Attach(context);
    CHECK(joined.ok());
    CHECK(joined.use_count() == 2);
    CHECK(joined.owner() == SharedContext::Owner::kOther);
    CHECK(Registry::Leave(opened) == CUDA_SUCCESS);
  }
  CHECK(IsAlive(context));
  auto again = SharedContext::Attach(context);
  CHECK(again.ok());
  CHECK(again.use_count() == 1);
  CHECK(again.Release().ok());
  CHECK(IsAlive(context));
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
}

// Of two incarnations the later one has the handle, in whatever order they are opened.
void EarlierIncarnationIsOver() {
  const CUcontext context = cuguest_test::MakeContext();
  const ContextRef earlier = ContextRef::Borrow(context);
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
  const ContextRef later = ContextRef::Borrow(cuguest_test::MakeContext());
  CHECK(later.get() == earlier.get());
  if (later.id() == earlier.id()) return;  // a driver before CUDA 12.0, which has no ids
  Registry& registry = *Registry::OfProcess();
  Reference first;
  CHECK(registry.JoinOrOpen(later, Ending::kNothing, 0, &first) == Registry::Outcome::kOpened);
  Reference none;
  CHECK(registry.JoinOrOpen(earlier, Ending::kDestroy, 0, &none) == Registry::Outcome::kOver);
  CHECK(registry.JoinOrOpen(earlier, Ending::kNothing, 0, &none) == Registry::Outcome::kOver);
  CHECK(none.slot == nullptr);
  Reference joined;
  CHECK(registry.Join(later.get(), nullptr, &joined) == Registry::Outcome::kJoined);
  CHECK(joined.slot == first.slot && Registry::Count(*first.slot) == 2);
  CHECK(Registry::Leave(joined) == CUDA_SUCCESS);
  CHECK(Registry::Leave(first) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxDestroy)(later.get()) == CUDA_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"unknown_ending_destroys_nothing", &UnknownEndingDestroysNothing},
          {"earlier_incarnation_is_over",
           &EarlierIncarnationIsOver,
           {},
           0,
           cuguest_test::On::kSimulation},
      });
}
