// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime does to contexts: which calls create a primary, which make it current,
// and how many references the runtime holds.

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "test/green.h"
#include "test/runtime_facts.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(runtime_context_facts)

using namespace cudasim_facts;
using cudasim_test::NeedsDevices;

namespace {

struct RuntimeCall {
  const char* name;
  cudaError_t (*run)();
};

char host[64];
int number;
unsigned flags_out;
size_t sizes[2];

cudaError_t FreeAfter(cudaError_t code, void* pointer) {
  if (code == cudaSuccess) cudaFree(pointer);
  return code;
}

// They need a context, and see to it that there is one.
const RuntimeCall kBinding[] = {
    {"cudaFree(0)", [] { return cudaFree(nullptr); }},
    {"cudaFreeHost(0)", [] { return cudaFreeHost(nullptr); }},
    {"cudaFreeAsync(0, 0)", [] { return cudaFreeAsync(nullptr, nullptr); }},
    {"cudaMalloc",
     [] {
       void* pointer = nullptr;
       return FreeAfter(cudaMalloc(&pointer, 16), pointer);
     }},
    {"cudaMalloc of nothing",
     [] {
       void* pointer = host;
       const cudaError_t code = cudaMalloc(&pointer, 0);
       BOOST_TEST((code != cudaSuccess || pointer == nullptr));
       return code;
     }},
    {"cudaMallocAsync",
     [] {
       void* pointer = nullptr;
       return FreeAfter(cudaMallocAsync(&pointer, 16, nullptr), pointer);
     }},
    {"cudaMallocHost",
     [] {
       void* pointer = nullptr;
       const cudaError_t code = cudaMallocHost(&pointer, 16);
       cudaFreeHost(pointer);
       return code;
     }},
    {"cudaMallocManaged",
     [] {
       void* pointer = nullptr;
       return FreeAfter(cudaMallocManaged(&pointer, 16, cudaMemAttachGlobal), pointer);
     }},
    {"cudaStreamCreate",
     [] {
       cudaStream_t stream = nullptr;
       const cudaError_t code = cudaStreamCreate(&stream);
       cudaStreamDestroy(stream);
       return code;
     }},
    {"cudaStreamQuery(0)", [] { return cudaStreamQuery(nullptr); }},
    {"cudaStreamSynchronize(0)", [] { return cudaStreamSynchronize(nullptr); }},
    {"cudaStreamGetFlags(0)", [] { return cudaStreamGetFlags(nullptr, &flags_out); }},
    {"cudaStreamGetDevice(0)", [] { return cudaStreamGetDevice(nullptr, &number); }},
    {"cudaStreamIsCapturing(0)",
     [] {
       cudaStreamCaptureStatus status;
       return cudaStreamIsCapturing(nullptr, &status);
     }},
    {"cudaEventCreate",
     [] {
       cudaEvent_t event = nullptr;
       const cudaError_t code = cudaEventCreate(&event);
       cudaEventDestroy(event);
       return code;
     }},
    {"cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); }},
    {"cudaThreadExchangeStreamCaptureMode",
     [] {
       auto mode = cudaStreamCaptureModeGlobal;
       return cudaThreadExchangeStreamCaptureMode(&mode);
     }},
    {"cudaGraphCreate",
     [] {
       cudaGraph_t graph = nullptr;
       const cudaError_t code = cudaGraphCreate(&graph, 0);
       cudaGraphDestroy(graph);
       return code;
     }},
    {"cudaMemGetInfo", [] { return cudaMemGetInfo(&sizes[0], &sizes[1]); }},
    {"cudaDeviceGetLimit", [] { return cudaDeviceGetLimit(&sizes[0], cudaLimitStackSize); }},
    {"cudaDeviceGetStreamPriorityRange",
     [] { return cudaDeviceGetStreamPriorityRange(&number, &number); }},
    {"cudaMemcpy on the host", [] { return cudaMemcpy(host, host + 32, 16, cudaMemcpyDefault); }},
    {"cudaMemcpy of nothing", [] { return cudaMemcpy(host, host + 32, 0, cudaMemcpyDefault); }},
    {"cudaMemset of nothing", [] { return cudaMemset(nullptr, 0, 0); }},
};

// They need none, and make none.
const RuntimeCall kAsking[] = {
    {"cudaRuntimeGetVersion", [] { return cudaRuntimeGetVersion(&number); }},
    {"cudaDriverGetVersion", [] { return cudaDriverGetVersion(&number); }},
    {"cudaGetLastError", [] { return cudaGetLastError(); }},
    {"cudaPeekAtLastError", [] { return cudaPeekAtLastError(); }},
    {"cudaGetDeviceCount", [] { return cudaGetDeviceCount(&number); }},
    {"cudaGetDevice", [] { return cudaGetDevice(&number); }},
    {"cudaGetDeviceFlags", [] { return cudaGetDeviceFlags(&flags_out); }},
    {"cudaDeviceGetAttribute",
     [] { return cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, 0); }},
    {"cudaGetDeviceProperties",
     [] {
       cudaDeviceProp properties;
       return cudaGetDeviceProperties(&properties, 0);
     }},
    {"cudaDeviceGetPCIBusId", [] { return cudaDeviceGetPCIBusId(host, sizeof(host), 0); }},
    {"cudaDeviceCanAccessPeer", [] { return cudaDeviceCanAccessPeer(&number, 0, 0); }},
    {"cudaPointerGetAttributes",
     [] {
       cudaPointerAttributes attributes;
       return cudaPointerGetAttributes(&attributes, host);
     }},
    {"cudaDeviceGetDefaultMemPool",
     [] {
       cudaMemPool_t pool = nullptr;
       return cudaDeviceGetDefaultMemPool(&pool, 0);
     }},
    {"cudaMemPoolCreate",
     [] {
       cudaMemPoolProps properties = {};
       properties.allocType = cudaMemAllocationTypePinned;
       properties.location.type = cudaMemLocationTypeDevice;
       cudaMemPool_t pool = nullptr;
       const cudaError_t code = cudaMemPoolCreate(&pool, &properties);
       cudaMemPoolDestroy(pool);
       return code;
     }},
    {"cudaGetDriverEntryPointByVersion",
     [] {
       void* function = nullptr;
       cudaDriverEntryPointQueryResult result;
       return cudaGetDriverEntryPointByVersion("cuInit", &function, 12000, 0, &result);
     }},
    {"cudaDeviceReset", [] { return cudaDeviceReset(); }},
};

}  // namespace

BOOST_AUTO_TEST_CASE(calls_that_need_a_context_create_the_primary_and_leave_it_current) {
  for (const RuntimeCall& call : kBinding) {
    BOOST_TEST_CONTEXT(call.name) {
      const Unused unused;
      RT_OK(call.run());
      BOOST_CHECK(IsActive(0));
      BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
    }
  }
}

BOOST_AUTO_TEST_CASE(calls_that_ask_create_nothing_and_bind_nothing) {
  for (const RuntimeCall& call : kAsking) {
    BOOST_TEST_CONTEXT(call.name) {
      const Unused unused;
      RT_OK(call.run());
      BOOST_CHECK(!IsActive(0));
      BOOST_CHECK(GetStack().empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_primary_that_somebody_retains_is_made_current_by_the_same_calls) {
  for (const RuntimeCall& call : kBinding) {
    BOOST_TEST_CONTEXT(call.name) {
      const Retained retained;
      RT_OK(call.run());
      BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
    }
  }
  for (const RuntimeCall& call : kAsking) {
    BOOST_TEST_CONTEXT(call.name) {
      const Retained retained;
      RT_OK(call.run());
      BOOST_CHECK(GetStack().empty());
      BOOST_CHECK(IsActive(0));
    }
  }
}

BOOST_AUTO_TEST_CASE(in_a_user_context_every_call_works_there_and_wakes_no_primary) {
  const Unused unused;
  const OwnContext a;
  const auto stays = [&](const RuntimeCall& call) {
    BOOST_TEST_CONTEXT(call.name) {
      SetStack({a.get()});
      RT_OK(call.run());
      BOOST_CHECK(GetStack() == Entries{a.get()});
      BOOST_CHECK(!IsActive(0));
    }
  };
  for (const RuntimeCall& call : kBinding) stays(call);
  for (const RuntimeCall& call : kAsking) stays(call);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_null_argument_may_be_seen_before_or_after_the_context_is_made) {
  const Unused unused;
  RT_IS(cudaMalloc(nullptr, 16), InvalidValue);
  RT_IS(cudaPointerGetAttributes(nullptr, host), InvalidValue);
  RT_IS(cudaEventQuery(nullptr), InvalidResourceHandle);
  BOOST_CHECK(!IsActive(0));
  RT_IS(cudaStreamCreate(nullptr), InvalidValue);
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
}

BOOST_AUTO_TEST_CASE(resetting_the_l2_cache_is_refused_where_nothing_is_current) {
  const Unused unused;
  RT_IS(cudaCtxResetPersistingL2Cache(), DeviceUninitialized);
  BOOST_CHECK(!IsActive(0));
}

// --- cudaSetDevice, cudaInitDevice ---

BOOST_AUTO_TEST_CASE(set_device_replaces_the_top_of_the_stack) {
  const Unused unused;
  const OwnContext a;
  const OwnContext b;
  SetStack({b.get(), a.get()});
  RT_OK(cudaSetDevice(0));
  BOOST_CHECK((GetStack() == Entries{b.get(), PrimaryHandle()}));
  RT_OK(cudaSetDevice(0));
  BOOST_CHECK((GetStack() == Entries{b.get(), PrimaryHandle()}));
  RT_IS(cudaSetDevice(99), InvalidDevice);
  RT_IS(cudaSetDevice(-1), InvalidDevice);
  BOOST_CHECK((GetStack() == Entries{b.get(), PrimaryHandle()}));
}

BOOST_AUTO_TEST_CASE(init_device_creates_the_primary_and_leaves_the_stack) {
  const Unused unused;
  const OwnContext a;
  SetStack({a.get()});
  RT_OK(cudaInitDevice(0, 0, 0));
  BOOST_CHECK(IsActive(0));
  BOOST_CHECK(GetStack() == Entries{a.get()});
  RT_IS(cudaInitDevice(99, 0, 0), InvalidDevice);
  SetStack({});
  RT_OK(cudaFree(nullptr));
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
}

BOOST_AUTO_TEST_CASE(valid_devices_take_the_current_context_off_the_stack) {
  const Unused unused;
  const OwnContext a;
  OnAnotherThread([&] {
    SetStack({a.get()});
    int device = 0;
    RT_OK(cudaSetValidDevices(&device, 1));
    BOOST_CHECK(GetStack().empty());
  });
}

// The thread's choice is what cudaGetDevice says where nothing is current, and nothing else.
BOOST_AUTO_TEST_CASE(the_chosen_device_is_forgotten_by_the_next_call_that_needs_one,
                     *NeedsDevices(2)) {
  const Unused unused;
  const OwnContext a;
  CUcontext chosen = nullptr;
  int device = -1;
  RT_OK(cudaSetDevice(1));
  OK(RAW(cuCtxGetCurrent)(&chosen));
  SetStack({});
  RT_OK(cudaGetDevice(&device));
  BOOST_TEST(device == 1);
  SetStack({a.get()});
  RT_OK(cudaGetDevice(&device));
  BOOST_TEST(device == 0);
  SetStack({});
  RT_OK(cudaGetDevice(&device));
  BOOST_TEST(device == 1);
  RT_OK(cudaFree(nullptr));
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
  RT_OK(cudaGetDevice(&device));
  BOOST_TEST(device == 0);
  SetStack({});
  RT_OK(cudaGetDevice(&device));
  BOOST_TEST(device == 1);
  SetStack({chosen});
  OnAnotherThread([&] {
    int of_thread = -1;
    RT_OK(cudaGetDevice(&of_thread));
    BOOST_TEST(of_thread == 0);
    SetStack({chosen});
    RT_OK(cudaGetDevice(&of_thread));
    BOOST_TEST(of_thread == 1);
  });
  RT_OK(cudaDeviceReset());
  RT_OK(cudaSetDevice(0));
}

// Of the thread, until it calls cudaSetDevice.
BOOST_AUTO_TEST_CASE(the_first_valid_device_is_bound, *NeedsDevices(2)) {
  const Unused unused;
  OnAnotherThread([] {
    int device = -1;
    int valid[] = {1, 0};
    RT_OK(cudaSetValidDevices(valid, 2));
    RT_OK(cudaGetDevice(&device));
    BOOST_TEST(device == 1);
    BOOST_CHECK(!IsActive(1));
    RT_OK(cudaFree(nullptr));
    RT_OK(cudaGetDevice(&device));
    BOOST_TEST(device == 1);
    RT_OK(cudaDeviceReset());
    RT_OK(cudaSetDevice(0));
    SetStack({});
    RT_OK(cudaFree(nullptr));
    BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
    int bad = 99;
    RT_IS(cudaSetValidDevices(&bad, 1), InvalidDevice);
    RT_IS(cudaSetValidDevices(valid, -1), InvalidValue);
    RT_OK(cudaSetValidDevices(nullptr, 0));
  });
}

// They only take the current context off the stack.
BOOST_AUTO_TEST_CASE(valid_devices_are_ignored_after_set_device, *NeedsDevices(2)) {
  const Unused unused;
  OnAnotherThread([] {
    int device = -1;
    int valid[] = {1, 0};
    RT_OK(cudaSetValidDevices(valid, 2));
    RT_OK(cudaSetDevice(0));
    RT_OK(cudaSetValidDevices(valid, 1));
    BOOST_CHECK(GetStack().empty());
    RT_OK(cudaGetDevice(&device));
    BOOST_TEST(device == 0);
    RT_OK(cudaFree(nullptr));
    BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
  });
}

// --- references to the primary ---

BOOST_AUTO_TEST_CASE(the_runtime_holds_one_reference_whatever_is_called) {
  const Unused unused;
  RT_OK(cudaFree(nullptr));
  RT_OK(cudaSetDevice(0));
  RT_OK(cudaInitDevice(0, 0, 0));
  OnAnotherThread([] { RT_OK(cudaSetDevice(0)); });
  BOOST_TEST(ReleaseAll() == 1);
}

BOOST_AUTO_TEST_CASE(it_retains_a_primary_that_somebody_else_made_current) {
  const Unused unused;
  RT_OK(cudaFree(nullptr));
  Unused::Restore();
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  RT_OK(cudaFree(nullptr));
  BOOST_TEST(ReleaseAll() == 2);
}

// The runtime goes on as if it held it; a reset of the dead primary changes nothing.
BOOST_AUTO_TEST_CASE(a_reference_that_was_stolen_is_not_missed) {
  const Unused unused;
  RT_OK(cudaFree(nullptr));
  BOOST_TEST(ReleaseAll() == 1);
  RT_OK(cudaDeviceReset());
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  RT_OK(cudaFree(nullptr));
  BOOST_TEST(ReleaseAll() == 1);
}

BOOST_AUTO_TEST_CASE(a_primary_that_died_below_it_is_retained_anew) {
  const Unused unused;
  RT_OK(cudaFree(nullptr));
  const unsigned long long first = IdOf(PrimaryHandle());
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  int device = -1;
  RT_OK(cudaGetDevice(&device));
  BOOST_CHECK(!IsActive(0));
  RT_OK(cudaFree(nullptr));
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
  BOOST_TEST(IdOf(PrimaryHandle()) != first);
  BOOST_TEST(ReleaseAll() == 1);
  RT_OK(cudaFree(nullptr));
  BOOST_TEST(ReleaseAll() == 1);
}

BOOST_AUTO_TEST_CASE(a_dead_user_context_is_refused) {
  const Unused unused;
  PushDeadContext();
  int device = -1;
  RT_OK(cudaGetDevice(&device));
  for (const RuntimeCall& call : kBinding) {
    BOOST_TEST_CONTEXT(call.name) {
      const bool asks_pool = std::strstr(call.name, "Async") != nullptr;
      const bool asks_stream = std::strstr(call.name, "StreamGetDevice") != nullptr;
      if (!asks_pool && !asks_stream) RT_IS(call.run(), DeviceUninitialized);
    }
  }
  RT_OK(cudaDeviceReset());
  BOOST_CHECK(!IsActive(0));
  RT_OK(cudaSetDevice(0));
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
}

BOOST_AUTO_TEST_CASE(below_a_dead_green_context_the_primary_is_retained) {
  const Unused unused;
  const CUgreenCtx first = Create();
  SetStack({ContextOf(first)});
  OK(RAW(cuGreenCtxDestroy)(first));
  int device = 1;
  RT_OK(cudaGetDevice(&device));
  BOOST_TEST(!IsActive(0));
  RT_IS(cudaFree(nullptr), ContextIsDestroyed);
  BOOST_TEST(IsActive(0));
  // What is missed of a reference that was stolen: nothing, but here.
  const CUgreenCtx green = Create();
  SetStack({ContextOf(green)});
  OK(RAW(cuGreenCtxDestroy)(green));
  BOOST_TEST(ReleaseAll() == 1);
  BOOST_TEST(!IsActive(0));
  RT_IS(cudaDeviceSetLimit(cudaLimitStackSize, 2048), ContextIsDestroyed);
  BOOST_TEST(IsActive(0));
  RT_IS(cudaFree(nullptr), ContextIsDestroyed);
  BOOST_TEST(ReleaseAll() == 1);
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));  // what the runtime thinks it has
}

// --- cudaDeviceReset ---

BOOST_AUTO_TEST_CASE(reset_touches_the_primary_only_where_it_is_current) {
  const Retained retained;
  const OwnContext a;
  RT_OK(cudaInitDevice(0, 0, 0));
  RT_OK(cudaDeviceReset());
  BOOST_CHECK(IsActive(0));
  SetStack({PrimaryHandle(), a.get()});
  RT_OK(cudaDeviceReset());
  BOOST_CHECK(IsActive(0));
  OnAnotherThread([] { RT_OK(cudaDeviceReset()); });
  BOOST_CHECK(IsActive(0));
  SetStack({a.get(), PrimaryHandle()});
  RT_OK(cudaDeviceReset());
  BOOST_CHECK(!IsActive(0));
  BOOST_CHECK(CurrentContext() == PrimaryHandle());
}

BOOST_AUTO_TEST_CASE(reset_gives_the_reference_back_and_may_be_repeated) {
  const Unused unused;
  RT_OK(cudaFree(nullptr));
  RT_IS(cudaSetDevice(99), InvalidDevice);
  RT_OK(cudaDeviceReset());
  BOOST_CHECK_EQUAL(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  IS(RAW(cuDevicePrimaryCtxRelease)(0), INVALID_CONTEXT);
  RT_OK(cudaDeviceReset());
  RT_OK(cudaFree(nullptr));
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
  BOOST_TEST(ReleaseAll() == 1);
}

// --- flags ---

BOOST_AUTO_TEST_CASE(device_flags_are_the_current_contexts) {
  const Unused unused;
  unsigned flags = 0;
  RT_OK(cudaGetDeviceFlags(&flags));
  BOOST_TEST(flags == unsigned{cudaDeviceMapHost});
  OK(RAW(cuDevicePrimaryCtxSetFlags)(0, CU_CTX_SCHED_YIELD));
  RT_OK(cudaGetDeviceFlags(&flags));
  BOOST_TEST(flags == unsigned{cudaDeviceMapHost | cudaDeviceScheduleYield});
  OK(RAW(cuDevicePrimaryCtxSetFlags)(0, 0));
  const OwnContext a;
  SetStack({a.get()});
  RT_OK(cudaGetDeviceFlags(&flags));
  BOOST_TEST(flags == 0u);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(setting_device_flags_binds_the_primary_and_refuses_a_user_context) {
  const Unused unused;
  const OwnContext a;
  SetStack({a.get()});
  RT_IS(cudaSetDeviceFlags(cudaDeviceScheduleYield), IncompatibleDriverContext);
  BOOST_CHECK(!IsActive(0));
  SetStack({});
  RT_IS(cudaSetDeviceFlags(0xff00), InvalidValue);
  RT_OK(cudaSetDeviceFlags(cudaDeviceScheduleYield));
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
  unsigned flags = 0;
  RT_OK(cudaGetDeviceFlags(&flags));
  BOOST_TEST(flags == unsigned{cudaDeviceMapHost | cudaDeviceScheduleYield});
  RT_OK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
  RT_OK(cudaGetDeviceFlags(&flags));
  BOOST_TEST(flags == unsigned{cudaDeviceMapHost | cudaDeviceScheduleSpin});
}

BOOST_AUTO_TEST_CASE(peer_access_of_a_user_context_is_not_the_runtimes) {
  const Unused unused;
  const OwnContext a;
  SetStack({a.get()});
  RT_IS(cudaDeviceEnablePeerAccess(0, 0), IncompatibleDriverContext);
  SetStack({});
  RT_IS(cudaDeviceEnablePeerAccess(0, 0), PeerAccessUnsupported);
  RT_IS(cudaDeviceDisablePeerAccess(0), PeerAccessNotEnabled);
  RT_IS(cudaDeviceEnablePeerAccess(99, 0), InvalidDevice);
}

// --- processes ---

namespace {

// Where Boost.Test is not running.
bool PrimaryIsActive() {
  unsigned flags = 0;
  int active = 0;
  CHECK(RAW(cuDevicePrimaryCtxGetState)(0, &flags, &active) == CUDA_SUCCESS);
  return active != 0;
}

bool SomethingIsCurrent() {
  CUcontext context = nullptr;
  CHECK(RAW(cuCtxGetCurrent)(&context) == CUDA_SUCCESS);
  return context != nullptr;
}

}  // namespace

CHILD(first_calls) {
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  int device = -1;
  CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0);
  CHECK(!PrimaryIsActive() && !SomethingIsCurrent());
  CHECK(cudaDeviceReset() == cudaSuccess && !PrimaryIsActive());
  CHECK(cudaFree(nullptr) == cudaSuccess);
  CHECK(PrimaryIsActive() && SomethingIsCurrent());
  return 0;
}

// A primary that somebody else made current: the runtime retains it, too.
CHILD(meets_a_current_primary) {
  CUcontext primary = nullptr;
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxPushCurrent)(primary) == CUDA_SUCCESS);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  CHECK(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
  CHECK(PrimaryIsActive());
  CHECK(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
  CHECK(!PrimaryIsActive());
  return 0;
}

CHILD(first_call_on_another_thread) {
  CHECK(cudaSetDevice(0) == cudaSuccess);
  std::thread([] {
    CHECK(!SomethingIsCurrent());
    CHECK(cudaFree(nullptr) == cudaSuccess);
    CHECK(SomethingIsCurrent());
  }).join();
  return 0;
}

// The runtime's own initialisation is enough.
CHILD(initialises_the_driver) {
  int count = 0;
  CHECK(RAW(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(cudaRuntimeGetVersion(&count) == cudaSuccess);
  CHECK(RAW(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(cudaGetErrorName(cudaSuccess) != nullptr);
  CHECK(RAW(cuDeviceGetCount)(&count) == CUDA_SUCCESS);
  return 0;
}

CHILD(forks) {
  CHECK(cudaFree(nullptr) == cudaSuccess);
  const pid_t pid = fork();
  if (pid == 0) {
    int number_of_child = 0;
    CHECK(cudaGetDevice(&number_of_child) == cudaErrorInitializationError);
    CHECK(cudaPeekAtLastError() == cudaErrorInitializationError);
    CHECK(cudaFree(nullptr) == cudaErrorInitializationError);
    CHECK(cudaSetDevice(0) == cudaErrorInitializationError);
    CHECK(cudaDeviceReset() == cudaErrorInitializationError);
    CHECK(cudaGetDeviceCount(&number_of_child) == cudaSuccess);
    CHECK(cudaDriverGetVersion(&number_of_child) == cudaSuccess);
    _exit(0);
  }
  int status = -1;
  CHECK(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 0;
}

BOOST_AUTO_TEST_CASE(a_fresh_process_is_as_an_unused_one) { REQUIRE_CHILD_PASSES("first_calls"); }

BOOST_AUTO_TEST_CASE(the_first_call_retains_a_primary_that_is_current) {
  REQUIRE_CHILD_PASSES("meets_a_current_primary");
}

BOOST_AUTO_TEST_CASE(every_thread_is_bound_by_its_own_first_call) {
  REQUIRE_CHILD_PASSES("first_call_on_another_thread");
}

BOOST_AUTO_TEST_CASE(the_first_call_but_for_the_version_initialises_the_driver) {
  REQUIRE_CHILD_PASSES("initialises_the_driver");
}

BOOST_AUTO_TEST_CASE(a_forked_child_gets_initialization_error) { REQUIRE_CHILD_PASSES("forks"); }

BOOST_AUTO_TEST_SUITE_END()
