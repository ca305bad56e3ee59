// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events and pointers: whose they are, and what works with another context
// current or with none.

#include <vector>

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(stream_event_pointer_facts)

using namespace cudasim_facts;

namespace {

// A context with memory, a stream and an event; not current.
struct Owner {
  explicit Owner(unsigned event_flags = 0) {
    OK(RAW(cuCtxPushCurrent)(context.get()));
    OK(RAW(cuMemAlloc)(&memory, 4096));
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuEventCreate)(&event, event_flags));
    OK(RAW(cuCtxPopCurrent)(nullptr));
  }

  OwnContext context;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
};

CUcontext ContextOf(CUdeviceptr pointer) {
  CUcontext context = nullptr;
  OK(RAW(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer));
  return context;
}

unsigned TypeOf(CUdeviceptr pointer) {
  unsigned type = 0;
  OK(RAW(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
  return type;
}

const CUstream kSpecial[] = {nullptr, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};

}  // namespace

BOOST_AUTO_TEST_CASE(a_created_stream_knows_its_context) {
  const Owner owner;
  CUcontext context = nullptr;
  OK(RAW(cuStreamGetCtx)(owner.stream, &context));
  BOOST_CHECK(context == owner.context.get());
  CUgreenCtx green = reinterpret_cast<CUgreenCtx>(0x77);
  OK(RAW(cuStreamGetCtx_v2)(owner.stream, &context, &green));
  BOOST_CHECK(context == owner.context.get());
  BOOST_CHECK(green == nullptr);
  IS(RAW(cuStreamGetCtx)(owner.stream, nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_special_stream_is_the_current_contexts) {
  for (const CUstream stream : kSpecial) {
    CUcontext context = nullptr;
    IS(RAW(cuStreamGetCtx)(stream, &context), INVALID_CONTEXT);
    IS(RAW(cuStreamSynchronize)(stream), INVALID_CONTEXT);
    IS(RAW(cuStreamQuery)(stream), INVALID_CONTEXT);
    BOOST_CHECK_EQUAL(RAW(cuStreamDestroy)(stream),
                      stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT);
  }
  const OwnContext a;
  SetStack({a.get()});
  for (const CUstream stream : kSpecial) {
    CUcontext context = nullptr;
    OK(RAW(cuStreamGetCtx)(stream, &context));
    BOOST_CHECK(context == a.get());
    OK(RAW(cuStreamSynchronize)(stream));
    OK(RAW(cuStreamQuery)(stream));
    IS(RAW(cuStreamDestroy)(stream), INVALID_HANDLE);
  }
  unsigned flags = 77;
  OK(RAW(cuStreamGetFlags)(nullptr, &flags));
  BOOST_TEST(flags == 0u);
  unsigned long long id = 0;
  OK(RAW(cuStreamGetId)(nullptr, &id));
  SetStack({});
}

// Measured on an H200, driver 580.159.04.
BOOST_AUTO_TEST_CASE(ids_of_streams_only_rise) {
  const OwnContext contexts[2];
  unsigned long long last = 0;
  for (int i = 0; i < 200; ++i) {
    SetStack({contexts[i % 2].get()});
    CUstream stream = nullptr;
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    unsigned long long id = 0;
    OK(RAW(cuStreamGetId)(stream, &id));
    BOOST_TEST(id > last);
    last = id;
    OK(RAW(cuStreamDestroy)(stream));
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_created_stream_works_without_a_current_context) {
  Owner owner;
  OK(RAW(cuStreamQuery)(owner.stream));
  OK(RAW(cuStreamSynchronize)(owner.stream));
  unsigned flags = 0;
  OK(RAW(cuStreamGetFlags)(owner.stream, &flags));
  BOOST_TEST(flags == unsigned{CU_STREAM_NON_BLOCKING});
  unsigned long long id = 0;
  OK(RAW(cuStreamGetId)(owner.stream, &id));
  CUdevice device = -1;
  OK(RAW(cuStreamGetDevice)(owner.stream, &device));
  BOOST_TEST(device == 0);
  OK(RAW(cuEventRecord)(owner.event, owner.stream));
  OK(RAW(cuEventSynchronize)(owner.event));
  OK(RAW(cuEventQuery)(owner.event));
  OK(RAW(cuStreamWaitEvent)(owner.stream, owner.event, 0));
  IS(RAW(cuStreamWaitEvent)(nullptr, owner.event, 0), INVALID_CONTEXT);
  IS(RAW(cuEventRecord)(owner.event, nullptr), INVALID_CONTEXT);
  OK(RAW(cuEventDestroy)(owner.event));
  OK(RAW(cuStreamDestroy)(owner.stream));
}

BOOST_AUTO_TEST_CASE(a_stream_of_another_context_works) {
  Owner owner;
  const OwnContext other;
  SetStack({other.get()});
  OK(RAW(cuMemsetD8Async)(owner.memory, 0, 64, owner.stream));
  OK(RAW(cuStreamSynchronize)(owner.stream));
  OK(RAW(cuStreamDestroy)(owner.stream));
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(creating_needs_a_current_context_and_good_arguments) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  IS(RAW(cuStreamCreate)(&stream, 0), INVALID_CONTEXT);
  IS(RAW(cuEventCreate)(&event, 0), INVALID_CONTEXT);
  const OwnContext a;
  SetStack({a.get()});
  IS(RAW(cuStreamCreate)(&stream, 0x77), INVALID_VALUE);
  IS(RAW(cuStreamCreate)(nullptr, 0), INVALID_VALUE);
  IS(RAW(cuEventCreate)(&event, 0x7777), INVALID_VALUE);
  IS(RAW(cuEventCreate)(&event, CU_EVENT_INTERPROCESS), INVALID_VALUE);
  IS(RAW(cuEventCreate)(nullptr, 0), INVALID_VALUE);
  int priority = 0;
  OK(RAW(cuStreamCreateWithPriority)(&stream, 0, -1000));
  OK(RAW(cuStreamGetPriority)(stream, &priority));
  BOOST_TEST(priority == -5);
  OK(RAW(cuStreamDestroy)(stream));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(an_event_is_recorded_on_its_contexts_streams_only) {
  const Owner a;
  const Owner b;
  SetStack({b.context.get()});
  IS(RAW(cuEventRecord)(a.event, b.stream), INVALID_HANDLE);
  IS(RAW(cuEventRecord)(a.event, nullptr), INVALID_HANDLE);
  OK(RAW(cuStreamWaitEvent)(b.stream, a.event, 0));
  OK(RAW(cuEventSynchronize)(a.event));
  OK(RAW(cuEventDestroy)(a.event));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(null_is_no_event) {
  const Owner owner;
  IS(RAW(cuEventDestroy)(nullptr), INVALID_HANDLE);
  IS(RAW(cuEventRecord)(nullptr, owner.stream), INVALID_HANDLE);
  IS(RAW(cuEventQuery)(nullptr), INVALID_HANDLE);
  IS(RAW(cuEventSynchronize)(nullptr), INVALID_HANDLE);
  IS(RAW(cuStreamWaitEvent)(owner.stream, nullptr, 0), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(a_never_recorded_event_has_happened_but_has_no_time) {
  const Owner never;
  OK(RAW(cuEventQuery)(never.event));
  OK(RAW(cuEventSynchronize)(never.event));
  OK(RAW(cuStreamWaitEvent)(never.stream, never.event, 0));
  IS(RAW(cuStreamWaitEvent)(never.stream, never.event, 7), INVALID_VALUE);
  float milliseconds = 0;
  IS(RAW(cuEventElapsedTime)(&milliseconds, never.event, never.event), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(elapsed_time_needs_two_timed_events) {
  const Owner owner;
  SetStack({owner.context.get()});
  CUevent end = nullptr;
  CUevent untimed = nullptr;
  OK(RAW(cuEventCreate)(&end, 0));
  OK(RAW(cuEventCreate)(&untimed, CU_EVENT_DISABLE_TIMING));
  SetStack({});
  for (const CUevent event : {owner.event, end, untimed}) {
    OK(RAW(cuEventRecord)(event, owner.stream));
  }
  OK(RAW(cuStreamSynchronize)(owner.stream));
  float milliseconds = -1;
  OK(RAW(cuEventElapsedTime)(&milliseconds, owner.event, end));
  BOOST_TEST(milliseconds >= 0);
  IS(RAW(cuEventElapsedTime)(nullptr, owner.event, end), INVALID_HANDLE);
  IS(RAW(cuEventElapsedTime)(&milliseconds, owner.event, untimed), INVALID_HANDLE);
  IS(RAW(cuEventElapsedTime)(&milliseconds, nullptr, end), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(elapsed_time_is_of_one_context) {
  const Owner a;
  const Owner b;
  for (const Owner* owner : {&a, &b}) {
    OK(RAW(cuEventRecord)(owner->event, owner->stream));
    OK(RAW(cuEventSynchronize)(owner->event));
  }
  float milliseconds = 0;
  IS(RAW(cuEventElapsedTime)(&milliseconds, a.event, b.event), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(a_pointer_knows_the_context_it_was_allocated_in) {
  const Owner owner;
  BOOST_CHECK(ContextOf(owner.memory) == owner.context.get());
  BOOST_CHECK(ContextOf(owner.memory + 4095) == owner.context.get());
  BOOST_TEST(TypeOf(owner.memory) == unsigned{CU_MEMORYTYPE_DEVICE});
  SetStack({owner.context.get()});
  void* host = nullptr;
  CUdeviceptr managed = 0;
  OK(RAW(cuMemHostAlloc)(&host, 64, 0));
  OK(RAW(cuMemAllocManaged)(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  const auto host_address = reinterpret_cast<CUdeviceptr>(host);
  BOOST_CHECK(ContextOf(host_address) == owner.context.get());
  BOOST_TEST(TypeOf(host_address) == unsigned{CU_MEMORYTYPE_HOST});
  BOOST_CHECK(ContextOf(managed) == owner.context.get());
  BOOST_TEST(TypeOf(managed) == unsigned{CU_MEMORYTYPE_DEVICE});
  OK(RAW(cuMemFreeHost)(host));
  OK(RAW(cuMemFree)(managed));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(attributes_of_unknown_pointers) {
  const Owner owner;
  CUcontext context = reinterpret_cast<CUcontext>(0x77);
  int local = 0;
  for (const CUdeviceptr pointer : {CUdeviceptr{0}, reinterpret_cast<CUdeviceptr>(&local)}) {
    IS(RAW(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer), INVALID_VALUE);
  }
  BOOST_CHECK(context == reinterpret_cast<CUcontext>(0x77));
  IS(RAW(cuPointerGetAttribute)(nullptr, CU_POINTER_ATTRIBUTE_CONTEXT, owner.memory),
     INVALID_VALUE);
  IS(RAW(cuPointerGetAttribute)(&context, OutOfRange<CUpointer_attribute>(9999), owner.memory),
     INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(the_plural_gives_zeros_for_unknown_pointers) {
  const Owner owner;
  int local = 0;
  CUcontext context = reinterpret_cast<CUcontext>(0x77);
  unsigned type = 77;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void* out[] = {&context, &type};
  OK(RAW(cuPointerGetAttributes)(2, which, out, reinterpret_cast<CUdeviceptr>(&local)));
  BOOST_CHECK(context == nullptr);
  BOOST_TEST(type == 0u);
  OK(RAW(cuPointerGetAttributes)(2, which, out, owner.memory));
  BOOST_CHECK(context == owner.context.get());
  BOOST_TEST(type == unsigned{CU_MEMORYTYPE_DEVICE});
}

BOOST_AUTO_TEST_CASE(the_capture_mode_is_the_threads_and_needs_no_context) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
  BOOST_CHECK_EQUAL(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  OnAnotherThread([] {
    CUstreamCaptureMode other = CU_STREAM_CAPTURE_MODE_GLOBAL;
    OK(RAW(cuThreadExchangeStreamCaptureMode)(&other));
    BOOST_CHECK_EQUAL(other, CU_STREAM_CAPTURE_MODE_GLOBAL);
  });
  OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
  BOOST_CHECK_EQUAL(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  BOOST_CHECK(CurrentContext() == nullptr);
  BOOST_TEST(!IsActive(0));
}

BOOST_AUTO_TEST_CASE(no_stream_captures_by_itself) {
  const Owner owner;
  auto status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  OK(RAW(cuStreamIsCapturing)(owner.stream, &status));
  BOOST_CHECK_EQUAL(status, CU_STREAM_CAPTURE_STATUS_NONE);
  IS(RAW(cuStreamIsCapturing)(owner.stream, nullptr), INVALID_VALUE);
  IS(RAW(cuStreamIsCapturing)(nullptr, &status), INVALID_CONTEXT);
}

namespace {

// What a stream callback and a host function may call. `other` is a second stream. They run on a
// thread of the driver's, where Boost's macros must not be used.
struct FromCallback {
  CUcontext context;
  CUstream other;
  CUevent event;  // which is over

  struct Answer {
    const char* call;
    CUresult expected;
    CUresult got;
  };
  std::vector<Answer> answers;
  CUcontext current = reinterpret_cast<CUcontext>(0x77);  // after a query that is refused

  void Check() const {
    BOOST_TEST(answers.size() == 16u);
    for (const Answer& answer : answers) {
      BOOST_TEST_CONTEXT(answer.call) { BOOST_TEST(answer.got == answer.expected); }
    }
    BOOST_CHECK(current == reinterpret_cast<CUcontext>(0x77));
  }

  void IsRefused(const char* call, CUresult code) {
    answers.push_back({call, CUDA_ERROR_NOT_PERMITTED, code});
  }
  void IsDone(const char* call, CUresult code) { answers.push_back({call, CUDA_SUCCESS, code}); }

  void Ask() {
    IsRefused("cuCtxGetCurrent", RAW(cuCtxGetCurrent)(&current));
    IsRefused("cuCtxPushCurrent", RAW(cuCtxPushCurrent)(context));
    IsRefused("cuCtxPopCurrent", RAW(cuCtxPopCurrent)(nullptr));
    IsRefused("cuCtxSetCurrent", RAW(cuCtxSetCurrent)(nullptr));
    unsigned long long id = 0;
    IsRefused("cuCtxGetId", RAW(cuCtxGetId)(context, &id));
    CUdeviceptr pointer = 0;
    IsRefused("cuMemAlloc", RAW(cuMemAlloc)(&pointer, 16));
    int count = 0;
    IsRefused("cuDeviceGetCount", RAW(cuDeviceGetCount)(&count));
    unsigned flags = 0;
    IsRefused("cuDevicePrimaryCtxGetState", RAW(cuDevicePrimaryCtxGetState)(0, &flags, &count));
    IsDone("cuDriverGetVersion", RAW(cuDriverGetVersion)(&count));
    IsDone("cuInit", RAW(cuInit)(0));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    IsDone("cuThreadExchangeStreamCaptureMode", RAW(cuThreadExchangeStreamCaptureMode)(&mode));
    CUcontext owner = nullptr;
    CUstreamCaptureStatus status = {};
    IsDone("cuStreamIsCapturing", RAW(cuStreamIsCapturing)(other, &status));
    IsDone("cuStreamGetCtx", RAW(cuStreamGetCtx)(other, &owner));
    IsDone("cuStreamQuery", RAW(cuStreamQuery)(other));
    IsDone("cuStreamSynchronize", RAW(cuStreamSynchronize)(other));
    IsDone("cuEventQuery", RAW(cuEventQuery)(event));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(in_a_host_function_most_is_not_permitted) {
  const Owner owner;
  const Owner second;
  FromCallback from = {owner.context.get(), second.stream, second.event, {}};
  OK(RAW(cuLaunchHostFunc)(
      owner.stream, [](void* data) { static_cast<FromCallback*>(data)->Ask(); }, &from));
  OK(RAW(cuStreamSynchronize)(owner.stream));
  from.Check();
  IS(RAW(cuLaunchHostFunc)(owner.stream, nullptr, nullptr), INVALID_VALUE);
  IS(RAW(cuLaunchHostFunc)(
         nullptr, [](void*) {}, nullptr),
     INVALID_CONTEXT);
}

namespace {

// What a host function is told of streams that capture, or not.
struct CaptureAnswers {
  CUstream created;
  std::vector<CUresult> of_special;
  CUresult of_created[2] = {CUDA_ERROR_UNKNOWN, CUDA_ERROR_UNKNOWN};
  CUstreamCaptureStatus status[2] = {CU_STREAM_CAPTURE_STATUS_ACTIVE,
                                     CU_STREAM_CAPTURE_STATUS_ACTIVE};

  static CUresult Info(CUstream stream, CUstreamCaptureStatus* status) {
    return RAW(cuStreamGetCaptureInfo)(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  static void CUDA_CB Ask(void* data) {
    auto* self = static_cast<CaptureAnswers*>(data);
    CUstreamCaptureStatus unread = {};
    for (const CUstream stream : kSpecial) {
      self->of_special.push_back(RAW(cuStreamIsCapturing)(stream, &unread));
      self->of_special.push_back(Info(stream, &unread));
    }
    self->of_created[0] = RAW(cuStreamIsCapturing)(self->created, &self->status[0]);
    self->of_created[1] = Info(self->created, &self->status[1]);
  }
};

}  // namespace

// A created stream tells. Measured on an H200, driver 580.159.04.
BOOST_AUTO_TEST_CASE(special_streams_are_silent_in_host_functions) {
  const Owner owner;
  SetStack({owner.context.get()});
  for (const CUstream in : {CUstream{nullptr}, CU_STREAM_PER_THREAD, owner.stream}) {
    CaptureAnswers answers = {owner.stream, {}};
    OK(RAW(cuLaunchHostFunc)(in, &CaptureAnswers::Ask, &answers));
    OK(RAW(cuStreamSynchronize)(in));
    BOOST_TEST(answers.of_special.size() == 6u);
    for (const CUresult code : answers.of_special) IS(code, NOT_PERMITTED);
    for (const CUresult code : answers.of_created) OK(code);
    for (const CUstreamCaptureStatus status : answers.status) {
      BOOST_CHECK_EQUAL(status, CU_STREAM_CAPTURE_STATUS_NONE);
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(in_a_stream_callback_most_is_not_permitted) {
  const Owner owner;
  const Owner second;
  FromCallback from = {owner.context.get(), second.stream, second.event, {}};
  OK(RAW(cuStreamAddCallback)(
      owner.stream, [](CUstream, CUresult, void* data) { static_cast<FromCallback*>(data)->Ask(); },
      &from, 0));
  OK(RAW(cuStreamSynchronize)(owner.stream));
  from.Check();
}

BOOST_AUTO_TEST_SUITE_END()
