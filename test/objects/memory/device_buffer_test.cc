// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/device_buffer.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>

#include "cuguest/context_guard.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/memory.h"
#include "test/objects/memory/buffers.h"

BOOST_AUTO_TEST_SUITE(device_buffer)

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Describe;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::Fill;
using cuguest::HostSpan;
using cuguest::MemoryDescription;
using cuguest::Stream;
using cuguest::StreamRef;
using namespace buffers;
using namespace cuguest_test;
static_assert(!std::is_copy_constructible_v<Buffer> && !std::is_copy_assignable_v<Buffer>);
static_assert(std::is_nothrow_move_constructible_v<Buffer>);
static_assert(std::is_nothrow_move_assignable_v<Buffer>);

}  // namespace

BOOST_AUTO_TEST_CASE(in_its_context_whatever_is_current) {
  const Owner owner;
  const OwnContext other;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    Buffer buffer = Allocated(owner);
    BOOST_TEST(buffer.size() == kInts);
    BOOST_TEST(buffer.size_bytes() == kBytes);
    BOOST_TEST(buffer.get() % 256 == 0u);
    BOOST_TEST(AddressOf(buffer.data()) == buffer.get());
    BOOST_TEST((buffer.context() == owner.ref()));
    BOOST_TEST((buffer.device() == Device::Borrow(0)));
    BOOST_TEST((Describe(buffer.get())->context == owner.ref()));
    SUCCEEDS(Fill(buffer.view(), 7));
    BOOST_TEST(Holds(buffer, 7));
    const CUdeviceptr pointer = buffer.get();
    SUCCEEDS(buffer.Release());
    BOOST_TEST(buffer.empty());
    BOOST_TEST(!IsThere(pointer));
    SUCCEEDS(buffer.Release());
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(copy_of_host_values) {
  const Owner owner;
  const OwnContext other;
  const Ints values(kInts, 7);
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    const Buffer buffer = Made(Buffer::CopyOf(owner.ref(), values));
    BOOST_TEST(buffer.size() == kInts);
    BOOST_TEST((buffer.context() == owner.ref()));
    BOOST_TEST(Holds(buffer, 7));
    const int array[] = {9, 9};
    BOOST_TEST(Holds(Made(Buffer::CopyOf(owner.ref(), array)), 9));
    BOOST_TEST(Holds(Made(Buffer::CopyOf(owner.ref(), Ints(3, 8))), 8));  // a temporary
    const Buffer empty = Made(Buffer::CopyOf(owner.ref(), Ints()));
    BOOST_TEST(empty.empty());
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(copy_that_fails_holds_nothing) {
  const Owner owner;
  const Ints values(kInts, 7);
  const Undisturbed undisturbed;
  REFUSES(Buffer::CopyOf(ContextRef(), values).status(), kFailedPrecondition, "");
  REFUSES(Buffer::CopyOf(owner.ref(), HostSpan<const int>(nullptr, kInts)).status(),
          kInvalidArgument, "null");
  REFUSES(Buffer::CopyOf(owner.ref(), {values.data(), ~size_t{0}}).status(), kInvalidArgument, "");
}

BOOST_AUTO_TEST_CASE(freed_on_another_thread_with_another_context_current) {
  const Owner owner;
  const OwnContext other;
  const Undisturbed undisturbed;
  Buffer buffer = Allocated(owner);
  const CUdeviceptr pointer = buffer.get();
  std::thread([&] {
    SetStack({other.get()});
    { const Buffer taken = std::move(buffer); }
    BOOST_TEST((GetStack() == Stack{other.get()}));
    SetStack({});
  }).join();
  BOOST_TEST(!IsThere(pointer));
}

BOOST_AUTO_TEST_CASE(freed_with_a_dead_context_current) {
  const Owner owner;
  Buffer buffer = Allocated(owner);
  Buffer ordered = Made(Buffer::AllocateAsync(Ref(owner), kInts));
  const CUdeviceptr pointers[] = {buffer.get(), ordered.get()};
  PushDeadContext();
  SUCCEEDS(buffer.Release());
  SUCCEEDS(ordered.Release());
  SetStack({});
  SUCCEEDS(Ref(owner).Synchronize());
  for (const CUdeviceptr pointer : pointers) BOOST_TEST(!IsThere(pointer));
}

BOOST_AUTO_TEST_CASE(in_a_green_context_it_is_the_primarys, *NeedsDriver(12040, "green contexts")) {
  CUdevResource resource = {};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  OK(RAW(cuDeviceGetDevResource)(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
  OK(RAW(cuDevResourceGenerateDesc)(&description, &resource, 1));
  OK(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(RAW(cuCtxFromGreenCtx)(&context, green));
  Buffer buffer = Made(Buffer::Allocate(ContextRef::Borrow(context), kInts));
  BOOST_TEST((buffer.context().get() == primary));
  OK(RAW(cuGreenCtxDestroy)(green));
  SUCCEEDS(Fill(buffer.view(), 3));
  BOOST_TEST(Holds(buffer, 3));
  const CUdeviceptr pointer = buffer.get();
  SUCCEEDS(buffer.Release());
  BOOST_TEST(!IsThere(pointer));
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(on_the_second_device, *NeedsDevices(2)) {
  const Owner first(0);
  const Owner second(1);
  first.Enter();
  Buffer buffer = Allocated(second);
  Buffer ordered = Made(Buffer::AllocateAsync(Ref(second), kInts));
  BOOST_TEST((buffer.device() == Device::Borrow(1)));
  BOOST_TEST((ordered.device() == Device::Borrow(1)));
  SUCCEEDS(ordered.Release());
  SUCCEEDS(buffer.Release());
  SetStack({});
  BOOST_TEST(!IsActive(1));
}

BOOST_AUTO_TEST_CASE(no_elements) {
  const Owner owner;
  const Undisturbed undisturbed;
  BOOST_TEST(Allocated(owner, 0).empty());
  BOOST_TEST(Made(Buffer::AllocateAsync(Ref(owner), 0)).get() == 0u);
  BOOST_TEST(Buffer().view().empty());
  REFUSES(Buffer::Adopt(0x1000, 0).status(), kInvalidArgument, "adopt 0x1000", "no elements");
}

BOOST_AUTO_TEST_CASE(more_than_there_is) {
  const Owner owner;
  const Undisturbed undisturbed;
  const size_t most = std::numeric_limits<size_t>::max();
  for (const absl::Status& status : {Buffer::Allocate(owner.ref(), most / 4 + 1).status(),
                                     Buffer::AllocateAsync(Ref(owner), most).status()}) {
    REFUSES(status, kInvalidArgument, "allocate", "elements of 4 bytes");
  }
  for (const absl::Status& status : {Buffer::Allocate(owner.ref(), size_t{1} << 58).status(),
                                     Buffer::AllocateAsync(Ref(owner), size_t{1} << 58).status()}) {
    REFUSES(status, kResourceExhausted, "allocate 1152921504606846976 bytes", "OUT_OF_MEMORY");
  }
}

BOOST_AUTO_TEST_CASE(in_no_context_or_one_that_ended) {
  ContextRef dead;
  StreamRef stream;
  {
    const Owner owner;
    dead = owner.ref();
    stream = Ref(owner);
  }
  OwnContext::DestroyIdle();
  const Undisturbed undisturbed;
  REFUSES(Buffer::Allocate(ContextRef(), 1).status(), kFailedPrecondition, "allocate 4 bytes");
  REFUSES(Buffer::AllocateAsync(StreamRef(), 1).status(), kInvalidArgument, "StreamRef is empty");
  for (const size_t count : {0, 1}) {
    REFUSES(Buffer::Allocate(dead, count).status(), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
    REFUSES(Buffer::AllocateAsync(stream, count).status(), kFailedPrecondition,
            "CONTEXT_IS_DESTROYED");
  }
}

BOOST_AUTO_TEST_CASE(after_the_end_of_its_context_no_driver_is_called) {
  Buffer buffer;
  Buffer destroyed_silently;
  CUdeviceptr pointer = 0;
  {
    const Owner owner;
    buffer = Allocated(owner);
    destroyed_silently = Allocated(owner);
    pointer = buffer.get();
  }
  OwnContext::DestroyIdle();
  Sim::ResetCalls();
  REFUSES(buffer.Release(), kFailedPrecondition, "CONTEXT_IS_DESTROYED", "gone with its context");
  BOOST_TEST(buffer.empty());
  SUCCEEDS(buffer.Release());
  destroyed_silently = Buffer();
  BOOST_TEST(Sim::Calls("cuMemFree") == 0u);
  BOOST_TEST(!IsThere(pointer));
}

BOOST_AUTO_TEST_CASE(
    after_a_reset_the_next_owner_of_the_address_is_left_alone,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  Buffer buffer = Made(Buffer::Allocate(ContextRef::Borrow(primary), kInts));
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  const Buffer next = Made(Buffer::Allocate(ContextRef::Borrow(primary), kInts));
  const CUdeviceptr pointer = next.get();  // often the same
  REFUSES(buffer.Release(), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  BOOST_TEST(IsThere(pointer));
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(failing_free_says_what_happened, *OnlySim()) {
  const Owner owner;
  Buffer buffer = Allocated(owner);
  Sim::FailCall("cuMemFree", 1, CUDA_ERROR_UNKNOWN);
  REFUSES(buffer.Release(), kUnknown, "free 4096 bytes at 0x", "the buffer still owns it");
  BOOST_TEST(!buffer.empty());
  SUCCEEDS(buffer.Release());
}

BOOST_AUTO_TEST_CASE(adopts_what_either_api_allocates) {
  const Owner owner;
  for (const bool managed : {false, true}) {
    owner.Enter();
    CUdeviceptr pointer = 0;
    if (managed) {
      OK(RAW(cuMemAllocManaged)(&pointer, kBytes, CU_MEM_ATTACH_GLOBAL));
    } else {
      OK(RAW(cuMemAlloc)(&pointer, kBytes));
    }
    SetStack({});
    Buffer buffer = Made(Buffer::Adopt(reinterpret_cast<int*>(pointer), kInts - 1));
    BOOST_TEST(buffer.get() == pointer);
    BOOST_TEST(buffer.size() == kInts - 1);
    BOOST_TEST((buffer.context() == owner.ref()));
    SUCCEEDS(buffer.Release());
    BOOST_TEST(!IsThere(pointer));
  }
  CUdeviceptr pool[2] = {};
  for (CUdeviceptr& pointer : pool) {
    OK(RAW(cuMemAllocAsync)(&pointer, kBytes, owner.stream()));
  }
  SUCCEEDS(Ref(owner).Synchronize());
  { const Buffer at_once = Made(Buffer::Adopt(pool[0], kInts)); }
  BOOST_TEST(!IsThere(pool[0]));
  { const Buffer ordered = Made(Buffer::AdoptAsync(pool[1], kInts, Ref(owner))); }
  SUCCEEDS(Ref(owner).Synchronize());
  BOOST_TEST(!IsThere(pool[1]));
}

// Where the driver does not tell the start of an allocation.
BOOST_AUTO_TEST_CASE(adopts_host_pool_memory, *NeedsHostPools()) {
  const Owner owner;
  const HostPool pool;
  const CUdeviceptr pointers[] = {pool.Allocate(owner), pool.Allocate(owner)};
  for (const CUdeviceptr pointer : pointers) {
    for (const size_t offset : {size_t{4}, size_t{256}, kBytes - 4}) {
      REFUSES(Buffer::Adopt(pointer + offset, 1).status(), kInvalidArgument,
              "pool memory of the host", "it is not where an allocation starts");
    }
    REFUSES(Buffer::Adopt(pointer, kInts + 1).status(), kInvalidArgument, "has 4096 in all");
    FailEachCall({"cuPointerGetAttributes"}, [pointer] {
      absl::StatusOr<Buffer> buffer = Buffer::Adopt(pointer, kInts);
      if (buffer.ok()) static_cast<void>(buffer->Leak());
      return buffer.status();
    });
    Buffer buffer = Made(Buffer::Adopt(pointer, kInts));
    SUCCEEDS(buffer.Release());
  }
}

BOOST_AUTO_TEST_CASE(does_not_adopt_what_it_cannot_free) {
  const Owner owner;
  const Memories all(owner);
  int local = 0;
  const Undisturbed undisturbed;
  for (const CUdeviceptr pointer : {all.pinned, all.registered, all.virtual_memory}) {
    REFUSES(Buffer::Adopt(pointer, 1).status(), kInvalidArgument, "not freed like device memory");
  }
  REFUSES(Buffer::Adopt(all.device + 4, 1).status(), kInvalidArgument, "allocation starts at 0x");
  REFUSES(Buffer::Adopt(all.device, kInts + 1).status(), kInvalidArgument, "only 4096 are there");
  REFUSES(Buffer::Adopt(all.device + 1, 1).status(), kInvalidArgument, "not aligned");
  REFUSES(Buffer::Adopt(&local, 1).status(), kInvalidArgument, "does not know");
  REFUSES(Buffer::Adopt(nullptr, 1).status(), kInvalidArgument, "does not know");
  REFUSES(Buffer::AdoptAsync(all.managed, 1, Ref(owner)).status(), kInvalidArgument,
          "managed memory", "stream's order");
  REFUSES(Buffer::AdoptAsync(all.device, 1, StreamRef()).status(), kInvalidArgument,
          "StreamRef is empty");
}

BOOST_AUTO_TEST_CASE(moves_and_leaks) {
  const Owner owner;
  const Undisturbed undisturbed;
  Buffer first = Allocated(owner);
  const CUdeviceptr pointer = first.get();
  const DeviceView<int> view = first.view();
  Buffer second = std::move(first);
  BOOST_TEST(first.empty());
  BOOST_TEST(second.get() == pointer);
  BOOST_TEST(view.get() == pointer);
  Buffer third = Allocated(owner);
  const CUdeviceptr replaced = third.get();
  third = std::move(second);
  BOOST_TEST(!IsThere(replaced));
  Buffer& same = third;
  third = std::move(same);
  BOOST_TEST(third.get() == pointer);
  const DeviceView<int> leaked = third.Leak();
  BOOST_TEST(leaked.get() == pointer);
  BOOST_TEST(leaked.size() == kInts);
  BOOST_TEST(third.empty());
  SUCCEEDS(third.Release());
  BOOST_TEST(IsThere(pointer));
  OK(RAW(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(on_many_threads_at_once) {
  const Owner owners[2];
  const Undisturbed undisturbed;
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      const Owner& home = owners[number % 2];
      const Owner& other = owners[(number + 1) % 2];
      SetStack({other.get()});
      for (int round = 0; round < 20; ++round) {
        Buffer buffer = Buffer::Allocate(home.ref(), kInts).value();
        Buffer ordered = Buffer::AllocateAsync(Ref(other), kInts).value();
        Ints received(kInts);
        const bool done = Fill(buffer.view(), number).ok() &&
                          CopyAsync(ordered.view(), buffer.view(), Ref(other)).ok() &&
                          DownloadAsync(ordered.view(), received, Ref(other)).ok() &&
                          Ref(other).Synchronize().ok() && ordered.Release().ok() &&
                          buffer.Release().ok();
        if (!done || received != Ints(kInts, number)) ++wrong[number];
      }
      if (GetStack() != Stack{other.get()}) ++wrong[number];
      SetStack({});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) BOOST_TEST(count == 0);
}

BOOST_AUTO_TEST_CASE(invalidates_no_capture) {
  const Owner owner;
  const Owner other;
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(owner.stream(), mode);
    for (const Owner* home : {&owner, &other}) {
      Buffer buffer = Allocated(*home);
      SUCCEEDS(buffer.Release());
      std::thread([home] { const Buffer elsewhere = Allocated(*home); }).join();
    }
    Buffer ordered = Made(Buffer::AllocateAsync(Ref(other), kInts));
    SUCCEEDS(ordered.Release());
  }
}

BOOST_AUTO_TEST_CASE(from_a_callback_it_is_not_permitted_and_still_owned) {
  const Owner owner;
  struct Asked {
    Buffer buffer;
    absl::Status allocated;
    absl::Status freed;
    absl::Status copied;
  } asked = {Allocated(owner), {}, {}, {}};
  OK(RAW(cuLaunchHostFunc)(
      owner.stream(),
      [](void* data) {
        auto& from = *static_cast<Asked*>(data);
        from.allocated = Buffer::Allocate(from.buffer.context(), 1).status();
        from.freed = from.buffer.Release();
        from.copied = Fill(from.buffer.view(), 1);
      },
      &asked));
  SUCCEEDS(Ref(owner).Synchronize());
  REFUSES(asked.allocated, kPermissionDenied, "allocate 4 bytes");
  REFUSES(asked.freed, kPermissionDenied, "free 4096 bytes", "callback");
  REFUSES(asked.copied, kPermissionDenied, "fill 4096 bytes");
  const CUdeviceptr pointer = asked.buffer.get();
  BOOST_TEST(IsThere(pointer));
  SUCCEEDS(asked.buffer.Release());
  BOOST_TEST(!IsThere(pointer));
}

BOOST_AUTO_TEST_CASE(a_failed_free_loses_nothing, *OnlySim()) {
  const Owner owner;
  Buffer buffer = Allocated(owner);
  Buffer ordered = Made(Buffer::AllocateAsync(Ref(owner), kInts));
  const auto fails_once = [](Buffer* freed, const char* entry) {
    if (!HasDriver(12000) && std::string(entry) == "cuCtxGetId") return;
    const CUdeviceptr pointer = freed->get();
    Sim::FailCall(entry, 1, CUDA_ERROR_OPERATING_SYSTEM);
    REFUSES(freed->Release(), kInternal, "free 4096 bytes at 0x", "OPERATING_SYSTEM");
    BOOST_TEST(freed->get() == pointer);
    Sim::ClearFaults();
  };
  for (const char* entry :
       {"cuMemFree", "cuCtxPushCurrent", "cuCtxGetId", "cuThreadExchangeStreamCaptureMode"}) {
    fails_once(&buffer, entry);
  }
  for (const char* entry : {"cuMemFreeAsync", "cuCtxGetId", "cuThreadExchangeStreamCaptureMode"}) {
    fails_once(&ordered, entry);
  }
  SUCCEEDS(buffer.Release());
  SUCCEEDS(ordered.Release());
}

BOOST_AUTO_TEST_CASE(every_call_of_an_allocation_fails_once, *OnlySim()) {
  const Owner owner;
  const Memories all(owner);
  const ContextRef context = owner.ref();
  const StreamRef stream = Ref(owner);
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuMemAlloc", "cuPointerGetAttributes"},
               [&] { return Buffer::Allocate(context, kInts); });
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuCtxGetDevice", "cuMemAllocAsync"},
               [&] { return Buffer::AllocateAsync(stream, kInts); });
  const Ints values(kInts);
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuMemAlloc", "cuMemcpyHtoD"},
               [&] { return Buffer::CopyOf(context, values); });
  FailEachCall({"cuPointerGetAttributes", "cuCtxGetId"}, [&] {
    absl::StatusOr<Buffer> buffer = Buffer::Adopt(all.device, kInts);
    if (buffer.ok()) static_cast<void>(buffer->Leak());
    return buffer.status();
  });
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  const Owner owner;
  const ContextRef context = owner.ref();
  const StreamRef stream = Ref(owner);
  const Ints values(kInts);
  for (const unsigned switched : {0u, 2u}) {
    SetStack(switched == 0 ? Stack{owner.get()} : Stack{});
    const auto cost = [] {
      const std::uint64_t calls = Sim::TotalCalls();
      cuguest_test::BeginCount();
      return calls;
    };
    cost();
    Buffer buffer = Made(Buffer::Allocate(context, kInts));
    BOOST_TEST(cost() == 8 + switched);
    SUCCEEDS(buffer.Release());
    BOOST_TEST(cost() == 6 + switched);
    buffer = Made(Buffer::CopyOf(context, values));
    BOOST_TEST(cost() == 16u + 2 * switched);
    SUCCEEDS(buffer.Release());
    cost();
    // The thread asks for the device once, and each time where ids do not tell contexts apart.
    const bool has_ids = HasDriver(12000);
    buffer = Made(Buffer::AllocateAsync(stream, kInts));
    BOOST_TEST(cost() == (switched == 0 ? 9u : has_ids ? 5u : 11u));
    SUCCEEDS(buffer.Release());
    BOOST_TEST(cost() == 5u);
    buffer = Made(Buffer::Allocate(context, kInts));
    cost();
    SUCCEEDS(buffer.FreeAsync(stream));
    BOOST_TEST(cost() == 5u);
    const StreamRef zero = StreamRef::Borrow(CU_STREAM_LEGACY, context);
    buffer = Made(Buffer::AllocateAsync(zero, kInts));
    BOOST_TEST(cost() == 7 + switched + (has_ids ? 0u : 4 + switched));
    SUCCEEDS(buffer.Release());
    BOOST_TEST(cost() == 7 + switched);
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
