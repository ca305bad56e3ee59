// SPDX-License-Identifier: Apache-2.0
//
// Texture and surface objects, over arrays that the other API made and filled.

#include "cuguest/runtime/texture.h"

#include <numeric>

#include "cuguest/runtime/array.h"
#include "cuguest/runtime/function.h"
#include "cuguest/testing/sim.h"
#include "test/runtime/everywhere.h"
#include "test/runtime/kernels.h"

namespace {

using namespace cuguest_runtime_test;
using cuguest::runtime::FunctionOf;
using cuguest::runtime::SurfaceToDriver;
using cuguest::runtime::SurfaceToRuntime;
using cuguest::runtime::TextureToDriver;
using cuguest::runtime::TextureToRuntime;
using cuguest::runtime::ToDriver;
using cuguest::runtime::ToRuntime;
using cuguest::testing::Sim;
using cuguest::testing::SimLaunch;

unsigned kWidth = 8;  // not constant: kernels take their addresses
unsigned kHeight = 4;
size_t Pitch() { return kWidth * sizeof(float); }

template <typename T>
T Parameter(const SimLaunch& launch, size_t index) {
  return *static_cast<const T*>(launch.parameters[index]);
}

CUresult Sample(const SimLaunch& launch) {
  auto* const texels = Parameter<float*>(launch, 1);
  const auto width = Parameter<unsigned>(launch, 2);
  for (unsigned y = 0; y < Parameter<unsigned>(launch, 3); ++y) {
    for (unsigned x = 0; x < width; ++x) {
      float texel[4] = {};
      Sim::ReadTexture(Parameter<CUtexObject>(launch, 0), static_cast<float>(x),
                       static_cast<float>(y), texel);
      texels[y * width + x] = texel[0];
    }
  }
  return CUDA_SUCCESS;
}

CUresult Paint(const SimLaunch& launch) {
  for (unsigned y = 0; y < Parameter<unsigned>(launch, 2); ++y) {
    for (unsigned x = 0; x < Parameter<unsigned>(launch, 1); ++x) {
      const float value = 100.0F * static_cast<float>(y) + static_cast<float>(x);
      const CUresult code = Sim::WriteSurface(Parameter<CUsurfObject>(launch, 0), x * sizeof(float),
                                              y, &value, sizeof(value));
      if (code != CUDA_SUCCESS) return code;
    }
  }
  return CUDA_SUCCESS;
}

struct Kernels {
  Kernels() {
    Sim::RegisterKernel("bridge_sample", &Sample);
    Sim::RegisterKernel("bridge_paint", &Paint);
  }
};

std::vector<float> Picture() {
  std::vector<float> picture(kWidth * kHeight);
  std::iota(picture.begin(), picture.end(), 0.5F);
  return picture;
}

std::vector<float> Painting() {
  std::vector<float> picture;
  for (unsigned y = 0; y < kHeight; ++y) {
    for (unsigned x = 0; x < kWidth; ++x) picture.push_back(100.0F * float(y) + float(x));
  }
  return picture;
}

CUarray ArrayByDriver() {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  descriptor.Width = kWidth;
  descriptor.Height = kHeight;
  descriptor.Format = CU_AD_FORMAT_FLOAT;
  descriptor.NumChannels = 1;
  descriptor.Flags = CUDA_ARRAY3D_SURFACE_LDST;
  CUarray array = nullptr;
  OK(RAW(cuArray3DCreate)(&array, &descriptor));
  return array;
}

cudaArray_t ArrayByRuntime() {
  const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t array = nullptr;
  RUNTIME_OK(cudaMallocArray(&array, &format, kWidth, kHeight, cudaArraySurfaceLoadStore));
  return array;
}

void FillByDriver(CUarray array) {
  const auto picture = Picture();
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = picture.data();
  copy.srcPitch = Pitch();
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = Pitch();
  copy.Height = kHeight;
  OK(RAW(cuMemcpy2D)(&copy));
}

void FillByRuntime(cudaArray_t array) {
  const auto picture = Picture();
  RUNTIME_OK(cudaMemcpy2DToArray(array, 0, 0, picture.data(), Pitch(), Pitch(), kHeight,
                                 cudaMemcpyHostToDevice));
}

std::vector<float> ReadByDriver(CUarray array) {
  std::vector<float> picture(kWidth * kHeight);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = picture.data();
  copy.dstPitch = Pitch();
  copy.WidthInBytes = Pitch();
  copy.Height = kHeight;
  OK(RAW(cuMemcpy2D)(&copy));
  return picture;
}

std::vector<float> ReadByRuntime(cudaArray_t array) {
  std::vector<float> picture(kWidth * kHeight);
  RUNTIME_OK(cudaMemcpy2DFromArray(picture.data(), Pitch(), array, 0, 0, Pitch(), kHeight,
                                   cudaMemcpyDeviceToHost));
  return picture;
}

// What the launch of bridge_sample wrote. `launch` is given the texels.
template <typename Launch>
std::vector<float> Sampled(const Launch& launch) {
  std::vector<float> picture(kWidth * kHeight);
  CUdeviceptr texels = 0;
  OK(RAW(cuMemAlloc)(&texels, picture.size() * sizeof(float)));
  launch(&texels);
  OK(RAW(cuCtxSynchronize)());
  OK(RAW(cuMemcpyDtoH)(picture.data(), texels, picture.size() * sizeof(float)));
  OK(RAW(cuMemFree)(texels));
  return picture;
}

void LaunchByDriver(const void* symbol, void** arguments) {
  const auto function = FunctionOf(symbol, ContextRef::Current());
  BOOST_TEST_REQUIRE(function.ok(), function.status().ToString());
  OK(RAW(cuLaunchKernel)(*function, 1, 1, 1, kWidth, kHeight, 1, 0, nullptr, arguments, nullptr));
}

void LaunchByRuntime(const void* symbol, void** arguments) {
  RUNTIME_OK(
      cudaLaunchKernel(symbol, dim3{1, 1, 1}, dim3{kWidth, kHeight, 1}, arguments, 0, nullptr));
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(texture, Kernels)

// The array is the runtime's, the object the driver's, the kernel and the end the runtime's.
BOOST_AUTO_TEST_CASE(texture_driver_to_runtime) {
  const auto make = [] {
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    const cudaArray_t array = ArrayByRuntime();
    FillByRuntime(array);
    resource.res.array.hArray = ToDriver(array);
    CUDA_TEXTURE_DESC description = {};
    CUtexObject texture = 0;
    OK(RAW(cuTexObjectCreate)(&texture, &resource, &description, nullptr));
    return texture;
  };
  Everywhere(make, [](CUtexObject made) {
    cudaTextureObject_t texture = TextureToRuntime(made);
    BOOST_TEST((Sampled([&](void* texels) {
                  void* arguments[] = {&texture, texels, &kWidth, &kHeight};
                  LaunchByRuntime(SampleSymbol(), arguments);
                }) == Picture()));
    cudaResourceDesc resource = {};
    RUNTIME_OK(cudaGetTextureObjectResourceDesc(&resource, texture));
    RUNTIME_OK(cudaDestroyTextureObject(texture));
    RUNTIME_OK(cudaFreeArray(resource.res.array.array));
  });
}

BOOST_AUTO_TEST_CASE(texture_runtime_to_driver) {
  const auto make = [] {
    const CUarray array = ArrayByDriver();
    FillByDriver(array);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = ToRuntime(array);
    cudaTextureDesc description = {};
    cudaTextureObject_t texture = 0;
    RUNTIME_OK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    return texture;
  };
  Everywhere(make, [](cudaTextureObject_t made) {
    CUtexObject texture = TextureToDriver(made);
    BOOST_TEST((Sampled([&](void* texels) {
                  void* arguments[] = {&texture, texels, &kWidth, &kHeight};
                  LaunchByDriver(SampleSymbol(), arguments);
                }) == Picture()));
    CUDA_RESOURCE_DESC resource = {};
    OK(RAW(cuTexObjectGetResourceDesc)(&resource, texture));
    OK(RAW(cuTexObjectDestroy)(texture));
    OK(RAW(cuArrayDestroy)(resource.res.array.hArray));
  });
}

BOOST_AUTO_TEST_CASE(surface_driver_to_runtime) {
  const auto make = [] {
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = ToDriver(ArrayByRuntime());
    CUsurfObject surface = 0;
    OK(RAW(cuSurfObjectCreate)(&surface, &resource));
    return surface;
  };
  Everywhere(make, [](CUsurfObject made) {
    cudaSurfaceObject_t surface = SurfaceToRuntime(made);
    void* arguments[] = {&surface, &kWidth, &kHeight};
    LaunchByRuntime(PaintSymbol(), arguments);
    RUNTIME_OK(cudaStreamSynchronize(nullptr));
    cudaResourceDesc resource = {};
    RUNTIME_OK(cudaGetSurfaceObjectResourceDesc(&resource, surface));
    BOOST_TEST(ReadByRuntime(resource.res.array.array) == Painting());
    RUNTIME_OK(cudaDestroySurfaceObject(surface));
    RUNTIME_OK(cudaFreeArray(resource.res.array.array));
  });
}

BOOST_AUTO_TEST_CASE(surface_runtime_to_driver) {
  const auto make = [] {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = ToRuntime(ArrayByDriver());
    cudaSurfaceObject_t surface = 0;
    RUNTIME_OK(cudaCreateSurfaceObject(&surface, &resource));
    return surface;
  };
  Everywhere(make, [](cudaSurfaceObject_t made) {
    CUsurfObject surface = SurfaceToDriver(made);
    void* arguments[] = {&surface, &kWidth, &kHeight};
    LaunchByDriver(PaintSymbol(), arguments);
    OK(RAW(cuCtxSynchronize)());
    CUDA_RESOURCE_DESC resource = {};
    OK(RAW(cuSurfObjectGetResourceDesc)(&resource, surface));
    BOOST_TEST(ReadByDriver(resource.res.array.hArray) == Painting());
    OK(RAW(cuSurfObjectDestroy)(surface));
    OK(RAW(cuArrayDestroy)(resource.res.array.hArray));
  });
}

BOOST_AUTO_TEST_CASE(no_object_stays_none) {
  BOOST_TEST(TextureToDriver(0) == 0U);
  BOOST_TEST(TextureToRuntime(0) == 0U);
  BOOST_TEST(SurfaceToDriver(0) == 0U);
  BOOST_TEST(SurfaceToRuntime(0) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
