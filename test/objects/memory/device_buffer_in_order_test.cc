// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers that are allocated and freed in the order of a stream; that of a stream which has ended,
// too.

#include <atomic>
#include <optional>

#include "cuguest/context_guard.h"
#include "cuguest/incident.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/memory.h"
#include "test/objects/memory/buffers.h"
#include "test/support/advised.h"
#include "test/support/no_new_threads.h"

BOOST_AUTO_TEST_SUITE(device_buffer_in_order)

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Describe;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::Fill;
using cuguest::HostSpan;
using cuguest::MemoryDescription;
using cuguest::Stream;
using cuguest::StreamRef;
using namespace buffers;
using namespace cuguest_test;

}  // namespace

BOOST_AUTO_TEST_CASE(copy_of_host_values_in_the_order_of_a_stream) {
  const Owner owner;
  const OwnContext other;
  const Ints values(kInts, 7);
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    {
      const Buffer buffer = Made(Buffer::CopyOfAsync(Ref(owner), values));
      BOOST_TEST((KindOf(buffer.get()) == MemoryDescription::Kind::kPool));
      BOOST_TEST((cuguest::Download(buffer.view(), Ref(owner)).value() == values));
      BOOST_TEST(Made(Buffer::CopyOfAsync(Ref(owner), HostSpan<const int>())).empty());
    }
    OK(RAW(cuStreamSynchronize)(owner.stream()));
    BOOST_TEST(BytesOfPool() == 0U);
  }
  SetStack({});
  REFUSES(Buffer::CopyOfAsync(StreamRef(), values).status(), kInvalidArgument, "");
  REFUSES(Buffer::CopyOfAsync(Ref(owner), HostSpan<const int>(nullptr, kInts)).status(),
          kInvalidArgument, "null");
}

BOOST_AUTO_TEST_CASE(in_the_order_of_a_stream) {
  const Owner owner;
  const OwnContext other;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    Buffer buffer = Made(Buffer::AllocateAsync(Ref(owner), kInts));
    BOOST_TEST((KindOf(buffer.get()) == MemoryDescription::Kind::kPool));
    BOOST_TEST((buffer.context() == ContextRef()));
    BOOST_TEST((buffer.device() == Device::Borrow(0)));
    SUCCEEDS(FillAsync(buffer.view(), 6, Ref(owner)));
    Ints ints(kInts);
    SUCCEEDS(DownloadAsync(buffer.view(), ints, Ref(owner)));
    const CUdeviceptr pointer = buffer.get();
    SUCCEEDS(buffer.Release());
    SUCCEEDS(Ref(owner).Synchronize());
    BOOST_TEST((ints == Ints(kInts, 6)));
    BOOST_TEST(!IsThere(pointer));
  }
  SetStack({});
  BOOST_TEST(!IsActive(0));
}

BOOST_AUTO_TEST_CASE(from_the_current_pool_of_the_device) {
  const Owner owner;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  CUmemoryPool before = nullptr;
  OK(RAW(cuDeviceGetMemPool)(&before, 0));
  OK(RAW(cuMemPoolCreate)(&pool, &properties));
  OK(RAW(cuDeviceSetMemPool)(0, pool));
  Buffer buffer = Made(Buffer::AllocateAsync(Ref(owner), kInts));
  BOOST_TEST((Describe(buffer.get())->pool == pool));
  SUCCEEDS(buffer.Release());
  SUCCEEDS(Ref(owner).Synchronize());
  OK(RAW(cuDeviceSetMemPool)(0, before));
  OK(RAW(cuMemPoolDestroy)(pool));
}

BOOST_AUTO_TEST_CASE(on_the_streams_that_are_no_objects) {
  const Owner owner;
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    const Undisturbed undisturbed;
    const StreamRef ref = StreamRef::Borrow(stream, owner.ref());
    Buffer buffer = Made(Buffer::AllocateAsync(ref, kInts));
    SUCCEEDS(FillAsync(buffer.view(), 2, ref));
    SUCCEEDS(ref.Synchronize());
    BOOST_TEST((KindOf(buffer.get()) == MemoryDescription::Kind::kPool));
    SUCCEEDS(buffer.Release());
    SUCCEEDS(ref.Synchronize());
  }
}

BOOST_AUTO_TEST_CASE(freed_in_the_order_of_another_stream) {
  const Owner owner;
  const Owner other;
  Buffer pool = Made(Buffer::AllocateAsync(Ref(owner), kInts));
  Buffer plain = Allocated(owner);
  SUCCEEDS(Ref(owner).Synchronize());
  const CUdeviceptr pointers[] = {pool.get(), plain.get()};
  SUCCEEDS(pool.FreeAsync(Ref(other)));
  SUCCEEDS(plain.FreeAsync(Ref(other)));
  BOOST_TEST(pool.empty());
  SUCCEEDS(plain.FreeAsync(StreamRef()));  // empty already
  SUCCEEDS(Ref(other).Synchronize());
  for (const CUdeviceptr pointer : pointers) BOOST_TEST(!IsThere(pointer));
  Buffer kept = Allocated(owner);
  REFUSES(kept.FreeAsync(StreamRef()), kInvalidArgument, "free 4096 bytes", "StreamRef is empty");
  BOOST_TEST(IsThere(kept.get()));
}

BOOST_AUTO_TEST_CASE(pool_memory_is_freed_after_the_end_of_its_streams_context) {
  const Owner other;
  for (const Stack& stack : {Stack{}, Stack{other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    Buffer buffer;
    {
      const Owner owner;
      buffer = Made(Buffer::AllocateAsync(Ref(owner), kInts));
      SetStack(stack);
    }
    OwnContext::DestroyIdle();
    const CUdeviceptr pointer = buffer.get();
    BOOST_TEST(IsThere(pointer));
    SUCCEEDS(buffer.Release());
    BOOST_TEST(!IsThere(pointer));
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(not_freed_in_the_order_of_a_stream_whose_context_is_over) {
  const Owner owner;
  for (const bool from_pool : {false, true}) {
    Buffer buffer = from_pool ? Made(Buffer::AllocateAsync(Ref(owner), kInts)) : Allocated(owner);
    const CUdeviceptr pointer = buffer.get();
    StreamRef ended;
    {
      const Owner other;
      ended = Ref(other);
    }
    OwnContext::DestroyIdle();
    const absl::Status refused = buffer.FreeAsync(ended);
    REFUSES(refused, kFailedPrecondition, "free 4096 bytes", "the stream's context",
            "still owns it");
    BOOST_TEST((cuguest::CodeOf(refused) != CUDA_ERROR_CONTEXT_IS_DESTROYED));  // as of its own
    BOOST_TEST(buffer.get() == pointer);
    BOOST_TEST(IsThere(pointer));
    SUCCEEDS(buffer.Release());
    SUCCEEDS(Ref(owner).Synchronize());
    BOOST_TEST(!IsThere(pointer));
  }
}

BOOST_AUTO_TEST_CASE(without_a_thread_pool_memory_is_kept_over_a_dead_entry) {
  Buffer buffer;
  {
    const Owner owner;
    buffer = Made(Buffer::AllocateAsync(Ref(owner), kInts));
  }
  const CUdeviceptr pointer = buffer.get();
  PushDeadContext();
  {
    const NoNewThreads no_threads;
    const absl::Status refused = buffer.Release();
    REFUSES(refused, kInternal, "free 4096 bytes", "a dead context is current", "still owns it");
    BOOST_TEST((cuguest::CodeOf(refused) == std::optional<CUresult>(CUDA_ERROR_OPERATING_SYSTEM)));
  }
  BOOST_TEST(buffer.get() == pointer);
  SUCCEEDS(buffer.Release());
  SetStack({});
  BOOST_TEST(!IsThere(pointer));
}

// As where two members of a class are declared in the wrong order.
BOOST_AUTO_TEST_CASE(freed_after_its_stream_has_ended) {
  const Owner owner;
  const OwnContext other;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{other.get()}}) {
    for (const bool silently : {false, true}) {
      SetStack(stack);
      const Undisturbed undisturbed;
      const cuuint64_t use = BytesOfPool();
      Stream stream = Stream::Create(owner.ref()).value();
      Buffer buffer = Made(Buffer::AllocateAsync(stream.ref(), kInts));
      const CUdeviceptr pointer = Allocated(owner).Leak().get();
      Buffer adopted = Made(Buffer::AdoptAsync(pointer, kInts, stream.ref()));
      SUCCEEDS(FillAsync(buffer.view(), 1, stream.ref()));
      const CUstream ended = stream.get();
      stream = Stream();
      // One of them has its handle, perhaps, and its own buffer.
      std::vector<Stream> later;
      for (int i = 0; i < 8; ++i) later.push_back(Stream::Create(owner.ref()).value());
      const auto same = std::find_if(later.begin(), later.end(),
                                     [=](const Stream& one) { return one.get() == ended; });
      Buffer next =
          Made(Buffer::AllocateAsync((same != later.end() ? *same : later[0]).ref(), kInts));
      Buffer moved = std::move(buffer);
      Sim::ResetCalls();
      if (!silently) {
        SUCCEEDS(moved.Release());
        SUCCEEDS(adopted.Release());
      }
      moved = Buffer();
      adopted = Buffer();
      BOOST_TEST(!IsThere(pointer), "a context's own is freed at once");
      if (Sim::IsActive()) BOOST_TEST(Sim::Calls("cuMemFree") == 1U);
      SUCCEEDS(next.Release());
      SUCCEEDS(StreamRef::Borrow(nullptr, owner.ref()).Synchronize());
      {
        const cuguest::ContextGuard guard(owner.ref());
        OK(RAW(cuCtxSynchronize)());
      }
      // The driver may know addresses of a pool after their end.
      BOOST_TEST(BytesOfPool() == use);
    }
  }
  SetStack({});
}

namespace {

// Work of `stream` that ends when `may_end` is set.
void Hold(const Stream& stream, std::atomic<bool>* may_end) {
  OK(RAW(cuLaunchHostFunc)(
      stream.get(),
      [](void* flag) {
        while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
      },
      may_end));
}

}  // namespace

BOOST_AUTO_TEST_CASE(freed_behind_the_work_of_its_ended_stream, *OnlySim()) {
  const Owner owner;
  Stream stream = Stream::Create(owner.ref()).value();
  Buffer buffer = Made(Buffer::AllocateAsync(stream.ref(), kInts));
  const CUdeviceptr pointer = buffer.get();
  std::atomic<bool> may_end{false};
  owner.Enter();
  Hold(stream, &may_end);
  stream = Stream();
  SUCCEEDS(buffer.Release());
  BOOST_TEST(IsThere(pointer));
  may_end = true;
  OK(RAW(cuCtxSynchronize)());
  BOOST_TEST(!IsThere(pointer));
  SetStack({});
}

// As cuMemFreeAsync would not give it back, and cuMemFree may not wait for a stream that has ended.
BOOST_AUTO_TEST_CASE(a_contexts_own_memory_waits_for_the_work_of_its_ended_stream, *OnlySim()) {
  const Owner owner;
  Stream stream = Stream::Create(owner.ref()).value();
  const CUdeviceptr pointer = Allocated(owner).Leak().get();
  Buffer buffer = Made(Buffer::AdoptAsync(pointer, kInts, stream.ref()));
  std::atomic<bool> may_end{false};
  owner.Enter();
  Hold(stream, &may_end);
  stream = Stream();
  SetStack({});
  Sim::ResetCalls();
  std::atomic<bool> is_freed{false};
  std::thread ends([&] {
    const auto waits = [] {
      return Sim::Calls("cuEventSynchronize") + Sim::Calls("cuMemFree") != 0;
    };
    while (!waits() && !is_freed) std::this_thread::yield();
    BOOST_TEST(Sim::Calls("cuMemFree") == 0U);
    BOOST_TEST(IsThere(pointer));
    may_end = true;
  });
  SUCCEEDS(buffer.Release());
  is_freed = true;
  ends.join();
  BOOST_TEST(!IsThere(pointer));
}

BOOST_AUTO_TEST_CASE(a_contexts_own_memory_is_kept_where_waiting_fails, *OnlySim()) {
  const Owner owner;
  Stream stream = Stream::Create(owner.ref()).value();
  const CUdeviceptr pointer = Allocated(owner).Leak().get();
  Buffer buffer = Made(Buffer::AdoptAsync(pointer, kInts, stream.ref()));
  stream = Stream();
  Sim::FailCall("cuEventSynchronize", 1, CUDA_ERROR_UNKNOWN);
  REFUSES(buffer.Release(), kUnknown, "free 4096 bytes", "still owns it");
  Sim::ClearFaults();
  BOOST_TEST(buffer.get() == pointer);
  SUCCEEDS(buffer.Release());
  BOOST_TEST(!IsThere(pointer));
}

BOOST_AUTO_TEST_CASE(a_stream_that_is_not_destroyed_has_not_ended, *OnlySim()) {
  const Owner owner;
  Stream stream = Stream::Create(owner.ref()).value();
  Buffer buffer = Made(Buffer::AllocateAsync(stream.ref(), kInts));
  Sim::FailCall("cuStreamDestroy", 1, CUDA_ERROR_UNKNOWN);
  BOOST_TEST(!stream.Release().ok());
  Sim::ResetCalls();
  SUCCEEDS(buffer.Release());
  BOOST_TEST(Sim::Calls("cuStreamCreate") == 0u);
  buffer = Made(Buffer::AllocateAsync(stream.ref(), kInts));
  // Without an event behind its work it is kept, and said so.
  Sim::FailCall("cuEventRecord", 1, CUDA_ERROR_UNKNOWN);
  stream = Stream();
  Sim::ClearFaults();
  REFUSES(buffer.Release(), kInvalidArgument, "its stream has ended", "still owns it",
          Advised("free it in the order of a stream that waits for the work"));
  BOOST_TEST(!buffer.empty());
  SUCCEEDS(buffer.FreeAsync(Ref(owner)));
}

// A driver may refuse a created stream's memory where a dead context is current.
BOOST_AUTO_TEST_CASE(memory_of_a_created_stream_over_a_dead_context) {
  const Owner owner;
  for (const bool refuses : {false, true}) {
    if (refuses && !Sim::IsActive()) continue;
    PushDeadContext();
    const Undisturbed undisturbed;
    Sim::ResetCalls();
    if (refuses) Sim::FailCall("cuMemAllocAsync", 1, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    Buffer buffer = Made(Buffer::AllocateAsync(Ref(owner), kInts));
    const CUdeviceptr pointer = buffer.get();
    if (refuses) Sim::FailCall("cuMemFreeAsync", 1, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    SUCCEEDS(buffer.Release());
    Sim::ClearFaults();
    if (Sim::IsActive()) {
      const unsigned tries = refuses ? 2 : 1;
      BOOST_TEST(Sim::Calls("cuMemAllocAsync") == tries);
      BOOST_TEST(Sim::Calls("cuMemFreeAsync") == tries);
      BOOST_TEST(Sim::Calls("cuMemFree") == 0U);
    }
    SUCCEEDS(Ref(owner).Synchronize());
    BOOST_TEST(!IsThere(pointer));
  }
  SetStack({});
}

// A dead entry stays on a stack until it is popped, as after cudaDeviceReset().
BOOST_AUTO_TEST_CASE(pool_memory_is_freed_over_a_dead_entry) {
  const Owner below;
  for (const bool silently : {false, true}) {
    Buffer buffer;
    Buffer adopted;
    {
      const Owner owner;
      buffer = Made(Buffer::AllocateAsync(Ref(owner), kInts));
      CUdeviceptr pointer = 0;
      OK(RAW(cuMemAllocAsync)(&pointer, kBytes, owner.stream()));
      SUCCEEDS(Ref(owner).Synchronize());
      adopted = Made(Buffer::Adopt(pointer, kInts));
    }
    const CUdeviceptr pointers[] = {buffer.get(), adopted.get()};
    SetStack({below.get()});
    PushDeadContext();
    const Stack stack = GetStack();
    if (!silently) {
      SUCCEEDS(buffer.Release());
      SUCCEEDS(adopted.Release());
    }
    buffer = Buffer();
    adopted = Buffer();
    BOOST_TEST(GetStack() == stack);
    SetStack({});
    for (const CUdeviceptr pointer : pointers) BOOST_TEST(!IsThere(pointer));
  }
}

BOOST_AUTO_TEST_CASE(per_thread_streams_memory_ends_on_another_thread) {
  const Owner owner;
  const StreamRef ref = StreamRef::Borrow(CU_STREAM_PER_THREAD, owner.ref());
  for (const bool adopts : {false, true}) {
    Buffer buffer = Made(Buffer::AllocateAsync(ref, kInts));
    if (adopts) {
      const CUdeviceptr pointer = buffer.Leak().get();
      buffer = Made(Buffer::AdoptAsync(pointer, kInts, ref));
    }
    Buffer ordered = Made(Buffer::AllocateAsync(ref, kInts));
    SUCCEEDS(FillAsync(buffer.view(), 2, ref));
    const CUdeviceptr pointers[] = {buffer.get(), ordered.get()};
    std::thread([&] {
      // Its own per-thread stream is not the one to wait for.
      REFUSES(buffer.Release(), kFailedPrecondition, "free 4096 bytes", "another thread",
              "FreeAsync()");
      BOOST_TEST(!buffer.empty());
      {
        // This is refused for stream 0 and its waiting alone.
        owner.Enter();
        const Capture capture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED);
        REFUSES(buffer.FreeAsync(StreamRef::Borrow(CU_STREAM_LEGACY, owner.ref())),
                kFailedPrecondition, "captures");
      }
      SetStack({});
      Sim::ResetCalls();
      const Buffer ending = std::move(buffer);
      SUCCEEDS(ordered.FreeAsync(Ref(owner)));
    }).join();
    if (Sim::IsActive()) BOOST_TEST(Sim::Calls("cuMemFreeAsync") == 2U);
    SUCCEEDS(StreamRef::Borrow(CU_STREAM_LEGACY, owner.ref()).Synchronize());
    SUCCEEDS(Ref(owner).Synchronize());
    for (const CUdeviceptr pointer : pointers) BOOST_TEST(!IsThere(pointer));
  }
}

// While a blocking stream captures stream 0 cannot be used. No other one of this thread waits for
// what the other thread has submitted, so the memory is given up rather than freed there.
BOOST_AUTO_TEST_CASE(per_thread_streams_memory_is_freed_in_stream_0_elsewhere) {
  const Owner owner;
  Buffer buffer =
      Made(Buffer::AllocateAsync(StreamRef::Borrow(CU_STREAM_PER_THREAD, owner.ref()), kInts));
  const CUdeviceptr pointer = buffer.get();
  owner.Enter();
  CUstream blocking = nullptr;
  BOOST_TEST(RAW(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT) == CUDA_SUCCESS);
  {
    const Capture capture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
    std::thread([&] { const Buffer ending = std::move(buffer); }).join();
  }
  const std::vector<cuguest::Incident> incidents = cuguest_test::TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1u);
  BOOST_TEST((incidents[0].kind == cuguest::Incident::Kind::kOwed));
  BOOST_TEST(incidents[0].result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  BOOST_TEST(IsThere(pointer));
  BOOST_TEST(RAW(cuMemFree)(pointer) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuStreamDestroy)(blocking) == CUDA_SUCCESS);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(refused_in_the_order_of_a_stream_that_captures) {
  const Owner owner;
  const Owner other;
  Buffer buffer = Made(Buffer::AllocateAsync(Ref(owner), kInts));
  SUCCEEDS(Ref(owner).Synchronize());
  const CUdeviceptr pointer = buffer.get();
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(owner.stream(), mode);
    REFUSES(Buffer::AllocateAsync(Ref(owner), kInts).status(), kFailedPrecondition,
            "STREAM_CAPTURE_UNSUPPORTED", "before the capture");
    REFUSES(buffer.Release(), kFailedPrecondition, "STREAM_CAPTURE_UNSUPPORTED", "another stream");
    BOOST_TEST(buffer.get() == pointer);
    BOOST_TEST(IsThere(pointer));
  }
  const Capture capture(owner.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  SUCCEEDS(buffer.FreeAsync(Ref(other)));
  BOOST_TEST(buffer.empty());
}

BOOST_AUTO_TEST_SUITE_END()
