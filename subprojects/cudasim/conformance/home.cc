// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/home.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>

#include "test/support/raw_driver.h"

namespace conformance {
namespace {

constexpr size_t kBufferBytes = 65536;
constexpr int kBuffers = 4;
alignas(65536) unsigned char buffers[kBuffers][kBufferBytes];

constexpr CUlimit kLimits[] = {CU_LIMIT_STACK_SIZE,
                               CU_LIMIT_PRINTF_FIFO_SIZE,
                               CU_LIMIT_MALLOC_HEAP_SIZE,
                               CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT,
                               CU_LIMIT_MAX_L2_FETCH_GRANULARITY,
                               CU_LIMIT_PERSISTING_L2_CACHE_SIZE};

// A context of ours, with the limits that it was made with.
struct Place {
  CUcontext context = nullptr;
  size_t limits[std::size(kLimits)] = {};
};
Place users[2];
Place primary;
// Of device 1, if there are two.
CUcontext far_context = nullptr;
CUstream far_stream = nullptr;
CUdeviceptr far_memory = 0;
int contexts_made = 0;
bool holds_primary = false;

void Must(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "conformance: %s: %d\n", what, code);
  _exit(3);
}

void LearnLimits(Place* place) {
  for (size_t i = 0; i < std::size(kLimits); ++i) {
    Must(RAW(cuCtxGetLimit)(&place->limits[i], kLimits[i]), "cuCtxGetLimit");
  }
}

void Create(Place* user) {
  ++contexts_made;
  Must(RAW(cuCtxCreate)(&user->context, nullptr, 0, 0), "cuCtxCreate");
  LearnLimits(user);
  Must(RAW(cuCtxPopCurrent)(nullptr), "cuCtxPopCurrent");
}

void HoldPrimary() {
  if (holds_primary) return;
  ++contexts_made;
  Must(RAW(cuDevicePrimaryCtxRetain)(&primary.context, 0), "cuDevicePrimaryCtxRetain");
  holds_primary = true;
  Must(RAW(cuCtxPushCurrent)(primary.context), "cuCtxPushCurrent");
  LearnLimits(&primary);
  Must(RAW(cuCtxPopCurrent)(nullptr), "cuCtxPopCurrent");
}

// Nobody's references are left, the runtime's neither.
void DropPrimary() {
  HoldPrimary();
  Must(RAW(cuCtxPushCurrent)(primary.context), "cuCtxPushCurrent");
  cudaDeviceReset();
  cudaGetLastError();
  Must(RAW(cuCtxPopCurrent)(nullptr), "cuCtxPopCurrent");
  while (RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS) {
  }
  holds_primary = false;
}

// Whether the current context is as it was.
bool Restore(const Place& place) {
  bool is_restored = RAW(cuCtxSynchronize)() == CUDA_SUCCESS;
  for (size_t i = 0; i < std::size(kLimits); ++i) {
    size_t now = 0;
    RAW(cuCtxGetLimit)(&now, kLimits[i]);
    if (now == place.limits[i]) continue;
    RAW(cuCtxSetLimit)(kLimits[i], place.limits[i]);
    RAW(cuCtxGetLimit)(&now, kLimits[i]);
    is_restored = is_restored && now == place.limits[i];
  }
  RAW(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_NONE);
  RAW(cuCtxSetSharedMemConfig)(CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE);
  if (place.context != primary.context) RAW(cuCtxSetFlags)(0);
  return is_restored;
}

void CreateFar() {
  ++contexts_made;
  Must(RAW(cuCtxCreate)(&far_context, nullptr, 0, 1), "cuCtxCreate on device 1");
  Must(RAW(cuStreamCreate)(&far_stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate on device 1");
  Must(RAW(cuMemAlloc)(&far_memory, kBufferBytes), "cuMemAlloc on device 1");
  Must(RAW(cuCtxPopCurrent)(nullptr), "cuCtxPopCurrent");
}

// What device 1 was given access to, before it ends.
void CloseFar(World* world) {
  if (far_context == nullptr) return;
  RAW(cuCtxPushCurrent)(far_context);
  for (const char kind : {'C', 'P'}) {
    for (const Object* context : world->All(kind)) {
      RAW(cuCtxDisablePeerAccess)(reinterpret_cast<CUcontext>(context->handle));
    }
  }
  RAW(cuCtxPopCurrent)(nullptr);
  CUmemAccessDesc none = {};
  none.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  RAW(cuMemPoolSetAccess)
  (reinterpret_cast<CUmemoryPool>(world->Find({'Q', 1})->handle), &none, 1);
  for (Object* memory : world->All('W')) {
    RAW(cuMemUnmap)(memory->handle, memory->size);
    RAW(cuMemAddressFree)(memory->handle, memory->size);
    memory->is_alive = false;
  }
}

// On each thread, before anything else: captures end, the stack is empty.
void CloseThread(World* world) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  RAW(cuThreadExchangeStreamCaptureMode)(&mode);
  while (RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS) {
  }
  world->stacks[world->thread].clear();
  if (world->captures == 0) return;
  CUgraph graph = nullptr;
  for (const char kind : {'C', 'P'}) {
    for (const Object* context : world->All(kind)) {
      RAW(cuCtxPushCurrent)(reinterpret_cast<CUcontext>(context->handle));
      RAW(cuStreamEndCapture)(CU_STREAM_PER_THREAD, &graph);
      RAW(cuCtxPopCurrent)(nullptr);
    }
  }
  for (const Object* stream : world->All('S')) {
    RAW(cuStreamEndCapture)(reinterpret_cast<CUstream>(stream->handle), &graph);
  }
}

template <typename Handle, typename Function>
void DestroyAll(World* world, char kind, const Function& destroy) {
  for (Object* object : world->All(kind)) {
    destroy(reinterpret_cast<Handle>(object->handle));
    object->is_alive = false;
  }
}

// The default pool stays, and is the current one again.
void ClosePools(World* world) {
  const auto first = reinterpret_cast<CUmemoryPool>(world->Find({'Q', 1})->handle);
  RAW(cuDeviceSetMemPool)(0, first);
  DestroyAll<CUmemoryPool>(world, 'Q', [=](CUmemoryPool pool) {
    if (pool != first) RAW(cuMemPoolDestroy)(pool);
  });
  int reuse = 1;
  for (const auto attribute :
       {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
    RAW(cuMemPoolSetAttribute)(first, attribute, &reuse);
  }
  cuuint64_t threshold = 0;
  RAW(cuMemPoolSetAttribute)(first, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
}

// To free pool memory does not wait for its use.
void WaitForWork(World* world) {
  for (const char kind : {'C', 'P'}) {
    for (const Object* context : world->All(kind)) {
      RAW(cuCtxPushCurrent)(reinterpret_cast<CUcontext>(context->handle));
      RAW(cuCtxSynchronize)();
      RAW(cuCtxPopCurrent)(nullptr);
    }
  }
}

void DestroyObjects(World* world) {
  WaitForWork(world);
  DestroyAll<CUgraphExec>(world, 'X', RAW(cuGraphExecDestroy));
  DestroyAll<CUgraph>(world, 'R', RAW(cuGraphDestroy));
  DestroyAll<CUstream>(world, 'S', RAW(cuStreamDestroy));
  DestroyAll<CUevent>(world, 'E', RAW(cuEventDestroy));
  DestroyAll<CUmodule>(world, 'L', RAW(cuModuleUnload));
  DestroyAll<CUlibrary>(world, 'Y', RAW(cuLibraryUnload));
  for (Object* memory : world->All('M')) RAW(cuMemFree)(memory->handle);
  DestroyAll<void*>(world, 'H', RAW(cuMemFreeHost));
  for (unsigned char* buffer : buffers) RAW(cuMemHostUnregister)(buffer);
  CloseFar(world);
  DestroyAll<CUgreenCtx>(world, 'G', RAW(cuGreenCtxDestroy));
  ClosePools(world);
}

bool IsDamaged(const Place& user) {
  RAW(cuCtxPushCurrent)(user.context);
  const bool is_restored = Restore(user);
  RAW(cuCtxPopCurrent)(nullptr);
  return !is_restored;
}

// The references that a sequence attached, but the last.
void DetachAll(Object* context) {
  using Detach = CUresult (*)(CUcontext);
  const auto handle = reinterpret_cast<CUcontext>(context->handle);
  for (; context->is_alive && context->attached > 1; --context->attached) {
    RAW(cuCtxPushCurrent)(handle);
    RAW_AS(Detach, "cuCtxDetach")(handle);
    RAW(cuCtxPopCurrent)(nullptr);
  }
}

// The two contexts, without references of the sequence's and what it created beside them.
void CloseUsers(World* world) {
  for (Object* context : world->All('C')) {
    const auto handle = reinterpret_cast<CUcontext>(context->handle);
    if (context->name.number > 2) RAW(cuCtxDestroy)(handle);
  }
  for (int i = 0; i < 2; ++i) {
    Object* context = world->Find({'C', i + 1});
    DetachAll(context);
    bool is_there = context->is_alive && context->attached == 1;
    if (context->is_alive && (!is_there || IsDamaged(users[i]))) {
      RAW(cuCtxDestroy)(users[i].context);
      is_there = false;
    }
    if (!is_there) Create(&users[i]);
  }
}

void ClosePrimary(World* world) {
  if (world->cost == Cost::kExpensive) return DropPrimary();
  for (; world->retains > 0; --world->retains) RAW(cuDevicePrimaryCtxRelease)(0);
  RAW(cuDevicePrimaryCtxSetFlags)(0, 0);
  RAW(cuCtxPushCurrent)(primary.context);
  const bool is_restored = Restore(primary);
  RAW(cuCtxPopCurrent)(nullptr);
  if (!is_restored) DropPrimary();
}

// That none is left, which would forbid calls to the next sequence.
void CheckCaptures() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  RAW(cuThreadExchangeStreamCaptureMode)(&mode);
  Must(RAW(cuCtxPushCurrent)(users[0].context), "cuCtxPushCurrent");
  Must(RAW(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_NONE), "a capture is left");
  Must(RAW(cuCtxPopCurrent)(nullptr), "cuCtxPopCurrent");
}

}  // namespace

int& Devices() {
  static int devices = 1;
  return devices;
}

int ContextsMade() { return contexts_made; }

void Open(World* world) {
  if (users[0].context == nullptr) {
    Must(RAW(cuInit)(0), "cuInit");
    for (Place& user : users) Create(&user);
    if (Devices() > 1) CreateFar();
    HoldPrimary();
    if (world->cost == Cost::kExpensive) DropPrimary();
  }
  if (world->cost == Cost::kCheap) HoldPrimary();
  if (world->cost == Cost::kExpensive && holds_primary) DropPrimary();
  for (int i = 0; i < 2; ++i) {
    world->Add({'C', i + 1}, reinterpret_cast<std::uintptr_t>(users[i].context));
  }
  Object& first = world->Add({'P', 1}, reinterpret_cast<std::uintptr_t>(primary.context));
  first.is_alive = holds_primary;
  CUmemoryPool pool = nullptr;
  Must(RAW(cuDeviceGetDefaultMemPool)(&pool, 0), "cuDeviceGetDefaultMemPool");
  world->Add({'Q', 1}, reinterpret_cast<std::uintptr_t>(pool));
  for (int i = 0; i < kBuffers; ++i) {
    Object& buffer = world->Add({'B', i + 1}, reinterpret_cast<std::uintptr_t>(buffers[i]));
    buffer.size = kBufferBytes;
  }
  if (Devices() == 1) return;
  world->Add({'D', 1}, reinterpret_cast<std::uintptr_t>(far_context));
  world->Add({'T', 1}, reinterpret_cast<std::uintptr_t>(far_stream));
  world->Add({'O', 1}, static_cast<std::uintptr_t>(far_memory)).size = kBufferBytes;
}

void Close(World* world, Threads* threads) {
  for (int thread = 0; thread < kThreads; ++thread) {
    threads->RunOn(thread, [=] {
      world->thread = thread;
      CloseThread(world);
    });
  }
  threads->RunOn(0, [=] {
    world->thread = 0;
    DestroyObjects(world);
    CloseUsers(world);
    ClosePrimary(world);
    CheckCaptures();
  });
}

}  // namespace conformance
