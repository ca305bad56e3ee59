// SPDX-License-Identifier: Apache-2.0
//
// Green contexts, as the library meets them: entered, identified, shared, acquired and used
// as keys like any other, and never treated as the primary context whose device part they are.

#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/error.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

namespace {

using cuguest::AcquiredContext;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);

bool IsActive() { return PrimaryContext::Query(kFirst).value().active; }

// One of the whole device. It holds the primary context.
class Green {
 public:
  Green() {
    BOOST_TEST(RAW(cuGreenCtxCreate)(&green_, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
               CUDA_SUCCESS);
    BOOST_TEST(RAW(cuCtxFromGreenCtx)(&context_, green_) == CUDA_SUCCESS);
  }
  Green(const Green&) = delete;
  Green& operator=(const Green&) = delete;
  ~Green() {
    if (green_ != nullptr) Destroy();
  }
  void Destroy() {
    BOOST_TEST(RAW(cuGreenCtxDestroy)(green_) == CUDA_SUCCESS);
    green_ = nullptr;
  }
  CUgreenCtx green() const { return green_; }
  CUcontext context() const { return context_; }

 private:
  CUgreenCtx green_ = nullptr;
  CUcontext context_ = nullptr;
};

bool HasGreenContexts() { return cuguest_test::FindRawSymbol("cuGreenCtxCreate") != nullptr; }

// Of what was acquired for no longer than a comparison.
CUcontext HandleOf(const cuguest::AcquireResult& acquired) { return acquired->get(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(green_context, *cuguest_test::OnlyIf(&HasGreenContexts,
                                                           "needs a driver with green contexts"))

BOOST_AUTO_TEST_CASE(a_guard_enters_it_and_the_primary_is_another) {
  const OwnContext x;
  const Green green;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst).value();
  BOOST_TEST((ContextRef::Borrow(green.context()) != primary.incarnation()));
  SetStack({x.get()});
  {
    const ContextGuard guard(ContextRef::Borrow(green.context()));
    BOOST_TEST(guard.ok());
    BOOST_TEST(GetStack() == (Stack{x.get(), green.context()}));
    const ContextGuard inner(primary.get());
    BOOST_TEST(!inner.elided());
  }
  BOOST_TEST(GetStack() == (Stack{x.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_is_counted_and_never_destroyed) {
  Green green;
  SharedContext a = SharedContext::Attach(green.context()).value();
  SharedContext b = a;
  BOOST_TEST((a.owner() == SharedContext::Owner::kOther));
  BOOST_TEST(a.use_count() == 2);
  BOOST_TEST(a.Detach().ok());
  BOOST_TEST(b.Detach().ok());
  BOOST_TEST(ContextRef::Borrow(green.context()).ok());
  BOOST_TEST(IsActive());
}

BOOST_AUTO_TEST_CASE(it_is_destroyed_while_it_is_attached) {
  Green green;
  SharedContext shared = SharedContext::Attach(green.context()).value();
  SetStack({green.context()});  // keeps its memory
  green.Destroy();
  BOOST_TEST((cuguest::CodeOf(shared.Detach()) == CUDA_ERROR_CONTEXT_IS_DESTROYED));
  CUcontext popped = nullptr;
  BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
}

// It has a reference of its own.
BOOST_AUTO_TEST_CASE(others_release_the_primary_before_it) {
  PrimaryContext primary = PrimaryContext::Retain(kFirst).value();
  SharedContext shared = SharedContext::Attach(primary.get()).value();
  const Green green;
  BOOST_TEST(primary.Release().ok());
  BOOST_TEST(shared.Detach().ok());
  BOOST_TEST(IsActive());
}

BOOST_AUTO_TEST_CASE(a_stream_names_it_and_a_pointer_names_the_primary,
                     *cuguest_test::NeedsDriver(12050, "cuGreenCtxStreamCreate")) {
  const Green green;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst).value();
  CUstream stream = nullptr;
  BOOST_TEST(RAW(cuGreenCtxStreamCreate)(&stream, green.green(), CU_STREAM_NON_BLOCKING, 0) ==
             CUDA_SUCCESS);
  BOOST_TEST(HandleOf(cuguest::AcquireFromStream(stream)) == green.context());
  {
    const ContextGuard guard(green.context());
    CUdeviceptr pointer = 0;
    BOOST_TEST(RAW(cuMemAlloc)(&pointer, 64) == CUDA_SUCCESS);
    BOOST_TEST(HandleOf(cuguest::AcquireFromPointer(pointer)) == primary.get());
    BOOST_TEST(HandleOf(cuguest::AcquireCurrent(kFirst)) == green.context());
    BOOST_TEST(HandleOf(cuguest::AcquireOn(kFirst)) == green.context());
    for (const CUstream special : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
      BOOST_TEST(HandleOf(cuguest::AcquireFromStream(special)) == green.context());
    }
    BOOST_TEST(RAW(cuMemFree)(pointer) == CUDA_SUCCESS);
  }
  BOOST_TEST(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(a_cache_keeps_it_apart_from_the_primary) {
  const Green green;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst).value();
  cuguest::PerContext<CUcontext> cache;
  const auto make = [](const ContextRef& ref) -> absl::StatusOr<CUcontext> { return ref.get(); };
  for (const CUcontext context : {green.context(), primary.get()}) {
    BOOST_TEST(**cache.GetOrMake(context, make) == context);
  }
  BOOST_TEST(cache.size() == 2u);
  BOOST_TEST(cache.DropDead() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
