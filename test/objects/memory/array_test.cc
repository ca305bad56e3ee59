// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/array.h"

#include <thread>
#include <type_traits>
#include <utility>

#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/objects/memory/memories.h"

BOOST_AUTO_TEST_SUITE(array)

namespace {

using cudasim::Sim;
using cuguest::Array;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::PrimaryContext;
using namespace cuguest_test;
using Shape = CUDA_ARRAY3D_DESCRIPTOR;

static_assert(!std::is_copy_constructible_v<Array> && !std::is_copy_assignable_v<Array>);
static_assert(std::is_nothrow_move_constructible_v<Array>);
static_assert(std::is_nothrow_move_assignable_v<Array>);

constexpr Shape kPlane = {8, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};

Array Created(const Owner& owner, const Shape& shape = kPlane) {
  absl::StatusOr<Array> array = Array::Create(owner.ref(), shape);
  BOOST_TEST_REQUIRE(array.ok(), array.status().ToString());
  return *std::move(array);
}

bool IsThere(CUarray array) { return Array::Describe(array).ok(); }

}  // namespace

BOOST_AUTO_TEST_CASE(in_its_context_whatever_is_current) {
  const Owner owner;
  const OwnContext other;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    Array array = Created(owner);
    BOOST_TEST((array.context() == owner.ref()));
    BOOST_TEST(!array.empty());
    BOOST_TEST(array.description().bytes == 128u);
    BOOST_TEST(array.description().ToString() == Array::Describe(array.get())->ToString());
    SUCCEEDS(array.Release());
    BOOST_TEST(array.empty());
    BOOST_TEST(array.description().width == 0u);
    BOOST_TEST((array.context() == ContextRef()));
    SUCCEEDS(array.Release());
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(every_shape_that_the_driver_takes) {
  const Owner owner;
  const Undisturbed undisturbed;
  const Shape shapes[] = {
      {8, 0, 0, CU_AD_FORMAT_SIGNED_INT8, 4, 0},
      kPlane,
      {8, 4, 3, CU_AD_FORMAT_HALF, 2, CUDA_ARRAY3D_SURFACE_LDST},
      {8, 4, 3, CU_AD_FORMAT_UNSIGNED_INT16, 1, CUDA_ARRAY3D_LAYERED},
      {8, 0, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED},
      {8, 8, 6, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_CUBEMAP},
      {8, 8, 12, CU_AD_FORMAT_UNORM_INT8X4, 4, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
  };
  for (const Shape& shape : shapes) {
    const Array array = Created(owner, shape);
    const Array::Description described = Array::Describe(array.get()).value();
    BOOST_TEST(array.description().ToString() == described.ToString());
    BOOST_TEST(described.depth == shape.Depth);
    BOOST_TEST(described.flags == shape.Flags);
  }
}

BOOST_AUTO_TEST_CASE(a_shape_that_no_array_has_is_named) {
  const Owner owner;
  const Undisturbed undisturbed;
  const Shape three = {8, 4, 0, CU_AD_FORMAT_FLOAT, 3, 0};
  REFUSES(Array::Create(owner.ref(), three).status(), kInvalidArgument,
          "create an array of 8 x 4 elements of 3 float, 384 bytes", "context 0x", "INVALID_VALUE");
  const Shape cube = {8, 4, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP};
  REFUSES(Array::Create(owner.ref(), cube).status(), kInvalidArgument, "8 x 4 x 6", "flags 0x4");
  REFUSES(Array::Create(owner.ref(), Shape()).status(), kInvalidArgument, "array of 0 elements");
  const Shape huge = {32768, 32768, 32, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_LAYERED};
  REFUSES(Array::Create(owner.ref(), huge).status(), kResourceExhausted, "OUT_OF_MEMORY",
          "549755813888 bytes");
  // The driver looks at 32 bits of each size, and would make a small array.
  constexpr size_t kUnseen = size_t{1} << 32;
  for (const Shape& small : {Shape{kUnseen + 8, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0},
                             Shape{8, kUnseen + 4, 0, CU_AD_FORMAT_FLOAT, 1, 0},
                             Shape{8, 4, kUnseen + 2, CU_AD_FORMAT_FLOAT, 1, 0}}) {
    REFUSES(Array::Create(owner.ref(), small).status(), kInvalidArgument, "create an array of",
            "429496", "INVALID_VALUE");
  }
  // More bytes than a size_t holds are not said.
  const Shape endless = {(size_t{1} << 33) + 1, size_t{1} << 31, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  REFUSES(Array::Create(owner.ref(), endless).status(), kInvalidArgument,
          "8589934593 x 2147483648 elements of 1 float, context 0x");
}

BOOST_AUTO_TEST_CASE(destroyed_on_another_thread_with_another_context_current) {
  const Owner owner;
  const Owner other;
  const Undisturbed undisturbed;
  Array array = Created(owner);
  std::thread([moved = std::move(array), &other]() mutable {
    SetStack({other.get()});
    moved = Array();
    BOOST_TEST((GetStack() == Stack{other.get()}));
    SetStack({});
  }).join();
}

BOOST_AUTO_TEST_CASE(after_the_end_of_its_context_no_driver_is_called) {
  Array array;
  Array destroyed_silently;
  ContextRef dead;
  {
    const Owner owner;
    dead = owner.ref();
    array = Created(owner);
    destroyed_silently = Created(owner);
  }
  OwnContext::DestroyIdle();
  Sim::ResetCalls();
  REFUSES(array.Release(), kFailedPrecondition, "destroy array 0x", "CONTEXT_IS_DESTROYED",
          "gone with its context");
  BOOST_TEST(array.empty());
  destroyed_silently = Array();
  BOOST_TEST(Sim::Calls("cuArrayDestroy") == 0u);
  REFUSES(Array::Create(dead, kPlane).status(), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  REFUSES(Array::Create(ContextRef(), kPlane).status(), kFailedPrecondition, "create an array");
}

BOOST_AUTO_TEST_CASE(dead_context_wins_over_capture_mode, *OnlySim()) {
  Array array;
  {
    const Owner owner;
    array = Created(owner);
  }
  OwnContext::DestroyIdle();
  Sim::FailCall("cuThreadExchangeStreamCaptureMode", 1, CUDA_ERROR_OPERATING_SYSTEM);
  REFUSES(array.Release(), kFailedPrecondition, "gone with its context");
  BOOST_TEST(array.empty());
  Sim::ClearFaults();
}

// The driver crashes on the handle of an array whose context came back, so that must not reach it.
BOOST_AUTO_TEST_CASE(a_context_that_came_back_is_another, *NeedsDriver(12000, "cuCtxGetId")) {
  PrimaryContext first = PrimaryContext::Retain(Device::Borrow(0));
  Array array = Array::Create(first.context(), kPlane).value();
  Array silently = Array::Create(first.context(), kPlane).value();
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  const PrimaryContext again = PrimaryContext::Retain(Device::Borrow(0));
  BOOST_TEST_REQUIRE(again.get() == first.get());
  REFUSES(array.Release(), kFailedPrecondition, "gone with its context");
  silently = Array();
  SUCCEEDS(ToStatus(first.Release()));
}

BOOST_AUTO_TEST_CASE(moves_and_leaks) {
  const Owner owner;
  const Undisturbed undisturbed;
  Array array = Created(owner);
  const CUarray handle = array.get();
  Array other(std::move(array));
  BOOST_TEST(array.empty());  // NOLINT(bugprone-use-after-move)
  BOOST_TEST(array.description().width == 0u);
  BOOST_TEST((array.context() == ContextRef()));
  BOOST_TEST(other.get() == handle);
  array = Created(owner);
  std::swap(array, other);
  BOOST_TEST(array.get() == handle);
  BOOST_TEST(array.description().width == 8u);
  BOOST_TEST(array.Leak() == handle);
  BOOST_TEST(array.empty());
  BOOST_TEST((array.context() == ContextRef()));
  SUCCEEDS(array.Release());
  BOOST_TEST(IsThere(handle));
  OK(RAW(cuArrayDestroy)(handle));
}

BOOST_AUTO_TEST_CASE(invalidates_no_capture) {
  const Owner owner;
  const Owner other;
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(owner.stream(), mode);
    for (const Owner* home : {&owner, &other}) {
      Array array = Created(*home);
      SUCCEEDS(array.Release());
      std::thread([home] { const Array elsewhere = Created(*home); }).join();
    }
  }
}

BOOST_AUTO_TEST_CASE(from_a_callback_it_is_not_permitted, *OnlySim()) {
  const Owner owner;
  const ContextRef context = owner.ref();
  Array array = Created(owner);
  const CUarray handle = array.get();
  struct Work {
    const ContextRef& context;
    Array& array;
    absl::Status created;
    absl::Status destroyed;
  } work{context, array, {}, {}};
  owner.Enter();
  OK(RAW(cuLaunchHostFunc)(
      owner.stream(),
      [](void* data) {
        auto* const its = static_cast<Work*>(data);
        its->created = Array::Create(its->context, kPlane).status();
        its->destroyed = its->array.Release();
      },
      &work));
  OK(RAW(cuStreamSynchronize)(owner.stream()));
  SetStack({});
  REFUSES(work.created, kPermissionDenied, "create an array");
  REFUSES(work.destroyed, kPermissionDenied, "destroy array 0x");
  BOOST_TEST(array.get() == handle);
  SUCCEEDS(array.Release());
}

BOOST_AUTO_TEST_CASE(a_failed_destroy_loses_nothing, *OnlySim()) {
  const Owner owner;
  const Undisturbed undisturbed;
  Array array = Created(owner);
  const CUarray handle = array.get();
  for (const char* entry :
       {"cuArrayDestroy", "cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode"}) {
    Sim::FailCall(entry, 1, CUDA_ERROR_OPERATING_SYSTEM);
    REFUSES(array.Release(), kInternal, "destroy array 0x", "OPERATING_SYSTEM",
            "it was not destroyed, and is still owned");
    BOOST_TEST(array.get() == handle);
    BOOST_TEST(array.description().width == 8u);
    Sim::ClearFaults();
  }
  SUCCEEDS(array.Release());
}

BOOST_AUTO_TEST_CASE(what_an_ending_process_took_back_is_let_go, *OnlySim()) {
  const Owner owner;
  Array array = Created(owner);
  const CUarray handle = array.get();
  Sim::FailCall("cuArrayDestroy", 1, CUDA_ERROR_DEINITIALIZED);
  SUCCEEDS(array.Release());
  Sim::ClearFaults();
  BOOST_TEST(array.get() == nullptr);
  BOOST_TEST((array.context() == ContextRef()));
  OK(RAW(cuArrayDestroy)(handle));
}

BOOST_AUTO_TEST_CASE(every_call_of_a_creation_fails_once, *OnlySim()) {
  const Owner owner;
  const ContextRef context = owner.ref();
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuArray3DCreate"},
               [&] { return Array::Create(context, kPlane); });
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  const Owner owner;
  const ContextRef context = owner.ref();
  for (const unsigned switched : {0u, 2u}) {
    SetStack(switched == 0 ? Stack{owner.get()} : Stack{});
    cuguest_test::BeginCount();
    Array array = Array::Create(context, kPlane).value();
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
    cuguest_test::BeginCount();
    BOOST_TEST(array.description().width == 8u);
    BOOST_TEST(Sim::TotalCalls() == 0u);
    SUCCEEDS(array.Release());
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
