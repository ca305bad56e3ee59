// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/launch.h"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/objects/typed_kernel.h"
#include "test/objects/launch/launches.h"

BOOST_AUTO_TEST_SUITE(launch)

namespace {

using namespace cuguest_launches;

}  // namespace

BOOST_AUTO_TEST_CASE(in_every_form) {
  Counter counter;
  const Undisturbed undisturbed;
  SUCCEEDS(counter.CountUp());
  BOOST_TEST(counter.Took());

  SUCCEEDS(Launch(counter.kernel(), counter.shape(), counter.stream(),
                  Packed(kCount, kValue, counter.memory())));
  BOOST_TEST(counter.Took());

  unsigned count = kCount;
  unsigned value = kValue;
  CUdeviceptr counts = counter.memory().get();
  void* const pointers[] = {&count, &value, &counts};
  SUCCEEDS(
      Launch(counter.kernel(), counter.shape(), counter.stream(), HostSpan<void* const>(pointers)));
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(without_parameters) {
  const Counter counter;
  const Kernel nothing = counter.Get("nothing");
  const Undisturbed undisturbed;
  SUCCEEDS(Launch(nothing, {}, counter.stream()));
  SUCCEEDS(Launch(nothing, {}, counter.stream(), ParamBuffer()));
  SUCCEEDS(Launch(nothing, {}, counter.stream(), HostSpan<void* const>()));
  SUCCEEDS(counter.stream().Synchronize());
}

BOOST_AUTO_TEST_CASE(whatever_is_current) {
  Counter counter;
  const OwnContext other;
  for (const Stack& stack : {Stack{}, Stack{counter.ref().get()}, Stack{other.get()},
                             Stack{counter.ref().get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    SUCCEEDS(counter.CountUp());
    BOOST_TEST(counter.Took());
    for (const CUstream special : {CUstream{}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
      const StreamRef stream = StreamRef::Borrow(special, counter.ref());
      SUCCEEDS(counter.CountUp(counter.shape(), stream));
      SUCCEEDS(stream.Synchronize());
      BOOST_TEST(counter.Took());
    }
  }
  SetStack({});
}

// Its context is found, whatever is current; a Stream is taken as well.
BOOST_AUTO_TEST_CASE(on_a_stream_that_was_handed_in) {
  Counter counter;
  const OwnContext other;
  const Kernel& kernel = counter.kernel();
  const CUstream callers = counter.stream().get();
  const cuguest::Stream owned = cuguest::Stream::Create(counter.ref()).value();
  const auto typed =
      cuguest::TypedKernel<void(unsigned, unsigned, DevicePtr<unsigned>)>::Of(kernel);
  for (const Stack& stack : {Stack{}, Stack{counter.ref().get()}, Stack{other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    SUCCEEDS(Launch(kernel, counter.shape(), callers, kCount, kValue, counter.memory()));
    SUCCEEDS(Launch(kernel, counter.shape(), callers, Packed(kCount, kValue, counter.memory())));
    SUCCEEDS(LaunchForElements(kernel, kCount, callers, kCount, kValue, counter.memory()));
    SUCCEEDS(typed.Launch(counter.shape(), callers, kCount, kValue, counter.memory()));
    SUCCEEDS(typed.LaunchForElements(kCount, callers, kCount, kValue, counter.memory()));
    BOOST_TEST(counter.Took(5));
    SUCCEEDS(Launch(kernel, counter.shape(), owned, kCount, kValue, counter.memory()));
    SUCCEEDS(LaunchForElements(kernel, kCount, owned, kCount, kValue, counter.memory()));
    SUCCEEDS(owned.ref().Synchronize());
    BOOST_TEST(counter.Took(2));
  }
  SetStack({});
  // Stream 0 is that of the current context, and there is none.
  REFUSES(Launch(kernel, counter.shape(), nullptr, kCount, kValue, counter.memory()),
          kFailedPrecondition, "stream 0");
  SUCCEEDS(LaunchForElements(kernel, 0, nullptr, kCount, kValue, counter.memory()));
  SetStack({counter.ref().get()});
  SUCCEEDS(Launch(kernel, counter.shape(), nullptr, kCount, kValue, counter.memory()));
  OK(RAW(cuCtxSynchronize)());
  BOOST_TEST(counter.Took());
  SetStack({});
}

// To a kernel they are the address of their elements.
BOOST_AUTO_TEST_CASE(views_and_buffers_as_parameters) {
  Counter counter;
  DeviceBuffer<unsigned>& buffer = counter.buffer();
  const Kernel& kernel = counter.kernel();
  const auto typed =
      cuguest::TypedKernel<void(unsigned, unsigned, cuguest::DeviceView<unsigned>)>::Of(kernel);
  const Undisturbed undisturbed;
  SUCCEEDS(Launch(kernel, counter.shape(), counter.stream(), kCount, kValue, buffer));
  BOOST_TEST(counter.Took());
  SUCCEEDS(Launch(kernel, counter.shape(), counter.stream(), kCount, kValue, buffer.view()));
  BOOST_TEST(counter.Took());
  SUCCEEDS(LaunchForElements(kernel, kCount, counter.stream().get(), kCount, kValue,
                             std::as_const(buffer)));
  BOOST_TEST(counter.Took());
  SUCCEEDS(typed.Launch(counter.shape(), counter.stream(), kCount, kValue, buffer.view()));
  BOOST_TEST(counter.Took());
  SUCCEEDS(Launch(kernel, counter.shape(), counter.stream(), 0U, kValue,
                  cuguest::DeviceView<unsigned>()));
  BOOST_TEST(counter.Took(0));
}

// The stream, the view and the buffer may be of three devices: the message names them.
BOOST_AUTO_TEST_CASE(memory_of_another_device_is_refused, *NeedsDevices(2)) {
  Counter counter;
  const Owner far(1);
  const auto buffer = DeviceBuffer<unsigned>::Allocate(far.ref(), kCount).value();
  const Kernel& kernel = counter.kernel();
  SUCCEEDS(kernel.FunctionIn(far.ref()).status());
  const Undisturbed undisturbed;
  REFUSES(Launch(kernel, counter.shape(), counter.stream(), kCount, kValue, buffer),
          kInvalidArgument, "parameter 3 of 3 is device memory of device 1",
          "stream is of device 0", "DevicePtr", "PeerAccess::Enable");
  REFUSES(Launch(kernel, counter.shape(), StreamRef::Borrow(far.stream(), far.ref()), kCount,
                 kValue, counter.buffer().view()),
          kInvalidArgument, "parameter 3 of 3 is device memory of device 0",
          "stream is of device 1");
  BOOST_TEST(counter.Took(0));
  auto pinned =
      cuguest::PinnedBuffer<unsigned>::Allocate(far.ref(), kCount, CU_MEMHOSTALLOC_PORTABLE)
          .value();
  const auto view = cuguest::DeviceView<unsigned>::Borrow(pinned.data(), kCount).value();
  SUCCEEDS(Launch(kernel, counter.shape(), counter.stream(), kCount, kValue, view));
  SUCCEEDS(counter.stream().Synchronize());
}

// The text says what gives access; with it a DevicePtr is taken, and the kernel reaches the memory.
BOOST_AUTO_TEST_CASE(memory_that_was_given_access, *NeedsDevices(2)) {
  Counter counter;
  const Owner far(1);
  const Kernel& kernel = counter.kernel();
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  CUmemoryPool pool = nullptr;
  CUdeviceptr of_pool = 0;
  OK(RAW(cuMemPoolCreate)(&pool, &properties));
  OK(RAW(cuMemAllocFromPoolAsync)(&of_pool, kCount * sizeof(unsigned), pool, far.stream()));
  OK(RAW(cuMemsetD32Async)(of_pool, 0, kCount, far.stream()));
  OK(RAW(cuStreamSynchronize)(far.stream()));
  const Virtual range(1);
  const CUdeviceptr mapped = range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 1);
  far.Enter();
  OK(RAW(cuMemsetD32)(mapped, 0, kCount));
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
  struct Given {
    CUdeviceptr memory;
    const char* by;
  };
  for (const Given& given :
       {Given{of_pool, "cuMemPoolSetAccess"}, Given{mapped, "cuMemSetAccess"}}) {
    const auto view = cuguest::DeviceView<unsigned>::Borrow(given.memory, kCount).value();
    REFUSES(Launch(kernel, counter.shape(), counter.stream(), kCount, kValue, view),
            kInvalidArgument, "of device 1", "stream is of device 0", given.by);
    if (given.memory == of_pool) {
      OK(RAW(cuMemPoolSetAccess)(pool, &access, 1));
    } else {
      OK(RAW(cuMemSetAccess)(mapped, kUnit, &access, 1));
    }
    SUCCEEDS(Launch(kernel, counter.shape(), counter.stream(), kCount, kValue,
                    DevicePtr<unsigned>(given.memory)));
    SUCCEEDS(counter.stream().Synchronize());
    far.Enter();
    const absl::StatusOr<Counts> counts = Download(view);
    SetStack({});
    BOOST_TEST_REQUIRE(counts.ok(), counts.status().ToString());
    BOOST_TEST((*counts == Counts(kCount, kValue)));
  }
  OK(RAW(cuMemFree)(of_pool));
  OK(RAW(cuMemPoolDestroy)(pool));
}

// One kernel in the contexts of two streams, with variables of its own in each.
BOOST_AUTO_TEST_CASE(in_the_context_of_the_stream) {
  Counter here;
  Counter there;
  const Kernel set = here.Get("set_mark");
  const Kernel get = here.Get("get_mark");
  SUCCEEDS(Launch(set, {}, here.stream(), 1U));
  SUCCEEDS(Launch(set, {}, there.stream(), 2U));
  SUCCEEDS(Launch(get, {}, here.stream(), here.memory()));
  SUCCEEDS(Launch(get, {}, there.stream(), there.memory()));
  BOOST_TEST(here.Take()[0] == 1u);
  BOOST_TEST(there.Take()[0] == 2u);
}

BOOST_AUTO_TEST_CASE(the_shape_arrives) {
  Counter counter;
  const Kernel get_shape = counter.Get("get_shape");
  LaunchShape shape{{3, 5, 2}, {4, 2, 8}};
  shape.shared_bytes = 4096;
  SUCCEEDS(Launch(get_shape, shape, counter.stream(), counter.memory()));
  Counts seen = counter.Take();
  seen.resize(10);
  BOOST_TEST(seen == (Counts{3, 5, 2, 4, 2, 8, 1, 1, 1, 4096}));
}

BOOST_AUTO_TEST_CASE(shapes_for_elements) {
  struct Row {
    std::size_t count;
    unsigned block;
    unsigned grid;
  };
  for (const Row& row : {Row{1, 256, 1}, Row{256, 256, 1}, Row{257, 256, 2}, Row{100, 1, 100},
                         Row{std::size_t{0x7fffffff} * 64, 64, 0x7fffffff}}) {
    const LaunchShape shape = LaunchShape::ForElements(row.count, row.block).value();
    BOOST_TEST(shape.grid.x == row.grid);
    BOOST_TEST(shape.block.x == row.block);
    BOOST_TEST(shape.grid.y * shape.grid.z * shape.block.y * shape.block.z == 1u);
  }
  REFUSES(LaunchShape::ForElements(0, 64).status(), kInvalidArgument, "nothing to launch");
  REFUSES(LaunchShape::ForElements(64, 0).status(), kInvalidArgument, "blocks of 0");
  REFUSES(LaunchShape::ForElements(std::size_t{0x7fffffff} * 64 + 1, 64).status(), kOutOfRange,
          "2147483648 blocks", "at most 2147483647");
  REFUSES(LaunchShape::ForElements(~std::size_t{0}, 1).status(), kOutOfRange,
          "18446744073709551615 blocks");
}

// The driver would say CUDA_ERROR_INVALID_VALUE to all of these, and end the capture.
BOOST_AUTO_TEST_CASE(bad_shapes_invalidate_no_capture) {
  struct Row {
    LaunchShape shape;
    std::vector<std::string> words;
  };
  LaunchShape too_much_shared{1, 1};
  too_much_shared.shared_bytes = 49 << 10;
  LaunchShape more_than_there_is{1, 1};
  more_than_there_is.shared_bytes = std::size_t{1} << 40;
  LaunchShape more_than_32_bits{1, 1};
  more_than_32_bits.shared_bytes = (std::size_t{1} << 32) + 1;
  const Row rows[] = {
      {{0, 1}, {"grid.x is 0", "at least 1"}},
      {{{1, 0}, 1}, {"grid.y is 0"}},
      {{{1, 1, 0}, 1}, {"grid.z is 0"}},
      {{1, 0}, {"block.x is 0"}},
      {{1, {1, 0}}, {"block.y is 0"}},
      {{1, {1, 1, 0}}, {"block.z is 0"}},
      {{0x80000000, 1}, {"grid.x is 2147483648", "allows 2147483647"}},
      {{{1, 65536}, 1}, {"grid.y is 65536", "allows 65535"}},
      {{{1, 1, 65536}, 1}, {"grid.z is 65536", "allows 65535"}},
      {{1, 1025}, {"block.x is 1025", "allows 1024"}},
      {{1, {1, 1025}}, {"block.y is 1025", "allows 1024"}},
      {{1, {1, 1, 65}}, {"block.z is 65", "allows 64"}},
      {{1, {32, 32, 2}}, {"32 x 32 x 2 is 2048 threads", "the device allows 1024"}},
      {too_much_shared, {"50176 bytes", "49152 are allowed", "SetMaxDynamicSharedBytes"}},
      {more_than_there_is, {"1099511627776 bytes", "the device has"}},
      {more_than_32_bits, {"4294967297 bytes"}},
  };
  Counter counter;
  for (const bool warm : {false, true}) {
    for (const CUstreamCaptureMode mode : kCaptureModes) {
      const Capture capture(counter.stream().get(), mode);
      for (const Row& row : rows) {
        const std::string complaint = NoRefusal(counter.CountUp(row.shape, counter.stream()),
                                                absl::StatusCode::kInvalidArgument, row.words);
        BOOST_TEST(complaint.empty(), complaint);
      }
      if (warm) SUCCEEDS(counter.CountUp());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_kernel_with_limits_of_its_own) {
  Counter counter;
  const Kernel small = counter.Get("small_blocks");
  SUCCEEDS(Launch(small, {1, 128}, counter.stream(), counter.memory()));
  BOOST_TEST(counter.Take()[0] == 127u);
  REFUSES(Launch(small, {1, 129}, counter.stream(), counter.memory()), kInvalidArgument,
          "\"small_blocks\"", "129 threads", "the kernel allows 128");
  LaunchShape shape{1, 128};
  shape.shared_bytes = (48 << 10) - 4096;
  SUCCEEDS(Launch(small, shape, counter.stream(), counter.memory()));
  shape.shared_bytes = 48 << 10;
  REFUSES(Launch(small, shape, counter.stream(), counter.memory()), kInvalidArgument,
          "SetMaxDynamicSharedBytes");
  shape.shared_bytes = 1 << 20;
  REFUSES(Launch(small, shape, counter.stream(), counter.memory()), kInvalidArgument,
          "static memory takes 4096");
  SUCCEEDS(counter.stream().Synchronize());
}

BOOST_AUTO_TEST_CASE(shared_memory_that_was_asked_for) {
  Counter counter;
  const Kernel kernel = counter.Get("get_shape");
  LaunchShape shape{1, 1};
  shape.shared_bytes = 64 << 10;
  const auto launched = [&] { return Launch(kernel, shape, counter.stream(), counter.memory()); };
  REFUSES(launched(), kInvalidArgument, "SetMaxDynamicSharedBytes");
  SUCCEEDS(kernel.SetMaxDynamicSharedBytes(counter.ref(), shape.shared_bytes));
  SUCCEEDS(launched());
  BOOST_TEST(counter.Take()[9] == shape.shared_bytes);

  shape.shared_bytes = 65 << 10;
  REFUSES(launched(), kInvalidArgument, "65536 are allowed");
  const CUfunction function = kernel.FunctionIn(counter.ref()).value();
  OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             static_cast<int>(shape.shared_bytes)));
  SUCCEEDS(launched());
  BOOST_TEST(counter.Take()[9] == shape.shared_bytes, "behind our back");
}

namespace {

void LowerShared(CUfunction function) {
  OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096));
}

}  // namespace

BOOST_AUTO_TEST_CASE(allowed_shared_memory_stays_allowed) {
  Counter counter;
  const Kernel kernel = counter.Get("get_shape");
  const CUfunction function = kernel.FunctionIn(counter.ref()).value();
  LaunchShape shape{1, 1};
  shape.shared_bytes = 64 << 10;
  const auto launched = [&] { return Launch(kernel, shape, counter.stream(), counter.memory()); };
  SUCCEEDS(kernel.SetMaxDynamicSharedBytes(counter.ref(), shape.shared_bytes));
  SUCCEEDS(counter.Get("get_shape").SetMaxDynamicSharedBytes(counter.ref(), 4096));
  SUCCEEDS(launched());
  LowerShared(function);
  SUCCEEDS(launched());
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    LowerShared(function);
    const Capture capture(counter.stream().get(), mode);
    SUCCEEDS(launched());
  }
}

BOOST_AUTO_TEST_CASE(limits_lowered_by_others_invalidate_no_capture) {
  Counter counter;
  const Kernel kernel = counter.Get("get_shape");
  const CUfunction function = kernel.FunctionIn(counter.ref()).value();
  LaunchShape shape{1, 1};
  shape.shared_bytes = 32 << 10;
  const auto launched = [&] { return Launch(kernel, shape, counter.stream(), counter.memory()); };
  SUCCEEDS(launched());
  LowerShared(function);
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(counter.stream().get(), mode);
    REFUSES(launched(), kInvalidArgument, "32768 bytes", "4096 are allowed");
  }
  OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 48 << 10));
  SUCCEEDS(launched());
  LowerShared(function);
  REFUSES(launched(), kInvalidArgument, "32768 bytes", "4096 are allowed");
}

BOOST_AUTO_TEST_CASE(threads_that_each_allow_what_they_need) {
  Counter counter;
  const Kernel kernel = counter.Get("nothing");
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (const std::size_t bytes : {4 << 10, 52 << 10, 64 << 10}) {
    threads.emplace_back([&, bytes] {
      LaunchShape shape{1, 1};
      shape.shared_bytes = bytes;
      for (int i = 0; i < 500; ++i) {
        if (!kernel.SetMaxDynamicSharedBytes(counter.ref(), bytes).ok()) ++refused;
        if (!Launch(kernel, shape, counter.stream()).ok()) ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(refused == 0);
}

BOOST_AUTO_TEST_CASE(wrong_parameters_invalidate_no_capture,
                     *NeedsDriver(12040, "cuFuncGetParamInfo, by which parameters are checked")) {
  Counter counter;
  const Kernel& kernel = counter.kernel();
  const StreamRef& stream = counter.stream();
  const auto memory = counter.memory();
  const LaunchShape one;
  unsigned number = 0;
  void* const two[] = {&number, &number};
  void* const holed[] = {&number, nullptr, &number};
  ParamBuffer shifted;
  SUCCEEDS(shifted.AddBytes(&number, 4, 4));
  SUCCEEDS(shifted.AddBytes(&number, 4, 4));
  SUCCEEDS(shifted.AddBytes("12345678", 8, 4));
  SUCCEEDS(shifted.Add(number));
  for (const bool warm : {false, true}) {
    if (warm) {
      SUCCEEDS(counter.CountUp());
      SUCCEEDS(Launch(kernel, one, stream, Packed(1U, 1U, memory)));
      SUCCEEDS(stream.Synchronize());
    }
    const Capture capture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    REFUSES(Launch(kernel, one, stream), kInvalidArgument, "\"count_up\"", "takes 3 parameters",
            "0 are given");
    REFUSES(Launch(kernel, one, stream, 1U), kInvalidArgument, "3 parameters", "1 is given");
    REFUSES(Launch(kernel, one, stream, 1U, 1U, memory, 1U), kInvalidArgument, "4 are given");
    REFUSES(Launch(kernel, one, stream, 1.0, 1U, memory), kInvalidArgument,
            "parameter 1 of 3 is 4 bytes at offset 0", "8 bytes at offset 0 is given", "as 1.0F");
    REFUSES(Launch(kernel, one, stream, 1U, memory, 1U), kInvalidArgument,
            "parameter 2 of 3 is 4 bytes at offset 4", "8 bytes at offset 8");
    REFUSES(Launch(kernel, one, stream, Packed(1U, 1U)), kInvalidArgument, "2 are given");
    REFUSES(Launch(kernel, one, stream, Packed('c', 1U, memory)), kInvalidArgument, "parameter 1",
            "1 byte at offset 0");
    REFUSES(Launch(kernel, one, stream, ParamBuffer()), kInvalidArgument, "0 are given");
    REFUSES(Launch(kernel, one, stream, shifted), kInvalidArgument, "4 are given");
    REFUSES(Launch(kernel, one, stream, HostSpan<void* const>(two)), kInvalidArgument,
            "2 are given");
    REFUSES(Launch(kernel, one, stream, HostSpan<void* const>()), kInvalidArgument, "0 are given");
    REFUSES(Launch(kernel, one, stream, HostSpan<void* const>(holed)), kInvalidArgument,
            "pointer to parameter 2 of 3 is null");
    REFUSES(Launch(kernel, one, stream, HostSpan<void* const>(nullptr, 3)), kInvalidArgument,
            "pointer to parameter 1 of 3 is null");
  }
}

// What was found right of one list of types says nothing of another.
BOOST_AUTO_TEST_CASE(right_and_wrong_parameters_by_turns,
                     *NeedsDriver(12040, "cuFuncGetParamInfo, by which parameters are checked")) {
  Counter counter;
  for (int i = 0; i < 3; ++i) {
    SUCCEEDS(counter.CountUp());
    REFUSES(Launch(counter.kernel(), {}, counter.stream(), 1.0, 1U, counter.memory()),
            kInvalidArgument, "parameter 1");
    SUCCEEDS(Launch(counter.kernel(), counter.shape(), counter.stream(), 100, 3,
                    counter.memory().get()));
    BOOST_TEST(counter.Took(2));
  }
}

BOOST_AUTO_TEST_CASE(a_borrowed_kernel) {
  Counter counter;
  const CUfunction function = counter.kernel().FunctionIn(counter.ref()).value();
  const Kernel borrowed = Kernel::Borrow(function, counter.ref()).value();
  const Undisturbed undisturbed;
  SUCCEEDS(Launch(borrowed, counter.shape(), counter.stream(), kCount, kValue, counter.memory()));
  BOOST_TEST(counter.Took());
  if (HasDriver(12040)) {
    REFUSES(Launch(borrowed, {}, counter.stream(), 1U), kInvalidArgument, "3 parameters");
  }
}

BOOST_AUTO_TEST_CASE(a_stream_of_another_context_than_a_borrowed_functions) {
  Counter counter;
  const CUfunction function = counter.kernel().FunctionIn(counter.ref()).value();
  const Kernel borrowed = Kernel::Borrow(function, counter.ref()).value();
  const Owner other;
  const StreamRef stream = StreamRef::Borrow(other.stream(), other.ref());
  const Undisturbed undisturbed;
  for (int i = 0; i < 2; ++i) {
    REFUSES(Launch(borrowed, {}, stream, kCount, kValue, counter.memory()), kFailedPrecondition,
            "context");
  }
}

BOOST_AUTO_TEST_CASE(nothing_to_launch_or_nowhere) {
  const Counter counter;
  const Undisturbed undisturbed;
  REFUSES(Launch(Kernel(), {}, counter.stream()), kFailedPrecondition, "empty kernel");
  REFUSES(Launch(Kernel(), {}, counter.stream(), ParamBuffer()), kFailedPrecondition,
          "empty kernel");
  void* const holed[] = {nullptr};
  REFUSES(Launch(Kernel(), {}, counter.stream(), HostSpan<void* const>(holed)), kFailedPrecondition,
          "empty kernel");
  const Kernel nothing = counter.Get("nothing");
  REFUSES(Launch(nothing, {}, StreamRef()), kInvalidArgument, "\"nothing\"", "empty stream");
  REFUSES(Launch(nothing, {}, StreamRef::Borrow(counter.stream().get(), ContextRef())),
          kInvalidArgument, "empty stream");
}

BOOST_AUTO_TEST_SUITE_END()
