// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <limits>
#include <utility>
#include <vector>

#include "cuguest/objects/array.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/objects/memory/memories.h"
#include "test/support/arrays.h"

BOOST_AUTO_TEST_SUITE(array_copy)

namespace {

using boost::test_tools::per_element;
using cudasim::Sim;
using cuguest::Array;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::HostSpan;
using cuguest::PrimaryContext;
using cuguest::StreamRef;
using namespace cuguest_test;
using Descriptor = CUDA_ARRAY3D_DESCRIPTOR;
using Floats = std::vector<float>;

constexpr Descriptor kPlane = {8, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
constexpr size_t kMost = std::numeric_limits<size_t>::max();

Array Created(const Owner& owner, const Descriptor& shape = kPlane) {
  absl::StatusOr<Array> array = Array::Create(owner.ref(), shape);
  BOOST_TEST_REQUIRE(array.ok(), array.status().ToString());
  return *std::move(array);
}

HostSpan<const float> From(const Floats& values) { return HostSpan<const float>(values); }
HostSpan<float> To(Floats& values) { return HostSpan<float>(values); }

Floats Values(const Array& array, size_t count = 32) {
  Floats values(count);
  SUCCEEDS(Download(array, To(values)));
  return values;
}

StreamRef Ref(const Owner& owner) { return StreamRef::Borrow(owner.stream(), owner.ref()); }

Array::Part Part(size_t x, size_t y, size_t z, size_t width, size_t height, size_t depth) {
  Array::Part part;
  part.x = x;
  part.y = y;
  part.z = z;
  part.width = width;
  part.height = height;
  part.depth = depth;
  return part;
}

Array::Part Pitched(size_t pitch, size_t rows = 0) {
  Array::Part copy;
  copy.pitch = pitch;
  copy.rows = rows;
  return copy;
}

}  // namespace

BOOST_AUTO_TEST_CASE(whole_to_and_fro_whatever_is_current) {
  const Owner owner;
  const Owner other;
  const Array array = Created(owner);
  auto memory = DeviceBuffer<float>::Allocate(owner.ref(), 32).value();
  auto others = DeviceBuffer<float>::Allocate(other.ref(), 32).value();
  float first = 0;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    for (const DeviceView<float>& view : {memory.view(), others.view()}) {
      const Floats sent = Counting(32, ++first);
      SUCCEEDS(Upload(array, From(sent)));
      BOOST_TEST(Values(array) == sent, per_element());
      SUCCEEDS(Copy(view, array));
      BOOST_TEST(Download(view).value() == sent, per_element());
      SUCCEEDS(Upload(array, From(Floats(32))));
      SUCCEEDS(Copy(array, DeviceView<const float>(view)));
      BOOST_TEST(Values(array) == sent, per_element());
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(in_a_stream_of_this_context_or_another) {
  const Owner owner;
  const Owner other;
  const Array array = Created(owner);
  auto memory = DeviceBuffer<float>::Allocate(owner.ref(), 32).value();
  float first = 0;
  for (const StreamRef& stream : {Ref(owner), Ref(other)}) {
    const Undisturbed undisturbed;
    const Floats sent = Counting(32, ++first);
    Floats received(32);
    SUCCEEDS(UploadAsync(array, From(sent), stream));
    SUCCEEDS(CopyAsync(memory.view(), array, stream));
    SUCCEEDS(CopyAsync(array, memory.view(), stream));
    SUCCEEDS(DownloadAsync(array, To(received), stream));
    SUCCEEDS(stream.Synchronize());
    BOOST_TEST(received == sent, per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_part_of_a_plane) {
  const Owner owner;
  const Array array = Created(owner);
  SUCCEEDS(Upload(array, From(Floats(32))));
  SUCCEEDS(Upload(array, From(Counting(6, 1)), Part(5, 1, 0, 3, 2, 1)));
  Floats expected(32);
  for (size_t y = 0; y < 2; ++y) {
    for (size_t x = 0; x < 3; ++x)
      expected[(y + 1) * 8 + 5 + x] = static_cast<float>(y * 3 + x + 1);
  }
  BOOST_TEST(Values(array) == expected, per_element());
  Floats back(6);
  SUCCEEDS(Download(array, To(back), Part(5, 1, 0, 0, 2, 0)));  // to the end of the rows
  BOOST_TEST(back == Counting(6, 1), per_element());
}

BOOST_AUTO_TEST_CASE(volumes_layers_faces_and_lines) {
  const Owner owner;
  const std::pair<Descriptor, size_t> shapes[] = {
      {{8, 4, 3, CU_AD_FORMAT_FLOAT, 1, 0}, 96},
      {{8, 4, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED}, 96},
      {{8, 0, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED}, 24},
      {{4, 4, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP}, 96},
      {{8, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 8},
      {{8, 4, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 128},
  };
  for (const auto& [shape, count] : shapes) {
    const Array array = Created(owner, shape);
    const Floats sent = Counting(count);
    SUCCEEDS(Upload(array, From(sent)));
    BOOST_TEST(Values(array, count) == sent, per_element());
  }
  const Array volume = Created(owner, shapes[0].first);
  SUCCEEDS(Upload(volume, From(Counting(96))));
  Floats column(4);
  SUCCEEDS(Download(volume, To(column), Part(7, 2, 1, 1, 2, 2)));
  BOOST_TEST(column == (Floats{55, 63, 87, 95}), per_element());
}

// The last row of memory ends where its own bytes do.
BOOST_AUTO_TEST_CASE(rows_and_slices_with_padding) {
  const Owner owner;
  const Array array = Created(owner, {2, 2, 2, CU_AD_FORMAT_FLOAT, 1, 0});
  Floats padded(28, -1);  // rows of 4, slices of 3 rows: 12 + 4 + 2
  padded.resize(18);
  const size_t at[] = {0, 1, 4, 5, 12, 13, 16, 17};
  for (size_t i = 0; i < 8; ++i) padded[at[i]] = static_cast<float>(i);
  SUCCEEDS(Upload(array, From(padded), Pitched(16, 3)));
  BOOST_TEST(Values(array, 8) == Counting(8), per_element());
  Floats longer(40, -1);
  SUCCEEDS(Download(array, To(longer), Pitched(16, 3)));
  for (size_t i = 0; i < 8; ++i) BOOST_TEST(longer[at[i]] == static_cast<float>(i));
  BOOST_TEST(longer[2] == -1);
  BOOST_TEST(longer[8] == -1);
  auto memory = DeviceBuffer<float>::CopyOf(owner.ref(), From(Floats(18, -1))).value();
  SUCCEEDS(Copy(memory.view(), array, Pitched(16, 3)));
  BOOST_TEST(Download(memory.view()).value() == padded, per_element());
  padded.pop_back();
  REFUSES(Upload(array, From(padded), Pitched(16, 3)), kInvalidArgument, "2 x 2 x 2 elements of 4",
          "need at least 72 bytes of memory, and there are 68");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_its_sizes) {
  const Owner owner;
  const Array array = Created(owner);
  const Floats values = Counting(33);
  const auto span = [&](size_t count) { return HostSpan<const float>(values.data(), count); };
  const Undisturbed undisturbed;
  for (const size_t count : {0, 31, 33}) {
    REFUSES(Upload(array, span(count)), kInvalidArgument, "copy from host 0x", "to array 0x",
            "8 x 4 elements of 1 float", "need 128 bytes of memory",
            "there are " + std::to_string(count * 4));
  }
  REFUSES(Upload(array, HostSpan<const float>(nullptr, 32)), kInvalidArgument,
          "host's end is null");
  REFUSES(Upload(array, span(8), Part(1, 0, 0, 8, 1, 1)), kOutOfRange,
          "part of 8 x 1 x 1 from 1, 0,", "not in the array's 8 x 4 x 1");
  REFUSES(Upload(array, span(8), Part(0, 4, 0, 8, 0, 1)), kOutOfRange, "from 0, 4, 0 on");
  REFUSES(Upload(array, span(8), Part(0, 0, 1, 8, 1, 0)), kOutOfRange, "from 0, 0, 1 on");
  REFUSES(Upload(array, span(8), Part(kMost, 0, 0, 2, 1, 1)), kOutOfRange, "18446744073709551615");
  REFUSES(Upload(array, span(8), Part(1, 0, 0, kMost, 1, 1)), kOutOfRange, "not in the array's");
  REFUSES(Upload(array, span(32), Pitched(31)), kInvalidArgument, "rows of 32 bytes",
          "pitch of 31 bytes");
  REFUSES(Upload(array, span(32), Pitched(0, 3)), kInvalidArgument, "4 in a slice", "3 rows");
  REFUSES(Upload(array, span(32), Pitched(kMost)), kInvalidArgument,
          "beyond the end of the address");
  // The driver would look at 32 bits of them. Of one slice they do not count.
  constexpr size_t kUnseen = size_t{1} << 32;
  const Array slices = Created(owner, {8, 4, 2, CU_AD_FORMAT_FLOAT, 1, 0});
  REFUSES(Upload(slices, span(64), Pitched(0, kUnseen)), kInvalidArgument,
          "a slice of 4294967296 rows; the driver takes 4294967295 at most");
  SUCCEEDS(Upload(array, span(32), Pitched(0, kUnseen)));
  const double doubles[16] = {};
  REFUSES(Upload(array, HostSpan<const double>(doubles)), kInvalidArgument,
          "the memory's elements have 8 bytes", "the array's 4");
  Floats out(32);
  REFUSES(Download(Array(), To(out)), kInvalidArgument, "array is empty");
  const Array packed = Created(owner, {8, 4, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0});
  REFUSES(Download(packed, To(out)), kUnimplemented, "use cuMemcpy3D");
  REFUSES(UploadAsync(array, span(32), StreamRef()), kInvalidArgument, "StreamRef is empty");
}

BOOST_AUTO_TEST_CASE(memory_and_a_stream_of_another_device, *cudasim_test::NeedsDevices(2)) {
  const Owner owner;
  const Owner other(1);
  const Array array = Created(owner);
  auto memory = DeviceBuffer<float>::Allocate(other.ref(), 32).value();
  const Undisturbed undisturbed;
  const Floats sent = Counting(32, 1);
  SUCCEEDS(UploadAsync(array, From(sent), Ref(other)));
  SUCCEEDS(CopyAsync(memory.view(), array, Ref(other)));
  SUCCEEDS(Ref(other).Synchronize());
  BOOST_TEST(Download(memory.view()).value() == sent, per_element());
  SUCCEEDS(Upload(array, From(Floats(32))));
  SUCCEEDS(Copy(array, memory.view()));
  BOOST_TEST(Values(array) == sent, per_element());
}

BOOST_AUTO_TEST_CASE(bytes_and_whole_elements) {
  const Owner owner;
  const Array array = Created(owner, {4, 2, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0});
  const std::vector<unsigned> pixels = {1, 2, 3, 4, 5, 6, 7, 8};
  SUCCEEDS(Upload(array, HostSpan<const unsigned>(pixels)));
  std::vector<unsigned char> bytes(32);
  SUCCEEDS(Download(array, HostSpan<unsigned char>(bytes)));
  BOOST_TEST(bytes[28] == 8);
}

BOOST_AUTO_TEST_CASE(an_end_whose_context_is_gone) {
  const Owner owner;
  const Array array = Created(owner);
  Array gone;
  DeviceBuffer<float> lost;
  StreamRef stream;
  {
    const Owner other;
    gone = Created(other);
    lost = DeviceBuffer<float>::Allocate(other.ref(), 32).value();
    stream = StreamRef::Borrow(nullptr, other.ref());
  }
  OwnContext::DestroyIdle();
  const Floats values = Counting(32);
  REFUSES(Upload(gone, From(values)), kFailedPrecondition, "CONTEXT_IS_DESTROYED",
          "copy from host");
  REFUSES(UploadAsync(gone, From(values), Ref(owner)), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  REFUSES(Copy(array, lost.view()), kFailedPrecondition, "CONTEXT_IS_DESTROYED", "memory of");
  REFUSES(UploadAsync(array, From(values), stream), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
}

// The driver crashes on such an array.
BOOST_AUTO_TEST_CASE(an_array_whose_context_came_back, *NeedsDriver(12000, "cuCtxGetId")) {
  PrimaryContext first = PrimaryContext::Retain(Device::Borrow(0));
  const Array array = Array::Create(first.context(), kPlane).value();
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  const PrimaryContext again = PrimaryContext::Retain(Device::Borrow(0));
  REFUSES(Upload(array, From(Counting(32))), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  SUCCEEDS(ToStatus(first.Release()));
}

BOOST_AUTO_TEST_CASE(captures_survive_and_record_the_async_form) {
  const Owner owner;
  const Owner other;
  const Array array = Created(owner);
  const Floats values = Counting(32);
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(owner.stream(), mode);
    SUCCEEDS(Upload(array, From(values)));
    SUCCEEDS(UploadAsync(array, From(values), Ref(other)));
    SUCCEEDS(UploadAsync(array, From(values), Ref(owner)));
  }
  OK(RAW(cuStreamSynchronize)(other.stream()));
  owner.Enter();
  CUstream blocking = nullptr;
  OK(RAW(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT));
  {
    const Capture capture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
    REFUSES(Upload(array, From(values)), kFailedPrecondition, "CAPTURE_IMPLICIT", "Async form");
  }
  OK(RAW(cuStreamDestroy)(blocking));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  const Owner owner;
  const Array array = Created(owner);
  auto memory = DeviceBuffer<float>::Allocate(owner.ref(), 32).value();
  const Floats values = Counting(32);
  const auto cost = [](const absl::Status& status) {
    BOOST_TEST(status.ok(), status.ToString());
    const std::uint64_t calls = Sim::TotalCalls();
    cuguest_test::BeginCount();
    return calls;
  };
  const StreamRef stream = Ref(owner);
  for (const unsigned switched : {0u, 2u}) {
    SetStack(switched == 0 ? Stack{owner.get()} : Stack{});
    cuguest_test::BeginCount();
    BOOST_TEST(cost(Upload(array, From(values))) == 8 + switched);
    BOOST_TEST(cost(Copy(memory.view(), array)) == 8 + switched);
    BOOST_TEST(cost(UploadAsync(array, From(values), stream)) == 4 + switched);
    BOOST_TEST(cost(CopyAsync(array, memory.view(), stream)) == 4 + switched);
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(every_call_fails_once, *OnlySim()) {
  const Owner owner;
  const Array array = Created(owner);
  const Floats values = Counting(32);
  const StreamRef stream = Ref(owner);
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuMemcpy3D", "cuStreamSynchronize"},
               [&] { return Upload(array, From(values)); });
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuMemcpy3DAsync"},
               [&] { return UploadAsync(array, From(values), stream); });
}

BOOST_AUTO_TEST_SUITE_END()
