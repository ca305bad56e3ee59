/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The library of pair_before.h with cuguest/c.h. test/capi/pair_test.c runs both. */

#ifndef PAIR_AFTER_H_
#define PAIR_AFTER_H_

#include <cuda.h>
#include <stddef.h>

#include "cuguest/c.h"

/* A context that an application has made, and destroys. */
struct media_context {
  cuguest_ref ref;
  CUstream stream;
};
struct media_memory {
  struct media_context* context;
  CUdeviceptr data;
  size_t bytes;
  void (*notify)(void* user); /* frees what was wrapped; null: it is our own */
  void* user;
};

static int media_context_push(struct media_context* media) { return cuguest_push_ref(&media->ref); }

static int media_context_pop(CUcontext* popped) {
  cuguest_ref top = CUGUEST_REF_INIT;
  if (popped != NULL) {
    (void)cuguest_ref_current(&top);
    *popped = top.context;
  }
  return cuguest_pop();
}

/* For our own functions: inside, nothing invalidates a capture of the application's. */
static int media_enter(cuguest_guard* guard, const struct media_context* media, CUGUEST_PLACE) {
  const int code = cuguest_guard_enter_ref(guard, &media->ref, CUGUEST_ELIDE, CUGUEST_GIVEN_PLACE);
  return code == 0 ? cuguest_guard_relax(guard, CUGUEST_GIVEN_PLACE) : code;
}

static int media_context_wrap(struct media_context* media, CUcontext context) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  int code = cuguest_ref_borrow(&media->ref, context);
  if (code == 0) code = media_enter(&guard, media, CUGUEST_HERE);
  return code == 0 ? (int)cuStreamCreate(&media->stream, CU_STREAM_NON_BLOCKING) : code;
}

static void media_context_clear(struct media_context* media) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  /* Refused where the context is over, and the stream with it. */
  const int code = media_enter(&guard, media, CUGUEST_HERE);
  if (code == 0) cuStreamDestroy(media->stream);
}

static int media_memory_alloc(struct media_memory* memory, struct media_context* media,
                              size_t bytes) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  int code = media_enter(&guard, media, CUGUEST_HERE);
  if (code == 0) code = cuMemAlloc(&memory->data, bytes);
  if (code != 0) return code;
  memory->context = media;
  memory->bytes = bytes;
  return code;
}

static void media_memory_wrap(struct media_memory* memory, struct media_context* media,
                              CUdeviceptr data, size_t bytes, void (*notify)(void*), void* user) {
  memory->context = media;
  memory->data = data;
  memory->bytes = bytes;
  memory->notify = notify;
  memory->user = user;
}

static int media_memory_copy(struct media_memory* target, const struct media_memory* source) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  int code = media_enter(&guard, target->context, CUGUEST_HERE);
  if (code != 0) return code;
  if (target->bytes < source->bytes) return CUDA_ERROR_INVALID_VALUE;
  return cuMemcpyDtoD(target->data, source->data, source->bytes);
}

static void media_memory_free(struct media_memory* memory) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  const int code = media_enter(&guard, memory->context, CUGUEST_HERE);
  if (code == 0) cuStreamSynchronize(memory->context->stream);
  if (memory->notify != NULL) {
    CUGUEST_SCOPE(cuguest_host_scope, host);
    (void)cuguest_host_scope_enter(&host, CUGUEST_HERE);
    memory->notify(memory->user); /* with the caller's stack and capture mode */
  } else if (code == 0) {
    cuMemFree(memory->data);
  }
}

#endif /* PAIR_AFTER_H_ */
