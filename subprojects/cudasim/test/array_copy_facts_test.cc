// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies and fills of rows and slices. Measured on an NVIDIA H200, driver 580.159.04.

#include <cstring>

#include "cudasim/sim.h"
#include "test/arrays.h"
#include "test/capture.h"

BOOST_AUTO_TEST_SUITE(array_copy_facts)

using namespace cudasim_facts;
using boost::test_tools::per_element;

namespace {

constexpr size_t kWidth = 8;  // of the arrays here, in floats
constexpr size_t kHeight = 4;
constexpr size_t kRow = kWidth * sizeof(float);

// Two contexts on one device. The first is current and has arrays, memory and a stream.
struct Room {
  Room() {
    SetStack({other.get()});
    OK(RAW(cuStreamCreate)(&other_stream, CU_STREAM_NON_BLOCKING));
    SetStack({context.get()});
    array = OwnArray(kWidth, kHeight).release();
    second = OwnArray(kWidth, kHeight).release();
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuMemAlloc)(&memory, 4096));
    OK(RAW(cuMemsetD8)(memory, 0, 4096));
    OK(RAW(cuMemAllocHost)(&pinned, 256));
  }
  ~Room() { SetStack({}); }

  CUDA_MEMCPY2D Whole() const { return ToArray(array, values.data(), kRow, kRow, kHeight); }

  OwnContext context;
  OwnContext other;
  CUarray array = nullptr;
  CUarray second = nullptr;
  CUstream stream = nullptr;
  CUstream other_stream = nullptr;
  CUdeviceptr memory = 0;
  void* pinned = nullptr;
  std::vector<float> values = Counting(1024);
};

CUDA_MEMCPY3D ToVolume(CUarray array, const void* host, size_t width, size_t height, size_t depth) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.srcPitch = width;
  copy.srcHeight = height;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = width;
  copy.Height = height;
  copy.Depth = depth;
  return copy;
}

CUresult Copy3D(const CUDA_MEMCPY3D& copy) { return RAW(cuMemcpy3D)(&copy); }
template <typename Change>
CUresult Copy3D(CUDA_MEMCPY3D copy, const Change& change) {
  change(&copy);
  return RAW(cuMemcpy3D)(&copy);
}

std::vector<float> ReadMemory(CUdeviceptr memory, size_t count) {
  std::vector<float> values(count);
  OK(RAW(cuMemcpyDtoH)(values.data(), memory, count * sizeof(float)));
  return values;
}

// Four rows of 100 bytes of 7, into rows of 1, with either context current.
// Which byte it is, of a source: other rows have others.
unsigned char Number(size_t at) { return static_cast<unsigned char>(at % 251); }

void CopyRows(CUdeviceptr to, CUdeviceptr from, const std::vector<CUcontext>& contexts) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.srcPitch = 128;
  copy.dstDevice = to;
  copy.dstPitch = 256;
  copy.WidthInBytes = 100;
  copy.Height = 4;
  copy.Depth = 1;
  std::vector<unsigned char> expected(1024, 1);
  for (size_t y = 0; y < 4; ++y) {
    for (size_t x = 0; x < 100; ++x) expected[y * 256 + x] = Number(y * 128 + x);
  }
  for (const CUcontext context : contexts) {
    SetStack({context});
    CUstream stream = nullptr;
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    for (const bool is_async : {false, true}) {
      std::vector<unsigned char> read(1024);
      OK(RAW(cuMemsetD8)(to, 1, 1024));
      OK(RAW(cuCtxSynchronize)());
      OK(is_async ? RAW(cuMemcpy3DAsync)(&copy, stream) : RAW(cuMemcpy3D)(&copy));
      OK(RAW(cuCtxSynchronize)());
      OK(RAW(cuMemcpyDtoH)(read.data(), to, read.size()));
      BOOST_TEST(read == expected, per_element());
    }
    OK(RAW(cuStreamDestroy)(stream));
  }
  SetStack({});
}

// New memory in `context`, every byte `value`.
CUdeviceptr Numbered(const OwnContext& context) {
  SetStack({context.get()});
  CUdeviceptr memory = 0;
  std::vector<unsigned char> numbers(1024);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = Number(i);
  OK(RAW(cuMemAlloc)(&memory, numbers.size()));
  OK(RAW(cuMemcpyHtoD)(memory, numbers.data(), numbers.size()));
  OK(RAW(cuCtxSynchronize)());
  return memory;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_array_is_filled_and_read) {
  const Room room;
  OK(Copy(room.Whole()));
  BOOST_TEST(Read(room.array, kWidth, kHeight) == Counting(32), per_element());
  // One column of it, elsewhere.
  OK(Copy(room.Whole(), [](CUDA_MEMCPY2D* copy) {
    copy->srcXInBytes = 2 * sizeof(float);
    copy->srcY = 1;
    copy->dstXInBytes = 7 * sizeof(float);
    copy->dstY = 2;
    copy->WidthInBytes = sizeof(float);
    copy->Height = 2;
  }));
  const std::vector<float> now = Read(room.array, kWidth, kHeight);
  BOOST_TEST(now[2 * kWidth + 7] == 10);
  BOOST_TEST(now[3 * kWidth + 7] == 18);
  BOOST_TEST(now[3 * kWidth + 6] == 30);
}

BOOST_AUTO_TEST_CASE(every_pair_of_kinds) {
  const Room room;
  OK(Copy(room.Whole()));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = room.array;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = room.memory;
  copy.dstPitch = 64;
  copy.WidthInBytes = kRow;
  copy.Height = kHeight;
  OK(Copy(copy));
  BOOST_TEST(ReadMemory(room.memory + 64, 8) == Counting(8, 8), per_element());
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = room.memory;
  copy.srcPitch = 64;
  copy.dstDevice = room.memory + 1024;
  copy.dstPitch = 33;  // any, also by the aligned form
  OK(Copy(copy));
  copy.dstPitch = 36;
  OK(RAW(cuMemcpy2DUnaligned)(&copy));
  BOOST_TEST(ReadMemory(room.memory + 1024 + 36, 8) == Counting(8, 8), per_element());
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = room.second;
  OK(Copy(copy));
  BOOST_TEST(Read(room.second, kWidth, kHeight) == Counting(32), per_element());
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  OK(Copy(copy));
  // Unified: of either kind, but no array.
  copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  OK(Copy(copy));
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(room.values.data());
  OK(Copy(copy));
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  IS(Copy(copy, [](CUDA_MEMCPY2D* changed) { changed->dstDevice = 0; }), INVALID_VALUE);
  float host[32] = {};
  OK(Copy(ToDevice(0, 0, room.values.data(), kRow, kRow, kHeight), [&](CUDA_MEMCPY2D* changed) {
    changed->dstMemoryType = CU_MEMORYTYPE_HOST;
    changed->dstHost = host;
  }));
  BOOST_TEST(host[31] == 31);
  OK(Copy(ToDevice(room.memory, 64, reinterpret_cast<void*>(room.memory + 1024), 64, 32, 4)));
}

BOOST_AUTO_TEST_CASE(elements_need_not_be_whole_nor_alike) {
  const Room room;
  OK(Copy(ToArray(room.array, room.values.data(), 64, 30, kHeight)));
  OK(Copy(ToArray(room.array, room.values.data(), 64, 28, kHeight),
          [](CUDA_MEMCPY2D* copy) { copy->dstXInBytes = 2; }));
  const OwnArray pixels(ArrayShape(8, 4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4));
  OK(RAW(cuMemcpyAtoA)(pixels.get(), 0, room.array, 0, kRow));
}

BOOST_AUTO_TEST_CASE(bounds_of_an_array) {
  const Room room;
  const auto whole = room.Whole();
  IS(Copy(whole, [](CUDA_MEMCPY2D* copy) { copy->Height = kHeight + 1; }), INVALID_VALUE);
  IS(Copy(ToArray(room.array, room.values.data(), 64, kRow + 1, 1)), INVALID_VALUE);
  IS(Copy(whole, [](CUDA_MEMCPY2D* copy) { copy->dstXInBytes = 4; }), INVALID_VALUE);
  IS(Copy(whole, [](CUDA_MEMCPY2D* copy) { copy->dstY = 1; }), INVALID_VALUE);
  IS(Copy(whole, [](CUDA_MEMCPY2D* copy) { copy->dstY = ~size_t{0}; }), INVALID_VALUE);
  IS(Copy(whole, [](CUDA_MEMCPY2D* copy) { copy->dstXInBytes = ~size_t{0}; }), INVALID_VALUE);
  IS(Copy(whole, [](CUDA_MEMCPY2D* copy) { copy->dstArray = nullptr; }), INVALID_VALUE);
  const OwnArray line(kWidth, 0);
  OK(Copy(ToArray(line.get(), room.values.data(), kRow, kRow, 1)));
  IS(Copy(ToArray(line.get(), room.values.data(), kRow, kRow, 2)), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(bounds_of_memory) {
  const Room room;
  const void* host = room.values.data();
  const CUdeviceptr memory = room.memory;
  // The last row ends where its own bytes do.
  OK(Copy(ToDevice(memory + 1024, 1024, host, 0, 1024, 3)));
  OK(Copy(ToDevice(memory + 1024 + 24, 1024, host, 0, 1000, 3)));
  IS(Copy(ToDevice(memory + 1024 + 25, 1024, host, 0, 1000, 3)), INVALID_VALUE);
  IS(Copy(ToDevice(memory, 1024, host, 0, 8, 5)), INVALID_VALUE);
  IS(Copy(ToDevice(memory, 1024, host, 0, 8, ~size_t{0})), INVALID_VALUE);
  OK(Copy(ToDevice(memory, size_t{1} << 32, host, 0, 8, 1)));  // one row has no pitch
  IS(Copy(ToDevice(0, 64, host, 0, 8, 1)), INVALID_VALUE);
  IS(Copy(ToDevice(memory, 64, nullptr, 0, 8, 1)), INVALID_VALUE);
  IS(Copy(ToDevice(reinterpret_cast<CUdeviceptr>(host), 64, host, 0, 8, 1)), INVALID_VALUE);
  // Pinned memory is known, so its end is, too.
  OK(Copy(ToArray(room.array, room.pinned, kRow, kRow, kHeight)));
  IS(Copy(ToArray(room.array, room.pinned, 128, kRow, kHeight)), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(pitches) {
  const Room room;
  IS(Copy(ToArray(room.array, room.values.data(), kRow - 1, kRow, 1)), INVALID_VALUE);
  IS(Copy(ToArray(room.array, room.values.data(), 64, kRow, 1),
          [](CUDA_MEMCPY2D* copy) { copy->srcXInBytes = 64 - kRow + 1; }),
     INVALID_VALUE);
  // None: as narrow as x and the width allow.
  OK(Copy(ToArray(room.array, room.values.data(), 0, 16, 3), [](CUDA_MEMCPY2D* copy) {
    copy->srcXInBytes = 8;
    copy->srcY = 1;
  }));
  const std::vector<float> now = Read(room.array, kWidth, kHeight);
  BOOST_TEST(now[0] == 8);
  BOOST_TEST(now[kWidth] == 14);
  BOOST_TEST(now[2 * kWidth + 3] == 23);
}

BOOST_AUTO_TEST_CASE(nothing_to_copy_is_fine_if_there_is_a_context) {
  const Room room;
  const auto nowhere = ToArray(nullptr, nullptr, 1, 0, 1);
  OK(Copy(nowhere));
  OK(Copy(ToArray(nullptr, nullptr, 32, 32, 0)));
  OK(Copy(nowhere, [](CUDA_MEMCPY2D* copy) {
    copy->dstMemoryType = OutOfRange<CUmemorytype>(9);
    copy->dstXInBytes = 999;
  }));
  OK(RAW(cuMemcpyHtoA)(nullptr, 64, nullptr, 0));
  IS(Copy(room.Whole(), [](CUDA_MEMCPY2D* c) { c->dstMemoryType = OutOfRange<CUmemorytype>(9); }),
     INVALID_VALUE);
  IS(RAW(cuMemcpy2D)(nullptr), INVALID_VALUE);
  IS(RAW(cuMemcpy2DAsync)(nullptr, nullptr), INVALID_VALUE);
  IS(RAW(cuMemcpy3D)(nullptr), INVALID_VALUE);
  SetStack({});
  IS(Copy(nowhere), INVALID_CONTEXT);
  IS(RAW(cuMemcpy2D)(nullptr), INVALID_CONTEXT);
  IS(RAW(cuMemcpyHtoA)(nullptr, 0, nullptr, 0), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(one_row_forms_reach_the_first_row_only) {
  const Room room;
  const float* host = room.values.data();
  OK(RAW(cuMemcpyHtoA)(room.array, 0, host, kRow));
  OK(RAW(cuMemcpyHtoA)(room.array, 4, host, kRow - 4));
  OK(RAW(cuMemcpyHtoA)(room.array, 2, host, 3));
  IS(RAW(cuMemcpyHtoA)(room.array, 4, host, kRow), INVALID_VALUE);
  IS(RAW(cuMemcpyHtoA)(room.array, 0, host, kRow + 4), INVALID_VALUE);
  IS(RAW(cuMemcpyHtoA)(room.array, kRow, host, 4), INVALID_VALUE);
  IS(RAW(cuMemcpyHtoA)(room.array, 0, nullptr, 4), INVALID_VALUE);
  IS(RAW(cuMemcpyHtoA)(nullptr, 0, host, 4), INVALID_VALUE);
  OK(RAW(cuMemcpyHtoAAsync)(room.array, 0, host, kRow, room.stream));
  OK(RAW(cuStreamSynchronize)(room.stream));
  OK(RAW(cuMemcpyAtoA)(room.second, 4, room.array, 8, 16));
  IS(RAW(cuMemcpyAtoA)(room.second, 0, room.array, 8, kRow), INVALID_VALUE);
  OK(RAW(cuMemcpyAtoD)(room.memory, room.second, 4, 16));
  IS(RAW(cuMemcpyAtoD)(0, room.second, 4, 16), INVALID_VALUE);
  IS(RAW(cuMemcpyAtoD)(room.memory + 4092, room.second, 4, 16), INVALID_VALUE);
  BOOST_TEST(ReadMemory(room.memory, 4) == Counting(4, 2), per_element());
  OK(RAW(cuMemcpyDtoA)(room.array, 0, room.memory, 16));
  float back[4] = {};
  OK(RAW(cuMemcpyAtoH)(back, room.array, 0, sizeof(back)));
  BOOST_TEST(back[3] == 5);
  back[3] = 0;
  OK(RAW(cuMemcpyAtoHAsync)(back, room.array, 0, sizeof(back), room.stream));
  OK(RAW(cuStreamSynchronize)(room.stream));
  BOOST_TEST(back[3] == 5);
}

BOOST_AUTO_TEST_CASE(volumes_and_layers) {
  const Room room;
  const void* host = room.values.data();
  const OwnArray volume(ArrayShape(kWidth, kHeight, 3));
  const OwnArray layers(ArrayShape(kWidth, kHeight, 3, CUDA_ARRAY3D_LAYERED));
  const OwnArray lines(ArrayShape(kWidth, 0, 3, CUDA_ARRAY3D_LAYERED));
  const auto whole = ToVolume(volume.get(), host, kRow, kHeight, 3);
  OK(Copy3D(whole));
  IS(Copy3D(ToVolume(volume.get(), host, kRow, kHeight, 4)), INVALID_VALUE);
  IS(Copy3D(whole, [](CUDA_MEMCPY3D* copy) { copy->dstZ = 1; }), INVALID_VALUE);
  IS(Copy3D(whole, [](CUDA_MEMCPY3D* copy) { copy->dstLOD = 1; }), INVALID_VALUE);
  OK(Copy3D(whole, [](CUDA_MEMCPY3D* copy) { copy->srcLOD = 1; }));  // of no array
  IS(Copy3D(whole, [](CUDA_MEMCPY3D* copy) { copy->srcHeight = 2; }), INVALID_VALUE);
  IS(Copy3D(whole, [](CUDA_MEMCPY3D* copy) { copy->srcY = 1; }), INVALID_VALUE);
  OK(Copy3D(whole, [](CUDA_MEMCPY3D* copy) { copy->Depth = 0; }));
  OK(Copy3D(whole, [&](CUDA_MEMCPY3D* copy) {
    copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->srcArray = volume.get();
    copy->srcHeight = 77;  // of no memory
    copy->dstArray = layers.get();
  }));
  OK(Copy3D(ToVolume(layers.get(), host, kRow, kHeight, 1),
            [](CUDA_MEMCPY3D* copy) { copy->dstZ = 1; }));
  std::vector<float> back(kWidth * kHeight * 3);
  OK(Copy3D(ToVolume(nullptr, nullptr, kRow, kHeight, 3), [&](CUDA_MEMCPY3D* copy) {
    copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->srcArray = layers.get();
    copy->dstMemoryType = CU_MEMORYTYPE_HOST;
    copy->dstHost = back.data();
    copy->dstPitch = kRow;
    copy->dstHeight = kHeight;
  }));
  BOOST_TEST(back[31] == 31);
  BOOST_TEST(back[32] == 0);
  BOOST_TEST(back[95] == 95);
  OK(Copy3D(ToVolume(lines.get(), host, kRow, 1, 3)));
  IS(Copy3D(ToVolume(lines.get(), host, kRow, 3, 1)), INVALID_VALUE);
  IS(Copy3D(ToVolume(room.array, host, kRow, kHeight, 2)), INVALID_VALUE);
  // No height: as low as y and the height allow.
  OK(Copy3D(ToVolume(volume.get(), host, kRow, 3, 2), [](CUDA_MEMCPY3D* copy) {
    copy->srcHeight = 0;
    copy->srcY = 1;
    copy->srcZ = 1;
  }));
  float first = 0;
  OK(RAW(cuMemcpyAtoH)(&first, volume.get(), 0, sizeof(first)));
  BOOST_TEST(first == 40);
}

BOOST_AUTO_TEST_CASE(slices_of_memory) {
  const Room room;
  const OwnArray volume(ArrayShape(kWidth, kHeight, 3));
  const auto from = [&](size_t pitch, size_t height) {
    return [&room, pitch, height](CUDA_MEMCPY3D* copy) {
      copy->srcMemoryType = CU_MEMORYTYPE_DEVICE;
      copy->srcDevice = room.memory;
      copy->srcPitch = pitch;
      copy->srcHeight = height;
    };
  };
  OK(Copy3D(ToVolume(volume.get(), nullptr, kRow, kHeight, 3), from(kRow, kHeight)));
  OK(Copy3D(ToVolume(volume.get(), nullptr, kRow, 2, 3), from(512, 3)));
  IS(Copy3D(ToVolume(volume.get(), nullptr, kRow, kHeight, 3), from(512, 4)), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(arrays_of_another_context_are_copied_to_and_from) {
  const Room room;
  SetStack({room.other.get()});
  const OwnArray own(kWidth, kHeight);
  OK(Copy(room.Whole()));
  BOOST_TEST(Read(room.array, kWidth, kHeight) == Counting(32), per_element());
  OK(RAW(cuMemcpyAtoA)(own.get(), 0, room.array, 0, kRow));
  OK(RAW(cuMemcpyAtoD)(room.memory, own.get(), 0, kRow));
  const auto whole = room.Whole();
  OK(RAW(cuMemcpy2DAsync)(&whole, room.other_stream));
  OK(RAW(cuMemcpy2DAsync)(&whole, room.stream));
  SetStack({});
  IS(Copy(whole), INVALID_CONTEXT);
  IS(RAW(cuMemcpyHtoA)(room.array, 0, room.values.data(), kRow), INVALID_CONTEXT);
  IS(RAW(cuMemcpy2DAsync)(&whole, nullptr), INVALID_CONTEXT);
  OK(RAW(cuMemcpy2DAsync)(&whole, room.other_stream));
  OK(RAW(cuMemcpy2DAsync)(&whole, room.stream));
  const auto volume = ToVolume(room.array, room.values.data(), kRow, kHeight, 1);
  OK(RAW(cuMemcpy3DAsync)(&volume, room.stream));
  OK(RAW(cuStreamSynchronize)(room.stream));
  OK(RAW(cuStreamSynchronize)(room.other_stream));
}

BOOST_AUTO_TEST_CASE(arrays_are_copied_to_and_from_another_device, *cudasim_test::NeedsDevices(2)) {
  const Room room;
  const OwnContext other(1);
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  SetStack({other.get()});
  OK(RAW(cuMemAlloc)(&memory, 4096));
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  const auto volume = ToVolume(room.array, room.values.data(), kRow, kHeight, 1);
  CUDA_MEMCPY3D across = volume;
  across.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  across.srcArray = room.array;
  across.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  across.dstDevice = memory;
  across.dstPitch = kRow;
  across.dstHeight = kHeight;
  for (const CUcontext current : {room.context.get(), other.get()}) {
    SetStack({current});
    OK(Copy3D(volume));
    OK(RAW(cuMemsetD8Async)(memory, 0, 4096, stream));
    OK(RAW(cuStreamSynchronize)(stream));
    OK(Copy3D(across));
    BOOST_TEST(ReadMemory(memory, 32) == Counting(32), per_element());
    OK(RAW(cuMemcpy3DAsync)(&volume, stream));
    OK(RAW(cuMemcpy3DAsync)(&across, stream));
    OK(RAW(cuStreamSynchronize)(stream));
    CUDA_MEMCPY3D_PEER peers = {};
    peers.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    peers.srcArray = room.array;
    peers.srcContext = room.context.get();
    peers.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    peers.dstDevice = memory;
    peers.dstContext = other.get();
    peers.dstPitch = kRow;
    peers.dstHeight = kHeight;
    peers.WidthInBytes = across.WidthInBytes;
    peers.Height = across.Height;
    peers.Depth = across.Depth;
    OK(RAW(cuMemsetD8Async)(memory, 0, 4096, stream));
    OK(RAW(cuStreamSynchronize)(stream));
    OK(RAW(cuMemcpy3DPeer)(&peers));
    BOOST_TEST(ReadMemory(memory, 32) == Counting(32), per_element());
    OK(RAW(cuMemcpy3DPeerAsync)(&peers, stream));
    OK(RAW(cuStreamSynchronize)(stream));
  }
  OK(RAW(cuMemFree)(memory));
}

// Linear memory, said to be the device's on both sides.
BOOST_AUTO_TEST_CASE(rows_are_copied_between_contexts) {
  const OwnContext owner;
  const OwnContext other;
  const CUdeviceptr from = Numbered(owner);
  CopyRows(Numbered(other), from, {owner.get(), other.get()});
}

BOOST_AUTO_TEST_CASE(rows_are_copied_between_devices, *cudasim_test::NeedsDevices(2)) {
  const OwnContext owner(1);
  const OwnContext other(0);
  const CUdeviceptr from = Numbered(owner);
  CopyRows(Numbered(other), from, {other.get()});
}

BOOST_AUTO_TEST_CASE(fills_of_rows) {
  const Room room;
  const CUdeviceptr to = room.memory;
  OK(RAW(cuMemsetD2D8)(to + 256, 512, 1, 256, 8));
  IS(RAW(cuMemsetD2D8)(to + 257, 512, 1, 256, 8), INVALID_VALUE);
  IS(RAW(cuMemsetD2D8)(to, 512, 1, 512, 9), INVALID_VALUE);
  IS(RAW(cuMemsetD2D8)(to, 99, 1, 100, 8), INVALID_VALUE);
  IS(RAW(cuMemsetD2D8)(to, 0, 1, 100, 8), INVALID_VALUE);
  OK(RAW(cuMemsetD2D8)(to, 0, 1, 100, 1));  // one row has no pitch
  OK(RAW(cuMemsetD2D8)(to, size_t{1} << 40, 1, 8, 1));
  IS(RAW(cuMemsetD2D8)(to, size_t{1} << 40, 1, 8, 2), INVALID_VALUE);
  IS(RAW(cuMemsetD2D8)(to, 2, 1, size_t{1} << 62, 4), INVALID_VALUE);
  OK(RAW(cuMemsetD2D8)(0, 512, 1, 0, 8));
  OK(RAW(cuMemsetD2D8)(0, 512, 1, 8, 0));
  IS(RAW(cuMemsetD2D8)(0, 512, 1, 8, 1), INVALID_VALUE);
  OK(RAW(cuMemsetD2D8)(reinterpret_cast<CUdeviceptr>(room.pinned), 64, 1, 8, 4));
  IS(RAW(cuMemsetD2D16)(to + 1, 512, 1, 2, 2), INVALID_VALUE);
  IS(RAW(cuMemsetD2D16)(to, 511, 1, 2, 2), INVALID_VALUE);
  IS(RAW(cuMemsetD2D32)(to + 2, 512, 1, 2, 2), INVALID_VALUE);
  IS(RAW(cuMemsetD2D32)(to, 510, 1, 2, 2), INVALID_VALUE);
  OK(RAW(cuMemsetD2D32)(to, 510, 1, 2, 1));
  OK(RAW(cuMemsetD8)(to, 0, 4096));
  OK(RAW(cuMemsetD2D32)(to + 4, 16, 0x3f800000, 2, 2));
  OK(RAW(cuMemsetD2D16Async)(to + 32, 16, 0x4000, 4, 1, room.stream));
  OK(RAW(cuStreamSynchronize)(room.stream));
  const std::vector<float> now = ReadMemory(to, 8);
  BOOST_TEST(now == (std::vector<float>{0, 1, 1, 0, 0, 1, 1, 0}), per_element());
  SetStack({room.other.get()});
  OK(RAW(cuMemsetD2D8)(to, 512, 1, 8, 2));
  OK(RAW(cuMemsetD2D8Async)(to, 512, 1, 8, 2, room.stream));
  SetStack({});
  OK(RAW(cuMemsetD2D32Async)(to, 512, 1, 8, 2, room.stream));
  IS(RAW(cuMemsetD2D8)(to, 512, 1, 0, 0), INVALID_CONTEXT);
  OK(RAW(cuStreamSynchronize)(room.stream));
}

BOOST_AUTO_TEST_CASE(a_capture_records_the_asynchronous_forms) {
  const Guest guest;
  const OwnArray array(kWidth, kHeight);
  const std::vector<float> values = Counting(32);
  const auto whole = ToArray(array.get(), values.data(), kRow, kRow, kHeight);
  const auto volume = ToVolume(array.get(), values.data(), kRow, kHeight, 1);
  auto bad = whole;
  bad.WidthInBytes = 999;
  OK(Begin(guest.stream, kGlobal));
  OK(RAW(cuMemcpy2DAsync)(&whole, guest.stream));
  OK(RAW(cuMemcpy3DAsync)(&volume, guest.stream));
  OK(RAW(cuMemcpyHtoAAsync)(array.get(), 0, values.data(), kRow, guest.stream));
  OK(RAW(cuMemsetD2D8Async)(guest.memory, 512, 1, 8, 2, guest.stream));
  IS(RAW(cuMemcpy2DAsync)(&bad, guest.stream), INVALID_VALUE);
  IS(RAW(cuMemsetD2D8Async)(guest.memory, 4, 1, 8, 2, guest.stream), INVALID_VALUE);
  // Stream 0 has nothing to do with a stream that does not block.
  OK(RAW(cuMemcpy2D)(&whole));
  OK(RAW(cuMemcpy3D)(&volume));
  OK(RAW(cuMemcpyHtoA)(array.get(), 0, values.data(), kRow));
  OK(RAW(cuMemsetD2D8)(guest.memory, 512, 1, 8, 2));
  BOOST_TEST(StatusOf(guest.stream) == kActive);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  size_t count = 0;
  OK(RAW(cuStreamEndCapture)(guest.stream, &graph));
  OK(RAW(cuGraphGetNodes)(graph, nullptr, &count));
  BOOST_TEST(count == 4u);
  OK(RAW(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  OK(RAW(cuGraphLaunch)(exec, guest.second));
  OK(RAW(cuStreamSynchronize)(guest.second));
  BOOST_TEST(Read(array.get(), kWidth, kHeight) == Counting(32), per_element());
  OK(RAW(cuGraphExecDestroy)(exec));
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(a_blocking_capture_is_in_the_way_of_the_others) {
  const Guest guest(CU_STREAM_DEFAULT);
  const OwnArray array(kWidth, kHeight);
  const std::vector<float> values = Counting(32);
  const auto whole = ToArray(array.get(), values.data(), kRow, kRow, kHeight);
  float back = 0;
  const std::vector<CUresult (*)(CUarray, const float*, float*, CUdeviceptr)> calls = {
      [](CUarray a, const float* from, float*, CUdeviceptr) {
        return RAW(cuMemcpyHtoA)(a, 0, from, 4);
      },
      [](CUarray a, const float*, float* to, CUdeviceptr) {
        return RAW(cuMemcpyAtoH)(to, a, 0, 4);
      },
      [](CUarray a, const float*, float*, CUdeviceptr d) { return RAW(cuMemcpyDtoA)(a, 0, d, 4); },
      [](CUarray a, const float*, float*, CUdeviceptr d) { return RAW(cuMemcpyAtoD)(d, a, 0, 4); },
      [](CUarray a, const float*, float*, CUdeviceptr) { return RAW(cuMemcpyAtoA)(a, 0, a, 8, 4); },
      [](CUarray, const float*, float*, CUdeviceptr d) {
        return RAW(cuMemsetD2D8)(d, 512, 1, 8, 2);
      },
  };
  for (const auto& call : calls) {
    OK(Begin(guest.stream));
    IS(call(array.get(), values.data(), &back, guest.memory), STREAM_CAPTURE_IMPLICIT);
    BOOST_TEST(StatusOf(guest.stream) == kLost);
    IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  }
  OK(Begin(guest.stream));
  IS(Copy(whole), STREAM_CAPTURE_IMPLICIT);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_SUITE_END()
