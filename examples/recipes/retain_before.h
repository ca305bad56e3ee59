/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A copier in C, for one thread, that finds and retains contexts itself. test/capi/retain_test.c
 * shows what becomes of them. */

#ifndef RETAIN_BEFORE_H_
#define RETAIN_BEFORE_H_

#include <cuda.h>
#include <stddef.h>

enum { COPIER_LANES = 16, COPIER_OPERATIONS = 32, COPIER_NO_DEVICE = -1 };

/* What is kept in one context. */
struct copier_lane {
  CUcontext context;
  unsigned long long id; /* the key: a handle is used again, an id is not */
  CUdevice retained;     /* whose primary context it is, retained until closing */
  CUstream stream;
  CUevent events[COPIER_OPERATIONS];
  int free_events;
};
struct copier_operation {
  struct copier_lane* lane; /* null: none */
  CUevent done;
};
struct copier {
  struct copier_lane lanes[COPIER_LANES];
  int lane_count;
  struct copier_operation operations[COPIER_OPERATIONS];
  int failed;
};
struct copier_registration {
  CUdevice device;
  void* memory;
};

static CUresult copier_retain_if_active(CUdevice device, CUcontext* context) {
  unsigned flags = 0;
  int is_active = 0;
  const CUresult code = cuDevicePrimaryCtxGetState(device, &flags, &is_active);
  if (code != CUDA_SUCCESS) return code;
  /* Here the last of the others may release it; it is then created. */
  return is_active ? cuDevicePrimaryCtxRetain(context, device) : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult copier_find(CUdeviceptr memory, int is_managed, CUcontext* context,
                            CUdevice* retained) {
  CUresult code = CUDA_ERROR_INVALID_CONTEXT;
  int device = 0, count = 0;
  *context = NULL;
  *retained = COPIER_NO_DEVICE;
  if (is_managed) { /* any context will do */
    code = cuCtxGetCurrent(context);
    if (code != CUDA_SUCCESS || *context != NULL) return code;
    code = cuDeviceGetCount(&count);
    if (code != CUDA_SUCCESS) return code;
    code = CUDA_ERROR_INVALID_CONTEXT;
    for (device = 0; device < count && code != CUDA_SUCCESS; ++device) {
      code = copier_retain_if_active(device, context);
      if (code == CUDA_SUCCESS) *retained = device;
    }
    return code;
  }
  code = cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory);
  if (code != CUDA_SUCCESS) return code;
  code = copier_retain_if_active(device, context);
  if (code == CUDA_SUCCESS) *retained = device;
  if (code != CUDA_ERROR_INVALID_CONTEXT) return code;
  code = cuPointerGetAttribute(context, CU_POINTER_ATTRIBUTE_CONTEXT, memory);
  return code == CUDA_SUCCESS && *context == NULL ? CUDA_ERROR_INVALID_CONTEXT : code;
}

static CUresult copier_push(CUcontext context, CUdevice retained) {
  const CUresult code = cuCtxPushCurrent(context);
  if (code != CUDA_SUCCESS && retained != COPIER_NO_DEVICE) cuDevicePrimaryCtxRelease(retained);
  return code;
}

static void copier_pop(CUdevice retained) {
  CUcontext popped = NULL;
  cuCtxPopCurrent(&popped);
  if (retained != COPIER_NO_DEVICE) cuDevicePrimaryCtxRelease(retained);
}

static CUresult copier_get_lane(struct copier* copier, CUcontext context, CUdevice retained,
                                struct copier_lane** found) {
  struct copier_lane* lane = NULL;
  unsigned long long id = 0;
  int i;
  CUresult code = cuCtxGetId(context, &id);
  if (code != CUDA_SUCCESS) return code;
  for (i = 0; i < copier->lane_count; ++i) {
    *found = &copier->lanes[i];
    if ((*found)->id == id) return CUDA_SUCCESS;
  }
  if (copier->lane_count == COPIER_LANES) return CUDA_ERROR_OUT_OF_MEMORY;
  lane = &copier->lanes[copier->lane_count];
  code = cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING);
  if (code != CUDA_SUCCESS) return code;
  if (retained != COPIER_NO_DEVICE) code = cuDevicePrimaryCtxRetain(&context, retained);
  if (code != CUDA_SUCCESS) {
    cuStreamDestroy(lane->stream);
    return code;
  }
  lane->context = context;
  lane->id = id;
  lane->retained = retained;
  ++copier->lane_count;
  *found = lane;
  return CUDA_SUCCESS;
}

static CUresult copier_start(struct copier* copier, struct copier_lane* lane, CUdeviceptr target,
                             const void* source, size_t bytes) {
  CUresult code;
  int i = 0;
  while (i < COPIER_OPERATIONS && copier->operations[i].lane != NULL) ++i;
  if (i == COPIER_OPERATIONS) return CUDA_ERROR_NOT_READY;
  if (lane->free_events > 0) {
    copier->operations[i].done = lane->events[--lane->free_events];
  } else {
    code = cuEventCreate(&copier->operations[i].done, CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) return code;
  }
  code = cuMemcpyHtoDAsync(target, source, bytes, lane->stream);
  if (code == CUDA_SUCCESS) code = cuEventRecord(copier->operations[i].done, lane->stream);
  if (code == CUDA_SUCCESS) {
    copier->operations[i].lane = lane;
  } else {
    lane->events[lane->free_events++] = copier->operations[i].done;
  }
  return code;
}

/* Starts a copy. */
static CUresult copier_put(struct copier* copier, CUdeviceptr target, int is_managed,
                           const void* source, size_t bytes) {
  struct copier_lane* lane = NULL;
  CUcontext context = NULL;
  CUdevice retained = COPIER_NO_DEVICE;
  CUresult code = copier_find(target, is_managed, &context, &retained);
  if (code == CUDA_SUCCESS) code = copier_push(context, retained);
  if (code != CUDA_SUCCESS) return code;
  code = copier_get_lane(copier, context, retained, &lane);
  if (code == CUDA_SUCCESS) code = copier_start(copier, lane, target, source, bytes);
  copier_pop(retained);
  return code;
}

static void copier_finish(struct copier_operation* operation) {
  struct copier_lane* const lane = operation->lane;
  lane->events[lane->free_events++] = operation->done;
  operation->lane = NULL;
}

/* How many copies have ended since the last call. */
static int copier_progress(struct copier* copier) {
  int i, ended = 0;
  for (i = 0; i < COPIER_OPERATIONS; ++i) {
    struct copier_operation* const operation = &copier->operations[i];
    const CUresult code = operation->lane != NULL ? cuEventQuery(operation->done) : CUDA_SUCCESS;
    if (operation->lane == NULL || code == CUDA_ERROR_NOT_READY) continue;
    copier_finish(operation);
    copier->failed += code != CUDA_SUCCESS;
    ++ended;
  }
  return ended;
}

/* Allocates in the primary context, which is retained for that. */
static CUresult copier_alloc(struct copier* copier, CUdevice device, size_t bytes,
                             CUdeviceptr* memory) {
  CUcontext context = NULL;
  CUresult code = cuDevicePrimaryCtxRetain(&context, device);
  (void)copier;
  if (code == CUDA_SUCCESS) code = copier_push(context, device);
  if (code != CUDA_SUCCESS) return code;
  code = cuMemAlloc(memory, bytes);
  copier_pop(device); /* and the memory ends, if that was the last reference */
  return code;
}

/* Registers memory of the host, if the primary context is active. */
static CUresult copier_register(struct copier_registration* registration, CUdevice device,
                                void* memory, size_t bytes) {
  CUcontext context = NULL;
  CUresult code = copier_retain_if_active(device, &context);
  if (code == CUDA_SUCCESS) code = copier_push(context, device);
  if (code != CUDA_SUCCESS) return code;
  code = cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE);
  copier_pop(device);
  registration->device = device;
  registration->memory = memory;
  return code;
}

static CUresult copier_unregister(struct copier_registration* registration) {
  CUcontext context = NULL;
  CUresult code = copier_retain_if_active(registration->device, &context);
  if (code == CUDA_SUCCESS) code = copier_push(context, registration->device);
  if (code != CUDA_SUCCESS) return code;
  code = cuMemHostUnregister(registration->memory);
  copier_pop(registration->device);
  return code;
}

/* Whether the primary context was reset: the reference is counted, what was in it is not there. */
static int copier_was_reset(const struct copier_lane* lane) {
  unsigned long long id = 0;
  if (lane->retained == COPIER_NO_DEVICE) return 0; /* of a user's context nobody knows */
  return cuCtxGetId(lane->context, &id) != CUDA_SUCCESS || id != lane->id;
}

static void copier_close(struct copier* copier) {
  int i;
  for (i = 0; i < COPIER_OPERATIONS; ++i) {
    if (copier->operations[i].lane != NULL) copier_finish(&copier->operations[i]);
  }
  for (i = 0; i < copier->lane_count; ++i) {
    struct copier_lane* const lane = &copier->lanes[i];
    if (!copier_was_reset(lane)) {
      while (lane->free_events > 0) cuEventDestroy(lane->events[--lane->free_events]);
      cuStreamDestroy(lane->stream);
    }
    if (lane->retained != COPIER_NO_DEVICE) cuDevicePrimaryCtxRelease(lane->retained);
  }
  copier->lane_count = 0;
}

#endif /* RETAIN_BEFORE_H_ */
