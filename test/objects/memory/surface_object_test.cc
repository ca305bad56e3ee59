// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/surface_object.h"

#include <thread>
#include <type_traits>
#include <utility>

#include "cuguest/objects/texture_object.h"
#include "test/objects/memory/pictures.h"

BOOST_AUTO_TEST_SUITE(surface_object)

namespace {

using boost::test_tools::per_element;
using cudasim::Sim;
using cuguest::Array;
using cuguest::ContextRef;
using cuguest::SurfaceObject;
using cuguest::TextureObject;
using namespace cuguest_test;

static_assert(!std::is_copy_constructible_v<SurfaceObject>);
static_assert(std::is_nothrow_move_constructible_v<SurfaceObject>);
static_assert(std::is_nothrow_move_assignable_v<SurfaceObject>);

SurfaceObject Created(const Array& array) {
  absl::StatusOr<SurfaceObject> surface = SurfaceObject::Create(array);
  BOOST_TEST_REQUIRE(surface.ok(), surface.status().ToString());
  return *std::move(surface);
}

// Whether `surface` is an object of `owner`'s context.
bool IsThere(const Owner& owner, CUsurfObject surface) {
  CUDA_RESOURCE_DESC resource = {};
  OK(RAW(cuCtxPushCurrent)(owner.get()));
  const CUresult code = RAW(cuSurfObjectGetResourceDesc)(&resource, surface);
  OK(RAW(cuCtxPopCurrent)(nullptr));
  return code == CUDA_SUCCESS;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_kernel_writes_an_array_through_it) {
  const Owner owner;
  Studio studio(owner);
  const Array picture = Picture(owner);
  const OwnContext other;
  float first = 100;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    SurfaceObject surface = Created(picture);
    BOOST_TEST((surface.context() == owner.ref()));
    BOOST_TEST(!surface.empty());
    studio.Paint(surface.get(), ++first);
    BOOST_TEST(Pixels(picture) == Counting(kPictureSize, first), per_element());
    const CUsurfObject number = surface.get();
    SUCCEEDS(surface.Release());
    BOOST_TEST(surface.empty());
    BOOST_TEST((surface.context() == ContextRef()));
    BOOST_TEST(!IsThere(owner, number));
    SUCCEEDS(surface.Release());
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(what_one_kernel_painted_another_samples) {
  const Owner owner;
  Studio studio(owner);
  const Array picture = Picture(owner);
  const SurfaceObject surface = Created(picture);
  const TextureObject texture = TextureObject::Create(picture, CUDA_TEXTURE_DESC()).value();
  BOOST_TEST(surface.get() != texture.get());
  studio.Paint(surface.get(), 7);
  BOOST_TEST(studio.Sample(texture.get()) == Counting(kPictureSize, 7), per_element());
}

BOOST_AUTO_TEST_CASE(an_array_that_is_not_for_surfaces) {
  const Owner owner;
  CUDA_ARRAY3D_DESCRIPTOR shape = kPicture;
  shape.Flags = 0;
  const Array picture = Picture(owner, 1, shape);
  const Undisturbed undisturbed;
  REFUSES(SurfaceObject::Create(picture).status(), kFailedPrecondition,
          "create a surface object of array 0x", "4 x 3 elements",
          "made without CUDA_ARRAY3D_SURFACE_LDST");
  REFUSES(SurfaceObject::Create(owner.ref(), picture.get()).status(), kFailedPrecondition,
          "CUDA_ARRAY3D_SURFACE_LDST");
  REFUSES(SurfaceObject::Create(Array()).status(), kInvalidArgument, "the array is empty");
  REFUSES(SurfaceObject::Create(owner.ref(), nullptr).status(), kInvalidArgument, "empty");
}

BOOST_AUTO_TEST_CASE(an_array_of_somebody_elses) {
  const Owner owner;
  const Owner other;
  const Array picture = Picture(owner);
  const Undisturbed undisturbed;
  const SurfaceObject surface = SurfaceObject::Create(owner.ref(), picture.get()).value();
  BOOST_TEST((surface.context() == owner.ref()));
  REFUSES(SurfaceObject::Create(other.ref(), picture.get()).status(), kFailedPrecondition,
          "PEER_ACCESS_NOT_ENABLED", "which the array is not of");
  REFUSES(SurfaceObject::Create(ContextRef(), picture.get()).status(), kFailedPrecondition,
          "create a surface object");
}

// Both are number 1, of two contexts.
BOOST_AUTO_TEST_CASE(the_same_number_of_another_context_stays) {
  const Owner owner;
  const Owner other;
  const Array picture = Picture(owner);
  const Array others_picture = Picture(other);
  SurfaceObject surface = Created(picture);
  const SurfaceObject others = Created(others_picture);
  BOOST_TEST_REQUIRE(surface.get() == others.get());
  std::thread([moved = std::move(surface), &other]() mutable {
    other.Enter();
    moved = SurfaceObject();
    SetStack({});
  }).join();
  BOOST_TEST(IsThere(other, others.get()));
  BOOST_TEST(!IsThere(owner, others.get()));
}

BOOST_AUTO_TEST_CASE(after_the_end_of_its_context_no_driver_is_called) {
  SurfaceObject surface;
  Array gone;
  {
    const Owner owner;
    gone = Picture(owner);
    surface = Created(gone);
  }
  OwnContext::DestroyIdle();
  Sim::ResetCalls();
  REFUSES(surface.Release(), kFailedPrecondition, "destroy surface object 0x1",
          "CONTEXT_IS_DESTROYED", "gone with its context");
  BOOST_TEST(surface.empty());
  BOOST_TEST(Sim::Calls("cuSurfObjectDestroy") == 0u);
  REFUSES(SurfaceObject::Create(gone).status(), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
}

BOOST_AUTO_TEST_CASE(moves_and_leaks) {
  const Owner owner;
  const Array picture = Picture(owner);
  const Undisturbed undisturbed;
  SurfaceObject surface = Created(picture);
  const CUsurfObject number = surface.get();
  SurfaceObject other(std::move(surface));
  BOOST_TEST(surface.empty());  // NOLINT(bugprone-use-after-move)
  surface = std::move(other);
  BOOST_TEST(surface.Leak() == number);
  SUCCEEDS(surface.Release());
  BOOST_TEST(IsThere(owner, number));
  owner.Enter();
  OK(RAW(cuSurfObjectDestroy)(number));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(invalidates_no_capture) {
  const Owner owner;
  const Array picture = Picture(owner);
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(owner.stream(), mode);
    SurfaceObject surface = Created(picture);
    SUCCEEDS(surface.Release());
    std::thread([&picture] { const SurfaceObject elsewhere = Created(picture); }).join();
  }
}

BOOST_AUTO_TEST_CASE(every_call_fails_once, *OnlySim()) {
  const Owner owner;
  const Array picture = Picture(owner);
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuSurfObjectCreate"},
               [&] { return SurfaceObject::Create(picture); });
  const ContextRef context = owner.ref();
  FailEachCall({"cuArray3DGetDescriptor"},
               [&] { return SurfaceObject::Create(context, picture.get()); });
  SurfaceObject surface = Created(picture);
  Sim::FailCall("cuSurfObjectDestroy", 1, CUDA_ERROR_OPERATING_SYSTEM);
  REFUSES(surface.Release(), kInternal, "destroy surface object 0x",
          "it was not destroyed, and is still owned");
  BOOST_TEST(!surface.empty());
  SUCCEEDS(surface.Release());
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  const Owner owner;
  const ContextRef context = owner.ref();
  const Array picture = Picture(owner);
  for (const unsigned switched : {0u, 2u}) {
    SetStack(switched == 0 ? Stack{owner.get()} : Stack{});
    cuguest_test::BeginCount();
    SurfaceObject surface = SurfaceObject::Create(picture).value();
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
    cuguest_test::BeginCount();
    SUCCEEDS(surface.Release());
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
    cuguest_test::BeginCount();
    surface = SurfaceObject::Create(context, picture.get()).value();
    BOOST_TEST(Sim::TotalCalls() == 7 + switched);
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
