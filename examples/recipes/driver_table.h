// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cuguest_driver_adopt() asks for, by names of symbols: for a host that finds the driver's
// functions by dlsym() or g_module_symbol(). test/process/driver_table_test.cc compares it with
// cuguest's own tables.

#ifndef DRIVER_TABLE_H_
#define DRIVER_TABLE_H_

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct driver_function {
  const char* name;
  int version; /* of the signature, as cuGetProcAddress counts */
  const char* symbol;
};

static const struct driver_function driver_functions[] = {
    /* No guard does without these four, or with the fifth in place of the fourth. */
    {"cuCtxGetCurrent", 4000, "cuCtxGetCurrent"},
    {"cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"},
    {"cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"},
    {"cuCtxGetId", 12000, "cuCtxGetId"},
    {"cuCtxGetApiVersion", 3020, "cuCtxGetApiVersion"},
    {"cuInit", 2000, "cuInit"},
    {"cuDriverGetVersion", 2020, "cuDriverGetVersion"},
    {"cuDeviceGetCount", 2000, "cuDeviceGetCount"},
    {"cuDeviceGet", 2000, "cuDeviceGet"},
    {"cuDeviceGetName", 2000, "cuDeviceGetName"},
    {"cuDeviceGetPCIBusId", 4010, "cuDeviceGetPCIBusId"},
    {"cuDeviceGetAttribute", 2000, "cuDeviceGetAttribute"},
    {"cuDeviceGetUuid", 9020, "cuDeviceGetUuid"},
    {"cuDeviceCanAccessPeer", 4000, "cuDeviceCanAccessPeer"},
    {"cuCtxCreate", 3020, "cuCtxCreate_v2"},
    {"cuCtxDestroy", 4000, "cuCtxDestroy_v2"},
    {"cuCtxSetCurrent", 4000, "cuCtxSetCurrent"},
    {"cuCtxGetDevice", 2000, "cuCtxGetDevice"},
    {"cuCtxGetDevice", 13000, "cuCtxGetDevice_v2"}, /* takes the context: another signature */
    {"cuCtxGetFlags", 7000, "cuCtxGetFlags"},
    {"cuCtxSynchronize", 2000, "cuCtxSynchronize"},
    {"cuDevicePrimaryCtxRetain", 7000, "cuDevicePrimaryCtxRetain"},
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2"},
    {"cuDevicePrimaryCtxRelease", 7000, "cuDevicePrimaryCtxRelease"}, /* before CUDA 11.0 */
    {"cuDevicePrimaryCtxGetState", 7000, "cuDevicePrimaryCtxGetState"},
    {"cuMemGetInfo", 3020, "cuMemGetInfo_v2"},
    {"cuPointerGetAttribute", 4000, "cuPointerGetAttribute"},
    {"cuPointerGetAttributes", 7000, "cuPointerGetAttributes"},
    {"cuStreamCreate", 2000, "cuStreamCreate"},
    {"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
    {"cuStreamGetCtx", 9020, "cuStreamGetCtx"},
    {"cuStreamIsCapturing", 10000, "cuStreamIsCapturing"},
    {"cuThreadExchangeStreamCaptureMode", 10010, "cuThreadExchangeStreamCaptureMode"},
};

/* A cuguest_driver_lookup. What it does not list is not there: never the symbol of another
 * version, whose arguments are others. `library` is what dlopen() gave for the driver. */
static void* driver_lookup(const char* name, int version, void* library) {
  size_t i;
  for (i = 0; i < sizeof driver_functions / sizeof driver_functions[0]; ++i) {
    const struct driver_function* one = &driver_functions[i];
    if (one->version == version && strcmp(one->name, name) == 0) {
      return dlsym(library, one->symbol);
    }
  }
  return NULL;
}

#endif  // DRIVER_TABLE_H_
