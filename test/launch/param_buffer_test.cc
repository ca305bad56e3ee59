// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/param_buffer.h"

#include <vector_types.h>

#include <cstring>
#include <string>
#include <vector>

#include "cuguest/device_ptr.h"
#include "test/memory/memories.h"

BOOST_AUTO_TEST_SUITE(param_buffer)

namespace {

using cuguest::DevicePtr;
using cuguest::kMaxParamBytes;
using cuguest::PackedParams;
using cuguest::ParamBuffer;

using Bytes = std::vector<unsigned char>;

template <typename Params>
Bytes BytesOf(const Params& params) {
  return Bytes(params.data(), params.data() + params.size());
}

template <typename T>
T At(const Bytes& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <typename... Ts>
ParamBuffer Added(const Ts&... values) {
  ParamBuffer params;
  for (const absl::Status& status : {params.Add(values)...}) {
    BOOST_TEST(status.ok(), status.ToString());
  }
  return params;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_guides_list_in_both_ways) {
  const float4 f4 = {1, 2, 3, 4};
  const float2 f2 = {5, 6};
  const DevicePtr<int> pointer(CUdeviceptr{0x123456789abcdef0});
  const PackedParams packed(7, f4, 'c', 8.5F, pointer, f2);
  const ParamBuffer added = Added(7, f4, 'c', 8.5F, pointer, f2);
  const Bytes bytes = BytesOf(packed);
  BOOST_TEST_REQUIRE(bytes.size() == 56u);
  BOOST_TEST(At<int>(bytes, 0) == 7);
  BOOST_TEST(At<float>(bytes, 16) == 1);
  BOOST_TEST(At<float>(bytes, 28) == 4);
  BOOST_TEST(At<char>(bytes, 32) == 'c');
  BOOST_TEST(At<float>(bytes, 36) == 8.5F);
  BOOST_TEST(At<CUdeviceptr>(bytes, 40) == 0x123456789abcdef0u);
  BOOST_TEST(At<float>(bytes, 52) == 6);
  BOOST_TEST(BytesOf(added) == bytes);
  BOOST_TEST(added.count() == packed.layout().count);
  for (std::size_t i = 0; i < added.count(); ++i) {
    BOOST_TEST(added.place(i).offset == packed.layout().places[i].offset);
    BOOST_TEST(added.place(i).size == packed.layout().places[i].size);
  }
}

BOOST_AUTO_TEST_CASE(what_it_has_already_is_added_again) {
  ParamBuffer params = Added(std::uint64_t{0x1122334455667788});
  for (std::size_t i = 1; i <= 100; ++i) {
    SUCCEEDS(params.AddBytes(params.data() + params.place(i - 1).offset, 8, 8));
    SUCCEEDS(params.Add(*reinterpret_cast<const std::uint64_t*>(params.data())));
    BOOST_TEST(At<std::uint64_t>(BytesOf(params), params.place(2 * i - 1).offset) ==
               0x1122334455667788u);
    BOOST_TEST(At<std::uint64_t>(BytesOf(params), params.place(2 * i).offset) ==
               0x1122334455667788u);
  }
  // Both ends of what is written are in it.
  SUCCEEDS(params.AddBytes(params.data(), params.size(), 8));
  BOOST_TEST(At<std::uint64_t>(BytesOf(params), 2 * 201 * 8 - 8) == 0x1122334455667788u);
}

BOOST_AUTO_TEST_CASE(what_lies_between_is_zero) {
  alignas(16) unsigned char dirt[sizeof(PackedParams<char, double>)];
  std::memset(dirt, 0xff, sizeof(dirt));
  const auto* const packed = new (dirt) PackedParams<char, double>('x', 1.0);
  for (std::size_t i = 1; i < 8; ++i) BOOST_TEST(packed->data()[i] == 0);
  ParamBuffer added = Added(~std::uint64_t{0}, ~std::uint64_t{0});
  added.Clear();
  SUCCEEDS(added.Add('x'));
  SUCCEEDS(added.Add(1.0));
  BOOST_TEST(BytesOf(added) == BytesOf(*packed));
}

BOOST_AUTO_TEST_CASE(one_value_is_changed) {
  PackedParams params('a', 1.0, 'b');
  params.Set<1>(2);
  BOOST_TEST(BytesOf(params) == BytesOf(PackedParams('a', 2.0, 'b')));
}

BOOST_AUTO_TEST_CASE(of_nothing) {
  BOOST_TEST(PackedParams<>::size() == 0u);
  const ParamBuffer none;
  BOOST_TEST(none.size() == 0u);
  BOOST_TEST(none.count() == 0u);
  BOOST_TEST(none.layout().count == PackedParams<>::layout().count);
}

BOOST_AUTO_TEST_CASE(types_that_are_known_at_run_time_alone) {
  ParamBuffer params;
  const char c = 'c';
  const float values[4] = {1, 2, 3, 4};
  SUCCEEDS(params.AddBytes(&c, 1, 1));
  SUCCEEDS(params.AddBytes(values, sizeof(values), 16));
  const float4 f4 = {1, 2, 3, 4};
  BOOST_TEST(BytesOf(params) == BytesOf(PackedParams('c', f4)));
}

BOOST_AUTO_TEST_CASE(more_alignment_than_can_be_packed) {
  ParamBuffer params = Added(1.0F);
  BOOST_TEST(params.layout().can_be_packed);
  const unsigned char bytes[32] = {};
  SUCCEEDS(params.AddBytes(bytes, 32, 32));
  SUCCEEDS(params.Add(1.0F));
  BOOST_TEST(!params.layout().can_be_packed);
  params.Clear();
  BOOST_TEST(params.layout().can_be_packed);
}

BOOST_AUTO_TEST_CASE(bad_bytes_add_nothing) {
  ParamBuffer params = Added('c');
  const auto before = params.layout().places[0];
  const double d = 0;
  REFUSES(params.AddBytes(nullptr, 8, 8), kInvalidArgument, "parameter 1", "at least one byte");
  REFUSES(params.AddBytes(&d, 0, 8), kInvalidArgument, "0 bytes");
  REFUSES(params.AddBytes(&d, 8, 0), kInvalidArgument, "aligned to 0", "power of two");
  REFUSES(params.AddBytes(&d, 6, 3), kInvalidArgument, "aligned to 3", "power of two");
  REFUSES(params.AddBytes(&d, 4, 8), kInvalidArgument, "4 bytes, aligned to 8", "multiple");
  BOOST_TEST(params.size() == 1u);
  BOOST_TEST(params.count() == 1u);
  BOOST_TEST(params.layout().places[0].size == before.size);
  BOOST_TEST(params.layout().places[0].offset == before.offset);
}

BOOST_AUTO_TEST_CASE(more_than_a_kernel_takes) {
  const Bytes bytes(kMaxParamBytes + 8);
  ParamBuffer params;
  REFUSES(params.AddBytes(bytes.data(), bytes.size(), 1), kOutOfRange, "32764");
  SUCCEEDS(params.AddBytes(bytes.data(), kMaxParamBytes - 1, 1));
  REFUSES(params.Add(short{0}), kOutOfRange, "parameter 1", "32764", "pointer");
  REFUSES(params.AddBytes(bytes.data(), std::size_t{1} << 63, std::size_t{1} << 63), kOutOfRange,
          "32764");
  BOOST_TEST(params.size() == kMaxParamBytes - 1);
  SUCCEEDS(params.Add('c'));
  BOOST_TEST(params.size() == kMaxParamBytes);
}

BOOST_AUTO_TEST_SUITE_END()
