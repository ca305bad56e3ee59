// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory, pointers, copies and fills, arrays, textures and surfaces.

#include "test/current_context/calls.h"

namespace cudasim_facts {
namespace current_context {
namespace {

CUDA_MEMCPY3D CopyOf(const Trial& t) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = t.o.q;
  copy.dstDevice = t.o.p;
  copy.WidthInBytes = copy.Height = copy.Depth = 1;
  return copy;
}

CUDA_RESOURCE_DESC ResourceOf(CUarray array) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

}  // namespace

const std::vector<DriverCall> kMemoryCalls = {
    {"cuMemAlloc",
     [](Trial& t) {
       return Makes<CUdeviceptr>(
           t, [](CUdeviceptr* made) { return RAW(cuMemAlloc)(made, kBytes); },
           [&](CUdeviceptr made) { t.SawOfPointer(made); }, RAW(cuMemFree));
     }},
    {"cuMemFree",
     [](Trial& t) {
       CUdeviceptr memory = 0;
       t.InA([&] { OK(RAW(cuMemAlloc)(&memory, kBytes)); });
       const CUresult code = t.Do([&] { return RAW(cuMemFree)(memory); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuMemFree)(memory)); });
       return code;
     }},
    {"cuMemAllocAsync",
     [](Trial& t) {
       CUdeviceptr memory = 0;
       const CUresult code =
           t.Do([&] { return RAW(cuMemAllocAsync)(&memory, kBytes, t.o.stream); });
       if (code == CUDA_SUCCESS) OK(RAW(cuMemFreeAsync)(memory, t.o.stream));
       return code;
     }},
    {"cuMemFreeAsync",
     [](Trial& t) {
       CUdeviceptr memory = 0;
       OK(RAW(cuMemAllocAsync)(&memory, kBytes, t.o.stream));
       const CUresult code = t.Do([&] { return RAW(cuMemFreeAsync)(memory, t.o.stream); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuMemFreeAsync)(memory, t.o.stream)); });
       return code;
     }},
    {"cuMemHostAlloc",
     [](Trial& t) {
       return Makes<void*>(
           t, [](void** made) { return RAW(cuMemHostAlloc)(made, kBytes, 0); },
           [&](void* made) { t.SawOfPointer(reinterpret_cast<CUdeviceptr>(made)); },
           RAW(cuMemFreeHost));
     }},
    {"cuMemFreeHost",
     [](Trial& t) {
       void* memory = nullptr;
       t.InA([&] { OK(RAW(cuMemHostAlloc)(&memory, kBytes, 0)); });
       const CUresult code = t.Do([&] { return RAW(cuMemFreeHost)(memory); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuMemFreeHost)(memory)); });
       return code;
     }},
    {"cuMemHostRegister",
     [](Trial& t) {
       const CUresult code = t.Do([&] { return RAW(cuMemHostRegister)(t.o.page, kBytes, 0); });
       if (code != CUDA_SUCCESS) return code;
       t.SawOfPointer(reinterpret_cast<CUdeviceptr>(t.o.page));
       Objects::In(t.owner, [&] { OK(RAW(cuMemHostUnregister)(t.o.page)); });
       return code;
     }},
    {"cuMemHostUnregister",
     [](Trial& t) {
       t.InA([&] { OK(RAW(cuMemHostRegister)(t.o.page, kBytes, 0)); });
       const CUresult code = t.Do([&] { return RAW(cuMemHostUnregister)(t.o.page); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuMemHostUnregister)(t.o.page)); });
       return code;
     }},
    {"cuPointerGetAttribute",
     [](Trial& t) {
       CUcontext context = nullptr;
       const CUresult code =
           t.Do([&] { return GetAttribute(CU_POINTER_ATTRIBUTE_CONTEXT, t.o.p, &context); });
       t.Saw(context);
       return code;
     }},
    {"cuPointerGetAttributes",
     [](Trial& t) {
       CUcontext context = nullptr;
       void* data = &context;
       auto attribute = CU_POINTER_ATTRIBUTE_CONTEXT;
       const CUresult code =
           t.Do([&] { return RAW(cuPointerGetAttributes)(1, &attribute, &data, t.o.p); });
       t.Saw(context);
       return code;
     }},
    {"cuMemGetAccess",
     [](Trial& t) {
       constexpr size_t kUnit = size_t{2} << 20;
       CUmemAllocationProp properties = {};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemGenericAllocationHandle memory = 0;
       CUdeviceptr address = 0;
       OK(RAW(cuMemCreate)(&memory, kUnit, &properties, 0));
       OK(RAW(cuMemAddressReserve)(&address, kUnit, 0, 0, 0));
       OK(RAW(cuMemMap)(address, kUnit, 0, memory, 0));
       unsigned long long flags = 0;
       const CUresult code =
           t.Do([&] { return RAW(cuMemGetAccess)(&flags, &properties.location, address); });
       OK(RAW(cuMemUnmap)(address, kUnit));
       OK(RAW(cuMemRelease)(memory));
       OK(RAW(cuMemAddressFree)(address, kUnit));
       return code;
     }},
    {"cuMemcpyHtoD",
     [](Trial& t) { return Write(t, [&] { return RAW(cuMemcpyHtoD)(t.o.p, t.o.pinned, 1); }); }},
    {"cuMemcpyDtoH",
     [](Trial& t) {
       Fill(t);
       unsigned char byte = kOld;
       const CUresult code = t.Do([&] { return RAW(cuMemcpyDtoH)(&byte, t.o.q, 1); });
       BOOST_TEST((byte == kNew) == (code == CUDA_SUCCESS));
       return code;
     }},
    {"cuMemcpyDtoD",
     [](Trial& t) { return Write(t, [&] { return RAW(cuMemcpyDtoD)(t.o.p, t.o.q, 1); }); }},
    {"cuMemcpy3D",
     [](Trial& t) {
       const CUDA_MEMCPY3D copy = CopyOf(t);
       return Write(t, [&] { return RAW(cuMemcpy3D)(&copy); });
     }},
    {"cuMemsetD8",
     [](Trial& t) { return Write(t, [&] { return RAW(cuMemsetD8)(t.o.p, kNew, 1); }); }},
    {"cuMemsetD16",
     [](Trial& t) { return Write(t, [&] { return RAW(cuMemsetD16)(t.o.p, kNew, 1); }); }},
    {"cuMemsetD32",
     [](Trial& t) { return Write(t, [&] { return RAW(cuMemsetD32)(t.o.p, kNew, 1); }); }},
    {"cuMemcpyHtoDAsync",
     [](Trial& t) {
       return Write(t, [&] { return RAW(cuMemcpyHtoDAsync)(t.o.p, t.o.pinned, 1, t.o.stream); });
     }},
    {"cuMemcpyDtoHAsync",
     [](Trial& t) {
       Fill(t);
       auto* const byte = static_cast<unsigned char*>(t.o.pinned);
       *byte = kOld;
       const CUresult code =
           t.Do([&] { return RAW(cuMemcpyDtoHAsync)(byte, t.o.q, 1, t.o.stream); });
       OK(RAW(cuStreamSynchronize)(t.o.stream));
       BOOST_TEST((*byte == kNew) == (code == CUDA_SUCCESS));
       return code;
     }},
    {"cuMemcpyDtoDAsync",
     [](Trial& t) {
       return Write(t, [&] { return RAW(cuMemcpyDtoDAsync)(t.o.p, t.o.q, 1, t.o.stream); });
     }},
    {"cuMemcpy3DAsync",
     [](Trial& t) {
       const CUDA_MEMCPY3D copy = CopyOf(t);
       return Write(t, [&] { return RAW(cuMemcpy3DAsync)(&copy, t.o.stream); });
     }},
    {"cuMemsetD8Async",
     [](Trial& t) {
       return Write(t, [&] { return RAW(cuMemsetD8Async)(t.o.p, kNew, 1, t.o.stream); });
     }},
    {"cuMemsetD16Async",
     [](Trial& t) {
       return Write(t, [&] { return RAW(cuMemsetD16Async)(t.o.p, kNew, 1, t.o.stream); });
     }},
    {"cuMemsetD32Async",
     [](Trial& t) {
       return Write(t, [&] { return RAW(cuMemsetD32Async)(t.o.p, kNew, 1, t.o.stream); });
     }},

    {"cuArray3DCreate",
     [](Trial& t) {
       return Makes<CUarray>(
           t,
           [](CUarray* made) {
             const CUDA_ARRAY3D_DESCRIPTOR shape = {16, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
             return RAW(cuArray3DCreate)(made, &shape);
           },
           [](CUarray) {}, RAW(cuArrayDestroy));
     }},
    {"cuArrayDestroy",
     [](Trial& t) {
       CUarray array = nullptr;
       t.InA([&] { array = Objects::MakeArray(); });
       const CUresult code = t.Do([&] { return RAW(cuArrayDestroy)(array); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuArrayDestroy)(array)); });
       return code;
     }},
    {"cuArray3DGetDescriptor",
     [](Trial& t) {
       CUDA_ARRAY3D_DESCRIPTOR shape = {};
       return t.Do([&] { return RAW(cuArray3DGetDescriptor)(&shape, t.o.array); });
     }},
    {"cuTexObjectCreate",
     [](Trial& t) {
       const CUDA_RESOURCE_DESC resource = ResourceOf(t.o.array);
       const CUDA_TEXTURE_DESC sampling = {};
       CUtexObject made = 0;
       const CUresult code =
           t.Do([&] { return RAW(cuTexObjectCreate)(&made, &resource, &sampling, nullptr); });
       if (code == CUDA_SUCCESS) {
         Objects::In(t.current != nullptr ? t.current : t.o.a.get(),
                     [&] { OK(RAW(cuTexObjectDestroy)(made)); });
       }
       return code;
     }},
    {"cuTexObjectDestroy",
     [](Trial& t) {
       const CUDA_RESOURCE_DESC resource = ResourceOf(t.o.array);
       const CUDA_TEXTURE_DESC sampling = {};
       CUtexObject made = 0;
       t.InA([&] { OK(RAW(cuTexObjectCreate)(&made, &resource, &sampling, nullptr)); });
       const CUresult code = t.Do([&] { return RAW(cuTexObjectDestroy)(made); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuTexObjectDestroy)(made)); });
       return code;
     }},
    {"cuIpcGetMemHandle",
     [](Trial& t) {
       CUipcMemHandle handle = {};
       CUdeviceptr memory = 0;
       t.InA([&] { OK(RAW(cuMemAlloc)(&memory, 4096)); });
       const CUresult code = t.Do([&] { return RAW(cuIpcGetMemHandle)(&handle, memory); });
       OK(RAW(cuMemFree)(memory));
       return code;
     }},
    {"cuSurfObjectCreate",
     [](Trial& t) {
       const CUDA_RESOURCE_DESC resource = ResourceOf(t.o.array);
       CUsurfObject made = 0;
       const CUresult code = t.Do([&] { return RAW(cuSurfObjectCreate)(&made, &resource); });
       if (code == CUDA_SUCCESS) {
         Objects::In(t.current != nullptr ? t.current : t.o.a.get(),
                     [&] { OK(RAW(cuSurfObjectDestroy)(made)); });
       }
       return code;
     }},
    {"cuSurfObjectDestroy",
     [](Trial& t) {
       const CUDA_RESOURCE_DESC resource = ResourceOf(t.o.array);
       CUsurfObject made = 0;
       t.InA([&] { OK(RAW(cuSurfObjectCreate)(&made, &resource)); });
       const CUresult code = t.Do([&] { return RAW(cuSurfObjectDestroy)(made); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuSurfObjectDestroy)(made)); });
       return code;
     }},
};

}  // namespace current_context
}  // namespace cudasim_facts
