// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
/// \file
/// `DriverTable` holds the addresses of driver functions. driver.h resolves it; this header brings
/// <cuda.h> and nothing else, so that code without Abseil can use the table, too.
///
/// Entries carry the driver's name without "cu", because <cuda.h> defines macros over the names
/// (cuMemAlloc is cuMemAlloc_v2, or its per-thread-stream twin, depending on the including file),
/// and a member whose name changes from one file to the next breaks the one-definition rule.

#ifndef CUGUEST_DRIVER_TABLE_H_
#define CUGUEST_DRIVER_TABLE_H_

#include <cuda.h>

#include <cstddef>

#include "cuguest/export.h"
#include "cuguest/internal/toolkit.h"

/// Note [The version beside each entry]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// cuGetProcAddress(name, version) answers with the newest signature that is not newer than
/// `version`, and one name can mean two signatures: "cuCtxGetDevice" takes one argument at 12000
/// and two at 13000. So each entry is asked for by the version of the signature written here, which
/// is that of the PFN_cu<Name>_v<Version> typedef of <cudaTypedefs.h>: never CUDA_VERSION, never
/// the driver's.
///
/// X(Name, version, suffix, (parameters)): `version` is the API version that introduced the
/// signature (11040 is CUDA 11.4); a driver older than cuGetProcAddress (before CUDA 11.3) exports
/// it as "cu", the name and `suffix`.

/// Required: every one is in CUDA 7.0 or older. A driver without one is too old.
/// (cuDevicePrimaryCtxRelease is too, but is asked for by its later version, which has the same
/// signature and reports a release that no retain covers; the first one does not.)
#define CUGUEST_REQUIRED_ENTRIES(X)                                                            \
  X(Init, 2000, "", (unsigned flags))                                                          \
  X(DriverGetVersion, 2020, "", (int* version))                                                \
  X(DeviceGetCount, 2000, "", (int* count))                                                    \
  X(DeviceGet, 2000, "", (CUdevice * device, int ordinal))                                     \
  X(DeviceGetName, 2000, "", (char* name, int size, CUdevice device))                          \
  X(DeviceGetPCIBusId, 4010, "", (char* id, int size, CUdevice device))                        \
  X(DeviceGetAttribute, 2000, "", (int* value, CUdevice_attribute attribute, CUdevice device)) \
  X(CtxCreate, 3020, "_v2", (CUcontext * context, unsigned flags, CUdevice device))            \
  X(CtxDestroy, 4000, "_v2", (CUcontext context))                                              \
  X(CtxPushCurrent, 4000, "_v2", (CUcontext context))                                          \
  X(CtxPopCurrent, 4000, "_v2", (CUcontext * context))                                         \
  X(CtxSetCurrent, 4000, "", (CUcontext context))                                              \
  X(CtxGetCurrent, 4000, "", (CUcontext * context))                                            \
  X(CtxGetDevice, 2000, "", (CUdevice * device))                                               \
  X(CtxGetFlags, 7000, "", (unsigned* flags))                                                  \
  X(CtxGetApiVersion, 3020, "", (CUcontext context, unsigned* version))                        \
  X(CtxSynchronize, 2000, "", (void))                                                          \
  X(DevicePrimaryCtxRetain, 7000, "", (CUcontext * context, CUdevice device))                  \
  X(DevicePrimaryCtxRelease, 11000, "", (CUdevice device))                                     \
  X(DevicePrimaryCtxGetState, 7000, "", (CUdevice device, unsigned* flags, int* active))       \
  X(StreamCreate, 2000, "", (CUstream * stream, unsigned flags))                               \
  X(StreamDestroy, 4000, "_v2", (CUstream stream))                                             \
  X(PointerGetAttribute, 4000, "",                                                             \
    (void* value, CUpointer_attribute attribute, CUdeviceptr pointer))                         \
  X(PointerGetAttributes, 7000, "",                                                            \
    (unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr pointer))     \
  X(DeviceCanAccessPeer, 4000, "", (int* can, CUdevice device, CUdevice peer))

/// Optional: null in the table where the driver does not have them. Driver::Require says which
/// driver does.
#define CUGUEST_OPTIONAL_ENTRIES(X)                                                            \
  X(DeviceGetUuid, 9020, "", (CUuuid * uuid, CUdevice device))                                 \
  X(MemGetInfo, 3020, "_v2", (size_t * free, size_t * total))                                  \
  X(StreamGetCtx, 9020, "", (CUstream stream, CUcontext * context))                            \
  X(StreamIsCapturing, 10000, "", (CUstream stream, CUstreamCaptureStatus * status))           \
  X(ThreadExchangeStreamCaptureMode, 10010, "", (CUstreamCaptureMode * mode))                  \
  X(CtxGetId, 12000, "", (CUcontext context, unsigned long long* id))                          \
  X(CtxGetExecAffinity, 11040, "", (CUexecAffinityParam * affinity, CUexecAffinityType type))  \
  X(CtxGetDevResource, 12040, "",                                                              \
    (CUcontext context, CUdevResource * resource, CUdevResourceType type))                     \
  X(DeviceGetDevResource, 12040, "",                                                           \
    (CUdevice device, CUdevResource * resource, CUdevResourceType type))                       \
  X(DevSmResourceSplitByCount, 12040, "",                                                      \
    (CUdevResource * groups, unsigned* count, const CUdevResource* input, CUdevResource* rest, \
     unsigned flags, unsigned least))                                                          \
  X(DevSmResourceSplit, 13010, "",                                                             \
    (CUdevResource * groups, unsigned count, const CUdevResource* input, CUdevResource* rest,  \
     unsigned flags, CU_DEV_SM_RESOURCE_GROUP_PARAMS* parameters))                             \
  X(DevResourceGenerateDesc, 12040, "",                                                        \
    (CUdevResourceDesc * description, CUdevResource * resources, unsigned count))              \
  X(GreenCtxCreate, 12040, "",                                                                 \
    (CUgreenCtx * green, CUdevResourceDesc description, CUdevice device, unsigned flags))      \
  X(GreenCtxDestroy, 12040, "", (CUgreenCtx green))                                            \
  X(CtxFromGreenCtx, 12040, "", (CUcontext * context, CUgreenCtx green))                       \
  X(StreamGetGreenCtx, 12040, "", (CUstream stream, CUgreenCtx * green))

CUGUEST_BEGIN_NAMESPACE

/// What a host answers in the driver's stead (see Driver::Adopt): the address of function `name`
/// ("cuMemAlloc") with the signature that API version `version` (3020) introduced, and for
/// functions that take a stream the one whose stream 0 is the legacy default stream; nullptr if
/// there is none. As cuGetProcAddress with CU_GET_PROC_ADDRESS_LEGACY_STREAM.
using DriverLookup = void* (*)(const char* name, int version, void* user);

struct DriverTable {
  /// Why there is no usable driver. Each is a distinct status; see `Driver::Get`,
  /// `Driver::GetInitialized` and `Driver::Require`.
  enum class Problem {
    kNone,
    kNoLibrary,     ///< libcuda.so.1 could not be loaded
    kStub,          ///< it is the toolkit's link-time stub: every call gives 34
    kTooOld,        ///< a required entry is missing
    kEntryMissing,  ///< an optional entry was asked for and is missing
    kForkedChild,   ///< this process was forked from one that had initialised CUDA
    kNoDevice,      ///< the driver works and sees no device
    kOther,         ///< cuInit failed for another reason; the status carries the code
    kInUse,         ///< Driver::Adopt came after a first use that found a driver library
  };

  CUGUEST_HIDE DriverTable() = default;

#define CUGUEST_DECLARE_ENTRY(Name, version, symbol, parameters) \
  CUresult(CUDAAPI* Name) parameters = nullptr;
  CUGUEST_REQUIRED_ENTRIES(CUGUEST_DECLARE_ENTRY)
  CUGUEST_OPTIONAL_ENTRIES(CUGUEST_DECLARE_ENTRY)
#undef CUGUEST_DECLARE_ENTRY

  /// The API version the driver reports (13000 is CUDA 13.0).
  int version = 0;

  /// Where the entries came from, and where Driver::Find looks.
  DriverLookup lookup = nullptr;
  void* lookup_user = nullptr;

  /// cuCtxGetDevice of CUDA 13.0, which takes the context and has the name of the entry above; null
  /// on an older driver.
  /// Requires: the context is alive: the driver reads its memory.
  internal::GetDeviceOf CtxGetDeviceOf = nullptr;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_DRIVER_TABLE_H_
