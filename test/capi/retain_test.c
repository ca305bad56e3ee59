// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recipe of docs/recipes/retain.md.

#include "test/capi/recipe_test.h"

static const char kText[] = "what is copied";
static struct copier copier;

static CUdeviceptr allocate_in(CUcontext context) {
  CUdeviceptr memory = 0;
  CUcontext popped = NULL;
  CHECK(cuCtxPushCurrent(context) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&memory, sizeof(kText)) == CUDA_SUCCESS);
  CHECK(cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
  return memory;
}

static int put(CUdeviceptr memory, int is_managed) {
  return copier_put(&copier, memory, is_managed, kText, sizeof(kText));
}

static int has_the_text(CUcontext context, CUdeviceptr memory) {
  char text[sizeof(kText)] = "";
  CUcontext popped = NULL;
  CHECK(cuCtxPushCurrent(context) == CUDA_SUCCESS);
  CHECK(cuMemcpyDtoH(text, memory, sizeof(text)) == CUDA_SUCCESS);
  CHECK(cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
  return memcmp(text, kText, sizeof(text)) == 0;
}

static int is_active(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  CHECK(cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS);
  return active;
}

static void copies(void) {
  CUcontext context, primary = NULL;
  CUdeviceptr memory, in_primary;
  cudasim_probe* before;
  int i;
  begin();
  context = make_context();
  memory = allocate_in(context);
  CHECK(cuDevicePrimaryCtxRetain(&primary, 1) == CUDA_SUCCESS);
  CHECK(cuCtxPushCurrent(primary) == CUDA_SUCCESS);
  in_primary = allocate_in(primary);
  before = cudasim_probe_take();
  for (i = 0; i < 3; ++i) {
    CHECK(put(memory, 0) == 0 && put(in_primary, 0) == 0 && is_as_it_was(before));
    CHECK(copier_progress(&copier) == 2 && copier_progress(&copier) == 0);
    CHECK(copier.failed == 0 && is_as_it_was(before));
  }
  CHECK(has_the_text(context, memory) && has_the_text(primary, in_primary));
  CHECK(cudasim_calls("cuStreamCreate") == 2 && cudasim_calls("cuEventCreate") == 2);
  copier_close(&copier);
  CHECK(is_as_it_was(before) && cudasim_calls("cuStreamDestroy") >= 1);
  cudasim_probe_free(before);
}

static void close_after_a_destroy(void) {
  CUcontext context;
  begin();
  context = make_context();
  CHECK(put(allocate_in(context), 0) == 0 && copier_progress(&copier) == 1);
  CHECK(cuCtxDestroy(context) == CUDA_SUCCESS);
  copier_close(&copier);
}
static void closes_after_a_destroy(void) {
  CHECK(signal_of(&close_after_a_destroy) == EXPECTED(SIGABRT, 0));
}

static void progress_after_a_destroy(void) {
  CUcontext context;
  begin();
  context = make_context();
  CHECK(put(allocate_in(context), 0) == 0);
  CHECK(cuCtxDestroy(context) == CUDA_SUCCESS);
  CHECK(copier_progress(&copier) == 1 && copier.failed == 1);
  CHECK(copier_progress(&copier) == 0);
  copier_close(&copier);
}
static void progresses_after_a_destroy(void) {
  CHECK(signal_of(&progress_after_a_destroy) == EXPECTED(SIGABRT, 0));
}

static void closes_after_a_reset(void) {
  CUcontext primary = NULL;
  begin();
  CHECK(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(put(allocate_in(primary), 0) == 0 && copier_progress(&copier) == 1);
  CHECK(cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(put(allocate_in(primary), 0) == 0 && copier_progress(&copier) == 1);
  CHECK(copier.failed == 0);
  copier_close(&copier);
}

/* Of a user's context cuguest knows that it goes on where it is current. */
static void closes_in_a_users_context(void) {
  CUcontext one, other;
  begin();
  one = make_context();
  other = make_context();
  CHECK(put(allocate_in(one), 0) == 0 && put(allocate_in(other), 0) == 0);
  CHECK(copier_progress(&copier) == 2);
  CHECK(cuCtxPushCurrent(other) == CUDA_SUCCESS);
  copier_close(&copier);
  CHECK(cudasim_calls("cuStreamDestroy") == EXPECTED(2, 1));
  CHECK(cudasim_calls("cuEventDestroy") == EXPECTED(2, 1));
}

static void capture_goes_on(void) {
  CUcontext context;
  CUdeviceptr memory;
  CUstream stream;
  begin();
  context = make_context();
  memory = allocate_in(context);
  CHECK(cuCtxPushCurrent(context) == CUDA_SUCCESS);
  CHECK(put(memory, 0) == 0);
  stream = begin_capture();
  CHECK(copier_progress(&copier) == 1 && copier.failed == EXPECTED(1, 0));
  CHECK(end_capture(stream) == EXPECTED(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CUDA_SUCCESS));
}

static void memory_stays_until_closing(void) {
  CUdeviceptr memory = 0;
  CUcontext owner = NULL;
  begin();
  CHECK(copier_alloc(&copier, 0, sizeof(kText), &memory) == 0 && !current());
  CHECK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, memory) ==
        EXPECTED(CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS));
  CHECK(is_active(0) == EXPECTED(0, 1));
  CHECK(put(memory, 0) == EXPECTED(CUDA_ERROR_INVALID_VALUE, 0));
  copier_close(&copier);
  CHECK(!is_active(0));
}

/* The host's current context is the primary one, and the host gives it back. */
static void memory_outlasts_the_hosts_reference(void) {
  CUdeviceptr memory = 0;
  CUcontext primary = NULL;
  begin();
  CHECK(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(cuCtxPushCurrent(primary) == CUDA_SUCCESS);
  CHECK(copier_alloc(&copier, 0, sizeof(kText), &memory) == 0);
  CHECK(cuCtxPopCurrent(&primary) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  CHECK(is_active(0) == EXPECTED(0, 1));
  copier_close(&copier);
  CHECK(!is_active(0));
}

/* In a context of the host's, which nobody can retain. */
static void allocates_in_the_hosts_context(void) {
  CUdeviceptr memory = 0;
  begin();
  CHECK(cuCtxPushCurrent(make_context()) == CUDA_SUCCESS);
  CHECK(copier_alloc(&copier, 0, sizeof(kText), &memory) == 0 && !is_active(0));
  copier_close(&copier);
}

static CUdeviceptr allocate_from_a_pool(void) {
  CUmemoryPool pool = NULL;
  CUcontext primary = NULL;
  CUdeviceptr memory = 0;
  CHECK(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(cuCtxPushCurrent(primary) == CUDA_SUCCESS);
  CHECK(cuMemAllocFromPoolAsync(&memory, sizeof(kText), pool, NULL) == CUDA_SUCCESS);
  CHECK(cuCtxPopCurrent(&primary) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  return memory;
}

static void memory_of_a_pool(void) {
  CUdeviceptr memory;
  begin();
  memory = allocate_from_a_pool();
  CHECK(put(memory, 0) == CUDA_ERROR_INVALID_CONTEXT && !is_active(0));
  CHECK(cuCtxPushCurrent(make_context()) == CUDA_SUCCESS);
  CHECK(put(memory, 0) == EXPECTED(CUDA_ERROR_INVALID_CONTEXT, 0) && !is_active(0));
}

static void managed_memory(void) {
  CUcontext context, primary = NULL;
  CUdeviceptr memory = 0;
  begin();
  context = make_context();
  CHECK(cuCtxPushCurrent(context) == CUDA_SUCCESS);
  CHECK(cuMemAllocManaged(&memory, sizeof(kText), CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  CHECK(put(memory, 1) == 0 && copier_progress(&copier) == 1);
  CHECK(cuCtxPopCurrent(&context) == CUDA_SUCCESS);
  CHECK(put(memory, 1) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuDevicePrimaryCtxRetain(&primary, 1) == CUDA_SUCCESS);
  CHECK(put(memory, 1) == 0 && copier_progress(&copier) == 1);
  CHECK(copier.failed == 0 && !current());
}

/* The host gives the primary context back while its memory is registered. */
static void registration_keeps_the_primary(void) {
  struct copier_registration registration;
  char memory[64];
  CUcontext primary = NULL;
  begin();
  memset(&registration, 0, sizeof(registration));
  CHECK(copier_register(&registration, 0, memory, sizeof(memory)) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(!is_active(0));
  CHECK(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(copier_register(&registration, 0, memory, sizeof(memory)) == 0);
  CHECK(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  CHECK(copier_unregister(&registration) == EXPECTED(CUDA_ERROR_INVALID_CONTEXT, 0));
  CHECK(!is_active(0));
}

#ifdef IS_AFTER
static void forgets_a_context(void) {
  CUcontext context;
  begin();
  context = make_context();
  CHECK(put(allocate_in(context), 0) == 0 && copier_progress(&copier) == 1);
  CHECK(copier_forget(&copier, context) == 0);
  CHECK(cudasim_calls("cuStreamDestroy") == 1 && cudasim_calls("cuEventDestroy") == 1);
  CHECK(copier_forget(&copier, context) == CUDA_ERROR_NOT_FOUND);
  copier_close(&copier);
}
#endif

#define CASE(name) \
  { #name, &name }
static const struct test_case kCases[] = {
    CASE(copies),
    CASE(closes_after_a_destroy),
    CASE(progresses_after_a_destroy),
    CASE(closes_after_a_reset),
    CASE(closes_in_a_users_context),
    CASE(capture_goes_on),
    CASE(memory_stays_until_closing),
    CASE(memory_outlasts_the_hosts_reference),
    CASE(allocates_in_the_hosts_context),
    CASE(memory_of_a_pool),
    CASE(managed_memory),
    CASE(registration_keeps_the_primary),
#ifdef IS_AFTER
    CASE(forgets_a_context),
#endif
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, kCases, (int)(sizeof(kCases) / sizeof(kCases[0])));
}
