// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/runtime/array.h"

#include "cuguest/status.h"
#include "test/runtime/everywhere.h"
#include "test/support/arrays.h"

BOOST_AUTO_TEST_SUITE(array)

namespace {

using namespace cuguest_runtime_test;
using cuguest::runtime::ToDriver;
using cuguest::runtime::ToRuntime;

constexpr unsigned kWidth = 16;
constexpr unsigned kHeight = 4;
constexpr size_t kPitch = kWidth * sizeof(float);

std::vector<float> Picture() { return cuguest_test::Counting(kWidth * kHeight, 0.5F); }

CUarray MakeByDriver() {
  CUDA_ARRAY_DESCRIPTOR descriptor = {kWidth, kHeight, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  OK(RAW(cuArrayCreate)(&array, &descriptor));
  return array;
}

cudaArray_t MakeByRuntime() {
  const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t array = nullptr;
  RT_OK(cudaMallocArray(&array, &format, kWidth, kHeight, 0));
  return array;
}

constexpr int kLevels = 3;

}  // namespace

BOOST_AUTO_TEST_CASE(array_driver_to_runtime) {
  const auto make = [] {
    const CUarray array = MakeByDriver();
    cuguest_test::Write(array, kWidth, kHeight, Picture());
    return array;
  };
  Everywhere(make, [](CUarray made) {
    const cudaArray_t array = ToRuntime(made);
    cudaChannelFormatDesc format = {};
    cudaExtent extent = {};
    unsigned flags = 1;
    RT_OK(cudaArrayGetInfo(&format, &extent, &flags, array));
    BOOST_TEST(extent.width == kWidth);
    BOOST_TEST(extent.height == kHeight);
    BOOST_CHECK_EQUAL(format.f, cudaChannelFormatKindFloat);
    std::vector<float> picture(kWidth * kHeight);
    RT_OK(cudaMemcpy2DFromArray(picture.data(), kPitch, array, 0, 0, kPitch, kHeight,
                                cudaMemcpyDeviceToHost));
    BOOST_TEST(picture == Picture());
    RT_OK(cudaFreeArray(array));
  });
}

BOOST_AUTO_TEST_CASE(array_runtime_to_driver) {
  const auto make = [] {
    const cudaArray_t array = MakeByRuntime();
    const auto picture = Picture();
    RT_OK(cudaMemcpy2DToArray(array, 0, 0, picture.data(), kPitch, kPitch, kHeight,
                              cudaMemcpyHostToDevice));
    return array;
  };
  Everywhere(make, [](cudaArray_t made) {
    const CUarray array = ToDriver(made);
    CUDA_ARRAY_DESCRIPTOR descriptor = {};
    OK(RAW(cuArrayGetDescriptor)(&descriptor, array));
    BOOST_TEST(descriptor.Width == kWidth);
    BOOST_TEST(descriptor.Height == kHeight);
    BOOST_TEST(descriptor.Format == CU_AD_FORMAT_FLOAT);
    BOOST_TEST(cuguest_test::Read(array, kWidth, kHeight) == Picture());
    OK(RAW(cuArrayDestroy)(array));
  });
}

BOOST_AUTO_TEST_CASE(mipmapped_array_driver_to_runtime) {
  const auto make = [] {
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
    descriptor.Width = kWidth;
    descriptor.Height = kHeight;
    descriptor.Format = CU_AD_FORMAT_FLOAT;
    descriptor.NumChannels = 1;
    CUmipmappedArray array = nullptr;
    OK(RAW(cuMipmappedArrayCreate)(&array, &descriptor, kLevels));
    return array;
  };
  Everywhere(make, [](CUmipmappedArray made) {
    const cudaMipmappedArray_t array = ToRuntime(made);
    cudaArray_t level = nullptr;
    RT_OK(cudaGetMipmappedArrayLevel(&level, array, 1));
    cudaExtent extent = {};
    RT_OK(cudaArrayGetInfo(nullptr, &extent, nullptr, level));
    BOOST_TEST(extent.width == kWidth / 2);
    BOOST_TEST(extent.height == kHeight / 2);
    RT_OK(cudaFreeMipmappedArray(array));
  });
}

BOOST_AUTO_TEST_CASE(mipmapped_array_runtime_to_driver) {
  const auto make = [] {
    const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaMipmappedArray_t array = nullptr;
    RT_OK(cudaMallocMipmappedArray(&array, &format, {kWidth, kHeight, 0}, kLevels, 0));
    return array;
  };
  Everywhere(make, [](cudaMipmappedArray_t made) {
    const CUmipmappedArray array = ToDriver(made);
    CUarray level = nullptr;
    OK(RAW(cuMipmappedArrayGetLevel)(&level, array, 1));
    CUDA_ARRAY_DESCRIPTOR descriptor = {};
    OK(RAW(cuArrayGetDescriptor)(&descriptor, level));
    BOOST_TEST(descriptor.Width == kWidth / 2);
    BOOST_TEST(descriptor.Height == kHeight / 2);
    OK(RAW(cuMipmappedArrayDestroy)(array));
  });
}

BOOST_AUTO_TEST_CASE(null_stays_null) {
  BOOST_TEST(ToDriver(cudaArray_t{nullptr}) == nullptr);
  BOOST_TEST(ToRuntime(CUarray{nullptr}) == nullptr);
  BOOST_TEST(ToDriver(cudaMipmappedArray_t{nullptr}) == nullptr);
  BOOST_TEST(ToRuntime(CUmipmappedArray{nullptr}) == nullptr);
}

// An array of every format, made by the runtime, is what the driver says it should be, and
// the other way round.
BOOST_AUTO_TEST_CASE(both_apis_agree_on_every_format) {
  const OwnContext context;
  SetStack({context.get()});
  for (const auto& row : cuguest::runtime::impl::kFormats) {
    for (const unsigned channels : {1U, 2U, 4U}) {
      if (row.channels != 0 && row.channels != channels) continue;
      BOOST_TEST_CONTEXT("format " << row.format << ", " << channels << " channels") {
        const auto has_format = [&](const CUDA_ARRAY_DESCRIPTOR& array) {
          return array.Format == row.format && array.NumChannels == channels;
        };
        const auto channel_format = ToRuntime(CUDA_ARRAY_DESCRIPTOR{0, 0, row.format, channels});
        BOOST_TEST_REQUIRE(channel_format.ok(), channel_format.status().ToString());
        BOOST_TEST(has_format(ToDriver(*channel_format).value()));

        cudaArray_t by_runtime = nullptr;
        RT_OK(cudaMallocArray(&by_runtime, &*channel_format, kWidth, kHeight, 0));
        CUDA_ARRAY_DESCRIPTOR descriptor = {};
        OK(RAW(cuArrayGetDescriptor)(&descriptor, ToDriver(by_runtime)));
        BOOST_TEST(has_format(descriptor));

        CUarray by_driver = nullptr;
        OK(RAW(cuArrayCreate)(&by_driver, &descriptor));
        cudaChannelFormatDesc said = {};
        RT_OK(cudaGetChannelDesc(&said, ToRuntime(by_driver)));
        BOOST_TEST(has_format(ToDriver(said).value()));
        OK(RAW(cuArrayDestroy)(by_driver));
        RT_OK(cudaFreeArray(by_runtime));
      }
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_format_that_no_array_has_is_refused) {
  const Undisturbed undisturbed;
  const cudaChannelFormatDesc bad[] = {
      {},
      {32, 32, 32, 0, cudaChannelFormatKindFloat},
      {32, 16, 0, 0, cudaChannelFormatKindFloat},
      {32, 0, 32, 0, cudaChannelFormatKindFloat},
      {64, 0, 0, 0, cudaChannelFormatKindUnsigned},
      {8, 0, 0, 0, cudaChannelFormatKindFloat},
      {8, 0, 0, 0, cudaChannelFormatKindUnsignedNormalized8X2},
      {8, 0, 0, 0, cudaChannelFormatKindNone},
  };
  for (const cudaChannelFormatDesc& format : bad) {
    const auto converted = ToDriver(format);
    BOOST_TEST((converted.status().code() == absl::StatusCode::kInvalidArgument));
  }
  const CUDA_ARRAY_DESCRIPTOR worse[] = {{0, 0, CU_AD_FORMAT_FLOAT, 3},
                                         {0, 0, CU_AD_FORMAT_FLOAT, 0},
                                         {0, 0, CU_AD_FORMAT_UNORM_INT8X2, 4},
                                         {0, 0, CU_AD_FORMAT_NV12, 3}};
  for (const CUDA_ARRAY_DESCRIPTOR& array : worse) {
    const auto converted = ToRuntime(array);
    BOOST_TEST((converted.status().code() == absl::StatusCode::kInvalidArgument));
  }
}

BOOST_AUTO_TEST_SUITE_END()
