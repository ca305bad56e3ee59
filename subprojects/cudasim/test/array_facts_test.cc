// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA arrays and mipmapped arrays: which there are, and whose they are. Measured on
// an NVIDIA H200, driver 580.159.04.

#include <csignal>
#include <string>

#include "cudasim/sim.h"
#include "test/arrays.h"
#include "test/capture.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(array_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim_test::OnlySim;

namespace {

constexpr unsigned kLayered = CUDA_ARRAY3D_LAYERED;
constexpr unsigned kSurface = CUDA_ARRAY3D_SURFACE_LDST;
constexpr unsigned kCubemap = CUDA_ARRAY3D_CUBEMAP;
constexpr unsigned kGather = CUDA_ARRAY3D_TEXTURE_GATHER;

CUresult Try(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  auto array = reinterpret_cast<CUarray>(0x77);
  const CUresult code = RAW(cuArray3DCreate)(&array, &shape);
  if (code == CUDA_SUCCESS) {
    OK(RAW(cuArrayDestroy)(array));
  } else {
    BOOST_CHECK(array == reinterpret_cast<CUarray>(0x77));
  }
  return code;
}

CUDA_ARRAY3D_DESCRIPTOR ShapeOf(CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  OK(RAW(cuArray3DGetDescriptor)(&shape, array));
  return shape;
}

struct Mipmap {
  explicit Mipmap(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels) {
    OK(RAW(cuMipmappedArrayCreate)(&array, &shape, levels));
  }
  ~Mipmap() { OK(RAW(cuMipmappedArrayDestroy)(array)); }
  CUarray Level(unsigned index) const {
    CUarray level = nullptr;
    OK(RAW(cuMipmappedArrayGetLevel)(&level, array, index));
    return level;
  }
  void CheckLevel(unsigned index, size_t width, size_t height, size_t depth) const {
    const CUDA_ARRAY3D_DESCRIPTOR shape = ShapeOf(Level(index));
    BOOST_TEST(shape.Width == width);
    BOOST_TEST(shape.Height == height);
    BOOST_TEST(shape.Depth == depth);
  }

  CUmipmappedArray array = nullptr;
};

CUresult TryLevel(CUmipmappedArray array, unsigned index) {
  CUarray level = nullptr;
  return RAW(cuMipmappedArrayGetLevel)(&level, array, index);
}

struct InOwnContext {
  InOwnContext() { SetStack({context.get()}); }
  ~InOwnContext() { SetStack({}); }
  OwnContext context;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_array_is_made_in_the_current_context) {
  CUarray array = nullptr;
  CUmipmappedArray mipmap = nullptr;
  IS(RAW(cuArrayCreate)(nullptr, nullptr), INVALID_CONTEXT);
  IS(RAW(cuArray3DCreate)(&array, nullptr), INVALID_CONTEXT);
  IS(RAW(cuMipmappedArrayCreate)(&mipmap, nullptr, 1), INVALID_CONTEXT);
  PushDeadContext();
  IS(RAW(cuArrayCreate)(nullptr, nullptr), CONTEXT_IS_DESTROYED);
  SetStack({});
  const InOwnContext in;
  const CUDA_ARRAY_DESCRIPTOR plane = {8, 4, CU_AD_FORMAT_FLOAT, 1};
  const CUDA_ARRAY3D_DESCRIPTOR shape = ArrayShape(8, 4, 0);
  IS(RAW(cuArrayCreate)(nullptr, &plane), INVALID_VALUE);
  IS(RAW(cuArrayCreate)(&array, nullptr), INVALID_VALUE);
  IS(RAW(cuArray3DCreate)(nullptr, &shape), INVALID_VALUE);
  IS(RAW(cuArray3DCreate)(&array, nullptr), INVALID_VALUE);
  IS(RAW(cuMipmappedArrayCreate)(nullptr, &shape, 2), INVALID_VALUE);
  IS(RAW(cuMipmappedArrayCreate)(&mipmap, nullptr, 2), INVALID_VALUE);
  OK(RAW(cuArrayCreate)(&array, &plane));
  OK(RAW(cuArrayDestroy)(array));
}

BOOST_AUTO_TEST_CASE(null_arrays_are_invalid_handles) {
  CUDA_ARRAY_DESCRIPTOR plane = {};
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  CUarray level = nullptr;
  IS(RAW(cuArrayDestroy)(nullptr), INVALID_HANDLE);
  IS(RAW(cuArrayGetDescriptor)(&plane, nullptr), INVALID_HANDLE);
  IS(RAW(cuArrayGetDescriptor)(nullptr, nullptr), INVALID_HANDLE);
  IS(RAW(cuArray3DGetDescriptor)(&shape, nullptr), INVALID_HANDLE);
  IS(RAW(cuMipmappedArrayDestroy)(nullptr), INVALID_HANDLE);
  IS(RAW(cuMipmappedArrayGetLevel)(&level, nullptr, 0), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(formats_and_channels) {
  const InOwnContext in;
  for (const int format : {0x01, 0x02, 0x03, 0x08, 0x09, 0x0a, 0x10, 0x20}) {
    for (const unsigned channels : {0u, 1u, 2u, 3u, 4u, 5u, 8u}) {
      const bool valid = channels == 1 || channels == 2 || channels == 4;
      BOOST_TEST_CONTEXT("format " << format << ", channels " << channels) {
        const auto shape = ArrayShape(8, 4, 0, 0, OutOfRange<CUarray_format>(format), channels);
        BOOST_CHECK_EQUAL(Try(shape), valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
      }
    }
  }
  for (const int format : {0x00, 0x04, 0x0b, 0x11, 0x21, 0xff}) {
    IS(Try(ArrayShape(8, 4, 0, 0, OutOfRange<CUarray_format>(format), 1)), INVALID_VALUE);
  }
  OK(Try(ArrayShape(8, 4, 0, 0, CU_AD_FORMAT_UNORM_INT8X4, 4)));
  IS(Try(ArrayShape(8, 4, 0, 0, CU_AD_FORMAT_UNORM_INT8X4, 1)), INVALID_VALUE);
  OK(Try(ArrayShape(8, 4, 0, 0, CU_AD_FORMAT_SNORM_INT16X1, 1)));
}

BOOST_AUTO_TEST_CASE(shapes) {
  const InOwnContext in;
  OK(Try(ArrayShape(8, 0, 0)));
  OK(Try(ArrayShape(8, 4, 0)));
  OK(Try(ArrayShape(8, 4, 3)));
  OK(Try(ArrayShape(8, 4, 1)));
  IS(Try(ArrayShape(0, 0, 0)), INVALID_VALUE);
  IS(Try(ArrayShape(0, 4, 3)), INVALID_VALUE);
  IS(Try(ArrayShape(8, 0, 3)), INVALID_VALUE);
  OK(Try(ArrayShape(8, 4, 3, kLayered)));
  OK(Try(ArrayShape(8, 0, 3, kLayered)));
  IS(Try(ArrayShape(8, 4, 0, kLayered)), INVALID_VALUE);
  OK(Try(ArrayShape(8, 8, 6, kCubemap)));
  IS(Try(ArrayShape(8, 8, 12, kCubemap)), INVALID_VALUE);
  IS(Try(ArrayShape(8, 4, 6, kCubemap)), INVALID_VALUE);
  OK(Try(ArrayShape(8, 8, 12, kCubemap | kLayered)));
  IS(Try(ArrayShape(8, 8, 7, kCubemap | kLayered)), INVALID_VALUE);
  OK(Try(ArrayShape(8, 4, 0, kGather)));
  IS(Try(ArrayShape(8, 0, 0, kGather)), INVALID_VALUE);
  IS(Try(ArrayShape(8, 4, 3, kGather)), INVALID_VALUE);
  IS(Try(ArrayShape(8, 4, 3, kGather | kLayered)), INVALID_VALUE);
  OK(Try(ArrayShape(8, 4, 3, kSurface)));
  for (const unsigned flags : {CUDA_ARRAY3D_DEPTH_TEXTURE, CUDA_ARRAY3D_COLOR_ATTACHMENT, 0x200}) {
    IS(Try(ArrayShape(8, 4, 0, flags)), INVALID_VALUE);
  }
}

BOOST_AUTO_TEST_CASE(sizes_have_limits) {
  const InOwnContext in;
  const auto check = [](const CUDA_ARRAY3D_DESCRIPTOR& shape, bool valid) {
    BOOST_TEST_CONTEXT(shape.Width << " x " << shape.Height << " x " << shape.Depth << ", flags "
                                   << shape.Flags) {
      BOOST_CHECK_EQUAL(Try(shape), valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    }
  };
  for (const size_t over : {0, 1}) {
    check(ArrayShape(131072 + over, 0, 0), over == 0);
    check(ArrayShape(32768 + over, 0, 0, kSurface), over == 0);
    check(ArrayShape(131072 + over, 1, 0), over == 0);
    check(ArrayShape(1, 65536 + over, 0), over == 0);
    check(ArrayShape(16384 + over, 1, 2), over == 0);
    check(ArrayShape(1, 16384 + over, 2), over == 0);
    check(ArrayShape(32768 + over, 1, 2, kLayered), over == 0);
    check(ArrayShape(1, 0, 2048 + over, kLayered), over == 0);
    check(ArrayShape(32768 + over, 1, 0, kGather), over == 0);
    check(ArrayShape(1, 1, 2046 + 6 * over, kCubemap | kLayered), over == 0);
  }
  check(ArrayShape(1, 1, 16385), true);  // deep and narrow
}

BOOST_AUTO_TEST_CASE(sizes_have_32_bits) {
  const InOwnContext in;
  constexpr size_t kUnseen = size_t{1} << 32;
  CUarray array = nullptr;
  const auto shape = ArrayShape(kUnseen + 16, 0, 0);
  OK(RAW(cuArray3DCreate)(&array, &shape));
  CUDA_ARRAY3D_DESCRIPTOR made = {};
  OK(RAW(cuArray3DGetDescriptor)(&made, array));
  BOOST_TEST(made.Width == 16u);
  OK(RAW(cuArrayDestroy)(array));
  OK(Try(ArrayShape(16, kUnseen + 16, 0)));
  OK(Try(ArrayShape(16, 16, kUnseen + 16)));
  IS(Try(ArrayShape(kUnseen, kUnseen, 0)), INVALID_VALUE);
  IS(Try(ArrayShape(kUnseen - 1, 0, 0)), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(an_array_takes_device_memory) {
  const InOwnContext in;
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  OK(RAW(cuMemGetInfo)(&before, &total));
  const OwnArray array(8192, 8192);
  OK(RAW(cuMemGetInfo)(&after, &total));
  BOOST_TEST(before - after >= size_t{8192} * 8192 * sizeof(float));
  // 512 GiB
  IS(Try(ArrayShape(32768, 32768, 32, kLayered, CU_AD_FORMAT_FLOAT, 4)), OUT_OF_MEMORY);
}

BOOST_AUTO_TEST_CASE(a_descriptor_is_what_was_asked_for) {
  const InOwnContext in;
  const OwnArray cube(ArrayShape(8, 8, 12, kCubemap | kLayered, CU_AD_FORMAT_SIGNED_INT16, 2));
  SetStack({});  // not needed for this
  const CUDA_ARRAY3D_DESCRIPTOR shape = ShapeOf(cube.get());
  BOOST_TEST(shape.Width == 8u);
  BOOST_TEST(shape.Height == 8u);
  BOOST_TEST(shape.Depth == 12u);
  BOOST_TEST(shape.Flags == (kCubemap | kLayered));
  BOOST_TEST(shape.Format == CU_AD_FORMAT_SIGNED_INT16);
  BOOST_TEST(shape.NumChannels == 2u);
  CUDA_ARRAY_DESCRIPTOR plane = {};
  OK(RAW(cuArrayGetDescriptor)(&plane, cube.get()));
  BOOST_TEST(plane.Width == 8u);
  BOOST_TEST(plane.Height == 8u);
  BOOST_TEST(plane.NumChannels == 2u);
  IS(RAW(cuArrayGetDescriptor)(nullptr, cube.get()), INVALID_VALUE);
  IS(RAW(cuArray3DGetDescriptor)(nullptr, cube.get()), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(an_array_is_destroyed_wherever_one_is) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  CUarray arrays[3] = {};
  for (CUarray& array : arrays) array = OwnArray(8, 4).release();
  SetStack({b.get()});
  OK(RAW(cuArrayDestroy)(arrays[0]));
  SetStack({});
  OK(RAW(cuArrayDestroy)(arrays[1]));
  PushDeadContext();
  OK(RAW(cuArrayDestroy)(arrays[2]));
  SetStack({});
}

// Not so a mipmapped array: see destroy_around_a_mipmap below.
BOOST_AUTO_TEST_CASE(an_array_dies_with_its_context) {
  const auto live = Sim::Live();
  OwnContext a;
  SetStack({a.get()});
  OwnArray(8, 4).release();
  if (Sim::IsActive()) BOOST_TEST(Sim::Live().arrays == live.arrays + 1);
  OK(RAW(cuCtxDestroy)(a.release()));
  BOOST_TEST(Sim::Live().arrays == live.arrays);
}

BOOST_AUTO_TEST_CASE(levels_halve) {
  const InOwnContext in;
  const Mipmap plane(ArrayShape(17, 5, 0), 4);
  plane.CheckLevel(0, 17, 5, 0);
  plane.CheckLevel(1, 8, 2, 0);
  plane.CheckLevel(2, 4, 1, 0);
  plane.CheckLevel(3, 2, 1, 0);
  IS(TryLevel(plane.array, 4), INVALID_VALUE);
  const Mipmap line(ArrayShape(16, 0, 0), 2);
  line.CheckLevel(1, 8, 0, 0);
  const Mipmap volume(ArrayShape(16, 8, 4), 4);
  volume.CheckLevel(2, 4, 2, 1);
  const Mipmap layers(ArrayShape(16, 8, 3, kLayered), 3);
  layers.CheckLevel(2, 4, 2, 3);
  const Mipmap faces(ArrayShape(16, 16, 6, kCubemap | kSurface), 3);
  faces.CheckLevel(1, 8, 8, 6);
  BOOST_TEST(ShapeOf(faces.Level(1)).Flags == (kCubemap | kSurface));
}

BOOST_AUTO_TEST_CASE(the_number_of_levels_is_made_to_fit) {
  const InOwnContext in;
  const Mipmap none(ArrayShape(16, 16, 0), 0);
  none.CheckLevel(0, 16, 16, 0);
  IS(TryLevel(none.array, 1), INVALID_VALUE);
  const Mipmap many(ArrayShape(16, 16, 0), 4000000000u);
  many.CheckLevel(4, 1, 1, 0);
  IS(TryLevel(many.array, 5), INVALID_VALUE);
  const CUDA_ARRAY3D_DESCRIPTOR nothing = ArrayShape(0, 4, 0);
  CUmipmappedArray array = nullptr;
  IS(RAW(cuMipmappedArrayCreate)(&array, &nothing, 1), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_level_belongs_to_its_mipmapped_array) {
  const InOwnContext in;
  const Mipmap mipmap(ArrayShape(16, 16, 0), 3);
  const CUarray level = mipmap.Level(1);
  BOOST_CHECK(mipmap.Level(1) == level);
  BOOST_CHECK(mipmap.Level(0) != level);
  OK(RAW(cuArrayDestroy)(level));  // does nothing
  BOOST_CHECK(mipmap.Level(1) == level);
  Write(level, 8, 8, Counting(64));
  BOOST_TEST(Read(level, 8, 8) == Counting(64), boost::test_tools::per_element());
  IS(RAW(cuMipmappedArrayGetLevel)(nullptr, mipmap.array, 0), INVALID_VALUE);
  SetStack({});  // not needed for this
  BOOST_CHECK(mipmap.Level(1) == level);
}

BOOST_AUTO_TEST_CASE(a_capture_forbids_to_create_and_destroy) {
  for (const CUstreamCaptureMode mode : kModes) {
    const Guest guest;
    const CUDA_ARRAY3D_DESCRIPTOR shape = ArrayShape(8, 4, 0);
    const OwnArray array(shape);
    CUDA_ARRAY3D_DESCRIPTOR asked = {};
    CUarray made = nullptr;
    const bool allowed = mode == kRelaxed;
    const CUresult code = allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    OK(Begin(guest.stream, mode));
    OK(RAW(cuArray3DGetDescriptor)(&asked, array.get()));
    IS(RAW(cuArrayDestroy)(nullptr), INVALID_HANDLE);
    BOOST_TEST(StatusOf(guest.stream) == kActive);
    BOOST_CHECK_EQUAL(RAW(cuArray3DCreate)(&made, &shape), code);
    BOOST_TEST(StatusOf(guest.stream) == (allowed ? kActive : kLost));
    BOOST_CHECK_EQUAL(End(guest.stream),
                      allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (!allowed) made = OwnArray(shape).release();
    OK(Begin(guest.stream, mode));
    BOOST_CHECK_EQUAL(RAW(cuArrayDestroy)(made), code);
    BOOST_TEST(StatusOf(guest.stream) == (allowed ? kActive : kLost));
    End(guest.stream);
    if (!allowed) OK(RAW(cuArrayDestroy)(made));
  }
}

BOOST_AUTO_TEST_CASE(calls_fail_where_asked_to, *OnlySim()) {
  const InOwnContext in;
  Sim::FailCall("cuArray3DCreate", 1, CUDA_ERROR_UNKNOWN);
  IS(Try(ArrayShape(8, 4, 0)), UNKNOWN);
  OK(Try(ArrayShape(8, 4, 0)));
  BOOST_TEST(Sim::Live().arrays == 0u);
}

namespace {

int Ends(CUresult code) { return static_cast<int>(code); }

CUarray DestroyedArray() {
  const CUDA_ARRAY3D_DESCRIPTOR shape = ArrayShape(8, 4, 0);
  CUcontext context = nullptr;
  CUarray array = nullptr;
  RAW(cuInit)(0);
  RAW(cuCtxCreate)(&context, nullptr, 0, 0);
  RAW(cuArray3DCreate)(&array, &shape);
  RAW(cuArrayDestroy)(array);
  return array;
}

}  // namespace

CHILD(destroy_twice) { return Ends(RAW(cuArrayDestroy)(DestroyedArray())); }
CHILD(describe_destroyed) {
  CUDA_ARRAY_DESCRIPTOR plane;
  return Ends(RAW(cuArrayGetDescriptor)(&plane, DestroyedArray()));
}
CHILD(describe_orphan) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = ArrayShape(8, 4, 0);
  CUcontext context = nullptr;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR plane;
  RAW(cuInit)(0);
  RAW(cuCtxCreate)(&context, nullptr, 0, 0);
  RAW(cuArray3DCreate)(&array, &shape);
  RAW(cuCtxDestroy)(context);
  return Ends(RAW(cuArrayGetDescriptor)(&plane, array));
}
CHILD(copy_to_destroyed) {
  const float values[8] = {};
  return Ends(RAW(cuMemcpyHtoA)(DestroyedArray(), 0, values, sizeof(values)));
}
CHILD(describe_garbage) {
  static char something[64];
  CUDA_ARRAY_DESCRIPTOR plane;
  RAW(cuInit)(0);
  return Ends(RAW(cuArrayGetDescriptor)(&plane, reinterpret_cast<CUarray>(something)));
}
CHILD(destroy_around_a_mipmap) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = ArrayShape(8, 4, 0);
  CUcontext context = nullptr;
  CUmipmappedArray mipmap = nullptr;
  RAW(cuInit)(0);
  RAW(cuCtxCreate)(&context, nullptr, 0, 0);
  RAW(cuMipmappedArrayCreate)(&mipmap, &shape, 2);
  return Ends(RAW(cuCtxDestroy)(context));
}

// A real driver has these.
BOOST_AUTO_TEST_CASE(what_is_not_modelled_is_not_supported, *OnlySim()) {
  const OwnContext own;
  SetStack({own.get()});
  Sim::ResetCalls();
  CUarray array = nullptr;
  CUmipmappedArray mipmap = nullptr;
  for (const unsigned flag : {CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING}) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = ArrayShape(8, 4, 0, flag);
    IS(RAW(cuArray3DCreate)(&array, &shape), NOT_SUPPORTED);
    IS(RAW(cuMipmappedArrayCreate)(&mipmap, &shape, 2), NOT_SUPPORTED);
  }
  const CUDA_ARRAY3D_DESCRIPTOR blocks = ArrayShape(8, 4, 0, 0, CU_AD_FORMAT_BC1_UNORM, 4);
  IS(RAW(cuArray3DCreate)(&array, &blocks), NOT_SUPPORTED);
  BOOST_TEST(Sim::UnmodelledCalls("cuArray3DCreate_v2") == 3u);
  BOOST_TEST(Sim::UnmodelledCalls("cuMipmappedArrayCreate") == 2u);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(what_crashes_a_real_driver_panics, *OnlySim()) {
  const auto check = [](const char* child, const std::string& text) {
    const cudasim_test::Ended ended = cudasim_test::RunChild(child);
    BOOST_TEST(ended.code == -SIGABRT, child);
    BOOST_TEST((ended.output.find(text) != std::string::npos), child << ": " << ended.output);
  };
  check("destroy_twice", "the array was destroyed");
  check("describe_destroyed", "the array was destroyed");
  check("describe_orphan", "the array's context was destroyed or reset");
  check("copy_to_destroyed", "the array was destroyed");
  check("describe_garbage", "this never was an array");
  check("destroy_around_a_mipmap", "destroyed or reset with a mipmapped array in it");
}

BOOST_AUTO_TEST_SUITE_END()
