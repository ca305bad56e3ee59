// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What may be called while a stream captures, and what that does to the capture.

#include <functional>

#include "test/capture_calls.h"

BOOST_AUTO_TEST_SUITE(capture_facts)

using namespace cudasim_facts;

namespace {

// Allocates, and frees what it got outside of every capture's reach.
CUresult AllocateAndFree() {
  CUdeviceptr pointer = 0;
  const CUresult code = RAW(cuMemAlloc)(&pointer, 16);
  if (code == CUDA_SUCCESS) OK(InMode(kRelaxed, [&] { return RAW(cuMemFree)(pointer); }));
  return code;
}

CUresult FreeNew(const std::function<CUresult()>& allocate, const std::function<CUresult()>& free) {
  OK(InMode(kRelaxed, allocate));
  const CUresult code = free();
  if (code != CUDA_SUCCESS) OK(InMode(kRelaxed, free));
  return code;
}

CUresult AllocateIn(CUstream stream, CUdeviceptr* pointer) {
  return RAW(cuMemAllocAsync)(pointer, 16, stream);
}

// Stream-ordered memory that is no capture's, freed with `free`.
CUresult FreeOrdered(const Guest& guest, const std::function<CUresult(CUdeviceptr)>& free) {
  CUdeviceptr pointer = 0;
  OK(InMode(kRelaxed, [&] { return AllocateIn(guest.second, &pointer); }));
  const CUresult code = free(pointer);
  if (code != CUDA_SUCCESS) {
    OK(InMode(kRelaxed, [&] { return RAW(cuMemFreeAsync)(pointer, guest.second); }));
  }
  return code;
}

CUmemoryPool DefaultPool() {
  CUmemoryPool pool = nullptr;
  OK(RAW(cuDeviceGetDefaultMemPool)(&pool, 0));
  return pool;
}

CUresult CreatePool(CUmemoryPool* pool) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return RAW(cuMemPoolCreate)(pool, &properties);
}

// `make`, and `end` of what it made, outside of every capture's reach.
CUresult MakeAndEnd(const std::function<CUresult()>& make, const std::function<CUresult()>& end) {
  const CUresult code = make();
  if (code == CUDA_SUCCESS) OK(InMode(kRelaxed, end));
  return code;
}

// Maps memory, makes it accessible, and undoes all of it.
CUresult MapAndUnmap() {
  constexpr size_t kSize = size_t{2} << 20;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle memory = 0;
  CUdeviceptr address = 0;
  OK(RAW(cuMemCreate)(&memory, kSize, &properties, 0));
  OK(RAW(cuMemAddressReserve)(&address, kSize, 0, 0, 0));
  OK(RAW(cuMemMap)(address, kSize, 0, memory, 0));
  const CUresult code = RAW(cuMemSetAccess)(address, kSize, &access, 1);
  OK(InMode(kRelaxed, [&] { return RAW(cuMemUnmap)(address, kSize); }));
  OK(InMode(kRelaxed, [&] { return RAW(cuMemRelease)(memory); }));
  OK(InMode(kRelaxed, [&] { return RAW(cuMemAddressFree)(address, kSize); }));
  return code;
}

CUevent CreateUntimed() {
  CUevent event = nullptr;
  OK(RAW(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

CUresult MakeGreen() {
  CUdevResource whole = {};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  OK(RAW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
  OK(RAW(cuDevResourceGenerateDesc)(&description, &whole, 1));
  OK(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return RAW(cuGreenCtxDestroy)(green);
}

}  // namespace

BOOST_AUTO_TEST_CASE(contexts_are_made_and_changed_freely) {
  CheckEverywhere({
      {"push, pop", Fine, [](const Guest& g) { return InOther(g, [] { return CUDA_SUCCESS; }); }},
      {"id", Fine,
       [](const Guest& g) {
         unsigned long long id = 0;
         return RAW(cuCtxGetId)(g.context.get(), &id);
       }},
      {"priorities", Fine,
       [](const Guest&) {
         int least = 0;
         return RAW(cuCtxGetStreamPriorityRange)(&least, &least);
       }},
      {"set flags", Fine, [](const Guest&) { return RAW(cuCtxSetFlags)(0); }},
      {"reset L2", Fine, [](const Guest&) { return RAW(cuCtxResetPersistingL2Cache)(); }},
      {"set limit", Unsafe,
       [](const Guest&) { return RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 2048); }},
      {"set no limit", UnsafeNoValue,
       [](const Guest&) { return RAW(cuCtxSetCacheConfig)(OutOfRange<CUfunc_cache>(9)); }},
      {"set cache", Unsafe,
       [](const Guest&) { return RAW(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_NONE); }},
      {"synchronize", Always, [](const Guest&) { return RAW(cuCtxSynchronize)(); }},
      {"synchronize another", Fine,
       [](const Guest& g) { return InOther(g, [] { return RAW(cuCtxSynchronize)(); }); }},
  });
}

BOOST_AUTO_TEST_CASE(memory_is_unsafe) {
  CheckEverywhere({
      {"allocate", Unsafe, [](const Guest&) { return AllocateAndFree(); }},
      {"allocate in another context", Unsafe,
       [](const Guest& g) { return InOther(g, AllocateAndFree); }},
      {"allocate nothing", UnsafeNoValue,
       [](const Guest&) {
         CUdeviceptr pointer = 0;
         return RAW(cuMemAlloc)(&pointer, 0);
       }},
      {"allocate bad managed", NoValue,
       [](const Guest&) {
         CUdeviceptr pointer = 0;
         return RAW(cuMemAllocManaged)(&pointer, 16, 77);
       }},
      {"free", Unsafe,
       [](const Guest&) {
         CUdeviceptr pointer = 0;
         return FreeNew([&] { return RAW(cuMemAlloc)(&pointer, 16); },
                        [&] { return RAW(cuMemFree)(pointer); });
       }},
      {"free nothing", Unsafe, [](const Guest&) { return RAW(cuMemFree)(0); }},
      {"free host", Unsafe,
       [](const Guest&) {
         void* pointer = nullptr;
         return FreeNew([&] { return RAW(cuMemAllocHost)(&pointer, 16); },
                        [&] { return RAW(cuMemFreeHost)(pointer); });
       }},
      {"info", Fine,
       [](const Guest&) {
         size_t free = 0;
         return RAW(cuMemGetInfo)(&free, &free);
       }},
      {"attribute", Fine,
       [](const Guest& g) {
         CUcontext context = nullptr;
         return RAW(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, g.memory);
       }},
  });
}

BOOST_AUTO_TEST_CASE(stream_ordered_memory_is_unsafe_in_another_stream) {
  CheckEverywhere({
      {"allocate", Unsafe,
       [](const Guest& g) {
         CUdeviceptr pointer = 0;
         return MakeAndEnd([&] { return AllocateIn(g.second, &pointer); },
                           [&] { return RAW(cuMemFreeAsync)(pointer, g.second); });
       }},
      {"allocate from a pool", Unsafe,
       [](const Guest& g) {
         const CUmemoryPool pool = DefaultPool();
         CUdeviceptr pointer = 0;
         return MakeAndEnd(
             [&] { return RAW(cuMemAllocFromPoolAsync)(&pointer, 16, pool, g.second); },
             [&] { return RAW(cuMemFreeAsync)(pointer, g.second); });
       }},
      {"free", Unsafe,
       [](const Guest& g) {
         return FreeOrdered(g, [&](CUdeviceptr p) { return RAW(cuMemFreeAsync)(p, g.second); });
       }},
      {"free in the capture", NoValue,
       [](const Guest& g) {
         return FreeOrdered(g, [&](CUdeviceptr p) { return RAW(cuMemFreeAsync)(p, g.stream); });
       }},
      {"free now", Unsafe,
       [](const Guest& g) {
         return FreeOrdered(g, [](CUdeviceptr p) { return RAW(cuMemFree)(p); });
       }},
  });
}

BOOST_AUTO_TEST_CASE(a_lost_capture_takes_no_stream_ordered_memory) {
  const Guest guest;
  CUdeviceptr pointer = 0;
  OK(AllocateIn(guest.second, &pointer));
  OK(Begin(guest.stream));
  IS(RAW(cuStreamSynchronize)(guest.stream), STREAM_CAPTURE_UNSUPPORTED);
  CUdeviceptr none = 0;
  IS(AllocateIn(guest.stream, &none), STREAM_CAPTURE_INVALIDATED);
  IS(RAW(cuMemFreeAsync)(pointer, guest.stream), STREAM_CAPTURE_INVALIDATED);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  OK(RAW(cuMemFreeAsync)(pointer, guest.second));
}

BOOST_AUTO_TEST_CASE(pools_are_unsafe) {
  CheckEverywhere({
      {"create", Unsafe,
       [](const Guest&) {
         CUmemoryPool pool = nullptr;
         return MakeAndEnd([&] { return CreatePool(&pool); },
                           [&] { return RAW(cuMemPoolDestroy)(pool); });
       }},
      {"destroy", Unsafe,
       [](const Guest&) {
         CUmemoryPool pool = nullptr;
         return FreeNew([&] { return CreatePool(&pool); },
                        [&] { return RAW(cuMemPoolDestroy)(pool); });
       }},
      {"trim", Unsafe, [](const Guest&) { return RAW(cuMemPoolTrimTo)(DefaultPool(), 0); }},
      {"get attribute", Unsafe,
       [](const Guest&) {
         cuuint64_t value = 0;
         return RAW(cuMemPoolGetAttribute)(DefaultPool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                           &value);
       }},
      {"set attribute", Unsafe,
       [](const Guest&) {
         cuuint64_t value = 0;
         return RAW(cuMemPoolSetAttribute)(DefaultPool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                           &value);
       }},
      {"choose", Unsafe, [](const Guest&) { return RAW(cuDeviceSetMemPool)(0, DefaultPool()); }},
      {"the chosen one", Fine,
       [](const Guest&) {
         CUmemoryPool pool = nullptr;
         return RAW(cuDeviceGetMemPool)(&pool, 0);
       }},
      {"the default", Fine,
       [](const Guest&) {
         CUmemoryPool pool = nullptr;
         return RAW(cuDeviceGetDefaultMemPool)(&pool, 0);
       }},
  });
}

BOOST_AUTO_TEST_CASE(host_memory_is_registered_unsafely) {
  constexpr size_t kSize = 4096;
  std::vector<char> memory(kSize);
  const auto add = [&] { return RAW(cuMemHostRegister)(memory.data(), kSize, 0); };
  const auto remove = [&] { return RAW(cuMemHostUnregister)(memory.data()); };
  CheckEverywhere({
      {"register", Unsafe, [&](const Guest&) { return MakeAndEnd(add, remove); }},
      {"unregister", Unsafe, [&](const Guest&) { return FreeNew(add, remove); }},
  });
}

BOOST_AUTO_TEST_CASE(virtual_memory_and_green_contexts_are_made_freely) {
  CheckEverywhere({
      {"map", Fine, [](const Guest&) { return MapAndUnmap(); }},
      {"green context", Fine, [](const Guest&) { return MakeGreen(); }},
  });
}

BOOST_AUTO_TEST_CASE(a_whole_context_is_recorded_and_waits_in_no_capture) {
  CheckEverywhere({
      {"record", Always,
       [](const Guest& g) { return RAW(cuCtxRecordEvent)(g.context.get(), g.never); }},
      {"wait", Always,
       [](const Guest& g) { return RAW(cuCtxWaitEvent)(g.context.get(), g.recorded); }},
  });
}

BOOST_AUTO_TEST_CASE(a_module_is_loaded_freely_but_unloading_is_unsafe) {
  const auto load = [](const Guest&, CUmodule* module) {
    return RAW(cuModuleLoadData)(module, kPtx);
  };
  CheckEverywhere({
      {"load", Fine,
       [=](const Guest& g) {
         CUmodule module = nullptr;
         const CUresult code = load(g, &module);
         OK(InMode(kRelaxed, [&] { return RAW(cuModuleUnload)(module); }));
         return code;
       }},
      {"unload", Unsafe,
       [=](const Guest& g) {
         CUmodule module = nullptr;
         return FreeNew([&] { return load(g, &module); },
                        [&] { return RAW(cuModuleUnload)(module); });
       }},
      {"unload null", NoHandle, [](const Guest&) { return RAW(cuModuleUnload)(nullptr); }},
  });
}

BOOST_AUTO_TEST_CASE(the_capturing_stream_is_not_asked) {
  CheckEverywhere({
      {"context", Fine,
       [](const Guest& g) {
         CUcontext context = nullptr;
         return RAW(cuStreamGetCtx)(g.stream, &context);
       }},
      {"priority", Fine,
       [](const Guest& g) {
         int priority = 0;
         return RAW(cuStreamGetPriority)(g.stream, &priority);
       }},
      {"flags", Always,
       [](const Guest& g) {
         unsigned flags = 0;
         return RAW(cuStreamGetFlags)(g.stream, &flags);
       }},
      {"flags of another", Fine,
       [](const Guest& g) {
         unsigned flags = 0;
         return RAW(cuStreamGetFlags)(g.second, &flags);
       }},
      {"no flags", NoValue,
       [](const Guest& g) { return RAW(cuStreamGetFlags)(g.stream, nullptr); }},
      {"id", Always,
       [](const Guest& g) {
         unsigned long long id = 0;
         return RAW(cuStreamGetId)(g.stream, &id);
       }},
      {"device", Always,
       [](const Guest& g) {
         CUdevice device = 0;
         return RAW(cuStreamGetDevice)(g.stream, &device);
       }},
      {"callback", Always,
       [](const Guest& g) {
         return RAW(cuStreamAddCallback)(
             g.stream, [](CUstream, CUresult, void*) {}, nullptr, 0);
       }},
      {"synchronize", Always, [](const Guest& g) { return RAW(cuStreamSynchronize)(g.stream); }},
      {"query", Always, [](const Guest& g) { return RAW(cuStreamQuery)(g.stream); }},
      {"begin", Illegal, [](const Guest& g) { return Begin(g.stream); }},
  });
}

BOOST_AUTO_TEST_CASE(other_streams_work_but_waiting_for_them_is_unsafe) {
  CheckEverywhere({
      {"create, destroy", Fine,
       [](const Guest&) {
         CUstream made = nullptr;
         OK(RAW(cuStreamCreate)(&made, 0));
         return RAW(cuStreamDestroy)(made);
       }},
      {"fill", Fine, [](const Guest& g) { return g.Fill(g.second); }},
      {"fill in a blocking one", Fine, [](const Guest& g) { return g.Fill(g.blocking); }},
      {"synchronize", Unsafe, [](const Guest& g) { return RAW(cuStreamSynchronize)(g.second); }},
      {"query", Unsafe, [](const Guest& g) { return RAW(cuStreamQuery)(g.second); }},
      {"per thread", Unsafe,
       [](const Guest&) { return RAW(cuStreamSynchronize)(CU_STREAM_PER_THREAD); }},
      {"fill per thread", Fine, [](const Guest& g) { return g.Fill(CU_STREAM_PER_THREAD); }},
      {"begin, end", Fine,
       [](const Guest& g) {
         OK(Begin(g.second));
         return End(g.second);
       }},
      {"end", Illegal, [](const Guest& g) { return End(g.second); }},
  });
}

BOOST_AUTO_TEST_CASE(stream_0_depends_on_blocking_captures) {
  CheckEverywhere({
      {"fill", OnLegacy, [](const Guest& g) { return g.Fill(nullptr); }},
      {"fill nothing", OnLegacy,
       [](const Guest& g) { return RAW(cuMemsetD8Async)(g.memory, 1, 0, CU_STREAM_LEGACY); }},
      {"fill now", OnLegacy, [](const Guest& g) { return g.FillNow(); }},
      {"copy now", OnLegacy,
       [](const Guest& g) { return RAW(cuMemcpyHtoD)(g.memory, g.host, 16); }},
      {"copy now in another context", Fine,
       [](const Guest& g) {
         return InOther(g, [&] { return RAW(cuMemcpyHtoD)(g.other_memory, g.host, 16); });
       }},
      {"host function", OnLegacy,
       [](const Guest&) {
         return RAW(cuLaunchHostFunc)(
             nullptr, [](void*) {}, nullptr);
       }},
      {"record", OnLegacy, [](const Guest& g) { return g.Record(g.never, nullptr); }},
      {"wait", OnLegacy, [](const Guest& g) { return g.Wait(nullptr, g.recorded); }},
      {"synchronize", WaitOnLegacy, [](const Guest&) { return RAW(cuStreamSynchronize)(nullptr); }},
      {"query", WaitOnLegacy, [](const Guest&) { return RAW(cuStreamQuery)(nullptr); }},
      {"flags", OnLegacy,
       [](const Guest&) {
         unsigned flags = 0;
         return RAW(cuStreamGetFlags)(nullptr, &flags);
       }},
      {"context", OnLegacy,
       [](const Guest&) {
         CUcontext context = nullptr;
         return RAW(cuStreamGetCtx)(nullptr, &context);
       }},
      {"is capturing", LookOnLegacy,
       [](const Guest&) {
         auto status = kNone;
         return RAW(cuStreamIsCapturing)(nullptr, &status);
       }},
      {"begin", BeginOnLegacy, [](const Guest&) { return Begin(nullptr); }},
      {"end", EndOnLegacy, [](const Guest&) { return End(nullptr); }},
      {"destroy", DestroyOnLegacy,
       [](const Guest&) { return RAW(cuStreamDestroy)(CU_STREAM_LEGACY); }},
  });
}

BOOST_AUTO_TEST_CASE(events_inside_and_outside) {
  CheckEverywhere({
      {"query", Unsafe, [](const Guest& g) { return RAW(cuEventQuery)(g.recorded); }},
      {"query never recorded", Unsafe, [](const Guest& g) { return RAW(cuEventQuery)(g.never); }},
      {"query null", NoHandle, [](const Guest&) { return RAW(cuEventQuery)(nullptr); }},
      {"synchronize", Unsafe, [](const Guest& g) { return RAW(cuEventSynchronize)(g.recorded); }},
      {"query captured", Captured, [](const Guest& g) { return RAW(cuEventQuery)(g.captured); }},
      {"synchronize captured", Captured,
       [](const Guest& g) { return RAW(cuEventSynchronize)(g.captured); }},
      {"time of captured", CapturedTime,
       [](const Guest& g) {
         float time = 0;
         return RAW(cuEventElapsedTime)(&time, g.captured, g.captured);
       }},
      {"time of untimed captured", CapturedTime,
       [](const Guest& g) {
         const CUevent untimed = CreateUntimed();
         OK(g.Record(untimed, g.stream));
         float time = 0;
         const CUresult code = RAW(cuEventElapsedTime)(&time, untimed, untimed);
         OK(RAW(cuEventDestroy)(untimed));  // harmless too
         return code;
       }},
      {"time of recorded", Fine,
       [](const Guest& g) {
         OK(InMode(kRelaxed, [&] { return RAW(cuEventSynchronize)(g.recorded); }));
         float time = 0;
         return RAW(cuEventElapsedTime)(&time, g.recorded, g.recorded);
       }},
      {"record another context's", NoHandle,
       [](const Guest& g) {
         CUevent others = nullptr;
         OK(InOther(g, [&] { return RAW(cuEventCreate)(&others, 0); }));
         const CUresult code = g.Record(others, g.stream);
         OK(RAW(cuEventDestroy)(others));
         return code;
       }},
      {"record outside", Fine, [](const Guest& g) { return g.Record(g.recorded, g.second); }},
      {"record captured outside", Fine,
       [](const Guest& g) { return g.Record(g.captured, g.second); }},
      {"record null", NoHandle, [](const Guest& g) { return g.Record(nullptr, g.stream); }},
      {"wait outside", Fine, [](const Guest& g) { return g.Wait(g.second, g.recorded); }},
      {"wait for captured", Fine, [](const Guest& g) { return g.Wait(g.stream, g.captured); }},
      {"wait for recorded", Isolated, [](const Guest& g) { return g.Wait(g.stream, g.recorded); }},
      {"wait for external", Fine,
       [](const Guest& g) {
         return RAW(cuStreamWaitEvent)(g.stream, g.recorded, CU_EVENT_WAIT_EXTERNAL);
       }},
      {"wait for null", LosesNoHandle, [](const Guest& g) { return g.Wait(g.stream, nullptr); }},
      {"wait with bad flags", NoValue,
       [](const Guest& g) { return RAW(cuStreamWaitEvent)(g.stream, g.captured, 4); }},
  });
}

BOOST_AUTO_TEST_SUITE_END()
