// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recipe of docs/recipes/pair.md.

#include "test/capi/recipe_test.h"

static struct media_context media;
static CUcontext wrapped, hosts;

/* The host's context is current; another one of its is wrapped. */
static void wrap(void) {
  begin();
  hosts = make_context();
  wrapped = make_context();
  CHECK(cuCtxPushCurrent(hosts) == CUDA_SUCCESS);
  CHECK(media_context_wrap(&media, wrapped) == 0 && current() == hosts);
}

static void pairs_nest(void) {
  CUcontext popped = NULL;
  cudasim_probe* before;
  wrap();
  before = cudasim_probe_take();
  CHECK(media_context_push(&media) == 0 && current() == wrapped);
  CHECK(media_context_push(&media) == 0 && current() == wrapped);
  CHECK(media_context_pop(&popped) == 0 && popped == wrapped && current() == wrapped);
  CHECK(media_context_pop(NULL) == 0 && is_as_it_was(before));
  CHECK(media_context_push(&media) == 0);
  CHECK(cuCtxPopCurrent(&popped) == CUDA_SUCCESS && is_as_it_was(before));
  media_context_clear(&media);
  CHECK(is_as_it_was(before));
  cudasim_probe_free(before);
}

static void push_a_destroyed_context(void) {
  cudasim_probe* before;
  wrap();
  before = cudasim_probe_take();
  CHECK(cuCtxDestroy(wrapped) == CUDA_SUCCESS);
  CHECK(media_context_push(&media) == CUDA_ERROR_CONTEXT_IS_DESTROYED && is_as_it_was(before));
  cudasim_probe_free(before);
}
static void refuses_a_destroyed_context(void) {
  CHECK(signal_of(&push_a_destroyed_context) == EXPECTED(SIGABRT, 0));
}

static void push_another_at_the_handle(void) {
  CUcontext other = NULL;
  wrap();
  CHECK(cuCtxDestroy(wrapped) == CUDA_SUCCESS);
  while (other != wrapped) other = make_context();
  CHECK(media_context_push(&media) == EXPECTED(0, CUDA_ERROR_CONTEXT_IS_DESTROYED));
}

static void clear_a_destroyed_context(void) {
  cudasim_probe* before;
  wrap();
  before = cudasim_probe_take();
  CHECK(cuCtxDestroy(wrapped) == CUDA_SUCCESS);
  media_context_clear(&media);
  CHECK(is_as_it_was(before));
  cudasim_probe_free(before);
}
static void clears_a_destroyed_context(void) {
  CHECK(signal_of(&clear_a_destroyed_context) == EXPECTED(SIGABRT, 0));
}

static void failed_allocation_leaves_no_push(void) {
  struct media_memory memory;
  cudasim_probe* before;
  wrap();
  before = cudasim_probe_take();
  cudasim_fail_call("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(media_memory_alloc(&memory, &media, 16) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(is_as_it_was(before) == EXPECTED(0, 1) && current() == EXPECTED(wrapped, hosts));
  cudasim_probe_free(before);
}

static void refused_copy_leaves_no_push(void) {
  struct media_memory small = {0}, large = {0};
  cudasim_probe* before;
  wrap();
  before = cudasim_probe_take();
  CHECK(media_memory_alloc(&small, &media, 16) == 0);
  CHECK(media_memory_alloc(&large, &media, 32) == 0);
  CHECK(media_memory_copy(&large, &small) == 0 && is_as_it_was(before));
  CHECK(media_memory_copy(&small, &large) == CUDA_ERROR_INVALID_VALUE);
  CHECK(is_as_it_was(before) == EXPECTED(0, 1));
  cudasim_probe_free(before);
}

static void failed_push_pops_nothing(void) {
  cudasim_probe* before;
  wrap();
  before = cudasim_probe_take();
  cudasim_fail_call("cuCtxPushCurrent", 1, CUDA_ERROR_UNKNOWN);
  media_context_clear(&media);
  CHECK(is_as_it_was(before) == EXPECTED(0, 1) && current() == EXPECTED(NULL, hosts));
  cudasim_probe_free(before);
}

static void pop_without_a_push(void) {
  cudasim_probe* before;
  wrap();
  before = cudasim_probe_take();
  CHECK(media_context_pop(NULL) == EXPECTED(0, CUDA_ERROR_ILLEGAL_STATE));
  CHECK(is_as_it_was(before) == EXPECTED(0, 1));
  cudasim_probe_free(before);
}

/* What a notify finds. */
static CUcontext current_in_notify;
static CUstreamCaptureMode mode_in_notify;
static void look(void* user) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  (void)user;
  current_in_notify = current();
  CHECK(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  mode_in_notify = mode;
  CHECK(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
}

static void notify_has_the_hosts_state(void) {
  struct media_memory memory = {0};
  cudasim_probe* before;
  wrap();
  before = cudasim_probe_take();
  mode_in_notify = CU_STREAM_CAPTURE_MODE_RELAXED;
  media_memory_wrap(&memory, &media, 0, 0, &look, NULL);
  media_memory_free(&memory);
  CHECK(current_in_notify == EXPECTED(wrapped, hosts));
  CHECK(mode_in_notify == CU_STREAM_CAPTURE_MODE_GLOBAL && is_as_it_was(before));
  cudasim_probe_free(before);
}

static void leave_a_push(void* context) { CHECK(cuCtxPushCurrent(context) == CUDA_SUCCESS); }

/* What the host's notify has pushed is the host's, and nothing of the library's stays. */
static void notify_that_pushes(void) {
  struct media_memory memory = {0};
  CUcontext pushed, popped = NULL;
  cudasim_probe* before;
  wrap();
  before = cudasim_probe_take();
  pushed = make_context();
  media_memory_wrap(&memory, &media, 0, 0, &leave_a_push, pushed);
  media_memory_free(&memory);
  CHECK(current() == EXPECTED(wrapped, pushed));
  CHECK(cuCtxPopCurrent(&popped) == CUDA_SUCCESS && is_as_it_was(before));
  cudasim_probe_free(before);
}

/* Between the public push and pop a callee leaves a push behind. */
static void pop_takes_off_what_was_left(void) {
  CUcontext left;
  cudasim_probe* before;
  wrap();
  before = cudasim_probe_take();
  left = make_context();
  CHECK(media_context_push(&media) == 0);
  leave_a_push(left);
  CHECK(media_context_pop(NULL) == 0);
  CHECK(is_as_it_was(before) == EXPECTED(0, 1) && current() == EXPECTED(wrapped, hosts));
  cudasim_probe_free(before);
}

static void capture_goes_on(void) {
  struct media_memory memory = {0};
  CUstream stream;
  wrap();
  stream = begin_capture();
  CHECK((media_memory_alloc(&memory, &media, 16) == 0) == EXPECTED(0, 1));
  CHECK(end_capture(stream) == EXPECTED(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CUDA_SUCCESS));
}

#define CASE(name) \
  { #name, &name }
static const struct test_case kCases[] = {
    CASE(pairs_nest),
    CASE(refuses_a_destroyed_context),
    CASE(push_another_at_the_handle),
    CASE(clears_a_destroyed_context),
    CASE(failed_allocation_leaves_no_push),
    CASE(refused_copy_leaves_no_push),
    CASE(failed_push_pops_nothing),
    CASE(pop_without_a_push),
    CASE(notify_has_the_hosts_state),
    CASE(notify_that_pushes),
    CASE(pop_takes_off_what_was_left),
    CASE(capture_goes_on),
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, kCases, (int)(sizeof(kCases) / sizeof(kCases[0])));
}
