// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/context_ref.h"

#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/driver.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(context_ref)

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::PrimaryContext;
using cuguest_test::OwnContext;
using cuguest_test::TheDriver;

// What Abseil's containers give AbslHashValue().
struct Combined {
  std::pair<CUcontext, unsigned long long> parts;

  static Combined combine(Combined, CUcontext context, unsigned long long id) {
    return {{context, id}};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(empty) {
  const ContextRef ref;
  BOOST_TEST(ref.get() == nullptr);
  BOOST_TEST(ref.id() == 0U);
  BOOST_TEST(!ref.ok());
  BOOST_TEST(!ref.IsAlive());
  BOOST_TEST(ref.Check() == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST((ref == ContextRef()));
  BOOST_TEST((ContextRef::Borrow(nullptr) == ContextRef()));
  BOOST_TEST((ContextRef::Current() == ContextRef()));
}

BOOST_AUTO_TEST_CASE(
    names_an_incarnation,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef ref = ContextRef::Borrow(a.get());
  BOOST_TEST(ref.ok());
  BOOST_TEST(ref.get() == a.get());
  BOOST_TEST(ref.id() != 0U);
  BOOST_TEST(ref.IsAlive());
  BOOST_TEST((ref == ContextRef::Borrow(a.get())));
  BOOST_TEST((ref != ContextRef::Borrow(b.get())));
  cuguest_test::SetStack({a.get()});
  BOOST_TEST((ContextRef::Current() == ref));
  cuguest_test::SetStack({});
}

BOOST_AUTO_TEST_CASE(is_made_again_from_its_numbers) {
  OwnContext mortal;
  const ContextRef ref = ContextRef::Borrow(mortal.get());
  const ContextRef again = ContextRef::Of(ref.get(), ref.id());
  BOOST_TEST(again.ok());
  BOOST_TEST((again == ref));
  BOOST_TEST(again.IsAlive());
  BOOST_TEST(!ContextRef::Of(nullptr, ref.id()).ok());
  if (ref.id() == 0) return;  // below CUDA 12.0 one incarnation is not told from another
  BOOST_TEST(!ContextRef::Of(ref.get(), ref.id() + 1000).IsAlive());  // that never was
}

BOOST_AUTO_TEST_CASE(is_a_key_of_containers) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef refs[] = {ContextRef::Borrow(a.get()), ContextRef::Borrow(b.get()),
                             ContextRef::Of(a.get(), 1ULL << 60), ContextRef()};
  std::set<ContextRef> ordered;
  std::unordered_set<ContextRef, ContextRef::Hash> hashed;
  std::set<std::pair<CUcontext, unsigned long long>> of_abseil;
  for (int times = 0; times < 2; ++times) {
    for (const ContextRef& ref : refs) {
      ordered.insert(ref);
      hashed.insert(ref);
      of_abseil.insert(AbslHashValue(Combined(), ref).parts);
    }
  }
  BOOST_TEST(ordered.size() == 4U);
  BOOST_TEST(hashed.size() == 4U);
  BOOST_TEST(of_abseil.size() == 4U);
}

BOOST_AUTO_TEST_CASE(
    a_reused_handle_is_another_incarnation,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  OwnContext mortal;
  const ContextRef ref = ContextRef::Borrow(mortal.get());
  BOOST_TEST(TheDriver().CtxDestroy(mortal.release()) == CUDA_SUCCESS);
  BOOST_TEST(ref.Check() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  for (int i = 0; i < 4; ++i) {
    OwnContext::DestroyIdle();
    const OwnContext successor;
    BOOST_TEST(!ref.IsAlive());
    BOOST_TEST((ContextRef::Borrow(successor.get()) != ref));
  }
}

BOOST_AUTO_TEST_CASE(
    the_last_release_of_a_primary_ends_its_incarnation,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  ContextRef first;
  {
    const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
    first = primary.context();
    BOOST_TEST(first.IsAlive());
  }
  BOOST_TEST(!first.IsAlive());
  const absl::Status dead = ToStatus(ContextRef::Borrow(first.get()));
  BOOST_TEST((cuguest::CodeOf(dead) == CUDA_ERROR_CONTEXT_IS_DESTROYED));
  BOOST_TEST(absl::StartsWith(std::string(dead.message()), "identify a context, "));
  const PrimaryContext second = PrimaryContext::Retain(Device::Borrow(0));
  BOOST_TEST(second.get() == first.get());
  BOOST_TEST(second.context().IsAlive());
  BOOST_TEST(!first.IsAlive());
}

BOOST_AUTO_TEST_CASE(a_dead_context_that_is_current_gives_an_empty_ref) {
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  OwnContext mortal;
  const OwnContext a;
  cuguest_test::SetStack({mortal.get(), a.get()});
  BOOST_TEST(TheDriver().CtxDestroy(mortal.release()) == CUDA_SUCCESS);
  CUcontext popped = nullptr;
  BOOST_TEST(TheDriver().CtxPopCurrent(&popped) == CUDA_SUCCESS);
  const ContextRef dead = ContextRef::Current();
  BOOST_TEST(dead.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(dead.get() == nullptr);
  cuguest_test::SetStack({});
}

BOOST_AUTO_TEST_CASE(
    a_failing_driver_is_said,
    *cuguest_test::OnlySim() *
        cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  Sim::FailCall("cuCtxGetId", 1, CUDA_ERROR_UNKNOWN);
  BOOST_TEST(ContextRef::Borrow(a.get()).result() == CUDA_ERROR_UNKNOWN);
  Sim::FailCall("cuCtxGetId", 1, CUDA_ERROR_UNKNOWN);
  BOOST_TEST(ref.Check() == CUDA_ERROR_UNKNOWN);
  Sim::FailCall("cuCtxGetCurrent", 1, CUDA_ERROR_UNKNOWN);
  BOOST_TEST(ContextRef::Current().result() == CUDA_ERROR_UNKNOWN);
  Sim::ClearFaults();
}

BOOST_AUTO_TEST_SUITE_END()
