// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/texture_object.h"
#include "cuguest/status.h"

#include <limits>
#include <thread>
#include <type_traits>
#include <utility>

#include "cuguest/objects/param_buffer.h"
#include "cuguest/primary_context.h"
#include "test/objects/memory/pictures.h"
#include "test/support/advised.h"

BOOST_AUTO_TEST_SUITE(texture_object)

namespace {

using boost::test_tools::per_element;
using cudasim::Sim;
using cuguest::Array;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::HostSpan;
using cuguest::PrimaryContext;
using cuguest::TextureObject;
using namespace cuguest_test;

static_assert(!std::is_copy_constructible_v<TextureObject>);
static_assert(std::is_nothrow_move_constructible_v<TextureObject>);
static_assert(std::is_nothrow_move_assignable_v<TextureObject>);
static_assert(cuguest::ParamTraits<CUtexObject>::kAlignment == 8);

constexpr size_t kMost = std::numeric_limits<size_t>::max();

// Clamped, unfiltered, in elements.
CUDA_TEXTURE_DESC Plain() {
  CUDA_TEXTURE_DESC sampling = {};
  for (CUaddress_mode& mode : sampling.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
  return sampling;
}

TextureObject Created(const Array& array) {
  absl::StatusOr<TextureObject> texture = TextureObject::Create(array, Plain());
  BOOST_TEST_REQUIRE(texture.ok(), texture.status().ToString());
  return *std::move(texture);
}

// Whether `texture` is an object of `owner`'s context.
bool IsThere(const Owner& owner, CUtexObject texture) {
  CUDA_RESOURCE_DESC resource = {};
  OK(RAW(cuCtxPushCurrent)(owner.get()));
  const CUresult code = RAW(cuTexObjectGetResourceDesc)(&resource, texture);
  OK(RAW(cuCtxPopCurrent)(nullptr));
  return code == CUDA_SUCCESS;
}

TextureObject::Texels Rows(size_t width, size_t height, size_t pitch) {
  TextureObject::Texels texels;
  texels.width = width;
  texels.height = height;
  texels.pitch = pitch;
  return texels;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_kernel_reads_an_array_through_it) {
  const Owner owner;
  Studio studio(owner);
  const Array picture = Picture(owner);
  const OwnContext other;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    TextureObject texture = Created(picture);
    BOOST_TEST((texture.context() == owner.ref()));
    BOOST_TEST(!texture.empty());
    BOOST_TEST(studio.Sample(texture.get()) == Counting(kPictureSize, 1), per_element());
    const CUtexObject number = texture.get();
    SUCCEEDS(texture.Release());
    BOOST_TEST(texture.empty());
    BOOST_TEST((texture.context() == ContextRef()));
    BOOST_TEST(!IsThere(owner, number));
    SUCCEEDS(texture.Release());
  }
  SetStack({});
}

// Both are number 1, of two contexts.
BOOST_AUTO_TEST_CASE(the_same_number_of_another_context_stays) {
  const Owner owner;
  const Owner other;
  const Array picture = Picture(owner, 1);
  const Array others_picture = Picture(other, 101);
  Studio studio(other);
  TextureObject texture = Created(picture);
  const TextureObject others = Created(others_picture);
  BOOST_TEST_REQUIRE(texture.get() == others.get());
  other.Enter();
  SUCCEEDS(texture.Release());
  texture = Created(picture);
  texture = TextureObject();
  SetStack({});
  BOOST_TEST(IsThere(other, others.get()));
  BOOST_TEST(!IsThere(owner, others.get()));
  BOOST_TEST(studio.Sample(others.get()) == Counting(kPictureSize, 101), per_element());
}

BOOST_AUTO_TEST_CASE(a_kernel_reads_memory_through_it) {
  const Owner owner;
  const Owner other;
  Studio studio(owner);
  Floats rows(2 * 128 + 4, -1);
  for (size_t i = 0; i < kPictureSize; ++i) rows[i / 4 * 128 + i % 4] = static_cast<float>(i + 1);
  const auto own = DeviceBuffer<float>::CopyOf(owner.ref(), HostSpan<const float>(rows)).value();
  const auto others = DeviceBuffer<float>::CopyOf(other.ref(), HostSpan<const float>(rows)).value();
  const Undisturbed undisturbed;
  for (const DeviceView<const float>& view : {own.view(), others.view()}) {
    const auto texture =
        TextureObject::Create(owner.ref(), view, Rows(kPictureWidth, kPictureHeight, 512), Plain());
    BOOST_TEST_REQUIRE(texture.ok(), texture.status().ToString());
    BOOST_TEST((texture->context() == owner.ref()));
    BOOST_TEST(studio.Sample(texture->get()) == Counting(kPictureSize, 1), per_element());
  }
  const auto line =
      TextureObject::Create(owner.ref(), own.view(), Rows(rows.size(), 0, 0), Plain());
  BOOST_TEST_REQUIRE(line.ok(), line.status().ToString());
  owner.Enter();
  CUDA_RESOURCE_DESC resource = {};
  OK(RAW(cuTexObjectGetResourceDesc)(&resource, line->get()));
  SetStack({});
  BOOST_TEST((resource.resType == CU_RESOURCE_TYPE_LINEAR));
  BOOST_TEST(resource.res.linear.devPtr == own.get());
  BOOST_TEST(resource.res.linear.sizeInBytes == rows.size() * sizeof(float));
}

BOOST_AUTO_TEST_CASE(memory_that_does_not_do_is_named) {
  const Owner owner;
  const auto memory = DeviceBuffer<float>::Allocate(owner.ref(), 1024).value();
  const DeviceView<const float> view = memory.view();
  const auto made = [&](const DeviceView<const float>& of, const TextureObject::Texels& texels) {
    return TextureObject::Create(owner.ref(), of, texels, Plain()).status();
  };
  const Undisturbed undisturbed;
  SUCCEEDS(made(view, Rows(1024, 0, 0)));
  SUCCEEDS(made(view, Rows(8, 32, 128)));
  SUCCEEDS(made(view, Rows(1024, 1, 0)));  // one row has no pitch
  REFUSES(made(view, Rows(1025, 0, 0)), kOutOfRange, "1025 elements of 1 float",
          "in 4096 bytes at 0x", "they need 4100 bytes");
  REFUSES(made(view, Rows(33, 32, 128)), kInvalidArgument, "rows of 132 bytes overlap");
  REFUSES(made(view, Rows(8, 33, 128)), kOutOfRange, "8 x 33 elements", "pitch 128",
          "they need 4128 bytes");
  REFUSES(made(view, Rows(8, kMost, 128)), kOutOfRange, "they reach beyond its end");
  REFUSES(made(view, Rows(kMost, 0, 0)), kOutOfRange, "they reach beyond its end");
  REFUSES(made(view, Rows(0, 0, 0)), kInvalidArgument, "no texels");
  REFUSES(made(DeviceView<const float>(), Rows(1, 0, 0)), kInvalidArgument, "no texels");
  REFUSES(made(view.Subview(4, 4).value(), Rows(4, 0, 0)), kInvalidArgument, "16 bytes at 0x",
          "the address is not aligned to 512 bytes", "INVALID_VALUE");
  REFUSES(made(view, Rows(8, 2, 48)), kInvalidArgument, "the pitch of 48 bytes is not a multiple",
          "32");
  TextureObject::Texels none = Rows(4, 0, 0);
  none.channels = 0;
  REFUSES(made(view, none), kInvalidArgument, "4 elements of 0 float", "no texels");
  TextureObject::Texels three = Rows(4, 0, 0);
  three.channels = 3;
  REFUSES(made(view, three), kInvalidArgument, "elements of 3 float", "INVALID_VALUE");
  TextureObject::Texels packed = Rows(4, 0, 0);
  packed.format = CU_AD_FORMAT_UNORM_INT8X4;
  REFUSES(made(view, packed), kUnimplemented, "texels of this format have no size here");
}

BOOST_AUTO_TEST_CASE(memory_that_went_with_its_context_is_refused) {
  const Owner owner;
  DeviceView<float> view;
  {
    const Owner ended;
    view = DeviceBuffer<float>::Allocate(ended.ref(), 256)->Leak();
  }
  OwnContext::DestroyIdle();
  const Undisturbed undisturbed;
  REFUSES(TextureObject::Create(owner.ref(), view, Rows(256, 0, 0), Plain()).status(),
          kFailedPrecondition, "create a texture object", "memory of context",
          "CUDA_ERROR_CONTEXT_IS_DESTROYED");
}

BOOST_AUTO_TEST_CASE(what_the_driver_refuses_of_an_array) {
  const Owner owner;
  const Owner other;
  const Array picture = Picture(owner);
  const Undisturbed undisturbed;
  REFUSES(TextureObject::Create(Array(), Plain()).status(), kInvalidArgument, "array is empty");
  CUDA_TEXTURE_DESC sampling = Plain();
  sampling.flags = 0x80;
  REFUSES(TextureObject::Create(picture, sampling).status(), kInvalidArgument,
          "create a texture object of array 0x", "4 x 3 elements", "context 0x", "INVALID_VALUE");
  CUDA_RESOURCE_VIEW_DESC view = {};
  view.format = CU_RES_VIEW_FORMAT_FLOAT_2X32;
  REFUSES(TextureObject::Create(picture, Plain(), &view).status(), kInvalidArgument,
          "texture object");
  view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
  view.width = kPictureWidth;
  view.height = kPictureHeight;
  SUCCEEDS(TextureObject::Create(picture, Plain(), &view).status());
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = picture.get();
  SUCCEEDS(TextureObject::Create(owner.ref(), resource, Plain()).status());
  REFUSES(TextureObject::Create(other.ref(), resource, Plain()).status(), kFailedPrecondition,
          "PEER_ACCESS_NOT_ENABLED", "which the array is not of");
  REFUSES(TextureObject::Create(ContextRef(), resource, Plain()).status(), kFailedPrecondition,
          "create a texture object of a resource of type 0");
}

BOOST_AUTO_TEST_CASE(after_the_end_of_its_context_no_driver_is_called) {
  TextureObject texture;
  TextureObject destroyed_silently;
  Array gone;
  const Owner other;
  const Array picture = Picture(other);
  const TextureObject others = Created(picture);
  {
    const Owner owner;
    gone = Picture(owner);
    texture = Created(gone);
    destroyed_silently = Created(gone);
  }
  OwnContext::DestroyIdle();
  other.Enter();  // where the number is another object
  Sim::ResetCalls();
  REFUSES(texture.Release(), kFailedPrecondition, "destroy texture object 0x1",
          "CONTEXT_IS_DESTROYED", "gone with its context");
  BOOST_TEST(texture.empty());
  destroyed_silently = TextureObject();
  BOOST_TEST(Sim::Calls("cuTexObjectDestroy") == 0u);
  REFUSES(TextureObject::Create(gone, Plain()).status(), kFailedPrecondition,
          "CONTEXT_IS_DESTROYED");
  SetStack({});
  BOOST_TEST(IsThere(other, others.get()));
}

BOOST_AUTO_TEST_CASE(a_context_that_came_back_is_another, *NeedsDriver(12000, "cuCtxGetId")) {
  PrimaryContext first = PrimaryContext::Retain(Device::Borrow(0));
  const Array old = Array::Create(first.context(), kPicture).value();
  TextureObject texture = Created(old);
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  const PrimaryContext again = PrimaryContext::Retain(Device::Borrow(0));
  BOOST_TEST_REQUIRE(again.get() == first.get());
  const Array picture = Array::Create(again.context(), kPicture).value();
  const TextureObject renewed = Created(picture);
  BOOST_TEST(renewed.get() == texture.get());
  REFUSES(texture.Release(), kFailedPrecondition, "gone with its context");
  SetStack({again.get()});
  CUDA_RESOURCE_DESC resource = {};
  OK(RAW(cuTexObjectGetResourceDesc)(&resource, renewed.get()));
  SetStack({});
  SUCCEEDS(ToStatus(first.Release()));
}

BOOST_AUTO_TEST_CASE(moves_and_leaks) {
  const Owner owner;
  const Array picture = Picture(owner);
  const Undisturbed undisturbed;
  TextureObject texture = Created(picture);
  const CUtexObject number = texture.get();
  TextureObject other(std::move(texture));
  BOOST_TEST(texture.empty());  // NOLINT(bugprone-use-after-move)
  BOOST_TEST((texture.context() == ContextRef()));
  texture = Created(picture);
  BOOST_TEST(texture.get() != number);
  std::swap(texture, other);
  BOOST_TEST(texture.get() == number);
  BOOST_TEST(texture.Leak() == number);
  BOOST_TEST(texture.empty());
  SUCCEEDS(texture.Release());
  BOOST_TEST(IsThere(owner, number));
  owner.Enter();
  OK(RAW(cuTexObjectDestroy)(number));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(invalidates_no_capture) {
  const Owner owner;
  const Owner other;
  const Array picture = Picture(owner);
  const Array others_picture = Picture(other);
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(owner.stream(), mode);
    for (const Array* array : {&picture, &others_picture}) {
      TextureObject texture = Created(*array);
      SUCCEEDS(texture.Release());
      std::thread([array] { const TextureObject elsewhere = Created(*array); }).join();
    }
  }
}

BOOST_AUTO_TEST_CASE(a_failed_destroy_loses_nothing, *OnlySim()) {
  const Owner owner;
  const Array picture = Picture(owner);
  const Undisturbed undisturbed;
  TextureObject texture = Created(picture);
  const CUtexObject number = texture.get();
  for (const char* entry :
       {"cuTexObjectDestroy", "cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode"}) {
    Sim::FailCall(entry, 1, CUDA_ERROR_OPERATING_SYSTEM);
    REFUSES(texture.Release(), kInternal, "destroy texture object 0x", "OPERATING_SYSTEM",
            "it was not destroyed, and is still owned");
    BOOST_TEST(texture.get() == number);
    Sim::ClearFaults();
  }
  SUCCEEDS(texture.Release());
}

BOOST_AUTO_TEST_CASE(every_call_of_a_creation_fails_once, *OnlySim()) {
  const Owner owner;
  const Array picture = Picture(owner);
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuTexObjectCreate"},
               [&] { return TextureObject::Create(picture, Plain()); });
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  const Owner owner;
  const Array picture = Picture(owner);
  const auto memory = DeviceBuffer<float>::Allocate(owner.ref(), 1024).value();
  for (const unsigned switched : {0u, 2u}) {
    SetStack(switched == 0 ? Stack{owner.get()} : Stack{});
    cuguest_test::BeginCount();
    TextureObject texture = TextureObject::Create(picture, Plain()).value();
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
    cuguest_test::BeginCount();
    SUCCEEDS(texture.Release());
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
    cuguest_test::BeginCount();
    texture = TextureObject::Create(owner.ref(), memory.view(), Rows(8, 4, 32), Plain()).value();
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
