// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/param_layout.h"

#include <cuda.h>
#include <vector_types.h>

#include "cuguest/device_ptr.h"
#include "kernels/layout_types.h"
#include "test/launch/quad.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(param_layout)

namespace {

using cuguest::DevicePtr;
using cuguest::DeviceView;
using cuguest::ParamLayout;
using cuguest::ParamTraits;
using cuguest_launches::Quad;

struct Guide {
  float f;
  float4 f4;
};
struct GuideWithoutAlignment {
  float f;
  Quad f4;
};
enum class Small : unsigned char { kOne };

// The guide's table, wherever the vector begins.
#define CUGUEST_HOLDS_TO_THE_TABLE(Type, Scalar, elements, alignment)             \
  static_assert(sizeof(Type) == (elements) * sizeof(Scalar));                     \
  static_assert(ParamTraits<Type>::kAlignment == (alignment));                    \
  static_assert(ParamLayout<char, Type, char>::kPlaces[1].offset == (alignment)); \
  static_assert(ParamLayout<char, Type, char>::kPlaces[1].size == sizeof(Type));  \
  static_assert(ParamLayout<char, Type, char>::kBytes == (alignment) + sizeof(Type) + 1);
CUGUEST_VECTOR_TYPES(CUGUEST_HOLDS_TO_THE_TABLE)
#if CUDA_VERSION >= 13000
CUGUEST_VECTOR_TYPES_WITH_ALIGNMENT(CUGUEST_HOLDS_TO_THE_TABLE)
#endif

// Basic types.
static_assert(ParamTraits<double>::kAlignment == 8);
static_assert(ParamTraits<long long>::kAlignment == 8);
static_assert(ParamTraits<unsigned long>::kAlignment == 8);
static_assert(ParamTraits<CUdeviceptr>::kAlignment == 8);
static_assert(ParamTraits<void*>::kAlignment == 8);
static_assert(ParamTraits<DevicePtr<char>>::kAlignment == 8);
static_assert(ParamTraits<bool>::kAlignment == 1);
static_assert(ParamTraits<Small>::kAlignment == 1);
static_assert(ParamTraits<unsigned short>::kAlignment == 2);
static_assert(ParamTraits<float>::kAlignment == 4);

static_assert(ParamTraits<Guide>::kAlignment == 16 && sizeof(Guide) == 32);
static_assert(ParamTraits<GuideWithoutAlignment>::kAlignment == 4);
static_assert(sizeof(GuideWithoutAlignment) == 20);

using Mixed = ParamLayout<int, float4, char, float, CUdeviceptr, float2>;
static_assert(Mixed::kCount == 6);
static_assert(Mixed::kPlaces[0].offset == 0);
static_assert(Mixed::kPlaces[1].offset == 16);
static_assert(Mixed::kPlaces[2].offset == 32);
static_assert(Mixed::kPlaces[3].offset == 36);
static_assert(Mixed::kPlaces[4].offset == 40);
static_assert(Mixed::kPlaces[5].offset == 48);
static_assert(Mixed::kBytes == 56);

static_assert(ParamLayout<double, char>::kBytes == 9, "no padding behind the last");
static_assert(ParamLayout<char, Quad>::kPlaces[1].offset == 16, "by the specialisation");
static_assert(ParamLayout<char, float4>::View().can_be_packed);
#if CUDA_VERSION >= 13000
static_assert(!ParamLayout<double4_32a, char>::View().can_be_packed, "differs by architecture");
#endif
static_assert(ParamLayout<>::kCount == 0 && ParamLayout<>::kBytes == 0);

// DevicePtr
static_assert(sizeof(DevicePtr<double>) == 8 && alignof(DevicePtr<double>) == 8);
static_assert(std::is_convertible_v<DeviceView<int>, DevicePtr<int>>);
static_assert(std::is_convertible_v<DeviceView<int>, DevicePtr<const int>>);
static_assert(std::is_convertible_v<DeviceView<const int>, DevicePtr<const int>>);
static_assert(std::is_convertible_v<DevicePtr<int>, DevicePtr<const int>>);
static_assert(!std::is_convertible_v<int*, DevicePtr<int>>, "it may be one of the host");
static_assert(std::is_constructible_v<DevicePtr<const int>, int*>);
static_assert(!std::is_convertible_v<DeviceView<const int>, DevicePtr<int>>);
static_assert(!std::is_convertible_v<DevicePtr<const int>, DevicePtr<int>>);
static_assert(!std::is_convertible_v<DeviceView<int>, DevicePtr<unsigned>>);
static_assert(!std::is_convertible_v<CUdeviceptr, DevicePtr<int>>, "a number is not a pointer");
static_assert(std::is_constructible_v<DevicePtr<int>, CUdeviceptr>);
static_assert(std::is_same_v<decltype(DevicePtr(DeviceView<const int>())), DevicePtr<const int>>);
static_assert(std::is_same_v<decltype(DevicePtr(static_cast<int*>(nullptr))), DevicePtr<int>>);

}  // namespace

// What the compiler computes is what the run time adds up; see param_buffer_test.cc.
BOOST_AUTO_TEST_CASE(a_view_shows_the_places) {
  const auto view = Mixed::View();
  BOOST_TEST_REQUIRE(view.count == 6u);
  for (std::size_t i = 0; i < view.count; ++i) {
    BOOST_TEST(view.places[i].offset == Mixed::kPlaces[i].offset);
    BOOST_TEST(view.places[i].size == Mixed::kPlaces[i].size);
  }
  BOOST_TEST(ParamLayout<>::View().count == 0u);
}

BOOST_AUTO_TEST_CASE(a_device_pointer_is_its_address) {
  int value = 0;
  const DevicePtr<int> pointer(&value);
  BOOST_TEST(pointer.data() == &value);
  BOOST_TEST(pointer.get() == reinterpret_cast<CUdeviceptr>(&value));
  BOOST_TEST(DevicePtr<int>(pointer.get()).data() == &value);
  BOOST_TEST(DevicePtr<const int>(pointer).data() == &value);
  BOOST_TEST(DevicePtr<int>().get() == 0u);
  BOOST_TEST(DevicePtr(DeviceView<int>()).get() == 0u, "of an empty view");
}

BOOST_AUTO_TEST_SUITE_END()
