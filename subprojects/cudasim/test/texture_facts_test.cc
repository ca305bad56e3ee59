// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texture and surface objects: which there are, whose they are, and what a kernel sees
// through them. Measured on an NVIDIA H200, driver 580.159.04.

#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>

#include "cudasim/sim.h"
#include "test/arrays.h"
#include "test/capture.h"
#include "test/green.h"
#include "test/kernels/sample.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(texture_facts)

using namespace cudasim_facts;
using boost::test_tools::per_element;
using cudasim::Sim;
using cudasim::SimLaunch;
using cudasim_test::OnlySim;

namespace {

constexpr auto kClamp = CU_TR_ADDRESS_MODE_CLAMP;
constexpr auto kWrap = CU_TR_ADDRESS_MODE_WRAP;
constexpr auto kMirror = CU_TR_ADDRESS_MODE_MIRROR;
constexpr auto kBorder = CU_TR_ADDRESS_MODE_BORDER;
constexpr unsigned kNormalized = CU_TRSF_NORMALIZED_COORDINATES;

CUDA_RESOURCE_DESC Of(CUarray array) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}
CUDA_RESOURCE_DESC Of(CUmipmappedArray array) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = array;
  return resource;
}
CUDA_RESOURCE_DESC Linear(CUdeviceptr memory, size_t bytes, unsigned channels = 1) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = memory;
  resource.res.linear.format = CU_AD_FORMAT_FLOAT;
  resource.res.linear.numChannels = channels;
  resource.res.linear.sizeInBytes = bytes;
  return resource;
}
CUDA_RESOURCE_DESC Pitched(CUdeviceptr memory, size_t width, size_t height, size_t pitch) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D = {memory, CU_AD_FORMAT_FLOAT, 1, width, height, pitch};
  return resource;
}

CUDA_TEXTURE_DESC Sampling(CUaddress_mode mode = kClamp, unsigned flags = 0,
                           CUfilter_mode filter = CU_TR_FILTER_MODE_POINT) {
  CUDA_TEXTURE_DESC sampling = {};
  for (CUaddress_mode& each : sampling.addressMode) each = mode;
  sampling.flags = flags;
  sampling.filterMode = filter;
  return sampling;
}

CUresult Make(CUtexObject* texture, const CUDA_RESOURCE_DESC& resource,
              const CUDA_TEXTURE_DESC& sampling = Sampling(),
              const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
  return RAW(cuTexObjectCreate)(texture, &resource, &sampling, view);
}
CUresult Try(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& sampling = Sampling(),
             const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
  CUtexObject texture = 0;
  const CUresult code = Make(&texture, resource, sampling, view);
  if (code == CUDA_SUCCESS) OK(RAW(cuTexObjectDestroy)(texture));
  return code;
}
CUresult MakeSurface(CUsurfObject* surface, const CUDA_RESOURCE_DESC& resource) {
  return RAW(cuSurfObjectCreate)(surface, &resource);
}
CUresult TrySurface(const CUDA_RESOURCE_DESC& resource) {
  CUsurfObject surface = 0;
  const CUresult code = MakeSurface(&surface, resource);
  if (code == CUDA_SUCCESS) OK(RAW(cuSurfObjectDestroy)(surface));
  return code;
}

CUresult DescribeTexture(CUtexObject texture) {
  CUDA_RESOURCE_DESC resource;
  return RAW(cuTexObjectGetResourceDesc)(&resource, texture);
}
CUresult DescribeSurface(CUsurfObject surface) {
  CUDA_RESOURCE_DESC resource;
  return RAW(cuSurfObjectGetResourceDesc)(&resource, surface);
}

struct Point {
  float x, y;
};

template <typename T>
T Parameter(const SimLaunch& launch, size_t index) {
  T value;
  std::memcpy(&value, launch.parameters[index], sizeof(value));
  return value;
}

CUresult Sample(const SimLaunch& launch) {
  const auto texture = Parameter<CUtexObject>(launch, 0);
  const auto* at = Parameter<const Point*>(launch, 2);
  auto* texels = Parameter<float*>(launch, 3);
  for (unsigned i = 0; i < Parameter<unsigned>(launch, 1); ++i) {
    Sim::ReadTexture(texture, at[i].x, at[i].y, texels + 4 * i);
  }
  return CUDA_SUCCESS;
}

CUresult Paint(const SimLaunch& launch) {
  const auto surface = Parameter<CUsurfObject>(launch, 0);
  auto value = Parameter<float>(launch, 3);
  for (unsigned y = 0; y < Parameter<unsigned>(launch, 2); ++y) {
    for (unsigned x = 0; x < Parameter<unsigned>(launch, 1); ++x, ++value) {
      const CUresult code = Sim::WriteSurface(surface, x * sizeof(float), y, &value, sizeof(value));
      if (code != CUDA_SUCCESS) return code;
    }
  }
  return CUDA_SUCCESS;
}

// A current context with an array of four by three floats, 1 to 12, and the kernels.
struct Studio {
  Studio() {
    Sim::RegisterKernel("sample", Sample);
    Sim::RegisterKernel("paint", Paint);
    SetStack({context.get()});
    array = OwnArray(4, 3).release();
    Write(array, 4, 3, Counting(12, 1));
    CUmodule module = nullptr;
    OK(RAW(cuModuleLoadData)(&module, cudasim_kernels::sample_fatbin));
    OK(RAW(cuModuleGetFunction)(&sample, module, "sample"));
    OK(RAW(cuModuleGetFunction)(&paint, module, "paint"));
    OK(RAW(cuMemAlloc)(&at, 4096));
    OK(RAW(cuMemAlloc)(&texels, 4096));
    OK(RAW(cuMemAlloc)(&memory, 4096));
  }
  ~Studio() { SetStack({}); }

  // All four channels at each point.
  std::vector<float> SampleAll(CUtexObject texture, const std::vector<Point>& points) const {
    auto count = static_cast<unsigned>(points.size());
    CUdeviceptr from = at;
    CUdeviceptr to = texels;
    void* parameters[] = {&texture, &count, &from, &to};
    std::vector<float> values(4 * points.size());
    OK(RAW(cuMemcpyHtoD)(at, points.data(), points.size() * sizeof(Point)));
    OK(RAW(cuMemsetD8)(texels, 0xff, 4096));
    OK(RAW(cuLaunchKernel)(sample, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
    OK(RAW(cuCtxSynchronize)());
    OK(RAW(cuMemcpyDtoH)(values.data(), texels, values.size() * sizeof(float)));
    return values;
  }
  std::vector<float> SampleAll(const CUDA_RESOURCE_DESC& resource,
                               const CUDA_TEXTURE_DESC& sampling,
                               const std::vector<Point>& points) const {
    CUtexObject texture = 0;
    OK(Make(&texture, resource, sampling));
    const std::vector<float> values = SampleAll(texture, points);
    OK(RAW(cuTexObjectDestroy)(texture));
    return values;
  }
  // The first channel only.
  std::vector<float> SampleFirst(const CUDA_RESOURCE_DESC& resource,
                                 const CUDA_TEXTURE_DESC& sampling,
                                 const std::vector<Point>& points) const {
    const std::vector<float> all = SampleAll(resource, sampling, points);
    std::vector<float> first;
    for (size_t i = 0; i < points.size(); ++i) first.push_back(all[4 * i]);
    return first;
  }
  CUresult PaintOn(CUsurfObject surface, unsigned width, unsigned height, float first) const {
    void* parameters[] = {&surface, &width, &height, &first};
    return RAW(cuLaunchKernel)(paint, 1, 1, 1, 16, 16, 1, 0, nullptr, parameters, nullptr);
  }

  OwnContext context;
  CUarray array = nullptr;
  CUfunction sample = nullptr;
  CUfunction paint = nullptr;
  CUdeviceptr at = 0;
  CUdeviceptr texels = 0;
  CUdeviceptr memory = 0;
};

using Values = std::vector<float>;
const std::vector<Point> kPoints = {{0.5f, 0.5f}, {1, 0},     {0.999f, 0.5f},
                                    {3.5f, 2.5f}, {4, 3},     {-0.1f, -0.1f},
                                    {-5, 1.5f},   {10, 1.5f}, {1.5f, 10}};

}  // namespace

BOOST_AUTO_TEST_CASE(an_object_needs_a_current_context_for_everything) {
  CUtexObject object = 0;
  IS(RAW(cuTexObjectCreate)(nullptr, nullptr, nullptr, nullptr), INVALID_CONTEXT);
  IS(RAW(cuTexObjectGetResourceDesc)(nullptr, 0), INVALID_CONTEXT);
  IS(RAW(cuTexObjectDestroy)(0), INVALID_CONTEXT);
  IS(MakeSurface(&object, Of(CUarray{})), INVALID_CONTEXT);
  IS(DescribeSurface(1), INVALID_CONTEXT);
  IS(RAW(cuSurfObjectDestroy)(0), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(arguments) {
  const Studio studio;
  CUtexObject object = 0;
  const CUDA_RESOURCE_DESC resource = Of(studio.array);
  const CUDA_TEXTURE_DESC sampling = Sampling();
  IS(RAW(cuTexObjectCreate)(nullptr, &resource, &sampling, nullptr), INVALID_VALUE);
  IS(RAW(cuTexObjectCreate)(&object, nullptr, &sampling, nullptr), INVALID_VALUE);
  IS(RAW(cuTexObjectCreate)(&object, &resource, nullptr, nullptr), INVALID_VALUE);
  IS(RAW(cuSurfObjectCreate)(&object, nullptr), INVALID_VALUE);
  IS(Try(Of(CUarray{})), INVALID_VALUE);
  IS(Try(Of(CUmipmappedArray{})), INVALID_VALUE);
  CUDA_RESOURCE_DESC bad = resource;
  bad.flags = 1;
  IS(Try(bad), INVALID_VALUE);
  IS(TrySurface(bad), INVALID_VALUE);
  bad = resource;
  bad.resType = OutOfRange<CUresourcetype>(9);
  IS(Try(bad), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(every_shape_of_array) {
  const Studio studio;
  for (const CUDA_ARRAY3D_DESCRIPTOR& shape :
       {ArrayShape(8, 0, 0), ArrayShape(8, 4, 0), ArrayShape(8, 4, 3),
        ArrayShape(8, 4, 3, CUDA_ARRAY3D_LAYERED), ArrayShape(4, 4, 6, CUDA_ARRAY3D_CUBEMAP)}) {
    const OwnArray array(shape);
    OK(Try(Of(array.get())));
  }
  const OwnArray cube(ArrayShape(4, 4, 6, CUDA_ARRAY3D_CUBEMAP));
  OK(Try(Of(cube.get()), Sampling(kClamp, CU_TRSF_SEAMLESS_CUBEMAP)));
  IS(Try(Of(studio.array), Sampling(kClamp, CU_TRSF_SEAMLESS_CUBEMAP)), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(what_is_said_of_sampling_is_hardly_checked) {
  const Studio studio;
  const CUDA_RESOURCE_DESC resource = Of(studio.array);
  OK(Try(resource, Sampling(kWrap)));
  OK(Try(resource, Sampling(kMirror)));
  OK(Try(resource, Sampling(kBorder)));
  OK(Try(resource, Sampling(kClamp, CU_TRSF_SRGB)));
  IS(Try(resource, Sampling(kClamp, 0x80)), INVALID_VALUE);
  IS(Try(resource, Sampling(OutOfRange<CUaddress_mode>(9))), INVALID_VALUE);
  IS(Try(resource, Sampling(kClamp, 0, OutOfRange<CUfilter_mode>(9))), INVALID_VALUE);
  CUDA_TEXTURE_DESC sampling = Sampling();
  sampling.mipmapFilterMode = OutOfRange<CUfilter_mode>(9);
  IS(Try(resource, sampling), INVALID_VALUE);
  sampling = Sampling();
  sampling.reserved[0] = 1;
  IS(Try(resource, sampling), INVALID_VALUE);
  sampling = Sampling();
  sampling.maxAnisotropy = 17;
  sampling.addressMode[2] = OutOfRange<CUaddress_mode>(9);  // of no coordinate that there is
  OK(Try(resource, sampling));
  const OwnArray integers(ArrayShape(8, 4, 0, 0, CU_AD_FORMAT_SIGNED_INT32));
  OK(Try(Of(integers.get()), Sampling(kClamp, 0, CU_TR_FILTER_MODE_LINEAR)));
}

BOOST_AUTO_TEST_CASE(memory_must_be_aligned_and_nothing_else) {
  const Studio studio;
  OK(Try(Linear(studio.memory, 4096)));
  OK(Try(Linear(studio.memory, 1 << 20)));  // beyond its end
  OK(Try(Linear(studio.memory, 0)));
  OK(Try(Linear(studio.memory + 512, 64)));
  IS(Try(Linear(studio.memory + 256, 64)), INVALID_VALUE);
  IS(Try(Linear(0, 64)), INVALID_VALUE);
  IS(Try(Linear(studio.memory, 64, 3)), INVALID_VALUE);
  OK(Try(Pitched(studio.memory, 8, 4, 32)));
  OK(Try(Pitched(studio.memory, 8, 4, 64)));
  OK(Try(Pitched(studio.memory, 8, 400, 512)));
  OK(Try(Pitched(studio.memory, 0, 0, 0)));
  OK(Try(Pitched(studio.memory, 8, 4, 0)));
  IS(Try(Pitched(studio.memory, 8, 4, 48)), INVALID_VALUE);
  OK(Try(Pitched(studio.memory, 16, 4, 32)));  // rows that overlap
  IS(Try(Pitched(studio.memory + 256, 8, 4, 32)), INVALID_VALUE);
  IS(Try(Pitched(0, 8, 4, 32)), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(views_keep_the_size) {
  const Studio studio;
  const CUDA_RESOURCE_DESC resource = Of(studio.array);
  CUDA_RESOURCE_VIEW_DESC view = {};
  view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32;
  view.width = 4;
  view.height = 3;
  const auto check = [&](CUresourceViewFormat format, CUresult code) {
    view.format = format;
    BOOST_CHECK_EQUAL(Try(resource, Sampling(), &view), code);
  };
  check(CU_RES_VIEW_FORMAT_FLOAT_1X32, CUDA_SUCCESS);
  check(CU_RES_VIEW_FORMAT_UINT_1X32, CUDA_SUCCESS);
  check(CU_RES_VIEW_FORMAT_SINT_1X32, CUDA_SUCCESS);
  check(CU_RES_VIEW_FORMAT_UINT_4X8, CUDA_SUCCESS);
  check(CU_RES_VIEW_FORMAT_FLOAT_2X32, CUDA_ERROR_INVALID_VALUE);
  check(CU_RES_VIEW_FORMAT_NONE, CUDA_ERROR_INVALID_VALUE);
  OK(Try(Linear(studio.memory, 64), Sampling(), &view));  // not looked at
  view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32;
  view.width = 2;
  IS(Try(resource, Sampling(), &view), INVALID_VALUE);
  view.width = 4;
  view.depth = 1;
  IS(Try(resource, Sampling(), &view), INVALID_VALUE);
  view.depth = 0;
  CUtexObject texture = 0;
  CUDA_RESOURCE_VIEW_DESC asked = {};
  OK(Make(&texture, resource, Sampling(), &view));
  OK(RAW(cuTexObjectGetResourceViewDesc)(&asked, texture));
  BOOST_CHECK(asked.format == CU_RES_VIEW_FORMAT_FLOAT_1X32);
  BOOST_TEST(asked.width == 4u);
  OK(RAW(cuTexObjectDestroy)(texture));
  OK(Make(&texture, resource));
  asked.width = 77;
  OK(RAW(cuTexObjectGetResourceViewDesc)(&asked, texture));
  BOOST_TEST(asked.width == 77u, "without a view nothing is written");
  OK(RAW(cuTexObjectDestroy)(texture));
}

BOOST_AUTO_TEST_CASE(an_object_is_described) {
  const Studio studio;
  CUtexObject texture = 0;
  CUDA_TEXTURE_DESC sampling = Sampling(kBorder, kNormalized);
  sampling.borderColor[1] = 0.5f;
  sampling.mipmapLevelBias = 1;
  OK(Make(&texture, Of(studio.array), sampling));
  CUDA_RESOURCE_DESC resource;
  OK(RAW(cuTexObjectGetResourceDesc)(&resource, texture));
  BOOST_CHECK(resource.resType == CU_RESOURCE_TYPE_ARRAY);
  BOOST_CHECK(resource.res.array.hArray == studio.array);
  CUDA_TEXTURE_DESC asked = {};
  asked.borderColor[1] = 77;
  OK(RAW(cuTexObjectGetTextureDesc)(&asked, texture));
  BOOST_CHECK(asked.addressMode[1] == kBorder);
  BOOST_TEST(asked.flags == kNormalized);
  BOOST_TEST(asked.mipmapLevelBias == 1);
  BOOST_TEST(asked.borderColor[1] == 77, "the border color is not written");
  IS(RAW(cuTexObjectGetResourceDesc)(nullptr, texture), INVALID_VALUE);
  IS(RAW(cuTexObjectGetTextureDesc)(nullptr, texture), INVALID_VALUE);
  IS(RAW(cuTexObjectGetResourceViewDesc)(nullptr, texture), INVALID_VALUE);
  OK(RAW(cuTexObjectDestroy)(texture));
  IS(DescribeTexture(texture), INVALID_VALUE);
  IS(DescribeTexture(0), INVALID_VALUE);
  IS(DescribeTexture(0x7777), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_surface_is_of_an_array) {
  const Studio studio;
  OK(TrySurface(Of(studio.array)));  // also without CUDA_ARRAY3D_SURFACE_LDST
  IS(TrySurface(Of(CUarray{})), INVALID_VALUE);
  IS(TrySurface(Linear(studio.memory, 64)), INVALID_VALUE);
  IS(TrySurface(Pitched(studio.memory, 8, 4, 32)), INVALID_VALUE);
  CUsurfObject surface = 0;
  CUtexObject texture = 0;
  OK(MakeSurface(&surface, Of(studio.array)));
  OK(Make(&texture, Of(studio.array)));
  OK(DescribeSurface(surface));
  IS(DescribeTexture(surface), INVALID_VALUE);
  IS(DescribeSurface(texture), INVALID_VALUE);
  IS(RAW(cuSurfObjectGetResourceDesc)(nullptr, surface), INVALID_VALUE);
  // Destroying with the wrong function does nothing.
  OK(RAW(cuTexObjectDestroy)(surface));
  OK(RAW(cuSurfObjectDestroy)(texture));
  OK(DescribeSurface(surface));
  OK(DescribeTexture(texture));
  OK(RAW(cuTexObjectDestroy)(texture));
  OK(RAW(cuSurfObjectDestroy)(surface));
  IS(DescribeSurface(surface), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(nothing_is_destroyed_without_an_error) {
  const Studio studio;
  OK(RAW(cuTexObjectDestroy)(0));
  OK(RAW(cuTexObjectDestroy)(0x7777));
  OK(RAW(cuSurfObjectDestroy)(0));
  CUtexObject texture = 0;
  OK(Make(&texture, Of(studio.array)));
  OK(RAW(cuTexObjectDestroy)(texture));
  OK(RAW(cuTexObjectDestroy)(texture));
}

BOOST_AUTO_TEST_CASE(an_object_is_a_number_in_its_context) {
  const Studio a;
  CUtexObject in_a = 0;
  OK(Make(&in_a, Of(a.array)));
  const Studio b;
  CUtexObject in_b = 0;
  Write(b.array, 4, 3, Counting(12, 101));
  IS(DescribeTexture(in_a), INVALID_VALUE);
  OK(Make(&in_b, Of(b.array)));
  BOOST_TEST(in_a == in_b);
  // What names A's texture there is B's here, in a kernel and to be destroyed.
  const Values values = b.SampleAll(in_a, {{1.5f, 0.5f}});
  BOOST_TEST(values[0] == 102);
  OK(RAW(cuTexObjectDestroy)(in_a));
  IS(DescribeTexture(in_b), INVALID_VALUE);
  SetStack({a.context.get()});
  OK(DescribeTexture(in_a));
  OK(RAW(cuTexObjectDestroy)(in_a));
}

BOOST_AUTO_TEST_CASE(an_array_of_another_context_is_refused) {
  const Studio a;
  const CUDA_ARRAY3D_DESCRIPTOR shape = ArrayShape(16, 16, 0);
  CUmipmappedArray mipmap = nullptr;
  CUarray level = nullptr;
  OK(RAW(cuMipmappedArrayCreate)(&mipmap, &shape, 2));
  OK(RAW(cuMipmappedArrayGetLevel)(&level, mipmap, 0));
  const Studio b;
  IS(Try(Of(a.array)), PEER_ACCESS_NOT_ENABLED);
  IS(TrySurface(Of(a.array)), PEER_ACCESS_NOT_ENABLED);
  IS(Try(Of(level)), PEER_ACCESS_NOT_ENABLED);
  OK(Try(Of(mipmap)));  // only arrays
  OK(RAW(cuMipmappedArrayDestroy)(mipmap));
  OK(Try(Linear(a.memory, 64)));
  OK(Try(Pitched(a.memory, 8, 4, 32)));
}

BOOST_AUTO_TEST_CASE(in_a_green_context_both_are_made) {
  const Green green;
  SetStack({green.context});
  CUtexObject texture = 0;
  CUsurfObject surface = 0;
  {
    const OwnArray array(ArrayShape(8, 4, 0, CUDA_ARRAY3D_SURFACE_LDST));
    OK(Make(&texture, Of(array.get())));
    OK(MakeSurface(&surface, Of(array.get())));
    OK(DescribeTexture(texture));
    OK(RAW(cuSurfObjectDestroy)(surface));
    OK(RAW(cuTexObjectDestroy)(texture));
    IS(DescribeTexture(texture), INVALID_VALUE);
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(an_object_outlives_its_array) {
  const Studio studio;
  CUtexObject texture = 0;
  const CUarray array = OwnArray(8, 4).release();
  OK(Make(&texture, Of(array)));
  OK(RAW(cuArrayDestroy)(array));
  OK(DescribeTexture(texture));
  OK(RAW(cuTexObjectDestroy)(texture));
}

BOOST_AUTO_TEST_CASE(an_object_dies_with_its_context) {
  Studio gone;
  CUtexObject texture = 0;
  CUsurfObject surface = 0;
  OK(Make(&texture, Of(gone.array)));
  OK(MakeSurface(&surface, Of(gone.array)));
  OK(RAW(cuCtxDestroy)(gone.context.release()));
  IS(RAW(cuTexObjectDestroy)(texture), INVALID_CONTEXT);
  const OwnContext other;
  SetStack({other.get()});
  IS(DescribeTexture(texture), INVALID_VALUE);
  OK(RAW(cuTexObjectDestroy)(texture));
  OK(RAW(cuSurfObjectDestroy)(surface));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(objects_are_counted, *OnlySim()) {
  const auto before = Sim::Live();
  {
    Studio studio;
    CUtexObject texture = 0;
    CUsurfObject surface = 0;
    OK(Make(&texture, Of(studio.array)));
    OK(MakeSurface(&surface, Of(studio.array)));
    BOOST_TEST(Sim::Live().textures == before.textures + 2);
    OK(RAW(cuTexObjectDestroy)(texture));
    BOOST_TEST(Sim::Live().textures == before.textures + 1);
  }
  BOOST_CHECK(Sim::Live() == before);
}

BOOST_AUTO_TEST_CASE(a_capture_forbids_to_create_and_destroy) {
  for (const CUstreamCaptureMode mode : kModes) {
    const Guest guest;
    const OwnArray array(8, 4);
    CUtexObject texture = 0;
    CUtexObject made = 0;
    OK(Make(&texture, Of(array.get())));
    const CUresult code = mode == kRelaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const auto after = mode == kRelaxed ? kActive : kLost;
    OK(Begin(guest.stream, mode));
    OK(DescribeTexture(texture));
    BOOST_TEST(StatusOf(guest.stream) == kActive);
    BOOST_CHECK_EQUAL(Make(&made, Of(array.get())), code);
    BOOST_TEST(StatusOf(guest.stream) == after);
    End(guest.stream);
    OK(Begin(guest.stream, mode));
    BOOST_CHECK_EQUAL(RAW(cuTexObjectDestroy)(texture), code);
    BOOST_TEST(StatusOf(guest.stream) == after);
    End(guest.stream);
    OK(Begin(guest.stream, mode));
    BOOST_CHECK_EQUAL(MakeSurface(&made, Of(array.get())), code);
    BOOST_TEST(StatusOf(guest.stream) == after);
    End(guest.stream);
  }
}

BOOST_AUTO_TEST_CASE(points_are_sampled) {
  const Studio studio;
  const auto at = [&](const CUDA_TEXTURE_DESC& sampling) {
    return studio.SampleFirst(Of(studio.array), sampling, kPoints);
  };
  const Values clamped = {1, 2, 1, 12, 12, 1, 5, 8, 10};
  BOOST_TEST(at(Sampling(kClamp)) == clamped, per_element());
  // They need normalised coordinates.
  BOOST_TEST(at(Sampling(kWrap)) == clamped, per_element());
  BOOST_TEST(at(Sampling(kMirror)) == clamped, per_element());
  const Values all = studio.SampleAll(Of(studio.array), Sampling(), {{1, 0}});
  BOOST_TEST(all == (Values{2, 0, 0, 0}), per_element());  // one channel
}

BOOST_AUTO_TEST_CASE(rows_of_memory_are_sampled) {
  const Studio studio;
  const std::vector<float> values = Counting(12, 1);
  OK(Copy(ToDevice(studio.memory, 512, values.data(), 16, 16, 2)));
  BOOST_TEST(studio.SampleFirst(Pitched(studio.memory, 4, 2, 512), Sampling(), kPoints) ==
                 (Values{1, 2, 1, 8, 8, 1, 5, 8, 6}),
             per_element());
}

BOOST_AUTO_TEST_CASE(a_surface_is_painted) {
  const Studio studio;
  CUsurfObject surface = 0;
  OK(MakeSurface(&surface, Of(studio.array)));
  OK(studio.PaintOn(surface, 4, 3, 100));
  OK(RAW(cuCtxSynchronize)());
  BOOST_TEST(Read(studio.array, 4, 3) == Counting(12, 100), per_element());
  if (Sim::IsActive()) {
    float value = 0;
    OK(Sim::ReadSurface(surface, 8, 1, &value, sizeof(value)));
    BOOST_TEST(value == 106);
    IS(Sim::ReadSurface(surface, 16, 1, &value, sizeof(value)), ILLEGAL_ADDRESS);
    IS(Sim::ReadSurface(surface, 0, 3, &value, sizeof(value)), ILLEGAL_ADDRESS);
    IS(Sim::WriteSurface(surface, 14, 0, &value, sizeof(value)), ILLEGAL_ADDRESS);
  }
  OK(RAW(cuSurfObjectDestroy)(surface));
}

BOOST_AUTO_TEST_CASE(elements_of_integers_and_of_linear_memory, *OnlySim()) {
  const Studio studio;
  const OwnArray array(ArrayShape(2, 1, 0, 0, CU_AD_FORMAT_SIGNED_INT32, 2));
  const std::int32_t integers[4] = {1, -1, 16777216, -7};
  OK(Copy(ToArray(array.get(), integers, 16, 16, 1)));
  CUtexObject texture = 0;
  float texel[4] = {};
  OK(Make(&texture, Of(array.get())));
  Sim::ReadTexture(texture, 1.5f, 0.5f, texel);  // outside a kernel: of the current context
  BOOST_TEST(texel[0] == 16777216);
  BOOST_TEST(texel[1] == -7);
  OK(RAW(cuTexObjectDestroy)(texture));
  const std::vector<float> values = Counting(4, 1);
  OK(RAW(cuMemcpyHtoD)(studio.memory, values.data(), 16));
  OK(Make(&texture, Linear(studio.memory, 16)));
  Sim::ReadTexture(texture, 3, 0, texel);
  BOOST_TEST(texel[0] == 4);
  Sim::ReadTexture(texture, 4, 0, texel);
  BOOST_TEST(texel[0] == 0);
  OK(RAW(cuTexObjectDestroy)(texture));
}

CHILD(read_nothing) {
  CUcontext context = nullptr;
  float texel[4];
  RAW(cuInit)(0);
  RAW(cuCtxCreate)(&context, nullptr, 0, 0);
  Sim::ReadTexture(1, 0, 0, texel);
  return 0;
}
CHILD(read_destroyed_array) {
  CUcontext context = nullptr;
  CUarray array = nullptr;
  CUtexObject texture = 0;
  float texel[4];
  const CUDA_ARRAY3D_DESCRIPTOR shape = ArrayShape(8, 4, 0);
  RAW(cuInit)(0);
  RAW(cuCtxCreate)(&context, nullptr, 0, 0);
  RAW(cuArray3DCreate)(&array, &shape);
  Make(&texture, Of(array));
  RAW(cuArrayDestroy)(array);
  Sim::ReadTexture(texture, 0, 0, texel);
  return 0;
}

// A texture of `resource` is made as `sampling` says, and read.
CUresult ReadThrough(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& sampling) {
  CUtexObject texture = 0;
  float texel[4] = {1, 1, 1, 1};
  OK(Make(&texture, resource, sampling));
  const CUresult code = Sim::ReadTexture(texture, 0, 0, texel);
  BOOST_TEST((texel[0] == 0 && texel[3] == 0));
  OK(RAW(cuTexObjectDestroy)(texture));
  return code;
}

BOOST_AUTO_TEST_CASE(other_ways_to_read_are_not_supported, *OnlySim()) {
  const Studio studio;
  const OwnArray array(ArrayShape(8, 4, 0));
  const OwnArray bytes(ArrayShape(8, 4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8));
  CUmipmappedArray mipmap = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR shape = ArrayShape(4, 4, 0);
  OK(RAW(cuMipmappedArrayCreate)(&mipmap, &shape, 2));
  Sim::ResetCalls();
  IS(ReadThrough(Of(array.get()), Sampling(kClamp, 0, CU_TR_FILTER_MODE_LINEAR)), NOT_SUPPORTED);
  IS(ReadThrough(Of(array.get()), Sampling(kClamp, kNormalized)), NOT_SUPPORTED);
  IS(ReadThrough(Of(array.get()), Sampling(kBorder)), NOT_SUPPORTED);
  IS(ReadThrough(Of(bytes.get()), Sampling()), NOT_SUPPORTED);
  IS(ReadThrough(Of(mipmap), Sampling()), NOT_SUPPORTED);
  BOOST_TEST(Sim::UnmodelledCalls("Sim::ReadTexture") == 5u);
  OK(ReadThrough(Of(array.get()), Sampling()));
  BOOST_TEST(Sim::UnmodelledCalls() == 5u);
  OK(RAW(cuMipmappedArrayDestroy)(mipmap));
}

BOOST_AUTO_TEST_CASE(garbage_panics, *OnlySim()) {
  const auto check = [](const char* child, const std::string& text) {
    const cudasim_test::Ended ended = cudasim_test::RunChild(child);
    BOOST_TEST(ended.code == -SIGABRT, child);
    BOOST_TEST((ended.output.find(text) != std::string::npos), child << ": " << ended.output);
  };
  check("read_nothing", "which its context does not have");
  check("read_destroyed_array", "whose array was destroyed");
}

BOOST_AUTO_TEST_SUITE_END()
