// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory: which context, which errors, exact ranges.

#include <cstring>
#include <numeric>

#include "cudasim/sim.h"
#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(memory_facts)

using namespace cudasim_facts;
using cudasim::Sim;

namespace {

constexpr size_t kBytes = 4096;

// A current context with two allocations.
struct Memory {
  Memory() {
    SetStack({context.get()});
    OK(RAW(cuMemAlloc)(&p, kBytes));
    OK(RAW(cuMemAlloc)(&q, kBytes));
    std::iota(host, host + sizeof(host), static_cast<unsigned char>(0));
  }
  ~Memory() { SetStack({}); }

  OwnContext context;
  CUdeviceptr p = 0;
  CUdeviceptr q = 0;
  unsigned char host[2 * kBytes];
};

// On the simulation for as long as it is there; elsewhere the devices reach it or they do not.
struct PlainMemoryReached {
  PlainMemoryReached() { Sim::SupportPageableAccess(true); }
  ~PlainMemoryReached() { Sim::SupportPageableAccess(false); }
};

bool ReachesPlainMemory() {
  const PlainMemoryReached reached;
  int reaches = 0;
  return RAW(cuDeviceGetAttribute)(&reaches, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0) ==
             CUDA_SUCCESS &&
         reaches != 0;
}

}  // namespace

// As documented (CUDA Programming Guide, "Unified Memory": copies and memsets take any pointer that
// is unified memory), and not measured: an H100 and an H200 with driver 580 say that they do not.
BOOST_AUTO_TEST_CASE(plain_memory_is_a_devices_where_it_is_reached,
                     *cudasim_test::OnlyIf(&ReachesPlainMemory, "needs HMM, or a Grace Hopper")) {
  const PlainMemoryReached reached;
  Memory memory;
  const auto plain = reinterpret_cast<CUdeviceptr>(memory.host);
  unsigned type = 77;
  BOOST_TEST(PluralAttribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain, type) == 0u);
  OK(RAW(cuMemcpyDtoD)(memory.p, plain, 256));
  OK(RAW(cuMemcpyDtoD)(plain + 256, memory.p, 256));
  OK(RAW(cuMemsetD8)(plain + 512, 7, 16));
  OK(RAW(cuCtxSynchronize)());
  BOOST_TEST(int{memory.host[256 + 255]} == 255);
  BOOST_TEST(int{memory.host[512 + 15]} == 7);
  unsigned char other[16] = {};
  OK(RAW(cuMemcpyHtoD)(plain, other, sizeof(other)));
  OK(RAW(cuMemcpyDtoH)(other, plain + 512, sizeof(other)));
  BOOST_TEST(int{memory.host[15]} == 0);
  BOOST_TEST(int{other[15]} == 7);
  IS(RAW(cuMemcpyDtoD)(memory.p, 0x1000, 16), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_failed_allocation_writes_zero) {
  CUdeviceptr out = 0x77;
  IS(RAW(cuMemAlloc)(&out, 16), INVALID_CONTEXT);
  BOOST_TEST(out == 0u);
  IS(RAW(cuMemAlloc)(&out, 0), INVALID_CONTEXT);
  IS(RAW(cuMemAlloc)(nullptr, 0), INVALID_CONTEXT);
  const OwnContext a;
  SetStack({a.get()});
  out = 0x77;
  IS(RAW(cuMemAlloc)(&out, 0), INVALID_VALUE);
  BOOST_TEST(out == 0u);
  IS(RAW(cuMemAlloc)(nullptr, 16), INVALID_VALUE);
  out = 0x77;
  IS(RAW(cuMemAlloc)(&out, size_t{1} << 60), OUT_OF_MEMORY);
  BOOST_TEST(out == 0u);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(free_wants_the_beginning_once) {
  const Memory memory;
  int local = 0;
  IS(RAW(cuMemFree)(reinterpret_cast<CUdeviceptr>(&local)), INVALID_VALUE);
  IS(RAW(cuMemFree)(0x1000), INVALID_VALUE);
  IS(RAW(cuMemFree)(memory.p + 16), INVALID_VALUE);
  OK(RAW(cuMemFree)(memory.p));
  IS(RAW(cuMemFree)(memory.p), INVALID_VALUE);
  OK(RAW(cuMemFree)(0));
}

BOOST_AUTO_TEST_CASE(free_works_with_another_context_current_or_none) {
  const Memory memory;
  const OwnContext other;
  SetStack({other.get()});
  OK(RAW(cuMemFree)(memory.p));
  SetStack({});
  OK(RAW(cuMemFree)(memory.q));
  OK(RAW(cuMemFree)(0));
}

BOOST_AUTO_TEST_CASE(freed_memory_is_unknown) {
  const Memory memory;
  OK(RAW(cuMemFree)(memory.q));
  CUcontext context = nullptr;
  IS(RAW(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory.q), INVALID_VALUE);
  char bytes[16];
  IS(RAW(cuMemcpyDtoH)(bytes, memory.q, 16), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(copies_arrive) {
  Memory memory;
  unsigned char back[kBytes] = {};
  OK(RAW(cuMemcpyHtoD)(memory.p, memory.host, kBytes));
  OK(RAW(cuMemcpyDtoD)(memory.q, memory.p, kBytes));
  OK(RAW(cuMemcpyDtoH)(back, memory.q, kBytes));
  BOOST_TEST(std::memcmp(back, memory.host, kBytes) == 0);
  std::memset(back, 0, kBytes);
  OK(RAW(cuMemcpy)(reinterpret_cast<CUdeviceptr>(back), memory.p, kBytes));
  BOOST_TEST(std::memcmp(back, memory.host, kBytes) == 0);
}

BOOST_AUTO_TEST_CASE(asynchronous_copies_arrive) {
  Memory memory;
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  unsigned char back[kBytes] = {};
  OK(RAW(cuMemcpyHtoDAsync)(memory.p, memory.host, kBytes, stream));
  OK(RAW(cuMemcpyDtoDAsync)(memory.q, memory.p, kBytes, stream));
  OK(RAW(cuMemcpyDtoHAsync)(back, memory.q, kBytes, stream));
  OK(RAW(cuStreamSynchronize)(stream));
  BOOST_TEST(std::memcmp(back, memory.host, kBytes) == 0);
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(fills_arrive) {
  const Memory memory;
  unsigned words[4] = {};
  OK(RAW(cuMemsetD8)(memory.p, 0x11, 4));
  OK(RAW(cuMemsetD16)(memory.p + 4, 0x2233, 2));
  OK(RAW(cuMemsetD32)(memory.p + 8, 0x44556677, 2));
  OK(RAW(cuMemcpyDtoH)(words, memory.p, sizeof(words)));
  BOOST_TEST(words[0] == 0x11111111u);
  BOOST_TEST(words[1] == 0x22332233u);
  BOOST_TEST(words[2] == 0x44556677u);
  BOOST_TEST(words[3] == 0x44556677u);
}

BOOST_AUTO_TEST_CASE(ranges_are_checked_to_the_byte) {
  Memory memory;
  IS(RAW(cuMemcpyHtoD)(memory.p, memory.host, kBytes + 1), INVALID_VALUE);
  IS(RAW(cuMemcpyHtoD)(memory.p + kBytes - 1, memory.host, 2), INVALID_VALUE);
  IS(RAW(cuMemcpyDtoH)(memory.host, memory.p, kBytes + 1), INVALID_VALUE);
  IS(RAW(cuMemsetD8)(memory.p, 0, kBytes + 1), INVALID_VALUE);
  OK(RAW(cuCtxSynchronize)());
  OK(RAW(cuMemcpyHtoD)(memory.p, memory.host, kBytes));
}

BOOST_AUTO_TEST_CASE(nothing_is_done_with_no_bytes) {
  Memory memory;
  OK(RAW(cuMemcpyHtoD)(memory.p, memory.host, 0));
  OK(RAW(cuMemsetD8)(memory.p, 0, 0));
}

BOOST_AUTO_TEST_CASE(each_end_must_be_what_it_is_called) {
  Memory memory;
  IS(RAW(cuMemcpyHtoD)(memory.p, nullptr, 16), INVALID_VALUE);
  IS(RAW(cuMemcpyHtoD)(0, memory.host, 16), INVALID_VALUE);
  IS(RAW(cuMemcpyHtoD)(0x1000, memory.host, 16), INVALID_VALUE);
  IS(RAW(cuMemcpyHtoD)(reinterpret_cast<CUdeviceptr>(memory.host), memory.host, 16), INVALID_VALUE);
  IS(RAW(cuMemcpyDtoH)(nullptr, memory.p, 16), INVALID_VALUE);
  IS(RAW(cuMemcpyDtoH)(memory.host, 0, 16), INVALID_VALUE);
  IS(RAW(cuMemsetD8)(0, 0, 16), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(with_nothing_current_nothing_is_copied) {
  Memory memory;
  SetStack({});
  IS(RAW(cuMemcpyHtoD)(memory.p, memory.host, 16), INVALID_CONTEXT);
  IS(RAW(cuMemcpyDtoH)(memory.host, memory.p, 16), INVALID_CONTEXT);
  IS(RAW(cuMemcpyDtoD)(memory.p, memory.q, 16), INVALID_CONTEXT);
  IS(RAW(cuMemsetD8)(memory.p, 0, 16), INVALID_CONTEXT);
  IS(RAW(cuMemsetD8Async)(memory.p, 0, 16, nullptr), INVALID_CONTEXT);
  size_t size = 0;
  IS(RAW(cuMemGetInfo)(&size, &size), INVALID_CONTEXT);
  void* host = nullptr;
  IS(RAW(cuMemAllocHost)(&host, 16), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(an_asynchronous_copy_needs_no_current_context_but_no_dead_one) {
  Memory memory;
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  SetStack({});
  const auto host = reinterpret_cast<CUdeviceptr>(memory.host);
  OK(RAW(cuMemcpyHtoDAsync)(memory.p, memory.host, 16, stream));
  OK(RAW(cuMemcpyDtoHAsync)(memory.host, memory.p, 16, stream));
  OK(RAW(cuMemcpyDtoDAsync)(memory.q, memory.p, 16, stream));
  OK(RAW(cuMemcpyAsync)(memory.q, host, 16, stream));
  IS(RAW(cuMemcpyAsync)(memory.q, host, 16, nullptr), INVALID_CONTEXT);
  PushDeadContext();
  IS(RAW(cuMemcpyHtoDAsync)(memory.p, memory.host, 16, stream), CONTEXT_IS_DESTROYED);
  IS(RAW(cuMemcpyDtoHAsync)(memory.host, memory.p, 16, stream), CONTEXT_IS_DESTROYED);
  IS(RAW(cuMemcpyDtoDAsync)(memory.q, memory.p, 16, stream), CONTEXT_IS_DESTROYED);
  IS(RAW(cuMemcpyAsync)(memory.q, host, 16, stream), CONTEXT_IS_DESTROYED);
  const CUcontext context = memory.context.get();
  IS(RAW(cuMemcpyPeerAsync)(memory.q, context, memory.p, context, 16, stream),
     CONTEXT_IS_DESTROYED);
  OK(RAW(cuMemsetD8Async)(memory.p, 1, 16, stream));
  OK(RAW(cuStreamSynchronize)(stream));
  OK(RAW(cuStreamDestroy)(stream));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(between_contexts_of_a_device_everything_copies) {
  const Memory a;
  Memory b;
  OK(RAW(cuMemcpyPeer)(a.p, a.context.get(), b.p, b.context.get(), 64));
  OK(RAW(cuMemcpyDtoD)(a.p, b.p, 64));
  OK(RAW(cuMemsetD8)(a.p, 0, 64));
  OK(RAW(cuMemcpyHtoD)(a.p, b.host, 64));
}

BOOST_AUTO_TEST_CASE(an_allocation_takes_room_on_the_device) {
  const Memory memory;
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  constexpr size_t kBig = size_t{64} << 20;
  OK(RAW(cuMemGetInfo)(&before, &total));
  BOOST_TEST(before <= total);
  CUdeviceptr big = 0;
  OK(RAW(cuMemAlloc)(&big, kBig));
  OK(RAW(cuMemGetInfo)(&after, &total));
  BOOST_TEST(before - after >= kBig / 2);
  OK(RAW(cuMemFree)(big));
  // Either may be left out.
  size_t again = 0;
  OK(RAW(cuMemGetInfo)(nullptr, &again));
  BOOST_TEST(again == total);
  OK(RAW(cuMemGetInfo)(&again, nullptr));
  BOOST_TEST(again <= total);
  OK(RAW(cuMemGetInfo)(nullptr, nullptr));
}

BOOST_AUTO_TEST_CASE(an_address_has_a_range) {
  const Memory memory;
  CUdeviceptr base = 0;
  size_t size = 0;
  OK(RAW(cuMemGetAddressRange)(&base, &size, memory.p + 100));
  BOOST_TEST(base == memory.p);
  BOOST_TEST(size == kBytes);
  // Nothing that is asked for needs no context.
  CUcontext context = nullptr;
  OK(RAW(cuCtxPopCurrent)(&context));
  OK(RAW(cuMemGetAddressRange)(nullptr, nullptr, memory.p));
  IS(RAW(cuMemGetAddressRange)(&base, nullptr, memory.p), INVALID_CONTEXT);
  OK(RAW(cuCtxPushCurrent)(context));
}

BOOST_AUTO_TEST_CASE(pinned_memory_has_a_device_address) {
  const Memory memory;
  void* host = nullptr;
  OK(RAW(cuMemHostAlloc)(&host, kBytes, CU_MEMHOSTALLOC_DEVICEMAP));
  CUdeviceptr device = 0;
  OK(RAW(cuMemHostGetDevicePointer)(&device, host, 0));
  OK(RAW(cuMemcpyDtoD)(device, memory.p, 16));
  OK(RAW(cuMemFreeHost)(host));
}

BOOST_AUTO_TEST_CASE(pitch_is_at_least_the_width) {
  const Memory memory;
  CUdeviceptr pointer = 0;
  size_t pitch = 0;
  OK(RAW(cuMemAllocPitch)(&pointer, &pitch, 1000, 10, 4));
  BOOST_TEST(pitch >= 1000u);
  OK(RAW(cuMemsetD8)(pointer, 0, pitch * 10));
  OK(RAW(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(memory_can_be_made_to_synchronize) {
  const OwnContext a;
  SetStack({a.get()});
  CUdeviceptr memory = 0;
  OK(RAW(cuMemAlloc)(&memory, 4096));
  const auto set = [](unsigned value, CUpointer_attribute attribute, CUdeviceptr address) {
    return RAW(cuPointerSetAttribute)(&value, attribute, address);
  };
  constexpr auto kSync = CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
  BOOST_TEST(!Attribute<bool>(kSync, memory));
  OK(set(1, kSync, memory + 100));
  BOOST_TEST(Attribute<bool>(kSync, memory));
  OK(set(0, kSync, memory));
  BOOST_TEST(!Attribute<bool>(kSync, memory + 100));
  IS(set(1, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory), INVALID_VALUE);
  IS(RAW(cuPointerSetAttribute)(nullptr, kSync, memory), INVALID_VALUE);
  unsigned mine = 0;
  IS(set(1, kSync, reinterpret_cast<CUdeviceptr>(&mine)), INVALID_VALUE);
  OK(RAW(cuMemFree)(memory));
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
