/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A media library in C whose interface has a push and a pop without a token. test/capi/pair_test.c
 * shows what becomes of its callers' stacks. */

#ifndef PAIR_BEFORE_H_
#define PAIR_BEFORE_H_

#include <cuda.h>
#include <stddef.h>

/* A context that an application has made, and destroys. */
struct media_context {
  CUcontext context;
  CUstream stream;
};
struct media_memory {
  struct media_context* context;
  CUdeviceptr data;
  size_t bytes;
  void (*notify)(void* user); /* frees what was wrapped; null: it is our own */
  void* user;
};

static int media_context_push(struct media_context* media) {
  return cuCtxPushCurrent(media->context);
}

static int media_context_pop(CUcontext* popped) {
  CUcontext unused = NULL;
  return cuCtxPopCurrent(popped != NULL ? popped : &unused);
}

static int media_context_wrap(struct media_context* media, CUcontext context) {
  int code;
  media->context = context;
  code = media_context_push(media);
  if (code != CUDA_SUCCESS) return code;
  code = cuStreamCreate(&media->stream, CU_STREAM_NON_BLOCKING);
  media_context_pop(NULL);
  return code;
}

static void media_context_clear(struct media_context* media) {
  media_context_push(media);
  cuStreamDestroy(media->stream);
  media_context_pop(NULL); /* also where the push has failed */
}

static int media_memory_alloc(struct media_memory* memory, struct media_context* media,
                              size_t bytes) {
  int code = media_context_push(media);
  if (code != CUDA_SUCCESS) return code;
  code = cuMemAlloc(&memory->data, bytes);
  if (code != CUDA_SUCCESS) return code; /* and the push stays */
  memory->context = media;
  memory->bytes = bytes;
  media_context_pop(NULL);
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
  int code = media_context_push(target->context);
  if (code != CUDA_SUCCESS) return code;
  if (target->bytes < source->bytes) return CUDA_ERROR_INVALID_VALUE; /* the same */
  code = cuMemcpyDtoD(target->data, source->data, source->bytes);
  media_context_pop(NULL);
  return code;
}

static void media_memory_free(struct media_memory* memory) {
  media_context_push(memory->context);
  cuStreamSynchronize(memory->context->stream);
  if (memory->notify != NULL) {
    memory->notify(memory->user); /* inside the push */
  } else {
    cuMemFree(memory->data);
  }
  media_context_pop(NULL); /* whatever is on top */
}

#endif /* PAIR_BEFORE_H_ */
