/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The copier of retain_before.h with cuguest/c.h. test/capi/retain_test.c runs both. */

#ifndef RETAIN_AFTER_H_
#define RETAIN_AFTER_H_

#include <cuda.h>
#include <stddef.h>

#include "cuguest/c.h"

enum { COPIER_OPERATIONS = 32 };

/* What is kept in one context. */
struct copier_lane {
  CUstream stream;
  CUevent events[COPIER_OPERATIONS];
  int free_events;
};
struct copier_operation {
  cuguest_per_context_pin lane; /* pins nothing: none */
  cuguest_ref context;
  CUevent done;
};
/* Zeros: nothing is kept. */
struct copier {
  cuguest_per_context lanes;
  cuguest_primary_keeper primaries; /* that its memory is in */
  struct copier_operation operations[COPIER_OPERATIONS];
  int failed;
};
struct copier_registration {
  cuguest_primary primary;
  void* memory;
};

static int copier_make_lane(const cuguest_ref* context, void* value, void* user) {
  (void)context, (void)user;
  return cuStreamCreate(&((struct copier_lane*)value)->stream, CU_STREAM_NON_BLOCKING);
}

static void copier_destroy_lane(void* value, void* user) {
  struct copier_lane* const lane = value;
  (void)user;
  while (lane->free_events > 0) cuEventDestroy(lane->events[--lane->free_events]);
  cuStreamDestroy(lane->stream);
}

static const cuguest_per_context_type copier_lanes = {sizeof(copier_lanes),
                                                      sizeof(struct copier_lane),
                                                      0,
                                                      &copier_make_lane,
                                                      &copier_destroy_lane,
                                                      NULL,
                                                      NULL};

/* Inside, nothing invalidates a capture of the host's. */
static int copier_enter(cuguest_guard* guard, const cuguest_ref* context, CUGUEST_PLACE) {
  const int code = cuguest_guard_enter_ref(guard, context, CUGUEST_ELIDE, CUGUEST_GIVEN_PLACE);
  return code == 0 ? cuguest_guard_relax(guard, CUGUEST_GIVEN_PLACE) : code;
}

static int copier_enter_acquired(cuguest_guard* guard, const cuguest_acquired* acquired,
                                 CUGUEST_PLACE) {
  const int code =
      cuguest_guard_enter_acquired(guard, acquired, CUGUEST_ELIDE, CUGUEST_GIVEN_PLACE);
  return code == 0 ? cuguest_guard_relax(guard, CUGUEST_GIVEN_PLACE) : code;
}

/* Any context will do for managed memory, which is `acquired` then. */
static int copier_enter_memory(cuguest_guard* guard, cuguest_acquired* acquired, CUdeviceptr memory,
                               int is_managed, CUGUEST_PLACE) {
  int code;
  if (is_managed) {
    code = cuguest_acquire_any(acquired);
    return code == 0 ? copier_enter_acquired(guard, acquired, CUGUEST_GIVEN_PLACE) : code;
  }
  code = cuguest_guard_enter_pointer(guard, memory, CUGUEST_REFUSE, CUGUEST_ELIDE,
                                     CUGUEST_GIVEN_PLACE);
  return code == 0 ? cuguest_guard_relax(guard, CUGUEST_GIVEN_PLACE) : code;
}

static void copier_finish(struct copier_operation* operation) {
  struct copier_lane* const lane = cuguest_per_context_value(&operation->lane);
  lane->events[lane->free_events++] = operation->done;
  cuguest_per_context_unpin(&operation->lane);
}

static int copier_start(struct copier* copier, const cuguest_ref* context, CUdeviceptr target,
                        const void* source, size_t bytes) {
  struct copier_operation* operation = copier->operations;
  struct copier_operation* const end = operation + COPIER_OPERATIONS;
  struct copier_lane* lane;
  int code;
  while (operation != end && cuguest_per_context_value(&operation->lane) != NULL) ++operation;
  if (operation == end) return CUDA_ERROR_NOT_READY;
  code = cuguest_per_context_get(&copier->lanes, &copier_lanes, context, &operation->lane);
  if (code != 0) return code;
  lane = cuguest_per_context_value(&operation->lane);
  operation->context = *context;
  if (lane->free_events > 0) {
    operation->done = lane->events[--lane->free_events];
  } else {
    code = cuEventCreate(&operation->done, CU_EVENT_DISABLE_TIMING);
    if (code != 0) {
      cuguest_per_context_unpin(&operation->lane);
      return code;
    }
  }
  code = cuMemcpyHtoDAsync(target, source, bytes, lane->stream);
  if (code == 0) code = cuEventRecord(operation->done, lane->stream);
  if (code != 0) copier_finish(operation);
  return code;
}

/* Starts a copy. */
static int copier_put(struct copier* copier, CUdeviceptr target, int is_managed, const void* source,
                      size_t bytes) {
  CUGUEST_SCOPE(cuguest_acquired, acquired);
  CUGUEST_SCOPE(cuguest_guard, guard);
  cuguest_ref context = CUGUEST_REF_INIT;
  int code = copier_enter_memory(&guard, &acquired, target, is_managed, CUGUEST_HERE);
  if (code == 0) code = cuguest_guard_ref(&guard, &context);
  return code == 0 ? copier_start(copier, &context, target, source, bytes) : code;
}

/* How many copies have ended since the last call. */
static int copier_progress(struct copier* copier) {
  int i, ended = 0;
  for (i = 0; i < COPIER_OPERATIONS; ++i) {
    struct copier_operation* const operation = &copier->operations[i];
    CUGUEST_SCOPE(cuguest_guard, guard);
    int code;
    if (cuguest_per_context_value(&operation->lane) == NULL) continue;
    /* Refuses where the context is over, and the event with it. */
    code = copier_enter(&guard, &operation->context, CUGUEST_HERE);
    if (code == 0) code = cuEventQuery(operation->done);
    if (code == CUDA_ERROR_NOT_READY) continue;
    copier_finish(operation);
    copier->failed += code != 0;
    ++ended;
  }
  return ended;
}

/* Allocates in the current context, if it is on the device, or in the primary context, which
 * the copier keeps. */
static int copier_alloc(struct copier* copier, int device, size_t bytes, CUdeviceptr* memory) {
  CUGUEST_SCOPE(cuguest_acquired, acquired);
  CUGUEST_SCOPE(cuguest_guard, guard);
  int code = cuguest_acquire_on(&acquired, device, CUGUEST_CREATE);
  if (code == 0) code = cuguest_acquired_hold(&acquired);
  if (code == CUDA_ERROR_NOT_SUPPORTED) code = 0; /* a user's, for as long as they keep it */
  if (code == 0) code = cuguest_primary_keeper_keep(&copier->primaries, &acquired);
  if (code == 0) code = copier_enter_acquired(&guard, &acquired, CUGUEST_HERE);
  return code == 0 ? (int)cuMemAlloc(memory, bytes) : code;
}

/* Registers memory of the host, if the primary context is active, and keeps that. */
static int copier_register(struct copier_registration* registration, int device, void* memory,
                           size_t bytes) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  cuguest_ref ref = CUGUEST_REF_INIT;
  int code = cuguest_primary_retain_if_active(&registration->primary, device);
  if (code == 0) code = cuguest_primary_ref(&registration->primary, &ref);
  if (code == 0) code = copier_enter(&guard, &ref, CUGUEST_HERE);
  if (code == 0) code = cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE);
  registration->memory = memory;
  cuguest_guard_leave(&guard);
  if (code != 0) cuguest_primary_release(&registration->primary);
  return code;
}

static int copier_unregister(struct copier_registration* registration) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  cuguest_ref ref = CUGUEST_REF_INIT;
  int code = cuguest_primary_ref(&registration->primary, &ref);
  if (code == 0) code = copier_enter(&guard, &ref, CUGUEST_HERE);
  if (code == 0) code = cuMemHostUnregister(registration->memory);
  cuguest_guard_leave(&guard);
  cuguest_primary_release(&registration->primary);
  return code;
}

/* For a user that is about to destroy `context`: destroys what is kept in it. */
static int copier_forget(struct copier* copier, CUcontext context) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  const int code = cuguest_ref_borrow(&ref, context);
  return code == 0 ? cuguest_per_context_forget(&copier->lanes, &ref) : code;
}

static void copier_close(struct copier* copier) {
  int i;
  for (i = 0; i < COPIER_OPERATIONS; ++i) {
    struct copier_operation* const operation = &copier->operations[i];
    if (cuguest_per_context_value(&operation->lane) != NULL) copier_finish(operation);
  }
  cuguest_per_context_close(&copier->lanes);
  cuguest_primary_keeper_release(&copier->primaries, CUGUEST_NO_DEVICE);
}

#endif /* RETAIN_AFTER_H_ */
