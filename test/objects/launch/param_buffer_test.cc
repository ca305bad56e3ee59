// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/param_buffer.h"

#include <cuda.h>
#include <vector_types.h>

#include <cstring>
#include <vector>

#include "cuguest/objects/device_ptr.h"
#include "kernels/layout_types.h"
#include "test/objects/launch/params.h"

BOOST_AUTO_TEST_SUITE(param_buffer)

namespace {

using cuguest::DevicePtr;
using cuguest::ParamBuffer;
using cuguest::ParamTraits;
using cuguest_launches::Packed;
using cuguest_launches::Quad;
using Bytes = std::vector<unsigned char>;
using Places = std::vector<cuguest::Kernel::Parameter>;

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
#define CUGUEST_HOLDS_TO_THE_TABLE(Type, Scalar, elements, alignment) \
  static_assert(sizeof(Type) == (elements) * sizeof(Scalar));         \
  static_assert(ParamTraits<Type>::kAlignment == (alignment));
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

Bytes BytesOf(const ParamBuffer& params) {
  return Bytes(params.data(), params.data() + params.size());
}

Places PlacesOf(const ParamBuffer& params) {
  return Places(params.parameters().begin(), params.parameters().end());
}

template <typename T>
T At(const Bytes& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_guides_list) {
  const float4 f4 = {1, 2, 3, 4};
  const float2 f2 = {5, 6};
  const DevicePtr<int> pointer(CUdeviceptr{0x123456789abcdef0});
  const ParamBuffer params = Packed(7, f4, 'c', 8.5F, pointer, f2);
  const Bytes bytes = BytesOf(params);
  BOOST_TEST_REQUIRE(bytes.size() == 56u);
  BOOST_TEST(At<int>(bytes, 0) == 7);
  BOOST_TEST(At<float>(bytes, 16) == 1);
  BOOST_TEST(At<float>(bytes, 28) == 4);
  BOOST_TEST(At<char>(bytes, 32) == 'c');
  BOOST_TEST(At<float>(bytes, 36) == 8.5F);
  BOOST_TEST(At<CUdeviceptr>(bytes, 40) == 0x123456789abcdef0u);
  BOOST_TEST(At<float>(bytes, 52) == 6);
  const Places places = {{0, 4}, {16, 16}, {32, 1}, {36, 4}, {40, 8}, {48, 8}};
  BOOST_TEST((PlacesOf(params) == places));
}

// So that a launch reads them with the object, and making them allocates nothing.
BOOST_AUTO_TEST_CASE(few_parameters_are_in_the_object) {
  const ParamBuffer params = Packed(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0);
  const auto is_inside = [&params](const void* pointer) {
    const auto* const begin = reinterpret_cast<const char*>(&params);
    const auto* const at = static_cast<const char*>(pointer);
    return at >= begin && at < begin + sizeof(params);
  };
  BOOST_TEST(is_inside(params.data()));
  BOOST_TEST(is_inside(params.parameters().data()));
}

BOOST_AUTO_TEST_CASE(alignment_is_that_of_the_traits) {
  BOOST_TEST((PlacesOf(Packed('c', Quad())) == Places{{0, 1}, {16, 16}}));
  BOOST_TEST(Packed(1.0, 'c').size() == 9u, "no padding behind the last");
}

BOOST_AUTO_TEST_CASE(what_it_has_already_is_added_again) {
  ParamBuffer params = Packed(std::uint64_t{0x1122334455667788});
  for (std::size_t i = 1; i <= 100; ++i) {
    SUCCEEDS(params.AddBytes(params.data() + 8 * (i - 1), 8, 8));
    SUCCEEDS(params.Add(*reinterpret_cast<const std::uint64_t*>(params.data())));
    BOOST_TEST(At<std::uint64_t>(BytesOf(params), 16 * i - 8) == 0x1122334455667788u);
    BOOST_TEST(At<std::uint64_t>(BytesOf(params), 16 * i) == 0x1122334455667788u);
  }
  // Both ends of what is written are in it.
  SUCCEEDS(params.AddBytes(params.data(), params.size(), 8));
  BOOST_TEST(At<std::uint64_t>(BytesOf(params), 2 * 201 * 8 - 8) == 0x1122334455667788u);
}

BOOST_AUTO_TEST_CASE(what_lies_between_is_zero) {
  ParamBuffer params = Packed(~std::uint64_t{0}, ~std::uint64_t{0});
  params.Clear();
  SUCCEEDS(params.Add('x'));
  SUCCEEDS(params.Add(1.0));
  for (std::size_t i = 1; i < 8; ++i) BOOST_TEST(params.data()[i] == 0);
}

BOOST_AUTO_TEST_CASE(of_nothing) {
  const ParamBuffer none;
  BOOST_TEST(none.size() == 0u);
  BOOST_TEST(none.parameters().size() == 0u);
}

BOOST_AUTO_TEST_CASE(types_that_are_known_at_run_time_alone) {
  ParamBuffer params;
  const char c = 'c';
  const float values[4] = {1, 2, 3, 4};
  SUCCEEDS(params.AddBytes(&c, 1, 1));
  SUCCEEDS(params.AddBytes(values, sizeof(values), 16));
  const float4 f4 = {1, 2, 3, 4};
  BOOST_TEST(BytesOf(params) == BytesOf(Packed('c', f4)));
}

BOOST_AUTO_TEST_CASE(more_alignment_than_can_be_packed) {
  ParamBuffer params = Packed(float4());
  BOOST_TEST(params.can_be_packed());
  const unsigned char bytes[32] = {};
  SUCCEEDS(params.AddBytes(bytes, 32, 32));
  SUCCEEDS(params.Add(1.0F));
  BOOST_TEST(!params.can_be_packed());
  params.Clear();
  BOOST_TEST(params.can_be_packed());
}

BOOST_AUTO_TEST_CASE(bad_bytes_add_nothing) {
  ParamBuffer params = Packed('c');
  const double d = 0;
  REFUSES(params.AddBytes(nullptr, 8, 8), kInvalidArgument, "parameter 2", "at least one byte");
  REFUSES(params.AddBytes(&d, 0, 8), kInvalidArgument, "0 bytes");
  REFUSES(params.AddBytes(&d, 8, 0), kInvalidArgument, "aligned to 0", "power of two");
  REFUSES(params.AddBytes(&d, 6, 3), kInvalidArgument, "aligned to 3", "power of two");
  REFUSES(params.AddBytes(&d, 4, 8), kInvalidArgument, "4 bytes, aligned to 8", "multiple");
  BOOST_TEST(params.size() == 1u);
  BOOST_TEST((PlacesOf(params) == Places{{0, 1}}));
}

BOOST_AUTO_TEST_CASE(more_than_a_kernel_takes) {
  const Bytes bytes(ParamBuffer::kMaxBytes + 8);
  ParamBuffer params;
  REFUSES(params.AddBytes(bytes.data(), bytes.size(), 1), kOutOfRange, "32764");
  SUCCEEDS(params.AddBytes(bytes.data(), ParamBuffer::kMaxBytes - 1, 1));
  REFUSES(params.Add(short{0}), kOutOfRange, "parameter 2", "32764", "pointer");
  REFUSES(params.AddBytes(bytes.data(), std::size_t{1} << 63, std::size_t{1} << 63), kOutOfRange,
          "32764");
  BOOST_TEST(params.size() == ParamBuffer::kMaxBytes - 1);
  SUCCEEDS(params.Add('c'));
  BOOST_TEST(params.size() == ParamBuffer::kMaxBytes);
}

BOOST_AUTO_TEST_SUITE_END()
