/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C API of cuguest_core.h, with handles of another vendor where there is a cuda.h. */

#ifdef CUDA_H_BEFORE
#include <cuda.h>
#endif
#include "cuguest_core.h"
#ifdef CUDA_H_AFTER
#include <cuda.h>
#endif

#include "check.h"

#ifndef CUcontext
typedef struct CUctx_st* Context;
typedef struct CUstream_st* Stream;
#else
typedef CUcontext Context;
typedef CUstream Stream;
#endif

static int g_object;

static int Make(const cuguest_ref* context, void* value, void* user) {
  (void)context;
  (void)value;
  ++*(int*)user;
  return 0;
}

static void Destroy(void* value, void* user) {
  (void)value;
  (void)user;
}

static void* Lookup(const char* name, int version, void* user) {
  (void)name;
  (void)version;
  return user;
}

static void Called(const cuguest_incident* incident, void* user) {
  (void)incident;
  ++*(int*)user;
}

static void TestGuards(Context context, Stream stream) {
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard), of_ref = CUGUEST_INIT(cuguest_guard);
  cuguest_guard of_stream = CUGUEST_INIT(cuguest_guard);
  cuguest_no_context_guard none = CUGUEST_INIT(cuguest_no_context_guard);
  cuguest_host_scope host = CUGUEST_INIT(cuguest_host_scope);
  cuguest_capture_guard capture = CUGUEST_INIT(cuguest_capture_guard);
  cuguest_thread_home home = CUGUEST_INIT(cuguest_thread_home);
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  cuguest_ref ref = CUGUEST_REF_INIT;

  CHECK(cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_ref(&guard, &ref) == 0 && ref.context == (void*)context && ref.id == 0);
  CHECK(cuguest_guard_enter_ref(&of_ref, &ref, CUGUEST_ALWAYS_PUSH, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_relax(&guard, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_move_to(&guard, NULL, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_ref(&guard, &ref) == 0 && ref.context == NULL);
  CHECK(cuguest_guard_reassert(&guard) == 0 && cuguest_guard_leave(&guard) == 0);
  CHECK(cuguest_guard_leave(&of_ref) == 0);
  CHECK(cuguest_guard_enter_stream(&of_stream, stream, CUGUEST_NO_DEVICE, CUGUEST_REFUSE,
                                   CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_enter_device(&of_stream, 0, CUGUEST_REFUSE, CUGUEST_ELIDE, CUGUEST_HERE) ==
        0);
  CHECK(cuguest_guard_enter_acquired(&of_stream, &acquired, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  cuguest_guard_cleanup(&of_stream);
  CHECK(cuguest_push(context) == 0 && cuguest_push_ref(&ref) == 0 && cuguest_pop() == 0);
  CHECK(cuguest_no_context_guard_enter(&none, CUGUEST_HERE) == 0);
  CHECK(cuguest_no_context_guard_leave(&none) == 0);
  CHECK(cuguest_host_scope_enter(&host, CUGUEST_HERE) == 0);
  CHECK(cuguest_host_scope_leave(&host) == 0);
  CHECK(cuguest_capture_guard_enter(&capture, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE) == 0);
  CHECK(cuguest_capture_guard_leave(&capture) == 0);
  CHECK(cuguest_thread_home_enter_stream(&home, stream, CUGUEST_HOME_HOLDS, CUGUEST_HERE) == 0);
  CHECK(cuguest_thread_home_check(&home) == 0 && cuguest_thread_home_leave(&home) == 0);
}

static void TestRefusals(Context context, Stream stream) {
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary), other = CUGUEST_INIT(cuguest_primary);
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
  cuguest_per_context cache = CUGUEST_INIT(cuguest_per_context);
  cuguest_per_context_pin pin = CUGUEST_INIT(cuguest_per_context_pin);
  cuguest_ref ref = CUGUEST_REF_INIT;
  size_t count = 7;
  int device = 7, calls = 0;
  cuguest_per_context_type type;
  cuguest_init(&type, sizeof(type));
  type.value_size = 1;
  type.make = &Make;
  type.destroy = &Destroy;
  type.user = &calls;

  CHECK(cuguest_driver_adopt(&Lookup, NULL) == 801 && cuguest_is_initialized() == 0);
  CHECK(cuguest_primary_retain(&primary, 0) == 801);
  CHECK(cuguest_primary_retain_if_active(&primary, 0) == 801);
  CHECK(cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE) == 801);
  CHECK(cuguest_acquire_from_pointer(&acquired, 16, CUGUEST_REFUSE) == 801);
  CHECK(cuguest_acquire_from_stream(&acquired, stream, CUGUEST_NO_DEVICE, CUGUEST_REFUSE) == 801);
  CHECK(cuguest_acquire_any(&acquired) == 801);
  CHECK(cuguest_free_memory(0, CUGUEST_REFUSE, &count, NULL) == 801 && count == 7);
  CHECK(cuguest_peer_access_check(0, 1) == 801);
  CHECK(cuguest_shared_context_create(&shared, 0, 0) == 801);
  CHECK(cuguest_shared_context_attach(&shared, context) == 801);

  CHECK(cuguest_ref_borrow(&ref, context) == 0 && ref.context == (void*)context);
  CHECK(cuguest_ref_check(&ref) == 0);
  CHECK(cuguest_per_context_get(&cache, &type, &ref, &pin) == 801 && calls == 0);
  CHECK(cuguest_per_context_find(&cache, &ref, &pin) == 500);
  CHECK(cuguest_per_context_value(&pin) == NULL && cuguest_per_context_size(&cache) == 0);
  CHECK(cuguest_per_context_forget_all(&cache, &count) == 0 && count == 0);
  CHECK(cuguest_ref_current(&ref) == 801 && ref.context == NULL);
  CHECK(cuguest_ref_borrow(&ref, NULL) == 201 && cuguest_ref_check(&ref) == 201);

  /* What holds nothing. */
  ref.context = &g_object;
  CHECK(cuguest_primary_ref(&primary, &ref) == 401 && ref.context == NULL);
  CHECK(cuguest_primary_move(&other, &primary) == 401 && cuguest_primary_release(&primary) == 401);
  CHECK(cuguest_acquired_hold(&acquired) == 401 && cuguest_acquired_source(&acquired) == -1);
  CHECK(cuguest_acquired_device(&acquired, &device) == 401 && device == 7);
  CHECK(cuguest_shared_context_detach(&shared) == 401 && cuguest_per_context_unpin(&pin) == 401);
  CHECK(cuguest_release_kept_primary(CUGUEST_NO_DEVICE) == 0);
  cuguest_primary_cleanup(&primary);
  cuguest_per_context_cleanup(&cache);
}

static void TestNull(Context context) {
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  cuguest_ref ref = CUGUEST_REF_INIT;
  cuguest_incident_listener listener = CUGUEST_INIT(cuguest_incident_listener);
  CHECK(cuguest_guard_enter(NULL, context, CUGUEST_ELIDE, CUGUEST_HERE) == 1);
  CHECK(cuguest_guard_enter_ref(&guard, NULL, CUGUEST_ELIDE, CUGUEST_HERE) == 1);
  CHECK(cuguest_guard_ref(&guard, NULL) == 1 && cuguest_guard_ref(NULL, &ref) == 1);
  CHECK(cuguest_guard_leave(NULL) == 1 && cuguest_host_scope_leave(NULL) == 1);
  CHECK(cuguest_primary_retain(NULL, 0) == 1 && cuguest_acquire_any(NULL) == 1);
  CHECK(cuguest_acquired_device(&acquired, NULL) == 1 && cuguest_acquired_source(NULL) == -1);
  CHECK(cuguest_ref_borrow(NULL, context) == 1 && cuguest_ref_check(NULL) == 1);
  CHECK(cuguest_driver_adopt(NULL, NULL) == 1);
  CHECK(cuguest_incident_listener_register(&listener, NULL, NULL) == 1);
  CHECK(cuguest_per_context_value(NULL) == NULL && cuguest_per_context_size(NULL) == 0);
  cuguest_guard_cleanup(NULL);
  cuguest_init(NULL, 8);
}

static void TestTexts(void) {
  int calls = 0;
  char text[200];
  cuguest_incident_listener listener = CUGUEST_INIT(cuguest_incident_listener);
  cuguest_guard guard;
  CHECK(strcmp(cuguest_error_name(801), "CUDA_ERROR_NOT_SUPPORTED") == 0);
  CHECK(strcmp(cuguest_error_text(801), "this driver or device does not support it") == 0);
  CHECK(strcmp(cuguest_error_name(-5), "CUDA_ERROR_UNRECOGNIZED") == 0);
  CHECK(strcmp(cuguest_error_advice(801), "") == 0);
  CHECK(cuguest_error_write(801, "blur", text, sizeof(text)) == strlen(text));
  CHECK(strcmp(text,
               "blur: CUDA_ERROR_NOT_SUPPORTED (801): this driver or device does not support it") ==
        0);
  CHECK(cuguest_error_write(801, "blur", text, 5) > 5 && strcmp(text, "blur") == 0);
  CHECK(cuguest_error_write(801, NULL, NULL, 0) == strlen(cuguest_error_text(801)) + 32);
  CHECK(cuguest_error_write(0, "blur", text, sizeof(text)) == 0 && *text == '\0');
  CHECK(strcmp(cuguest_incident_name(CUGUEST_OWED),
               "ended an object where the driver takes nothing back") == 0);
  CHECK(strcmp(cuguest_incident_name(-1), "did something unknown") == 0);
  CHECK(strcmp(cuguest_repair_name(CUGUEST_INFERRED), "repaired by inference") == 0);
  CHECK(cuguest_incident_count(-1) == 0);
  CHECK(cuguest_incident_listener_register(&listener, &Called, &calls) == 0);
  CHECK(cuguest_incident_listener_remove(&listener) == 0 && calls == 0);
  memset(&guard, 255, sizeof(guard));
  cuguest_init(&guard, sizeof(guard));
  CHECK(guard.size == sizeof(guard) && guard.opaque[22] == 0);
}

int main(void) {
  Context context = (Context)(void*)&g_object;
  Stream stream = (Stream)(void*)&g_object;
  TestGuards(context, stream);
  TestRefusals(context, stream);
  TestNull(context);
  TestTexts();
#ifdef cuCtxPushCurrent
  CHECK(cuCtxPushCurrent(context) == CUDA_SUCCESS); /* the macro is as it was */
#endif
  return Conclude();
}
