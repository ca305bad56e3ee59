// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texture and surface objects, over arrays that the other API made and filled.

#include "cuguest/runtime/texture.h"

#include "cudasim/sim.h"
#include "cuguest/runtime/array.h"
#include "cuguest/runtime/function.h"
#include "test/runtime/everywhere.h"
#include "test/runtime/host_kernels.h"
#include "test/runtime/kernels.h"
#include "test/support/arrays.h"

namespace {

using namespace cuguest_runtime_test;
using cudasim::Sim;
using cudasim::SimLaunch;
using cuguest::runtime::FunctionOf;
using cuguest::runtime::SurfaceToDriver;
using cuguest::runtime::SurfaceToRuntime;
using cuguest::runtime::TextureToDriver;
using cuguest::runtime::TextureToRuntime;
using cuguest::runtime::ToDriver;
using cuguest::runtime::ToRuntime;

unsigned kWidth = 8;  // not constant: kernels take their addresses
unsigned kHeight = 4;
size_t Pitch() { return kWidth * sizeof(float); }

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

std::vector<float> Picture() { return cuguest_test::Counting(kWidth * kHeight, 0.5F); }

std::vector<float> Painting() {
  std::vector<float> picture;
  for (unsigned y = 0; y < kHeight; ++y) {
    for (unsigned x = 0; x < kWidth; ++x) picture.push_back(100.0F * float(y) + float(x));
  }
  return picture;
}

CUarray ArrayByDriver() {
  const auto shape = cuguest_test::Shape(kWidth, kHeight, 0, CUDA_ARRAY3D_SURFACE_LDST);
  return cuguest_test::OwnArray(shape).release();
}

cudaArray_t ArrayByRuntime() {
  const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t array = nullptr;
  RT_OK(cudaMallocArray(&array, &format, kWidth, kHeight, cudaArraySurfaceLoadStore));
  return array;
}

void FillByRuntime(cudaArray_t array) {
  const auto picture = Picture();
  RT_OK(cudaMemcpy2DToArray(array, 0, 0, picture.data(), Pitch(), Pitch(), kHeight,
                            cudaMemcpyHostToDevice));
}

std::vector<float> ReadByRuntime(cudaArray_t array) {
  std::vector<float> picture(kWidth * kHeight);
  RT_OK(cudaMemcpy2DFromArray(picture.data(), Pitch(), array, 0, 0, Pitch(), kHeight,
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
  RT_OK(cudaLaunchKernel(symbol, dim3{1, 1, 1}, dim3{kWidth, kHeight, 1}, arguments, 0, nullptr));
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
    RT_OK(cudaGetTextureObjectResourceDesc(&resource, texture));
    RT_OK(cudaDestroyTextureObject(texture));
    RT_OK(cudaFreeArray(resource.res.array.array));
  });
}

BOOST_AUTO_TEST_CASE(texture_runtime_to_driver) {
  const auto make = [] {
    const CUarray array = ArrayByDriver();
    cuguest_test::Write(array, kWidth, kHeight, Picture());
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = ToRuntime(array);
    cudaTextureDesc description = {};
    cudaTextureObject_t texture = 0;
    RT_OK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
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
    RT_OK(cudaStreamSynchronize(nullptr));
    cudaResourceDesc resource = {};
    RT_OK(cudaGetSurfaceObjectResourceDesc(&resource, surface));
    BOOST_TEST(ReadByRuntime(resource.res.array.array) == Painting());
    RT_OK(cudaDestroySurfaceObject(surface));
    RT_OK(cudaFreeArray(resource.res.array.array));
  });
}

BOOST_AUTO_TEST_CASE(surface_runtime_to_driver) {
  const auto make = [] {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = ToRuntime(ArrayByDriver());
    cudaSurfaceObject_t surface = 0;
    RT_OK(cudaCreateSurfaceObject(&surface, &resource));
    return surface;
  };
  Everywhere(make, [](cudaSurfaceObject_t made) {
    CUsurfObject surface = SurfaceToDriver(made);
    void* arguments[] = {&surface, &kWidth, &kHeight};
    LaunchByDriver(PaintSymbol(), arguments);
    OK(RAW(cuCtxSynchronize)());
    CUDA_RESOURCE_DESC resource = {};
    OK(RAW(cuSurfObjectGetResourceDesc)(&resource, surface));
    BOOST_TEST(cuguest_test::Read(resource.res.array.hArray, kWidth, kHeight) == Painting());
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
