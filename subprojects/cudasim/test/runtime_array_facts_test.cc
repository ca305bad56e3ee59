// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays, copies of rows, texture and surface objects through the runtime, and what the
// driver says of them.

#include "test/runtime_facts.h"

BOOST_AUTO_TEST_SUITE(runtime_array_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kWidth = 16;
constexpr size_t kHeight = 8;
constexpr size_t kRow = kWidth * sizeof(float);
constexpr cudaChannelFormatDesc kFloat = {32, 0, 0, 0, cudaChannelFormatKindFloat};

struct Picture {
  Picture() {
    for (size_t i = 0; i < kWidth * kHeight; ++i) values[i] = static_cast<float>(i);
  }
  float values[kWidth * kHeight] = {};
};

// An array of floats in the current context.
struct Array {
  explicit Array(unsigned flags = cudaArrayDefault) {
    RT_OK(cudaMallocArray(&array, &kFloat, kWidth, kHeight, flags));
  }
  ~Array() { RT_OK(cudaFreeArray(array)); }
  cudaResourceDesc Resource() const {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
  }
  cudaArray_t array = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_array_is_described_by_both_apis) {
  const Retained retained;
  const Array array;
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
  cudaChannelFormatDesc channel = {};
  cudaExtent extent = {};
  unsigned flags = 9;
  RT_OK(cudaArrayGetInfo(&channel, &extent, &flags, array.array));
  BOOST_TEST(channel.x == 32);
  BOOST_TEST(channel.y == 0);
  BOOST_CHECK_EQUAL(channel.f, cudaChannelFormatKindFloat);
  BOOST_TEST(extent.width == kWidth);
  BOOST_TEST(extent.height == kHeight);
  BOOST_TEST(extent.depth == 0u);
  BOOST_TEST(flags == 0u);
  RT_OK(cudaArrayGetInfo(nullptr, nullptr, nullptr, array.array));
  CUDA_ARRAY_DESCRIPTOR description = {};
  OK(RAW(cuArrayGetDescriptor)(&description, reinterpret_cast<CUarray>(array.array)));
  BOOST_TEST(description.Width == kWidth);
  BOOST_TEST(description.Height == kHeight);
  BOOST_CHECK_EQUAL(description.Format, CU_AD_FORMAT_FLOAT);
}

BOOST_AUTO_TEST_CASE(bad_arrays_are_refused) {
  const Retained retained;
  SetStack({PrimaryHandle()});
  const cudaChannelFormatDesc odd = {7, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t array = nullptr;
  cudaMipmappedArray_t mipmapped = nullptr;
  cudaChannelFormatDesc channel;
  RT_IS(cudaMallocArray(&array, &odd, 16, 16, 0), InvalidChannelDescriptor);
  RT_IS(cudaMallocArray(nullptr, &kFloat, 16, 16, 0), InvalidValue);
  RT_IS(cudaMallocArray(&array, nullptr, 16, 16, 0), InvalidValue);
  RT_IS(cudaMallocArray(&array, &kFloat, 0, 0, 0), InvalidValue);
  RT_IS(cudaArrayGetInfo(&channel, nullptr, nullptr, nullptr), InvalidResourceHandle);
  RT_IS(cudaGetChannelDesc(&channel, nullptr), InvalidResourceHandle);
  RT_IS(cudaGetMipmappedArrayLevel(&array, nullptr, 0), InvalidResourceHandle);
  RT_OK(cudaFreeArray(nullptr));
  RT_OK(cudaFreeMipmappedArray(nullptr));
  RT_OK(cudaMallocMipmappedArray(&mipmapped, &kFloat, cudaExtent{16, 16, 0}, 3, 0));
  RT_OK(cudaGetMipmappedArrayLevel(&array, mipmapped, 2));
  RT_IS(cudaGetMipmappedArrayLevel(&array, mipmapped, 9), InvalidValue);
  RT_OK(cudaFreeMipmappedArray(mipmapped));
}

BOOST_AUTO_TEST_CASE(a_question_binds_nothing_or_the_primary) {
  const Retained retained;
  SetStack({PrimaryHandle()});
  const Array array;
  cudaChannelFormatDesc channel;
  SetStack({});
  RT_OK(cudaArrayGetInfo(&channel, nullptr, nullptr, array.array));
  BOOST_CHECK(GetStack().empty());
  RT_OK(cudaGetChannelDesc(&channel, array.array));
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
}

BOOST_AUTO_TEST_CASE(rows_travel_through_an_array_of_another_context) {
  const Retained retained;
  const OwnContext a;
  const Picture sent;
  Picture received;
  std::memset(received.values, 0, sizeof(received.values));
  SetStack({a.get()});
  const Array array;
  SetStack({PrimaryHandle()});
  RT_OK(cudaMemcpy2DToArray(array.array, 0, 0, sent.values, kRow, kRow, kHeight,
                            cudaMemcpyHostToDevice));
  RT_OK(cudaMemcpy2DFromArray(received.values, kRow, array.array, 0, 0, kRow, kHeight,
                              cudaMemcpyDefault));
  BOOST_TEST(std::memcmp(sent.values, received.values, sizeof(sent.values)) == 0);
  cudaMemcpy3DParms parameters = {};
  parameters.srcArray = array.array;
  parameters.srcPos = {4, 1, 0};  // elements, rows
  parameters.dstPtr = {received.values, kRow, kRow, kHeight};
  parameters.extent = {2, 1, 1};
  parameters.kind = cudaMemcpyDeviceToHost;
  RT_OK(cudaMemcpy3D(&parameters));
  BOOST_TEST(received.values[0] == sent.values[kWidth + 4]);
  SetStack({a.get()});
}

BOOST_AUTO_TEST_CASE(bad_rows_are_refused) {
  const Retained retained;
  const Picture picture;
  Picture other;
  const Array array;
  void* memory = nullptr;
  RT_OK(cudaMalloc(&memory, sizeof(picture.values)));
  const auto to_array = [&](size_t x, size_t y, const void* from, size_t pitch, int kind) {
    return cudaMemcpy2DToArray(array.array, x, y, from, pitch, kRow, kHeight,
                               OutOfRange<cudaMemcpyKind>(kind));
  };
  RT_IS(to_array(4, 0, picture.values, kRow, cudaMemcpyHostToDevice), InvalidValue);
  RT_IS(to_array(0, 1, picture.values, kRow, cudaMemcpyHostToDevice), InvalidValue);
  RT_IS(to_array(0, 0, nullptr, kRow, cudaMemcpyHostToDevice), InvalidValue);
  RT_IS(to_array(0, 0, picture.values, 32, cudaMemcpyHostToDevice), InvalidPitchValue);
  RT_IS(to_array(0, 0, picture.values, kRow, 9), InvalidMemcpyDirection);
  RT_IS(cudaMemcpy2DFromArray(other.values, kRow, array.array, 0, 0, kRow, kHeight,
                              cudaMemcpyHostToDevice),
        InvalidMemcpyDirection);
  RT_IS(cudaMemcpy2DToArray(nullptr, 0, 0, picture.values, kRow, 16, 2, cudaMemcpyHostToDevice),
        InvalidResourceHandle);
  RT_IS(cudaMemcpy2D(memory, 16, picture.values, kRow, 32, 4, cudaMemcpyHostToDevice),
        InvalidPitchValue);
  RT_OK(cudaMemcpy2D(memory, kRow, picture.values, kRow, 0, 4, cudaMemcpyHostToDevice));
  RT_IS(cudaMemset2D(memory, 16, 0, 32, 4), InvalidValue);
  RT_OK(cudaMemset2D(memory, kRow, 0, 32, 4));
  RT_IS(cudaMemcpy3D(nullptr), InvalidValue);
  cudaMemcpy3DParms parameters = {};
  RT_OK(cudaMemcpy3D(&parameters));
  parameters.extent = {kWidth + 1, kHeight, 1};
  parameters.srcPtr = {other.values, kRow, kRow, kHeight};
  parameters.dstArray = array.array;
  parameters.kind = cudaMemcpyHostToDevice;
  RT_IS(cudaMemcpy3D(&parameters), InvalidValue);
  parameters.extent.width = kWidth;
  RT_OK(cudaMemcpy3D(&parameters));
  parameters.srcArray = array.array;
  RT_IS(cudaMemcpy3D(&parameters), InvalidValue);
  RT_OK(cudaFree(memory));
}

BOOST_AUTO_TEST_CASE(texture_and_surface_objects_say_what_they_show) {
  const Retained retained;
  SetStack({PrimaryHandle()});
  const Array array;
  const Array writable(cudaArraySurfaceLoadStore);
  cudaTextureObject_t texture = 0;
  cudaSurfaceObject_t surface = 0;
  cudaResourceDesc resource = array.Resource();
  cudaTextureDesc description = {};
  cudaResourceDesc found = {};
  RT_OK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  RT_OK(cudaGetTextureObjectResourceDesc(&found, texture));
  BOOST_CHECK(found.res.array.array == array.array);
  RT_OK(cudaGetTextureObjectTextureDesc(&description, texture));
  CUDA_RESOURCE_DESC driver = {};
  OK(RAW(cuTexObjectGetResourceDesc)(&driver, texture));
  BOOST_CHECK(driver.res.array.hArray == reinterpret_cast<CUarray>(array.array));
  RT_OK(cudaDestroyTextureObject(texture));
  RT_OK(cudaDestroyTextureObject(0));
  RT_IS(cudaCreateTextureObject(nullptr, &resource, &description, nullptr), InvalidValue);
  RT_IS(cudaCreateTextureObject(&texture, nullptr, &description, nullptr), InvalidValue);
  RT_IS(cudaCreateTextureObject(&texture, &resource, nullptr, nullptr), InvalidResourceHandle);
  description.readMode = cudaReadModeNormalizedFloat;
  RT_IS(cudaCreateTextureObject(&texture, &resource, &description, nullptr), InvalidNormSetting);
  resource = writable.Resource();
  RT_OK(cudaCreateSurfaceObject(&surface, &resource));
  RT_OK(cudaGetSurfaceObjectResourceDesc(&found, surface));
  BOOST_CHECK(found.res.array.array == writable.array);
  RT_OK(cudaDestroySurfaceObject(surface));
  RT_OK(cudaDestroySurfaceObject(0));
}

// An object belongs to its context: here it is not seen, and there is no making one.
BOOST_AUTO_TEST_CASE(a_texture_object_of_another_context_is_unknown) {
  const Retained retained;
  const OwnContext a;
  SetStack({a.get()});
  const Array array;
  cudaTextureObject_t texture = 0;
  cudaTextureObject_t other = 0;
  cudaResourceDesc resource = array.Resource();
  const cudaTextureDesc description = {};
  cudaResourceDesc found;
  RT_OK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  SetStack({PrimaryHandle()});
  RT_IS(cudaGetTextureObjectResourceDesc(&found, texture), InvalidValue);
  RT_IS(cudaCreateTextureObject(&other, &resource, &description, nullptr), PeerAccessNotEnabled);
  SetStack({a.get()});
  RT_OK(cudaDestroyTextureObject(texture));
}

BOOST_AUTO_TEST_SUITE_END()
