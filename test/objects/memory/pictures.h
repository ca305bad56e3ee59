// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests of texture and surface objects share: pictures, the kernels of sample.cu that read and
// write them, and their host functions on the simulation.

#ifndef CUGUEST_TEST_OBJECTS_MEMORY_PICTURES_H_
#define CUGUEST_TEST_OBJECTS_MEMORY_PICTURES_H_

#include <cstring>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/objects/array.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/typed_kernel.h"
#include "kernels/sample.h"
#include "test/objects/memory/memories.h"
#include "test/support/arrays.h"

namespace cuguest_test {

using Floats = std::vector<float>;

inline constexpr unsigned kPictureWidth = 4;
inline constexpr unsigned kPictureHeight = 3;
inline constexpr size_t kPictureSize = size_t{kPictureWidth} * kPictureHeight;
inline constexpr CUDA_ARRAY3D_DESCRIPTOR kPicture = {
    kPictureWidth, kPictureHeight, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};

inline cuguest::Array Picture(const Owner& owner, float first = 1,
                              const CUDA_ARRAY3D_DESCRIPTOR& shape = kPicture) {
  absl::StatusOr<cuguest::Array> array = cuguest::Array::Create(owner.ref(), shape);
  BOOST_TEST_REQUIRE(array.ok(), array.status().ToString());
  const Floats values = Counting(kPictureSize, first);
  SUCCEEDS(Upload(*array, cuguest::HostSpan<const float>(values)));
  return *std::move(array);
}

inline Floats Pixels(const cuguest::Array& picture) {
  Floats values(kPictureSize);
  SUCCEEDS(Download(picture, cuguest::HostSpan<float>(values)));
  return values;
}

struct alignas(8) Point {
  float x, y;
};
struct alignas(16) Texel {
  float x, y, z, w;
};

// The kernels in one context.
class Studio {
 public:
  explicit Studio(const Owner& owner)
      : stream_(cuguest::StreamRef::Borrow(owner.stream(), owner.ref())),
        module_((Register(), Load(owner.ref()))),
        at_(cuguest::DeviceBuffer<Point>::Allocate(owner.ref(), kPictureSize).value()),
        texels_(cuguest::DeviceBuffer<Texel>::Allocate(owner.ref(), kPictureSize).value()) {}

  // The first channel of every element, in the middle of it.
  Floats Sample(CUtexObject texture) {
    std::vector<Point> points;
    for (unsigned i = 0; i < kPictureSize; ++i) {
      points.push_back({static_cast<float>(i % kPictureWidth) + 0.5F,
                        static_cast<float>(i / kPictureWidth) + 0.5F});
    }
    SUCCEEDS(Upload(at_.view(), cuguest::HostSpan<const Point>(points)));
    SUCCEEDS(Of<SampleKernel>("sample").Launch({1, kPictureSize}, stream_, texture, kPictureSize,
                                               at_.view(), texels_.view()));
    SUCCEEDS(stream_.Synchronize());
    Floats values;
    const std::vector<Texel> texels = Download(texels_.view()).value();
    for (const Texel& texel : texels) values.push_back(texel.x);
    return values;
  }

  void Paint(CUsurfObject surface, float first) {
    SUCCEEDS(Of<PaintKernel>("paint").Launch({1, {kPictureWidth, kPictureHeight}}, stream_, surface,
                                             kPictureWidth, kPictureHeight, first));
    SUCCEEDS(stream_.Synchronize());
  }

 private:
  using SampleKernel = cuguest::TypedKernel<void(
      CUtexObject, unsigned, cuguest::DevicePtr<const Point>, cuguest::DevicePtr<Texel>)>;
  using PaintKernel = cuguest::TypedKernel<void(CUsurfObject, unsigned, unsigned, float)>;

  template <typename T>
  static T Parameter(const cudasim::SimLaunch& launch, size_t index) {
    T value;
    std::memcpy(&value, launch.parameters[index], sizeof(value));
    return value;
  }

  static void Register() {
    using cudasim::Sim;
    using cudasim::SimLaunch;
    Sim::RegisterKernel("sample", [](const SimLaunch& launch) {
      const auto* const at = Parameter<const Point*>(launch, 2);
      auto* const texels = Parameter<Texel*>(launch, 3);
      for (unsigned i = 0; i < Parameter<unsigned>(launch, 1); ++i) {
        Sim::ReadTexture(Parameter<CUtexObject>(launch, 0), at[i].x, at[i].y, &texels[i].x);
      }
      return CUDA_SUCCESS;
    });
    Sim::RegisterKernel("paint", [](const SimLaunch& launch) {
      auto value = Parameter<float>(launch, 3);
      for (unsigned y = 0; y < Parameter<unsigned>(launch, 2); ++y) {
        for (unsigned x = 0; x < Parameter<unsigned>(launch, 1); ++x, ++value) {
          const CUresult code = Sim::WriteSurface(Parameter<CUsurfObject>(launch, 0),
                                                  x * sizeof(float), y, &value, sizeof(value));
          if (code != CUDA_SUCCESS) return code;
        }
      }
      return CUDA_SUCCESS;
    });
  }

  static cuguest::Module Load(const cuguest::ContextRef& context) {
    using cuguest::CodeImage;
    return cuguest::Module::LoadIn(context, CodeImage::Borrow({cuguest_kernels::sample_fatbin,
                                                               cuguest_kernels::sample_fatbin_size},
                                                              "sample.fatbin")
                                                .value())
        .value();
  }

  template <typename Typed>
  Typed Of(const char* name) const {
    return Typed::Of(module_.GetKernel(name).value());
  }

  cuguest::StreamRef stream_;
  cuguest::Module module_;
  cuguest::DeviceBuffer<Point> at_;
  cuguest::DeviceBuffer<Texel> texels_;
};

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_OBJECTS_MEMORY_PICTURES_H_
