// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices, primary, user and green contexts, the stack.

#include "test/current_context/calls.h"

namespace cudasim_facts {
namespace current_context {
namespace {

CUdevResource AllOfTheDevice() {
  CUdevResource whole = {};
  OK(RAW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
  return whole;
}

CUgreenCtx MakeGreen() {
  CUdevResource whole = AllOfTheDevice();
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  OK(RAW(cuDevResourceGenerateDesc)(&description, &whole, 1));
  OK(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

CUresult EndOfGreen(CUgreenCtx green) { return RAW(cuGreenCtxDestroy)(green); }

}  // namespace

const std::vector<DriverCall> kContextCalls = {
    {"cuInit", [](Trial& t) { return t.Do([] { return RAW(cuInit)(0); }); }},
    {"cuDriverGetVersion", [](Trial& t) { return Ask<int>(t, RAW(cuDriverGetVersion)); }},
    {"cuDeviceGetCount", [](Trial& t) { return Ask<int>(t, RAW(cuDeviceGetCount)); }},
    {"cuDeviceGet",
     [](Trial& t) {
       CUdevice device = -1;
       return t.Do([&] { return RAW(cuDeviceGet)(&device, 0); });
     }},
    {"cuDeviceGetName",
     [](Trial& t) {
       char name[100];
       return t.Do([&] { return RAW(cuDeviceGetName)(name, sizeof(name), 0); });
     }},
    {"cuDeviceGetPCIBusId",
     [](Trial& t) {
       char id[100];
       return t.Do([&] { return RAW(cuDeviceGetPCIBusId)(id, sizeof(id), 0); });
     }},
    {"cuDeviceGetAttribute",
     [](Trial& t) {
       int value = 0;
       return t.Do(
           [&] { return RAW(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0); });
     }},
    {"cuDeviceGetUuid",
     [](Trial& t) {
       CUuuid uuid;
       return t.Do([&] { return RAW(cuDeviceGetUuid)(&uuid, 0); });
     }},
    {"cuDeviceCanAccessPeer",
     [](Trial& t) {
       int can = 0;
       return t.Do([&] { return RAW(cuDeviceCanAccessPeer)(&can, 0, 0); });
     }},
    {"cuDeviceGetP2PAttribute",
     [](Trial& t) {
       int value = 0;
       int devices = 0;
       OK(RAW(cuDeviceGetCount)(&devices));
       const CUresult code = t.Do([&] {
         return RAW(cuDeviceGetP2PAttribute)(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0,
                                             devices - 1);
       });
       // A device has no link to itself.
       return devices == 1 && code == CUDA_ERROR_INVALID_DEVICE ? CUDA_SUCCESS : code;
     }},
    {"cuDevicePrimaryCtxRetain",
     [](Trial& t) {
       CUcontext primary = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuDevicePrimaryCtxRetain)(&primary, 0); });
       OK(RAW(cuDevicePrimaryCtxRelease)(0));
       return code;
     }},
    {"cuDevicePrimaryCtxRelease",
     [](Trial& t) {
       CUcontext primary = nullptr;
       OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
       return t.Do([&] { return RAW(cuDevicePrimaryCtxRelease)(0); });
     }},
    {"cuDevicePrimaryCtxGetState",
     [](Trial& t) {
       unsigned flags = 0;
       int active = 0;
       return t.Do([&] { return RAW(cuDevicePrimaryCtxGetState)(0, &flags, &active); });
     }},
    {"cuCtxCreate",
     [](Trial& t) {
       CUcontext made = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuCtxCreate)(&made, nullptr, 0, 0); });
       OK(RAW(cuCtxDestroy)(made));
       return code;
     }},
    {"cuCtxDestroy",
     [](Trial& t) {
       OwnContext other;
       const CUcontext context = other.release();
       return t.Do([&] { return RAW(cuCtxDestroy)(context); });
     }},
    {"cuCtxPushCurrent",
     [](Trial& t) { return t.Do([&] { return RAW(cuCtxPushCurrent)(t.o.a.get()); }); }},
    {"cuCtxPopCurrent",
     [](Trial& t) {
       return t.Do([&] {
         CUcontext popped = nullptr;
         const CUresult code = RAW(cuCtxPopCurrent)(&popped);
         t.Saw(popped);
         return code;
       });
     }},
    {"cuCtxSetCurrent",
     [](Trial& t) { return t.Do([&] { return RAW(cuCtxSetCurrent)(t.o.a.get()); }); }},
    {"cuCtxGetCurrent", [](Trial& t) { return Ask<CUcontext>(t, RAW(cuCtxGetCurrent)); }},
    {"cuCtxGetId",
     [](Trial& t) {
       unsigned long long id = 0;
       const CUresult code = t.Do([&] { return RAW(cuCtxGetId)(t.o.a.get(), &id); });
       if (id == IdOf(t.o.a.get())) t.Saw(t.o.a.get());
       return code;
     }},
    {"cuCtxGetApiVersion",
     [](Trial& t) {
       unsigned version = 0;
       return t.Do([&] { return RAW(cuCtxGetApiVersion)(t.o.a.get(), &version); });
     }},
    {"cuCtxGetDevice", [](Trial& t) { return Ask<CUdevice>(t, RAW(cuCtxGetDevice)); }},
    {"cuCtxGetFlags", [](Trial& t) { return Ask<unsigned>(t, RAW(cuCtxGetFlags)); }},
    {"cuCtxSynchronize", [](Trial& t) { return t.Do([] { return RAW(cuCtxSynchronize)(); }); }},
    {"cuCtxGetExecAffinity",
     [](Trial& t) {
       CUexecAffinityParam affinity = {};
       return t.Do(
           [&] { return RAW(cuCtxGetExecAffinity)(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT); });
     }},
    {"cuCtxEnablePeerAccess",
     [](Trial& t) { return t.Do([&] { return RAW(cuCtxEnablePeerAccess)(t.o.a.get(), 0); }); }},
    {"cuCtxDisablePeerAccess",
     [](Trial& t) { return t.Do([&] { return RAW(cuCtxDisablePeerAccess)(t.o.a.get()); }); }},
    {"cuMemGetInfo",
     [](Trial& t) {
       size_t free = 0;
       return t.Do([&] { return RAW(cuMemGetInfo)(&free, &free); });
     }},
    {"cuThreadExchangeStreamCaptureMode",
     [](Trial& t) {
       auto mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
       return t.Do([&] { return RAW(cuThreadExchangeStreamCaptureMode)(&mode); });
     }},
    {"cuDeviceGetDevResource",
     [](Trial& t) {
       CUdevResource whole = {};
       return t.Do([&] { return RAW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM); });
     }},
    {"cuCtxGetDevResource",
     [](Trial& t) {
       CUdevResource whole = {};
       return t.Do(
           [&] { return RAW(cuCtxGetDevResource)(t.o.a.get(), &whole, CU_DEV_RESOURCE_TYPE_SM); });
     }},
    {"cuDevSmResourceSplitByCount",
     [](Trial& t) {
       const CUdevResource whole = AllOfTheDevice();
       CUdevResource group = {};
       CUdevResource rest = {};
       unsigned count = 1;
       return t.Do(
           [&] { return RAW(cuDevSmResourceSplitByCount)(&group, &count, &whole, &rest, 0, 8); });
     }},
    {"cuDevResourceGenerateDesc",
     [](Trial& t) {
       CUdevResource whole = AllOfTheDevice();
       CUdevResourceDesc description = nullptr;
       return t.Do([&] { return RAW(cuDevResourceGenerateDesc)(&description, &whole, 1); });
     }},
    {"cuGreenCtxCreate",
     [](Trial& t) {
       CUdevResource whole = AllOfTheDevice();
       CUdevResourceDesc description = nullptr;
       OK(RAW(cuDevResourceGenerateDesc)(&description, &whole, 1));
       CUgreenCtx green = nullptr;
       const CUresult code = t.Do([&] {
         return RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
       });
       if (green != nullptr) OK(EndOfGreen(green));
       return code;
     }},
    {"cuGreenCtxDestroy",
     [](Trial& t) {
       const CUgreenCtx green = MakeGreen();
       return t.Do([&] { return EndOfGreen(green); });
     }},
    {"cuCtxFromGreenCtx",
     [](Trial& t) {
       const CUgreenCtx green = MakeGreen();
       CUcontext context = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuCtxFromGreenCtx)(&context, green); });
       OK(EndOfGreen(green));
       return code;
     }},
};

}  // namespace current_context
}  // namespace cudasim_facts
