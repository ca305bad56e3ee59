// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuguest/c.h from C99, without <cuda.h>: what it does, and what it does with bad input, which
// gives a code, never crashes, and loses nothing.

#define _POSIX_C_SOURCE 200809L

#include "cuguest/c.h"

#ifdef CUDA_VERSION
#error "cuguest/c.h includes <cuda.h>"
#endif

#ifndef _WIN32
#include <dlfcn.h>
#endif
#include <pthread.h>
#include <setjmp.h>
#include <time.h>

#include "test/capi/c_test.h"

typedef struct CUctx_st* context_t;
typedef struct CUstream_st* stream_t;
enum {
  INVALID_VALUE = 1,
  NOT_INITIALIZED = 3,
  CALL_REQUIRES_NEWER_DRIVER = 36,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  PEER_ACCESS_UNSUPPORTED = 217,
  ILLEGAL_STATE = 401,
  NOT_FOUND = 500,
  NOT_READY = 600,
  CONTEXT_IS_DESTROYED = 709
};
enum { DEPTH = 64 };

/* The driver, as a host has it. */
static struct {
  int (*init)(unsigned);
  int (*create)(context_t*, unsigned, int);
  int (*destroy)(context_t);
  int (*push)(context_t);
  int (*pop)(context_t*);
  int (*current)(context_t*);
  int (*exchange_capture_mode)(int*);
  int (*retain)(context_t*, int);
  int (*release)(int);
  int (*reset)(int);
  int (*state)(int, unsigned*, int*);
  int (*allocate)(unsigned long long*, size_t);
  int (*free)(unsigned long long);
  int (*create_stream)(stream_t*, unsigned);
  int (*destroy_stream)(stream_t);
} driver;
static void* library;

static void find(const char* name, void* function) {
  void* const address = dlsym(library, name);
  if (address == NULL) printf("the driver has no %s\n", name);
  CHECK(address != NULL);
  memcpy(function, &address, sizeof(address));
}

static void open_driver(void) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) _exit(SKIPPED);
  find("cuInit", &driver.init);
  find("cuCtxCreate_v2", &driver.create);
  find("cuCtxDestroy_v2", &driver.destroy);
  find("cuCtxPushCurrent_v2", &driver.push);
  find("cuCtxPopCurrent_v2", &driver.pop);
  find("cuCtxGetCurrent", &driver.current);
  find("cuThreadExchangeStreamCaptureMode", &driver.exchange_capture_mode);
  find("cuDevicePrimaryCtxRetain", &driver.retain);
  find("cuDevicePrimaryCtxRelease_v2", &driver.release);
  find("cuDevicePrimaryCtxReset_v2", &driver.reset);
  find("cuDevicePrimaryCtxGetState", &driver.state);
  find("cuMemAlloc_v2", &driver.allocate);
  find("cuMemFree_v2", &driver.free);
  find("cuStreamCreate", &driver.create_stream);
  find("cuStreamDestroy_v2", &driver.destroy_stream);
}

static void begin(void) {
  open_driver();
  if (driver.init(0) != 0) _exit(SKIPPED);
}

static context_t make_context(void) {
  context_t context = NULL, popped = NULL;
  CHECK(driver.create(&context, 0, 0) == 0);
  CHECK(driver.pop(&popped) == 0 && popped == context);
  return context;
}

static context_t current(void) {
  context_t context = NULL;
  CHECK(driver.current(&context) == 0);
  return context;
}

/* The calling thread's stack is these, bottom first, and a null. */
static int stack_is(const context_t* expected) {
  context_t found[2 * DEPTH];
  int count = 0, depth = 0, same = 1, i;
  while (expected[depth] != NULL) ++depth;
  while (current() != NULL) {
    CHECK(count < 2 * DEPTH);
    CHECK(driver.pop(&found[count++]) == 0);
  }
  for (i = 0; i < count; ++i) same = same && i < depth && found[count - 1 - i] == expected[i];
  for (i = count; i > 0; --i) CHECK(driver.push(found[i - 1]) == 0);
  return same && count == depth;
}
#define STACK_IS(...) stack_is((const context_t[]){__VA_ARGS__, NULL})
#define STACK_IS_EMPTY() (current() == NULL)

/* What a listener was told. */
struct told {
  int count;
  cuguest_incident last;
};
static void note(const cuguest_incident* incident, void* user) {
  struct told* const told = user;
  ++told->count;
  told->last = *incident;
}

static void on_another_thread(void* (*run)(void*), void* argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run, argument) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

static cuguest_ref ref_of(context_t context) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  CHECK(cuguest_ref_borrow(&ref, context) == 0);
  return ref;
}

static void a_guard_enters_and_leaves(void) {
  context_t a, b;
  int mode;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  CHECK(sizeof(guard) <= 192);
  begin();
  a = make_context();
  b = make_context();
  CHECK(driver.push(a) == 0);
  for (mode = CUGUEST_ELIDE; mode <= CUGUEST_ALWAYS_PUSH; ++mode) {
    CHECK(cuguest_guard_enter(&guard, b, mode, CUGUEST_HERE) == 0);
    CHECK(STACK_IS(a, b));
    CHECK(cuguest_guard_leave(&guard) == 0);
    CHECK(STACK_IS(a));
  }
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ALWAYS_PUSH, CUGUEST_HERE) == 0);
  CHECK(STACK_IS(a, a));
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS(a));
}

static void a_guard_by_reference_refuses_what_is_over(void) {
  context_t primary;
  cuguest_ref ref;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  CHECK(driver.retain(&primary, 0) == 0);
  ref = ref_of(primary);
  CHECK(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(current() == primary);
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(driver.reset(0) == 0);
  CHECK(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == CONTEXT_IS_DESTROYED);
  CHECK(STACK_IS_EMPTY());
  CHECK(cuguest_guard_leave(&guard) == ILLEGAL_STATE);
}

static void a_cleared_reference_names_none(void) {
  context_t a;
  cuguest_ref ref;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  cuguest_thread_home home = CUGUEST_INIT(cuguest_thread_home);
  int i;
  begin();
  a = make_context();
  CHECK(driver.push(a) == 0);
  ref = ref_of(a);
  for (i = 0; i < 2; ++i) { /* the thread learns that it is mostly current */
    CHECK(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    CHECK(cuguest_guard_leave(&guard) == 0);
  }
  ref.context = NULL;
  CHECK(cuguest_ref_check(&ref) == INVALID_CONTEXT);
  CHECK(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == INVALID_CONTEXT);
  CHECK(cuguest_guard_leave(&guard) == ILLEGAL_STATE);
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ALWAYS_PUSH, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_move_to_ref(&guard, &ref, CUGUEST_HERE) == INVALID_CONTEXT);
  CHECK(STACK_IS(a, a));
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(cuguest_thread_home_enter_ref(&home, &ref, 0, CUGUEST_HERE) == INVALID_CONTEXT);
  CHECK(STACK_IS(a));
  CHECK(cuguest_incident_count(-1) == 0);
}

static void a_scope_ends_with_its_block(void) {
  context_t a;
  begin();
  a = make_context();
  {
    CUGUEST_SCOPE(cuguest_guard, guard);
    CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    CHECK(current() == a);
  }
  CHECK(STACK_IS_EMPTY());
  {
    CUGUEST_SCOPE(cuguest_guard, refused);
    CHECK(cuguest_guard_enter(&refused, NULL, CUGUEST_ELIDE, CUGUEST_HERE) == INVALID_CONTEXT);
  }
  {
    CUGUEST_SCOPE(cuguest_guard, never_entered);
    (void)never_entered;
  }
  {
    CUGUEST_SCOPE(cuguest_guard, left_by_hand);
    CHECK(cuguest_guard_enter(&left_by_hand, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    CHECK(cuguest_guard_leave(&left_by_hand) == 0);
  }
  CHECK(STACK_IS_EMPTY());
  CHECK(cuguest_incident_count(-1) == 0);
}

static void a_guard_repairs_what_a_callee_did(void) {
  struct told told = {0, {0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0}};
  context_t a, b, c;
  int line;
  CUGUEST_SCOPE(cuguest_incident_listener, listener);
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  a = make_context();
  b = make_context();
  c = make_context();
  CHECK(cuguest_incident_listener_register(&listener, &note, &told) == 0);
  CHECK(driver.push(a) == 0);
  line = __LINE__ + 1;
  CHECK(cuguest_guard_enter(&guard, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(driver.push(c) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS(a));
  CHECK(told.count == 1);
  CHECK(told.last.size == sizeof(cuguest_incident));
  CHECK(told.last.kind == CUGUEST_LEAKED_PUSH && told.last.repair == CUGUEST_INFERRED);
  CHECK(told.last.expected == b && told.last.found == c && told.last.current == a);
  CHECK(told.last.result == 0 && told.last.thread != 0);
  CHECK(told.last.line == line && strstr(told.last.file, "c_test.c") != NULL);
  CHECK(strcmp(cuguest_incident_name(told.last.kind), "left a push behind") == 0);
  CHECK(strcmp(cuguest_repair_name(told.last.repair), "repaired by inference") == 0);
  CHECK(cuguest_incident_count(CUGUEST_LEAKED_PUSH) == 1 && cuguest_incident_count(-1) == 1);
}

static int enter_for(cuguest_guard* guard, context_t context, CUGUEST_PLACE) {
  return cuguest_guard_enter(guard, context, CUGUEST_ELIDE, CUGUEST_GIVEN_PLACE);
}
#define ENTER_FOR(guard, context) enter_for(guard, context, CUGUEST_HERE)

static void an_incident_names_the_helpers_caller(void) {
  struct told told = {0, {0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0}};
  context_t a, b;
  int line;
  CUGUEST_SCOPE(cuguest_incident_listener, listener);
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  a = make_context();
  b = make_context();
  CHECK(cuguest_incident_listener_register(&listener, &note, &told) == 0);
  line = __LINE__ + 1;
  CHECK(ENTER_FOR(&guard, a) == 0);
  CHECK(driver.push(b) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS_EMPTY());
  CHECK(told.count == 1);
  CHECK(told.last.line == line && strstr(told.last.file, "c_test.c") != NULL);
}

static void reasserting_comes_back(void) {
  context_t a, b, popped;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  a = make_context();
  b = make_context();
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_guard_reassert(&guard) == ILLEGAL_STATE);
  CHECK(cuguest_guard_enter(&guard, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_reassert(&guard) == 0);
  CHECK(driver.pop(&popped) == 0);
  CHECK(cuguest_guard_reassert(&guard) == 0);
  CHECK(STACK_IS(a, b));
  CHECK(driver.destroy(b) == 0);
  CHECK(cuguest_guard_reassert(&guard) == CONTEXT_IS_DESTROYED);
  CHECK(STACK_IS(a));
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS(a));
}

static void a_guard_moves(void) {
  context_t a, b, c, dead;
  cuguest_ref to_b, to_c, to_dead;
  const cuguest_ref none = CUGUEST_REF_INIT;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  cuguest_guard inner = CUGUEST_INIT(cuguest_guard);
  cuguest_host_scope host = CUGUEST_INIT(cuguest_host_scope);
  int mode;
  begin();
  a = make_context();
  b = make_context();
  c = make_context();
  dead = make_context();
  to_b = ref_of(b);
  to_c = ref_of(c);
  to_dead = ref_of(dead);
  CHECK(driver.destroy(dead) == 0);
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_guard_move_to(&guard, b, CUGUEST_HERE) == ILLEGAL_STATE);
  for (mode = CUGUEST_ELIDE; mode <= CUGUEST_ALWAYS_PUSH; ++mode) {
    CHECK(cuguest_guard_enter(&guard, a, mode, CUGUEST_HERE) == 0);
    CHECK(cuguest_guard_move_to(&guard, b, CUGUEST_HERE) == 0);
    CHECK(STACK_IS(a, b));
    CHECK(cuguest_guard_move_to_ref(&guard, &to_b, CUGUEST_HERE) == 0);
    CHECK(cuguest_guard_move_to_ref(&guard, &to_c, CUGUEST_HERE) == 0);
    CHECK(STACK_IS(a, c));
    CHECK(cuguest_guard_move_to(&guard, NULL, CUGUEST_HERE) == INVALID_CONTEXT);
    CHECK(cuguest_guard_move_to_ref(&guard, &none, CUGUEST_HERE) == INVALID_CONTEXT);
    CHECK(cuguest_guard_move_to_ref(&guard, NULL, CUGUEST_HERE) == INVALID_VALUE);
    CHECK(cuguest_guard_move_to_ref(&guard, &to_dead, CUGUEST_HERE) == CONTEXT_IS_DESTROYED);
    CHECK(STACK_IS(a, c));
    CHECK(cuguest_guard_enter(&inner, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    CHECK(cuguest_guard_move_to(&guard, b, CUGUEST_HERE) == ILLEGAL_STATE);
    CHECK(cuguest_guard_leave(&inner) == 0);
    CHECK(cuguest_host_scope_enter(&host, CUGUEST_HERE) == 0);
    CHECK(cuguest_guard_move_to(&guard, b, CUGUEST_HERE) == ILLEGAL_STATE);
    CHECK(STACK_IS(a));
    CHECK(cuguest_host_scope_leave(&host) == 0);
    CHECK(STACK_IS(a, c));
    CHECK(driver.push(b) == 0);
    CHECK(cuguest_guard_move_to(&guard, b, CUGUEST_HERE) == 0);
    CHECK(cuguest_incident_count(CUGUEST_LEAKED_PUSH) == (unsigned long long)(mode + 1));
    CHECK(STACK_IS(a, b));
    CHECK(cuguest_guard_leave(&guard) == 0);
    CHECK(STACK_IS(a));
    CHECK(cuguest_guard_move_to(&guard, b, CUGUEST_HERE) == ILLEGAL_STATE);
  }
  CHECK(cuguest_incident_count(-1) == 2);
}

static void null_storage_is_refused(void) {
  context_t a;
  cuguest_ref ref;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  cuguest_thread_home home = CUGUEST_INIT(cuguest_thread_home);
  cuguest_incident_listener listener = CUGUEST_INIT(cuguest_incident_listener);
  begin();
  a = make_context();
  ref = ref_of(a);
  CHECK(cuguest_guard_enter(NULL, a, CUGUEST_ELIDE, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_guard_enter_ref(NULL, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_guard_enter_ref(&guard, NULL, CUGUEST_ELIDE, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_guard_enter(&guard, NULL, CUGUEST_ELIDE, CUGUEST_HERE) == INVALID_CONTEXT);
  CHECK(cuguest_guard_enter(&guard, a, 4, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_guard_enter(&guard, a, -1, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_guard_move_to(NULL, a, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_guard_move_to_ref(NULL, &ref, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_guard_reassert(NULL) == INVALID_VALUE);
  CHECK(cuguest_guard_leave(NULL) == INVALID_VALUE);
  cuguest_guard_cleanup(NULL);
  CHECK(cuguest_no_context_guard_enter(NULL, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_no_context_guard_leave(NULL) == INVALID_VALUE);
  cuguest_no_context_guard_cleanup(NULL);
  CHECK(cuguest_host_scope_enter(NULL, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_host_scope_leave(NULL) == INVALID_VALUE);
  cuguest_host_scope_cleanup(NULL);
  CHECK(cuguest_capture_guard_enter(NULL, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_capture_guard_leave(NULL) == INVALID_VALUE);
  cuguest_capture_guard_cleanup(NULL);
  CHECK(cuguest_thread_home_enter_ref(NULL, &ref, 0, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_thread_home_enter_ref(&home, NULL, 0, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_thread_home_check(NULL) == INVALID_VALUE);
  CHECK(cuguest_thread_home_move_to(NULL, &ref) == INVALID_VALUE);
  CHECK(cuguest_thread_home_leave(NULL) == INVALID_VALUE);
  cuguest_thread_home_cleanup(NULL);
  CHECK(cuguest_ref_borrow(NULL, a) == INVALID_VALUE);
  CHECK(cuguest_ref_current(NULL) == INVALID_VALUE);
  CHECK(cuguest_ref_check(NULL) == INVALID_VALUE);
  CHECK(cuguest_incident_listener_register(NULL, &note, NULL) == INVALID_VALUE);
  CHECK(cuguest_incident_listener_register(&listener, NULL, NULL) == INVALID_VALUE);
  CHECK(cuguest_incident_listener_remove(NULL) == INVALID_VALUE);
  cuguest_incident_listener_cleanup(NULL);
  CHECK(STACK_IS_EMPTY());
}

/* As from a release whose structs were smaller, or without CUGUEST_INIT. */
static void smaller_storage_is_refused(void) {
  context_t a;
  cuguest_ref ref;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  cuguest_no_context_guard none = CUGUEST_INIT(cuguest_no_context_guard);
  cuguest_host_scope host = CUGUEST_INIT(cuguest_host_scope);
  cuguest_capture_guard capture = CUGUEST_INIT(cuguest_capture_guard);
  cuguest_thread_home home = CUGUEST_INIT(cuguest_thread_home);
  cuguest_incident_listener listener = CUGUEST_INIT(cuguest_incident_listener);
  begin();
  a = make_context();
  ref = ref_of(a);
  guard.size = none.size = host.size = capture.size = home.size = listener.size = 24;
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_no_context_guard_enter(&none, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_host_scope_enter(&host, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_capture_guard_enter(&capture, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE) ==
        INVALID_VALUE);
  CHECK(cuguest_thread_home_enter_ref(&home, &ref, 0, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_incident_listener_register(&listener, &note, NULL) == INVALID_VALUE);
  CHECK(cuguest_guard_leave(&guard) == INVALID_VALUE);
  CHECK(guard.opaque[0] == 0 && none.opaque[0] == 0 && home.opaque[0] == 0);
  ref.size = sizeof(size_t);
  CHECK(cuguest_ref_check(&ref) == INVALID_VALUE);
  CHECK(cuguest_ref_current(&ref) == INVALID_VALUE);
  CHECK(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(STACK_IS_EMPTY());
  /* Smaller than ours and large enough; and larger, as from a later release. */
  guard.size = 176;
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(guard.opaque[21] == 0 && guard.opaque[22] == 0);
  CHECK(cuguest_guard_leave(&guard) == 0);
  guard.size = 256;
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS_EMPTY());
}

static void a_guard_left_twice(void) {
  context_t a, b;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  a = make_context();
  b = make_context();
  CHECK(driver.push(a) == 0 && driver.push(b) == 0);
  CHECK(cuguest_guard_leave(&guard) == ILLEGAL_STATE);
  CHECK(cuguest_guard_enter(&guard, b, CUGUEST_ALWAYS_PUSH, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(cuguest_guard_leave(&guard) == ILLEGAL_STATE);
  CHECK(STACK_IS(a, b));
}

static void a_guard_entered_twice(void) {
  context_t a, b;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  a = make_context();
  b = make_context();
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_enter(&guard, b, CUGUEST_ELIDE, CUGUEST_HERE) == ILLEGAL_STATE);
  CHECK(STACK_IS(a));
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS_EMPTY());
}

static void a_copy_of_a_guard_is_none(void) {
  context_t a;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  cuguest_guard copy;
  begin();
  a = make_context();
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  copy = guard;
  CHECK(cuguest_guard_leave(&copy) == ILLEGAL_STATE);
  CHECK(cuguest_guard_reassert(&copy) == ILLEGAL_STATE);
  CHECK(STACK_IS(a));
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS_EMPTY());
}

/* A function that returned early, called again: the guard's memory is overwritten. What it entered
 * stays entered. */
static void a_guard_that_was_never_left(void) {
  context_t a, b;
  cuguest_guard outer = CUGUEST_INIT(cuguest_guard);
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  const cuguest_guard empty = CUGUEST_INIT(cuguest_guard);
  cuguest_no_context_guard none = CUGUEST_INIT(cuguest_no_context_guard);
  const cuguest_no_context_guard empty_none = CUGUEST_INIT(cuguest_no_context_guard);
  begin();
  a = make_context();
  b = make_context();
  CHECK(cuguest_guard_enter(&outer, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  guard = empty;
  CHECK(cuguest_guard_enter(&guard, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(STACK_IS(b, a, b));
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS(b, a));
  CHECK(cuguest_no_context_guard_enter(&none, CUGUEST_HERE) == 0);
  none = empty_none;
  CHECK(cuguest_no_context_guard_enter(&none, CUGUEST_HERE) == 0);
  CHECK(cuguest_no_context_guard_leave(&none) == 0);
  CHECK(STACK_IS_EMPTY());
  CHECK(cuguest_incident_count(-1) == 0);
  CHECK(cuguest_guard_leave(&outer) == NOT_READY);
  CHECK(cuguest_guard_leave(&outer) == ILLEGAL_STATE);
  CHECK(cuguest_incident_count(-1) == 0);
}

static void a_guard_left_out_of_turn(void) {
  struct told told = {0, {0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0}};
  context_t a, b, c;
  int by_cleanup, line;
  cuguest_guard outer = CUGUEST_INIT(cuguest_guard);
  cuguest_guard inner = CUGUEST_INIT(cuguest_guard);
  CUGUEST_SCOPE(cuguest_incident_listener, listener);
  begin();
  a = make_context();
  b = make_context();
  c = make_context();
  CHECK(cuguest_incident_listener_register(&listener, &note, &told) == 0);
  CHECK(driver.push(a) == 0);
  for (by_cleanup = 0; by_cleanup < 2; ++by_cleanup) {
    line = __LINE__ + 1;
    CHECK(cuguest_guard_enter(&outer, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    CHECK(cuguest_guard_enter(&inner, c, CUGUEST_ALWAYS_PUSH, CUGUEST_HERE) == 0);
    if (by_cleanup) {
      cuguest_guard_cleanup(&outer);
      CHECK(told.count == 1);
      CHECK(told.last.kind == CUGUEST_OUT_OF_TURN && told.last.repair == CUGUEST_UNREPAIRED);
      CHECK(told.last.result == NOT_READY && told.last.line == line);
    } else {
      CHECK(cuguest_guard_leave(&outer) == NOT_READY);
    }
    CHECK(cuguest_guard_leave(&outer) == ILLEGAL_STATE);
    CHECK(STACK_IS(a, b, c));
    CHECK(cuguest_guard_leave(&inner) == 0);
    CHECK(STACK_IS(a));
    CHECK(told.count == by_cleanup);
  }
}

static void* destroy_elsewhere(void* argument) {
  CHECK(driver.destroy(argument) == 0);
  return NULL;
}

static void a_scope_outlives_its_context(void) {
  context_t a, b;
  cuguest_ref ref;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  a = make_context();
  /* Destroyed on the thread, which takes it off the stack. */
  b = make_context();
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_guard_enter(&guard, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(driver.destroy(b) == 0);
  CHECK(cuguest_guard_reassert(&guard) == CONTEXT_IS_DESTROYED);
  CHECK(cuguest_guard_leave(&guard) == 0 && STACK_IS(a));
  CHECK(cuguest_incident_count(CUGUEST_DESTROYED) == 1);
  /* Destroyed by another thread: its entry stays, and only a reference tells. */
  b = make_context();
  CHECK(cuguest_guard_enter(&guard, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  on_another_thread(&destroy_elsewhere, b);
  CHECK(cuguest_guard_leave(&guard) == 0 && STACK_IS(a));
  b = make_context();
  ref = ref_of(b);
  CHECK(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  on_another_thread(&destroy_elsewhere, b);
  CHECK(cuguest_guard_reassert(&guard) == CONTEXT_IS_DESTROYED);
  CHECK(cuguest_guard_leave(&guard) == 0 && STACK_IS(a));
  CHECK(cuguest_incident_count(CUGUEST_DESTROYED) == 1);
  /* The caller's own: there is nothing to make current again. */
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(driver.destroy(a) == 0);
  CHECK(cuguest_guard_leave(&guard) == CONTEXT_IS_DESTROYED && STACK_IS_EMPTY());
  CHECK(cuguest_incident_count(CUGUEST_DESTROYED) == 2);
}

static void* enter_and_end(void* argument) {
  cuguest_guard* const guard = argument;
  CHECK(cuguest_guard_enter(guard, make_context(), CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  return NULL;
}

static void a_thread_that_ends_inside(void) {
  context_t a;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  a = make_context();
  CHECK(driver.push(a) == 0);
  on_another_thread(&enter_and_end, &guard);
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ALWAYS_PUSH, CUGUEST_HERE) == ILLEGAL_STATE);
  CHECK(cuguest_guard_leave(&guard) == NOT_READY);
  CHECK(cuguest_incident_count(CUGUEST_ELSEWHERE) == 1);
  CHECK(STACK_IS(a));
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ALWAYS_PUSH, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_incident_count(-1) == 1);
}

static void* leave_elsewhere(void* argument) {
  cuguest_guard* const guard = argument;
  context_t b = make_context();
  CHECK(driver.push(b) == 0);
  CHECK(cuguest_guard_reassert(guard) == ILLEGAL_STATE);
  CHECK(cuguest_guard_move_to(guard, b, CUGUEST_HERE) == ILLEGAL_STATE);
  CHECK(cuguest_guard_leave(guard) == NOT_READY);
  CHECK(cuguest_guard_leave(guard) == ILLEGAL_STATE);
  cuguest_guard_cleanup(guard);
  CHECK(STACK_IS(b));
  return NULL;
}

static void* clean_up_elsewhere(void* argument) {
  cuguest_guard_cleanup(argument);
  CHECK(STACK_IS_EMPTY());
  return NULL;
}

/* Its own thread closes it when it next begins or ends a scope. */
static void a_guard_left_on_another_thread(void) {
  context_t a, b;
  cuguest_guard outer = CUGUEST_INIT(cuguest_guard);
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  int by_cleanup;
  begin();
  a = make_context();
  b = make_context();
  for (by_cleanup = 0; by_cleanup < 2; ++by_cleanup) {
    CHECK(cuguest_guard_enter(&outer, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    on_another_thread(by_cleanup ? &clean_up_elsewhere : &leave_elsewhere, &guard);
    CHECK(cuguest_incident_count(CUGUEST_ELSEWHERE) == (unsigned long long)(by_cleanup + 1));
    CHECK(STACK_IS(b, a));
    CHECK(cuguest_guard_leave(&guard) == ILLEGAL_STATE);
    if (by_cleanup) {
      CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
      CHECK(STACK_IS(b, a));
      CHECK(cuguest_guard_leave(&guard) == 0);
      CHECK(STACK_IS(b));
    }
    CHECK(cuguest_guard_leave(&outer) == 0);
    CHECK(STACK_IS_EMPTY());
  }
  CHECK(cuguest_incident_count(-1) == 2);
}

/* cuguest_push() and cuguest_pop(). */

static void a_push_is_popped(void) {
  context_t a, b;
  begin();
  a = make_context();
  b = make_context();
  CHECK(cuguest_pop() == ILLEGAL_STATE);
  CHECK(cuguest_push(NULL) == INVALID_CONTEXT);
  CHECK(cuguest_pop() == ILLEGAL_STATE);
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_push(b) == 0);
  CHECK(STACK_IS(a, b));
  CHECK(cuguest_push(b) == 0); /* it always pushes */
  CHECK(cuguest_push(a) == 0);
  CHECK(STACK_IS(a, b, b, a));
  CHECK(cuguest_pop() == 0);
  CHECK(STACK_IS(a, b, b));
  CHECK(cuguest_pop() == 0);
  CHECK(STACK_IS(a, b));
  CHECK(cuguest_pop() == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_pop() == ILLEGAL_STATE);
  CHECK(STACK_IS(a));
  CHECK(cuguest_incident_count(-1) == 0);
}

/* A cuCtxPopCurrent means what it meant before the library used cuguest. */
static void a_pop_by_hand_between(void) {
  context_t a, b, c, popped;
  int same;
  begin();
  a = make_context();
  b = make_context();
  c = make_context();
  CHECK(driver.push(c) == 0 && driver.push(a) == 0);
  for (same = 0; same < 2; ++same) {
    CHECK(cuguest_push(b) == 0);
    CHECK(cuguest_push(same ? b : c) == 0);
    CHECK(driver.pop(&popped) == 0);
    CHECK(cuguest_pop() == 0);
    CHECK(STACK_IS(c, a));
    CHECK(cuguest_pop() == ILLEGAL_STATE); /* both have ended */
    CHECK(STACK_IS(c, a));
  }
  /* Of three, the innermost two by hand. */
  CHECK(cuguest_push(b) == 0 && cuguest_push(c) == 0 && cuguest_push(b) == 0);
  CHECK(driver.pop(&popped) == 0 && driver.pop(&popped) == 0);
  CHECK(cuguest_pop() == 0);
  CHECK(STACK_IS(c, a));
  CHECK(cuguest_pop() == ILLEGAL_STATE);
  CHECK(cuguest_incident_count(-1) == 0);
}

static void a_push_by_hand_between(void) {
  context_t a, b, c;
  begin();
  a = make_context();
  b = make_context();
  c = make_context();
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_push(b) == 0);
  CHECK(driver.push(c) == 0);
  CHECK(cuguest_pop() == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_incident_count(CUGUEST_LEAKED_PUSH) == 1);
  /* Also one of the library's own context. */
  CHECK(cuguest_push(b) == 0);
  CHECK(driver.push(b) == 0);
  CHECK(cuguest_pop() == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_incident_count(CUGUEST_LEAKED_PUSH) == 2 && cuguest_incident_count(-1) == 2);
}

/* As ContextGuard repairs what a callee did. */
static void a_pop_too_many_inside_a_push(void) {
  context_t a, b, popped;
  begin();
  a = make_context();
  b = make_context();
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_push(b) == 0);
  CHECK(driver.pop(&popped) == 0);
  CHECK(cuguest_pop() == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_incident_count(CUGUEST_EXTRA_POP) == 1 && cuguest_incident_count(-1) == 1);
}

static void a_pop_out_of_turn(void) {
  context_t a, b, c;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  a = make_context();
  b = make_context();
  c = make_context();
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_push(b) == 0);
  CHECK(cuguest_push(c) == 0);
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_pop() == NOT_READY);
  CHECK(cuguest_pop() == NOT_READY);
  CHECK(cuguest_pop() == ILLEGAL_STATE);
  CHECK(STACK_IS(a, b, c, a));
  CHECK(cuguest_push(b) == 0);
  CHECK(cuguest_pop() == 0);
  CHECK(STACK_IS(a, b, c, a));
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS(a));
  /* And a guard around it. */
  CHECK(cuguest_guard_enter(&guard, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_push(c) == 0);
  CHECK(cuguest_guard_leave(&guard) == NOT_READY);
  CHECK(STACK_IS(a, b, c));
  CHECK(cuguest_pop() == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_incident_count(-1) == 0);
}

static void a_pop_inside_a_host_scope(void) {
  context_t a, b, c;
  cuguest_host_scope host = CUGUEST_INIT(cuguest_host_scope);
  begin();
  a = make_context();
  b = make_context();
  c = make_context();
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_push(b) == 0 && cuguest_push(c) == 0);
  CHECK(cuguest_host_scope_enter(&host, CUGUEST_HERE) == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_push(b) == 0);
  CHECK(STACK_IS(a, b));
  CHECK(cuguest_pop() == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_host_scope_leave(&host) == 0);
  CHECK(STACK_IS(a, b, c));
  CHECK(cuguest_host_scope_enter(&host, CUGUEST_HERE) == 0);
  CHECK(cuguest_pop() == 0); /* what was taken out last */
  CHECK(STACK_IS(a));
  CHECK(cuguest_host_scope_leave(&host) == 0);
  CHECK(STACK_IS(a, b));
  CHECK(cuguest_pop() == 0);
  CHECK(cuguest_pop() == ILLEGAL_STATE);
  CHECK(STACK_IS(a));
  CHECK(cuguest_incident_count(-1) == 0);
}

static void* push_and_pop_elsewhere(void* argument) {
  context_t const* const contexts = argument;
  CHECK(cuguest_pop() == ILLEGAL_STATE);
  CHECK(STACK_IS_EMPTY());
  CHECK(cuguest_push(contexts[0]) == 0);
  CHECK(cuguest_push(contexts[1]) == 0);
  CHECK(cuguest_pop() == 0);
  CHECK(stack_is((const context_t[]){contexts[0], NULL}));
  return NULL; /* with one that it has not popped */
}

static void pushes_of_two_threads(void) {
  context_t contexts[2];
  begin();
  contexts[0] = make_context();
  contexts[1] = make_context();
  CHECK(cuguest_push(contexts[1]) == 0);
  on_another_thread(&push_and_pop_elsewhere, contexts);
  CHECK(stack_is((const context_t[]){contexts[1], NULL}));
  CHECK(cuguest_pop() == 0);
  CHECK(cuguest_pop() == ILLEGAL_STATE);
  CHECK(STACK_IS_EMPTY());
  CHECK(cuguest_incident_count(-1) == 0);
}

static void guards_nested_64_deep(void) {
  static cuguest_guard guards[DEPTH];
  const cuguest_guard empty = CUGUEST_INIT(cuguest_guard);
  context_t contexts[3];
  int mode, i;
  begin();
  for (i = 0; i < 3; ++i) contexts[i] = make_context();
  CHECK(driver.push(contexts[2]) == 0);
  for (mode = CUGUEST_ELIDE; mode <= CUGUEST_ALWAYS_PUSH; ++mode) {
    for (i = 0; i < DEPTH; ++i) {
      guards[i] = empty;
      CHECK(cuguest_guard_enter(&guards[i], contexts[i / 2 % 2], mode, CUGUEST_HERE) == 0);
      CHECK(current() == contexts[i / 2 % 2]);
    }
    for (i = DEPTH; i > 0; --i) {
      CHECK(current() == contexts[(i - 1) / 2 % 2]);
      CHECK(cuguest_guard_leave(&guards[i - 1]) == 0);
    }
    CHECK(STACK_IS(contexts[2]));
  }
  CHECK(cuguest_incident_count(-1) == 0);
}

#ifndef _WIN32
static void a_forked_child_is_refused(void) {
  context_t a;
  cuguest_guard held = CUGUEST_INIT(cuguest_guard);
  cuguest_ref ref;
  int status = 0;
  pid_t child;
  begin();
  a = make_context();
  ref = ref_of(a);
  CHECK(cuguest_guard_enter(&held, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  fflush(stdout);
  child = fork();
  if (child == 0) {
    cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
    cuguest_no_context_guard none = CUGUEST_INIT(cuguest_no_context_guard);
    cuguest_thread_home home = CUGUEST_INIT(cuguest_thread_home);
    cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
    cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
    CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == NOT_INITIALIZED);
    CHECK(strstr(cuguest_error_advice(NOT_INITIALIZED), "was forked from one") != NULL);
    CHECK(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == NOT_INITIALIZED);
    CHECK(cuguest_guard_leave(&guard) == ILLEGAL_STATE);
    CHECK(cuguest_no_context_guard_enter(&none, CUGUEST_HERE) == NOT_INITIALIZED);
    CHECK(cuguest_thread_home_enter_ref(&home, &ref, 0, CUGUEST_HERE) == NOT_INITIALIZED);
    CHECK(cuguest_ref_current(&ref) == NOT_INITIALIZED);
    CHECK(cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE) == NOT_INITIALIZED);
    CHECK(cuguest_shared_context_create(&shared, 0, 0) == NOT_INITIALIZED);
    CHECK(cuguest_guard_move_to(&held, a, CUGUEST_HERE) == NOT_INITIALIZED);
    CHECK(cuguest_push(a) == NOT_INITIALIZED);
    CHECK(cuguest_pop() == ILLEGAL_STATE);
    CHECK(cuguest_guard_leave(&held) == 0);
    CHECK(cuguest_guard_leave(&held) == ILLEGAL_STATE);
    CHECK(cuguest_incident_count(-1) == 0);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_guard_leave(&held) == 0);
  CHECK(STACK_IS_EMPTY());
  CHECK(cuguest_incident_count(-1) == 0);
}

#endif

static void nothing_is_current_for_a_scope(void) {
  context_t a, b;
  cuguest_no_context_guard none = CUGUEST_INIT(cuguest_no_context_guard);
  begin();
  a = make_context();
  b = make_context();
  CHECK(driver.push(a) == 0 && driver.push(b) == 0);
  CHECK(cuguest_no_context_guard_leave(&none) == ILLEGAL_STATE);
  CHECK(cuguest_no_context_guard_enter(&none, CUGUEST_HERE) == 0);
  CHECK(STACK_IS_EMPTY());
  CHECK(cuguest_no_context_guard_enter(&none, CUGUEST_HERE) == ILLEGAL_STATE);
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_no_context_guard_leave(&none) == 0);
  CHECK(STACK_IS(a, b));
  CHECK(cuguest_incident_count(CUGUEST_LEAKED_PUSH) == 1);
  CHECK(cuguest_no_context_guard_leave(&none) == ILLEGAL_STATE);
}

static void* leave_host_elsewhere(void* argument) {
  CHECK(cuguest_host_scope_leave(argument) == NOT_READY);
  CHECK(cuguest_host_scope_leave(argument) == ILLEGAL_STATE);
  return NULL;
}

static void the_host_has_its_stack_in_a_callback(void) {
  context_t a, b, c;
  cuguest_guard outer = CUGUEST_INIT(cuguest_guard);
  cuguest_guard inner = CUGUEST_INIT(cuguest_guard);
  cuguest_host_scope host = CUGUEST_INIT(cuguest_host_scope);
  begin();
  a = make_context();
  b = make_context();
  c = make_context();
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_host_scope_leave(&host) == ILLEGAL_STATE);
  CHECK(cuguest_guard_enter(&outer, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_enter(&inner, c, CUGUEST_ALWAYS_PUSH, CUGUEST_HERE) == 0);
  CHECK(cuguest_host_scope_enter(&host, CUGUEST_HERE) == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_host_scope_enter(&host, CUGUEST_HERE) == ILLEGAL_STATE);
  CHECK(STACK_IS(a));
  CHECK(cuguest_host_scope_leave(&host) == 0);
  CHECK(STACK_IS(a, b, c));
  CHECK(cuguest_host_scope_enter(&host, CUGUEST_HERE) == 0);
  CHECK(driver.destroy(c) == 0);
  CHECK(cuguest_host_scope_leave(&host) == 0);
  CHECK(STACK_IS(a, b));
  CHECK(cuguest_guard_reassert(&inner) == CONTEXT_IS_DESTROYED);
  CHECK(cuguest_guard_leave(&inner) == 0);
  CHECK(cuguest_incident_count(-1) == 0);
  /* Left on another thread, what it took out stays out. */
  CHECK(cuguest_host_scope_enter(&host, CUGUEST_HERE) == 0);
  CHECK(STACK_IS(a));
  on_another_thread(&leave_host_elsewhere, &host);
  CHECK(cuguest_incident_count(CUGUEST_ELSEWHERE) == 1);
  CHECK(cuguest_host_scope_leave(&host) == ILLEGAL_STATE);
  CHECK(STACK_IS(a));
  CHECK(cuguest_guard_reassert(&outer) == ILLEGAL_STATE);
  CHECK(cuguest_guard_leave(&outer) == 0);
  CHECK(STACK_IS(a));
}

static int capture_mode(void) {
  int mode = CUGUEST_CAPTURE_RELAXED, ours = CUGUEST_CAPTURE_RELAXED;
  CHECK(driver.exchange_capture_mode(&mode) == 0);
  ours = mode;
  CHECK(driver.exchange_capture_mode(&ours) == 0);
  return mode;
}

static void* names_elsewhere(void* argument) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  CHECK(cuguest_guard_ref(argument, &ref) == 0 && ref.context != NULL);
  return NULL;
}

static void scopes_name_their_context(void) {
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  cuguest_thread_home home = CUGUEST_INIT(cuguest_thread_home);
  cuguest_ref ref = CUGUEST_REF_INIT, named = CUGUEST_REF_INIT;
  context_t context;
  begin();
  context = make_context();
  CHECK(cuguest_ref_borrow(&ref, context) == 0);
  CHECK(cuguest_guard_ref(&guard, &named) == ILLEGAL_STATE);
  CHECK(cuguest_guard_ref(NULL, &named) == INVALID_VALUE);
  CHECK(cuguest_thread_home_ref(&home, &named) == ILLEGAL_STATE);
  CHECK(cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_ref(&guard, NULL) == INVALID_VALUE);
  CHECK(cuguest_guard_ref(&guard, &named) == 0);
  CHECK(named.context == ref.context && named.id == ref.id);
  on_another_thread(&names_elsewhere, &guard);
  CHECK(cuguest_thread_home_enter_ref(&home, &named, 0, CUGUEST_HERE) == 0);
  named.context = NULL;
  CHECK(cuguest_thread_home_ref(&home, &named) == 0);
  CHECK(named.context == ref.context && named.id == ref.id);
  CHECK(cuguest_thread_home_leave(&home) == 0);
  CHECK(cuguest_thread_home_ref(&home, &named) == ILLEGAL_STATE);
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(STACK_IS_EMPTY());
}

static void a_push_by_reference(void) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  context_t context;
  begin();
  context = make_context();
  CHECK(cuguest_push_ref(NULL) == INVALID_VALUE);
  CHECK(cuguest_push_ref(&ref) == INVALID_CONTEXT);
  CHECK(cuguest_ref_borrow(&ref, context) == 0);
  CHECK(cuguest_push_ref(&ref) == 0);
  CHECK(STACK_IS(context));
  CHECK(cuguest_pop() == 0);
  CHECK(driver.destroy(context) == 0);
  CHECK(cuguest_push_ref(&ref) == CONTEXT_IS_DESTROYED);
  CHECK(STACK_IS_EMPTY());
}

static void a_host_scope_gives_the_mode_back(void) {
  cuguest_capture_guard guard = CUGUEST_INIT(cuguest_capture_guard);
  cuguest_host_scope host = CUGUEST_INIT(cuguest_host_scope);
  begin();
  CHECK(cuguest_capture_guard_enter(&guard, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE) == 0);
  CHECK(cuguest_host_scope_enter(&host, CUGUEST_HERE) == 0);
  CHECK(capture_mode() == CUGUEST_CAPTURE_GLOBAL);
  CHECK(cuguest_host_scope_leave(&host) == 0);
  CHECK(capture_mode() == CUGUEST_CAPTURE_RELAXED);
  CHECK(cuguest_capture_guard_leave(&guard) == 0);
  CHECK(capture_mode() == CUGUEST_CAPTURE_GLOBAL);
}

static void* leave_capture_elsewhere(void* argument) {
  CHECK(cuguest_capture_guard_leave(argument) == NOT_READY);
  return NULL;
}

static void a_capture_guard_sets_the_mode(void) {
  cuguest_capture_guard guard = CUGUEST_INIT(cuguest_capture_guard);
  begin();
  CHECK(capture_mode() == CUGUEST_CAPTURE_GLOBAL);
  CHECK(cuguest_capture_guard_enter(&guard, 3, CUGUEST_HERE) == INVALID_VALUE);
  CHECK(cuguest_capture_guard_leave(&guard) == ILLEGAL_STATE);
  CHECK(cuguest_capture_guard_enter(&guard, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE) == 0);
  CHECK(capture_mode() == CUGUEST_CAPTURE_RELAXED);
  CHECK(cuguest_capture_guard_leave(&guard) == 0);
  CHECK(capture_mode() == CUGUEST_CAPTURE_GLOBAL);
  CHECK(cuguest_capture_guard_leave(&guard) == ILLEGAL_STATE);
  CHECK(cuguest_capture_guard_enter(&guard, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE) == 0);
  on_another_thread(&leave_capture_elsewhere, &guard);
  CHECK(capture_mode() == CUGUEST_CAPTURE_RELAXED);
  CHECK(cuguest_capture_guard_leave(&guard) == ILLEGAL_STATE);
  CHECK(cuguest_capture_guard_enter(&guard, CUGUEST_CAPTURE_THREAD_LOCAL, CUGUEST_HERE) == 0);
  CHECK(cuguest_capture_guard_leave(&guard) == 0);
  CHECK(capture_mode() == CUGUEST_CAPTURE_GLOBAL);
  CHECK(cuguest_capture_guard_leave(&guard) == ILLEGAL_STATE);
}

static void* leave_home_elsewhere(void* argument) {
  CHECK(cuguest_thread_home_check(argument) == ILLEGAL_STATE);
  CHECK(cuguest_thread_home_leave(argument) == NOT_READY);
  CHECK(cuguest_thread_home_leave(argument) == ILLEGAL_STATE);
  return NULL;
}

static void a_thread_has_a_home(void) {
  context_t a, b, popped;
  cuguest_ref ref_a, ref_b;
  cuguest_thread_home home = CUGUEST_INIT(cuguest_thread_home);
  const cuguest_ref none = CUGUEST_REF_INIT;
  begin();
  a = make_context();
  b = make_context();
  ref_a = ref_of(a);
  ref_b = ref_of(b);
  CHECK(cuguest_thread_home_enter_ref(&home, &none, 0, CUGUEST_HERE) == INVALID_CONTEXT);
  CHECK(cuguest_thread_home_check(&home) == ILLEGAL_STATE);
  CHECK(cuguest_thread_home_enter_ref(&home, &ref_a, 0, CUGUEST_HERE) == 0);
  CHECK(cuguest_thread_home_enter_ref(&home, &ref_b, 0, CUGUEST_HERE) == ILLEGAL_STATE);
  CHECK(STACK_IS(a));
  CHECK(driver.pop(&popped) == 0);
  CHECK(cuguest_thread_home_check(&home) == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_thread_home_move_to(&home, &ref_b) == 0);
  CHECK(STACK_IS(b));
  CHECK(cuguest_thread_home_move_to(&home, NULL) == INVALID_VALUE);
  on_another_thread(&leave_home_elsewhere, &home);
  CHECK(cuguest_incident_count(CUGUEST_ELSEWHERE) == 1);
  CHECK(STACK_IS(b));
  CHECK(cuguest_thread_home_leave(&home) == ILLEGAL_STATE);
  CHECK(cuguest_thread_home_enter_ref(&home, &ref_b, 0, CUGUEST_HERE) == 0);
  CHECK(STACK_IS(b)); /* not both */
  CHECK(driver.destroy(b) == 0);
  CHECK(cuguest_thread_home_check(&home) == CONTEXT_IS_DESTROYED);
  CHECK(cuguest_thread_home_move_to(&home, &ref_a) == 0);
  CHECK(cuguest_thread_home_leave(&home) == 0);
  CHECK(STACK_IS_EMPTY());
  CHECK(cuguest_thread_home_leave(&home) == ILLEGAL_STATE);
}

static void refs_name_incarnations(void) {
  context_t a, primary;
  cuguest_ref ref = CUGUEST_REF_INIT;
  cuguest_ref again = CUGUEST_REF_INIT;
  begin();
  CHECK(cuguest_ref_check(&ref) == INVALID_CONTEXT);
  CHECK(cuguest_ref_current(&ref) == INVALID_CONTEXT && ref.context == NULL);
  CHECK(cuguest_ref_borrow(&ref, NULL) == INVALID_CONTEXT);
  a = make_context();
  CHECK(cuguest_ref_borrow(&ref, a) == 0 && ref.context == a);
  CHECK(cuguest_ref_check(&ref) == 0);
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_ref_current(&again) == 0 && again.context == a && again.id == ref.id);
  if (ref.id == 0) return; /* a driver below CUDA 12.0 */
  CHECK(driver.retain(&primary, 0) == 0);
  ref = ref_of(primary);
  CHECK(driver.reset(0) == 0);
  CHECK(driver.retain(&primary, 0) == 0);
  again = ref_of(primary);
  CHECK(ref.context == again.context && ref.id != again.id);
  CHECK(cuguest_ref_check(&ref) == CONTEXT_IS_DESTROYED && cuguest_ref_check(&again) == 0);
}

static int primary_is_active(void) {
  unsigned flags = 0;
  int active = -1;
  CHECK(driver.state(0, &flags, &active) == 0);
  return active;
}

static void three_questions(void) {
  size_t free_bytes = 7, total = 0;
  CHECK(cuguest_is_initialized() == 0);
  open_driver();
  CHECK(cuguest_is_initialized() == 0);
  if (driver.init(0) != 0) _exit(SKIPPED);
  CHECK(cuguest_is_initialized() == 1);
  CHECK(cuguest_free_memory(0, CUGUEST_REFUSE, &free_bytes, NULL) == INVALID_CONTEXT);
  CHECK(free_bytes == 7 && !primary_is_active());
  CHECK(cuguest_free_memory(0, CUGUEST_CREATE, &free_bytes, &total) == 0);
  CHECK(free_bytes > 7 && free_bytes <= total);
  CHECK(!primary_is_active() && STACK_IS_EMPTY());
  CHECK(cuguest_free_memory(0, CUGUEST_CREATE, NULL, NULL) == 0);
  CHECK(cuguest_free_memory(0, 3, NULL, NULL) == INVALID_VALUE);
  CHECK(cuguest_free_memory(99, CUGUEST_CREATE, NULL, NULL) == INVALID_DEVICE);
  CHECK(cuguest_peer_access_check(0, 0) == PEER_ACCESS_UNSUPPORTED);
  CHECK(cuguest_peer_access_check(0, 99) == INVALID_DEVICE);
}

static void a_context_is_acquired_on_a_device(void) {
  context_t a;
  cuguest_ref ref = CUGUEST_REF_INIT;
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  CHECK(cuguest_acquire_on(&acquired, 0, CUGUEST_REFUSE) == INVALID_CONTEXT);
  CHECK(cuguest_acquired_source(&acquired) == -1);
  CHECK(cuguest_acquired_ref(&acquired, &ref) == ILLEGAL_STATE);
  CHECK(cuguest_acquired_release(&acquired) == ILLEGAL_STATE);
  CHECK(!primary_is_active());
  CHECK(cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE) == 0);
  CHECK(cuguest_acquired_source(&acquired) == CUGUEST_FROM_CREATED);
  CHECK(primary_is_active() && STACK_IS_EMPTY());
  CHECK(cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE) == ILLEGAL_STATE);
  CHECK(cuguest_acquired_ref(&acquired, &ref) == 0);
  CHECK(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(current() == ref.context);
  CHECK(cuguest_guard_leave(&guard) == 0);
  {
    CUGUEST_SCOPE(cuguest_acquired, again);
    CHECK(cuguest_acquire_on(&again, 0, CUGUEST_REFUSE) == 0);
    CHECK(cuguest_acquired_source(&again) == CUGUEST_FROM_PRIMARY);
    CHECK(cuguest_acquired_release(&acquired) == 0);
    CHECK(primary_is_active());
  }
  CHECK(!primary_is_active());
  CHECK(cuguest_acquired_release(&acquired) == ILLEGAL_STATE);
  a = make_context();
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE) == 0);
  CHECK(cuguest_acquired_source(&acquired) == CUGUEST_FROM_CURRENT);
  CHECK(cuguest_acquired_release(&acquired) == 0);
  CHECK(!primary_is_active());
  CHECK(cuguest_acquire_on(&acquired, 99, CUGUEST_CREATE) == INVALID_DEVICE);
  CHECK(cuguest_acquire_on(&acquired, -1, CUGUEST_CREATE) == INVALID_DEVICE);
  CHECK(cuguest_acquire_on(&acquired, 0, 3) == INVALID_VALUE);
  CHECK(cuguest_acquire_on(NULL, 0, CUGUEST_CREATE) == INVALID_VALUE);
  acquired.size = 24;
  CHECK(cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE) == INVALID_VALUE);
  CHECK(!primary_is_active());
}

static void a_context_is_acquired_from_a_pointer_or_a_stream(void) {
  context_t a, popped;
  stream_t stream;
  unsigned long long memory;
  int host = 0;
  cuguest_ref ref = CUGUEST_REF_INIT;
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  begin();
  a = make_context();
  CHECK(driver.push(a) == 0);
  CHECK(driver.allocate(&memory, 4096) == 0 && driver.create_stream(&stream, 0) == 0);
  CHECK(driver.pop(&popped) == 0);
  CHECK(cuguest_acquire_from_pointer(&acquired, memory + 17, CUGUEST_REFUSE) == 0);
  CHECK(cuguest_acquired_source(&acquired) == CUGUEST_FROM_POINTER);
  CHECK(cuguest_acquired_ref(&acquired, &ref) == 0 && ref.context == a);
  CHECK(cuguest_acquired_release(&acquired) == 0);
  CHECK(cuguest_acquire_from_stream(&acquired, stream, CUGUEST_NO_DEVICE, CUGUEST_REFUSE) == 0);
  CHECK(cuguest_acquired_source(&acquired) == CUGUEST_FROM_STREAM);
  CHECK(cuguest_acquired_ref(&acquired, &ref) == 0 && ref.context == a);
  CHECK(cuguest_acquired_release(&acquired) == 0);
  CHECK(cuguest_acquire_from_stream(&acquired, NULL, CUGUEST_NO_DEVICE, CUGUEST_CREATE) ==
        INVALID_CONTEXT);
  CHECK(cuguest_acquire_from_stream(&acquired, NULL, 0, CUGUEST_REFUSE) == INVALID_CONTEXT);
  CHECK(!primary_is_active());
  CHECK(cuguest_acquire_from_stream(&acquired, NULL, 0, CUGUEST_CREATE) == 0);
  CHECK(cuguest_acquired_source(&acquired) == CUGUEST_FROM_CREATED && primary_is_active());
  CHECK(cuguest_acquired_release(&acquired) == 0 && !primary_is_active());
  CHECK(cuguest_acquire_from_stream(&acquired, NULL, 99, CUGUEST_CREATE) == INVALID_DEVICE);
  CHECK(cuguest_acquire_from_stream(&acquired, stream, 0, 3) == INVALID_VALUE);
  CHECK(cuguest_acquire_from_pointer(&acquired, 0, CUGUEST_CREATE) == INVALID_VALUE);
  CHECK(cuguest_acquire_from_pointer(&acquired, (size_t)&host, CUGUEST_CREATE) == INVALID_VALUE);
  CHECK(cuguest_acquire_from_pointer(&acquired, memory, 7) == INVALID_VALUE);
  CHECK(cuguest_acquire_from_pointer(NULL, memory, CUGUEST_REFUSE) == INVALID_VALUE);
  CHECK(cuguest_acquire_from_stream(NULL, stream, 0, CUGUEST_CREATE) == INVALID_VALUE);
  CHECK(cuguest_acquired_ref(NULL, &ref) == INVALID_VALUE);
  CHECK(cuguest_acquired_source(NULL) == -1 && cuguest_acquired_release(NULL) == INVALID_VALUE);
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_acquire_from_stream(&acquired, NULL, CUGUEST_NO_DEVICE, CUGUEST_CREATE) == 0);
  CHECK(cuguest_acquired_source(&acquired) == CUGUEST_FROM_CURRENT);
  CHECK(cuguest_acquired_ref(&acquired, NULL) == INVALID_VALUE);
  CHECK(cuguest_acquired_release(&acquired) == 0);
  CHECK(driver.destroy_stream(stream) == 0 && driver.free(memory) == 0);
  CHECK(STACK_IS(a));
}

static void* detach_elsewhere(void* argument) {
  CHECK(cuguest_shared_context_detach(argument) == 0);
  return NULL;
}

static void a_floating_context_is_shared(void) {
  context_t a;
  cuguest_ref ref = CUGUEST_REF_INIT;
  cuguest_ref again = CUGUEST_REF_INIT;
  cuguest_shared_context mine = CUGUEST_INIT(cuguest_shared_context);
  cuguest_shared_context yours = CUGUEST_INIT(cuguest_shared_context);
  begin();
  CHECK(cuguest_shared_context_detach(&mine) == ILLEGAL_STATE);
  CHECK(cuguest_shared_context_create(&mine, 0, 0) == 0);
  CHECK(STACK_IS_EMPTY());
  CHECK(cuguest_shared_context_create(&mine, 0, 0) == ILLEGAL_STATE);
  CHECK(cuguest_shared_context_ref(&mine, &ref) == 0 && cuguest_ref_check(&ref) == 0);
  CHECK(cuguest_shared_context_attach(&yours, ref.context) == 0);
  CHECK(cuguest_shared_context_ref(&yours, &again) == 0 && again.id == ref.id);
  CHECK(cuguest_shared_context_detach(&mine) == 0);
  CHECK(cuguest_ref_check(&ref) == 0);
  on_another_thread(&detach_elsewhere, &yours);
  CHECK(cuguest_ref_check(&ref) == CONTEXT_IS_DESTROYED);
  CHECK(cuguest_shared_context_detach(&yours) == ILLEGAL_STATE);
  a = make_context();
  {
    CUGUEST_SCOPE(cuguest_shared_context, borrowed);
    CHECK(cuguest_shared_context_attach(&borrowed, a) == 0);
  }
  ref = ref_of(a);
  CHECK(cuguest_shared_context_attach(&yours, a) == 0);
  CHECK(driver.destroy(a) == 0);
  CHECK(cuguest_shared_context_detach(&yours) == CONTEXT_IS_DESTROYED);
  CHECK(cuguest_shared_context_detach(&yours) == ILLEGAL_STATE);
  CHECK(cuguest_shared_context_attach(&yours, NULL) == INVALID_VALUE);
  CHECK(cuguest_shared_context_attach(NULL, a) == INVALID_VALUE);
  CHECK(cuguest_shared_context_create(NULL, 0, 0) == INVALID_VALUE);
  CHECK(cuguest_shared_context_create(&yours, 99, 0) == INVALID_DEVICE);
  CHECK(cuguest_shared_context_create(&yours, 0, ~0U) == INVALID_VALUE);
  CHECK(cuguest_shared_context_ref(&yours, &ref) == ILLEGAL_STATE);
  yours.size = 24;
  CHECK(cuguest_shared_context_create(&yours, 0, 0) == INVALID_VALUE);
}

/* What a host that has loaded the driver gives: its own functions, but for those of the stack,
 * which count. `user` is the name of an entry that is missing. */
static int pushes, calls;
static int (*get_id)(context_t, unsigned long long*);
static int counted_push(context_t context) {
  ++pushes;
  ++calls;
  return driver.push(context);
}
static int counted_pop(context_t* context) {
  ++calls;
  return driver.pop(context);
}
static int counted_current(context_t* context) {
  ++calls;
  return driver.current(context);
}
static int counted_get_id(context_t context, unsigned long long* id) {
  ++calls;
  return get_id(context, id);
}
static void* look_up(const char* name, int version, void* user) {
  int (*get)(const char*, void**, int, unsigned long long);
  int (*const push)(context_t) = &counted_push;
  int (*const pop)(context_t*) = &counted_pop;
  int (*const get_current)(context_t*) = &counted_current;
  int (*const identify)(context_t, unsigned long long*) = &counted_get_id;
  void* address = NULL;
  if (user != NULL && strcmp(user, name) == 0) return NULL;
  find("cuGetProcAddress", &get);
  if (get(name, &address, version, 1) != 0) return NULL;
  if (strcmp(name, "cuCtxPushCurrent") == 0) memcpy(&address, &push, sizeof(address));
  if (strcmp(name, "cuCtxPopCurrent") == 0) memcpy(&address, &pop, sizeof(address));
  if (strcmp(name, "cuCtxGetCurrent") == 0) memcpy(&address, &get_current, sizeof(address));
  if (strcmp(name, "cuCtxGetId") == 0) {
    memcpy(&get_id, &address, sizeof(address));
    memcpy(&address, &identify, sizeof(address));
  }
  return address;
}

static int calls_of_a_guard(context_t context, const cuguest_ref* ref, int mode) {
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  calls = 0;
  CHECK((ref == NULL ? cuguest_guard_enter(&guard, context, mode, CUGUEST_HERE)
                     : cuguest_guard_enter_ref(&guard, ref, mode, CUGUEST_HERE)) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0);
  return calls;
}

/* Storage of every kind that is zeros alone. */
static struct {
  cuguest_ref ref;
  cuguest_guard guard;
  cuguest_no_context_guard none;
  cuguest_host_scope host;
  cuguest_capture_guard capture;
  cuguest_thread_home home;
  cuguest_primary primary;
  cuguest_acquired acquired;
  cuguest_shared_context shared;
  cuguest_incident_listener listener;
} zeros;

static void zeros_are_empty_storage(void) {
  struct told told = {0, {0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0}};
  context_t a;
  cuguest_ref ref;
  begin();
  a = make_context();
  /* Nothing has begun. */
  CHECK(cuguest_ref_check(&zeros.ref) == INVALID_CONTEXT);
  CHECK(cuguest_guard_leave(&zeros.guard) == ILLEGAL_STATE);
  CHECK(cuguest_guard_reassert(&zeros.guard) == ILLEGAL_STATE);
  CHECK(cuguest_guard_move_to(&zeros.guard, a, CUGUEST_HERE) == ILLEGAL_STATE);
  CHECK(cuguest_no_context_guard_leave(&zeros.none) == ILLEGAL_STATE);
  CHECK(cuguest_host_scope_leave(&zeros.host) == ILLEGAL_STATE);
  CHECK(cuguest_capture_guard_leave(&zeros.capture) == ILLEGAL_STATE);
  CHECK(cuguest_thread_home_leave(&zeros.home) == ILLEGAL_STATE);
  CHECK(cuguest_thread_home_check(&zeros.home) == ILLEGAL_STATE);
  CHECK(cuguest_primary_release(&zeros.primary) == ILLEGAL_STATE);
  CHECK(cuguest_primary_ref(&zeros.primary, &zeros.ref) == ILLEGAL_STATE);
  CHECK(cuguest_acquired_release(&zeros.acquired) == ILLEGAL_STATE);
  CHECK(cuguest_acquired_source(&zeros.acquired) == -1);
  CHECK(cuguest_shared_context_detach(&zeros.shared) == ILLEGAL_STATE);
  CHECK(cuguest_incident_listener_remove(&zeros.listener) == ILLEGAL_STATE);
  cuguest_guard_cleanup(&zeros.guard);
  cuguest_thread_home_cleanup(&zeros.home);
  cuguest_primary_cleanup(&zeros.primary);
  /* And all of it may begin. */
  CHECK(cuguest_guard_enter(&zeros.guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(STACK_IS(a));
  CHECK(cuguest_ref_current(&zeros.ref) == 0 && zeros.ref.context == a);
  CHECK(zeros.ref.size == sizeof(zeros.ref));
  CHECK(cuguest_host_scope_enter(&zeros.host, CUGUEST_HERE) == 0 && STACK_IS_EMPTY());
  CHECK(cuguest_host_scope_leave(&zeros.host) == 0 && STACK_IS(a));
  CHECK(cuguest_guard_leave(&zeros.guard) == 0 && STACK_IS_EMPTY());
  memset(&zeros.ref, 0, sizeof(zeros.ref));
  CHECK(cuguest_ref_borrow(&zeros.ref, a) == 0 && cuguest_ref_check(&zeros.ref) == 0);
  CHECK(cuguest_thread_home_enter_ref(&zeros.home, &zeros.ref, 0, CUGUEST_HERE) == 0);
  CHECK(cuguest_no_context_guard_enter(&zeros.none, CUGUEST_HERE) == 0 && STACK_IS_EMPTY());
  CHECK(cuguest_no_context_guard_leave(&zeros.none) == 0 && STACK_IS(a));
  CHECK(cuguest_thread_home_leave(&zeros.home) == 0 && STACK_IS_EMPTY());
  CHECK(cuguest_capture_guard_enter(&zeros.capture, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE) == 0);
  CHECK(cuguest_capture_guard_leave(&zeros.capture) == 0);
  CHECK(cuguest_primary_retain(&zeros.primary, 0) == 0);
  CHECK(cuguest_primary_release(&zeros.primary) == 0);
  CHECK(cuguest_acquire_on(&zeros.acquired, 0, CUGUEST_CREATE) == 0);
  cuguest_init(&ref, sizeof(ref));
  CHECK(cuguest_acquired_ref(&zeros.acquired, &ref) == 0 && ref.context != NULL);
  CHECK(cuguest_acquired_release(&zeros.acquired) == 0);
  CHECK(cuguest_shared_context_attach(&zeros.shared, a) == 0);
  CHECK(cuguest_shared_context_detach(&zeros.shared) == 0);
  CHECK(cuguest_incident_listener_register(&zeros.listener, &note, &told) == 0);
  CHECK(cuguest_incident_listener_remove(&zeros.listener) == 0);
}

static void storage_is_made_by_a_function(void) {
  context_t a;
  cuguest_guard guard;
  cuguest_ref ref;
  size_t room = 7;
  begin();
  a = make_context();
  memset(&guard, 0x5a, sizeof(guard));
  memset(&ref, 0x5a, sizeof(ref));
  cuguest_init(&guard, sizeof(guard));
  cuguest_init(&ref, sizeof(ref));
  CHECK(guard.size == sizeof(guard) && guard.opaque[0] == 0 && guard.opaque[14] == 0);
  CHECK(ref.size == sizeof(ref) && ref.context == NULL && ref.id == 0);
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  cuguest_guard_cleanup(&guard);
  CHECK(STACK_IS_EMPTY());
  cuguest_init(NULL, sizeof(guard));
  cuguest_init(&room, sizeof(room) - 1);
  CHECK(room == 7);
}

static void* release_elsewhere(void* argument) {
  CHECK(cuguest_primary_release(argument) == 0);
  return NULL;
}

static void a_primary_context_has_a_name(void) {
  context_t a;
  cuguest_ref ref = CUGUEST_REF_INIT, again = CUGUEST_REF_INIT;
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  begin();
  a = make_context();
  CHECK(cuguest_primary_release(&primary) == ILLEGAL_STATE);
  CHECK(cuguest_primary_ref(&primary, &ref) == ILLEGAL_STATE && ref.context == NULL);
  /* Whatever is current, and without becoming current. */
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_primary_retain(&primary, 0) == 0 && primary_is_active());
  CHECK(STACK_IS(a));
  CHECK(cuguest_primary_retain(&primary, 0) == ILLEGAL_STATE);
  CHECK(cuguest_primary_ref(&primary, &ref) == 0 && ref.context != NULL && ref.context != a);
  CHECK(cuguest_ref_check(&ref) == 0);
  {
    CUGUEST_SCOPE(cuguest_guard, guard);
    CHECK(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    CHECK(STACK_IS(a, ref.context));
  }
  {
    CUGUEST_SCOPE(cuguest_primary, second);
    CHECK(cuguest_primary_retain(&second, 0) == 0);
    CHECK(cuguest_primary_ref(&second, &again) == 0 && again.context == ref.context);
    CHECK(cuguest_primary_release(&primary) == 0 && primary_is_active());
  }
  CHECK(!primary_is_active());
  CHECK(cuguest_primary_release(&primary) == ILLEGAL_STATE);
  CHECK(cuguest_ref_check(&ref) == CONTEXT_IS_DESTROYED);
  CHECK(cuguest_primary_retain(&primary, 0) == 0);
  on_another_thread(&release_elsewhere, &primary);
  CHECK(!primary_is_active());
  CHECK(cuguest_primary_retain(&primary, 99) == INVALID_DEVICE);
  CHECK(cuguest_primary_retain(&primary, -1) == INVALID_DEVICE);
  CHECK(cuguest_primary_retain(NULL, 0) == INVALID_VALUE);
  CHECK(cuguest_primary_ref(NULL, &ref) == INVALID_VALUE);
  CHECK(cuguest_primary_release(NULL) == INVALID_VALUE);
  cuguest_primary_cleanup(NULL);
  primary.size = 24;
  CHECK(cuguest_primary_retain(&primary, 0) == INVALID_VALUE && !primary_is_active());
  CHECK(STACK_IS(a));
}

static void what_holds_a_reference_moves(void) {
  context_t a;
  cuguest_ref ref = CUGUEST_REF_INIT, moved = CUGUEST_REF_INIT;
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  cuguest_primary to_primary = CUGUEST_INIT(cuguest_primary);
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  cuguest_acquired to_acquired = CUGUEST_INIT(cuguest_acquired);
  cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
  cuguest_shared_context to_shared = CUGUEST_INIT(cuguest_shared_context);
  begin();
  a = make_context();
  CHECK(cuguest_primary_move(&to_primary, &primary) == ILLEGAL_STATE);
  CHECK(cuguest_primary_retain(&primary, 0) == 0);
  CHECK(cuguest_primary_ref(&primary, &ref) == 0);
  CHECK(cuguest_primary_move(&to_primary, &primary) == 0);
  CHECK(cuguest_primary_release(&primary) == ILLEGAL_STATE && primary_is_active());
  CHECK(cuguest_primary_ref(&to_primary, &moved) == 0 && moved.id == ref.id);
  CHECK(cuguest_primary_move(&to_primary, &to_primary) == ILLEGAL_STATE);
  /* What is held there is not lost. */
  CHECK(cuguest_primary_retain(&primary, 0) == 0);
  CHECK(cuguest_primary_move(&to_primary, &primary) == ILLEGAL_STATE);
  CHECK(cuguest_primary_move(NULL, &primary) == INVALID_VALUE);
  CHECK(cuguest_primary_move(&to_primary, NULL) == INVALID_VALUE);
  CHECK(cuguest_primary_release(&primary) == 0 && primary_is_active());

  CHECK(cuguest_acquire_on(&acquired, 0, CUGUEST_REFUSE) == 0);
  CHECK(cuguest_primary_release(&to_primary) == 0 && primary_is_active());
  CHECK(cuguest_acquired_move(&to_acquired, &acquired) == 0);
  CHECK(cuguest_acquired_move(&to_acquired, &acquired) == ILLEGAL_STATE);
  CHECK(cuguest_acquired_source(&acquired) == -1);
  CHECK(cuguest_acquired_source(&to_acquired) == CUGUEST_FROM_PRIMARY);
  CHECK(cuguest_acquired_release(&to_acquired) == 0 && !primary_is_active());
  CHECK(cuguest_acquired_move(NULL, &acquired) == INVALID_VALUE);
  CHECK(cuguest_acquired_move(&acquired, NULL) == INVALID_VALUE);

  CHECK(cuguest_shared_context_attach(&shared, a) == 0);
  CHECK(cuguest_shared_context_move(&to_shared, &shared) == 0);
  CHECK(cuguest_shared_context_detach(&shared) == ILLEGAL_STATE);
  CHECK(cuguest_shared_context_ref(&to_shared, &moved) == 0 && moved.context == a);
  CHECK(cuguest_shared_context_move(&shared, &to_shared) == 0);
  CHECK(cuguest_shared_context_move(&shared, NULL) == INVALID_VALUE);
  CHECK(cuguest_shared_context_move(NULL, &shared) == INVALID_VALUE);
  on_another_thread(&detach_elsewhere, &shared);
  CHECK(cuguest_ref_check(&moved) == 0);
}

/* What a cache has for each context: the context, and what became of it. */
struct value {
  context_t made_in;
};
static cuguest_per_context values; /* zeros */
static int made, destroyed, leaked, elsewhere, code_at_end;
static int make_value(const cuguest_ref* context, void* place, void* user) {
  struct value* const value = place;
  CHECK(user == &made && value->made_in == NULL);
  elsewhere += current() != context->context;
  value->made_in = context->context;
  __atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST);
  return 0;
}
static void destroy_value(void* place, void* user) {
  struct value* const value = place;
  const cuguest_ref none = CUGUEST_REF_INIT;
  CHECK(user == &made);
  elsewhere += current() != value->made_in;
  code_at_end = cuguest_per_context_forget(&values, &none);
  ++destroyed;
}
static void leak_value(void* place, void* user) {
  (void)place;
  CHECK(user == &made);
  ++leaked;
}
static const cuguest_per_context_type kValues = {
    sizeof(kValues), sizeof(struct value), 256, &make_value, &destroy_value, &leak_value, &made};

static void a_value_is_cached_for_a_context(void) {
  context_t a, b;
  cuguest_ref in_a, in_b;
  size_t count = 99;
  void* value;
  begin();
  a = make_context();
  b = make_context();
  in_a = ref_of(a);
  in_b = ref_of(b);
  CHECK(cuguest_per_context_close(&values) == ILLEGAL_STATE);
  {
    CUGUEST_SCOPE(cuguest_per_context_pin, pin);
    CUGUEST_SCOPE(cuguest_per_context_pin, again);
    CHECK(cuguest_per_context_value(&pin) == NULL);
    CHECK(cuguest_per_context_find(&values, &in_a, &pin) == NOT_FOUND);
    CHECK(cuguest_per_context_get(&values, &kValues, &in_a, &pin) == 0);
    value = cuguest_per_context_value(&pin);
    CHECK(value != NULL && ((struct value*)value)->made_in == a);
    CHECK((size_t)value % 256 == 0);
    CHECK(cuguest_per_context_get(&values, &kValues, &in_a, &pin) == ILLEGAL_STATE);
    CHECK(cuguest_per_context_find(&values, &in_a, &again) == 0);
    CHECK(cuguest_per_context_value(&again) == value);
    CHECK(cuguest_per_context_unpin(&again) == 0);
    CHECK(cuguest_per_context_unpin(&again) == ILLEGAL_STATE);
    CHECK(cuguest_per_context_get(&values, &kValues, &in_b, &again) == 0);
    CHECK(((struct value*)cuguest_per_context_value(&again))->made_in == b);
  }
  CHECK(made == 2 && cuguest_per_context_size(&values) == 2);
  CHECK(cuguest_per_context_forget(&values, &in_a) == 0 && destroyed == 1);
  CHECK(code_at_end == NOT_FOUND);
  CHECK(cuguest_per_context_forget(&values, &in_a) == NOT_FOUND);
  CHECK(cuguest_per_context_forget_destroyed(&values, &in_b) == 0 && leaked == 1);
  CHECK(cuguest_per_context_drop_dead(&values, &count) == 0 && count == 0);
  CHECK(driver.push(a) == 0);
  {
    CUGUEST_SCOPE(cuguest_per_context_pin, pin);
    CHECK(cuguest_per_context_get(&values, &kValues, &in_a, &pin) == 0);
  }
  CHECK(cuguest_per_context_close(&values) == 0);
  CHECK(made == 3 && destroyed == 2 && elsewhere == 0);
  CHECK(code_at_end == ILLEGAL_STATE); /* the cache was being closed */
  CHECK(cuguest_per_context_size(&values) == 0);
  CHECK(cuguest_per_context_close(&values) == ILLEGAL_STATE);
  CHECK(STACK_IS(a));
}

static void a_pin_keeps_a_closed_caches_value(void) {
  cuguest_ref in_a;
  cuguest_per_context_pin pin = CUGUEST_INIT(cuguest_per_context_pin), copy;
  begin();
  in_a = ref_of(make_context());
  CHECK(cuguest_per_context_get(&values, &kValues, &in_a, &pin) == 0);
  copy = pin;
  CHECK(cuguest_per_context_value(&copy) == NULL);
  CHECK(cuguest_per_context_unpin(&copy) == ILLEGAL_STATE);
  CHECK(cuguest_per_context_close(&values) == 0);
  CHECK(destroyed == 0 && leaked == 0);
  CHECK(((struct value*)cuguest_per_context_value(&pin))->made_in == in_a.context);
  CHECK(cuguest_per_context_unpin(&pin) == 0);
  /* It may begin anew, with another type. */
  {
    cuguest_per_context_type type = kValues;
    type.alignment = 0;
    CHECK(cuguest_per_context_get(&values, &type, &in_a, &pin) == 0);
    CHECK(cuguest_per_context_unpin(&pin) == 0);
    CHECK(cuguest_per_context_get(&values, &kValues, &in_a, &pin) == INVALID_VALUE);
    CHECK(cuguest_per_context_forget_all(&values, NULL) == 0 && destroyed == 1);
  }
}

static void a_copy_of_a_cache_is_none(void) {
  cuguest_per_context copy;
  cuguest_per_context_pin pin = CUGUEST_INIT(cuguest_per_context_pin);
  cuguest_ref in_a;
  begin();
  in_a = ref_of(make_context());
  copy = values; /* of an empty one: another empty one */
  CHECK(cuguest_per_context_find(&copy, &in_a, &pin) == NOT_FOUND);
  CHECK(cuguest_per_context_get(&values, &kValues, &in_a, &pin) == 0);
  CHECK(cuguest_per_context_unpin(&pin) == 0);
  copy = values;
  CHECK(cuguest_per_context_find(&copy, &in_a, &pin) == ILLEGAL_STATE);
  CHECK(cuguest_per_context_get(&copy, &kValues, &in_a, &pin) == ILLEGAL_STATE);
  CHECK(cuguest_per_context_close(&values) == 0);
  CHECK(cuguest_per_context_get(&copy, &kValues, &in_a, &pin) == ILLEGAL_STATE);
  CHECK(cuguest_per_context_forget_all(&copy, NULL) == ILLEGAL_STATE);
  CHECK(cuguest_per_context_size(&copy) == 0);
  CHECK(cuguest_per_context_close(&copy) == ILLEGAL_STATE);
}

enum { USERS = 16 };
static int users_ready;
static void* use_values(void* argument) {
  const cuguest_ref* const in_a = argument;
  CUGUEST_SCOPE(cuguest_per_context_pin, pin);
  __atomic_fetch_add(&users_ready, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&users_ready, __ATOMIC_SEQ_CST) < USERS) continue;
  CHECK(cuguest_per_context_get(&values, &kValues, in_a, &pin) == 0);
  return cuguest_per_context_value(&pin);
}

static void a_cache_is_first_used_by_many_threads(void) {
  pthread_t threads[USERS];
  void* first = NULL;
  cuguest_ref in_a;
  int i;
  begin();
  in_a = ref_of(make_context());
  for (i = 0; i < USERS; ++i) {
    CHECK(pthread_create(&threads[i], NULL, &use_values, &in_a) == 0);
  }
  for (i = 0; i < USERS; ++i) {
    void* value = NULL;
    CHECK(pthread_join(threads[i], &value) == 0);
    if (i == 0) first = value;
    CHECK(value != NULL && value == first);
  }
  CHECK(made == 1);
  CHECK(cuguest_per_context_forget(&values, &in_a) == 0);
  CHECK(cuguest_per_context_close(&values) == 0 && destroyed == 1);
}

static void guards_make_the_calls_that_the_header_counts(void) {
  context_t a, b;
  cuguest_ref ref;
  begin();
  a = make_context();
  b = make_context();
  CHECK(cuguest_driver_adopt(&look_up, NULL) == 0);
  if (get_id == NULL) _exit(SKIPPED);
  CHECK(driver.push(a) == 0);
  ref = ref_of(b);
  CHECK(calls_of_a_guard(a, NULL, CUGUEST_ELIDE) == 2);
  CHECK(calls_of_a_guard(b, NULL, CUGUEST_ELIDE) == 4);
  CHECK(calls_of_a_guard(b, NULL, CUGUEST_ALWAYS_PUSH) == 4);
  CHECK(calls_of_a_guard(NULL, &ref, CUGUEST_ELIDE) == 5);
  CHECK(calls_of_a_guard(NULL, &ref, CUGUEST_ALWAYS_PUSH) == 5);
}

static void a_driver_is_adopted(void) {
  context_t a;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  a = make_context();
  CHECK(cuguest_driver_adopt(NULL, NULL) == INVALID_VALUE);
  CHECK(cuguest_driver_adopt(&look_up, "cuCtxGetCurrent") == CALL_REQUIRES_NEWER_DRIVER);
  CHECK(cuguest_driver_adopt(&look_up, NULL) == 0);
  CHECK(cuguest_driver_adopt(&look_up, NULL) == ILLEGAL_STATE);
  pushes = 0;
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(pushes == 1);
}

/* A driver of CUDA 10.2, by its versions; and a table of what no guard does without, as a host
 * has that loads no more. */
static void* look_up_old(const char* name, int version, void* user) {
  return version >= 11000 ? NULL : look_up(name, version, user);
}
static const char* least_id;
static void* look_up_least(const char* name, int version, void* user) {
  const int is_of_the_stack = strcmp(name, "cuCtxGetCurrent") == 0 ||
                              strcmp(name, "cuCtxPushCurrent") == 0 ||
                              strcmp(name, "cuCtxPopCurrent") == 0;
  const int tells = strcmp(name, "cuCtxGetApiVersion") == 0 || strcmp(name, "cuCtxGetId") == 0;
  /* One of these two, as `least_id` says. */
  const int is_other = least_id != NULL && strcmp(name, least_id) != 0;
  return is_of_the_stack || (tells && !is_other) ? look_up(name, version, user) : NULL;
}

static void guards_switch_elide_and_nest(context_t a, context_t b) {
  cuguest_guard outer = CUGUEST_INIT(cuguest_guard), inner = CUGUEST_INIT(cuguest_guard);
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_guard_enter(&outer, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0 && STACK_IS(a, b));
  CHECK(cuguest_guard_enter(&inner, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0 && STACK_IS(a, b));
  CHECK(cuguest_guard_leave(&inner) == 0 && STACK_IS(a, b));
  CHECK(cuguest_guard_enter(&inner, a, CUGUEST_ALWAYS_PUSH, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_leave(&inner) == 0 && STACK_IS(a, b));
  CHECK(cuguest_push(a) == 0 && cuguest_pop() == 0 && STACK_IS(a, b));
  CHECK(cuguest_guard_leave(&outer) == 0 && STACK_IS(a));
}

static void a_driver_of_before_11_0_is_adopted(void) {
  context_t a, b;
  cuguest_ref ref = CUGUEST_REF_INIT;
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  begin();
  a = make_context();
  b = make_context();
  CHECK(cuguest_driver_adopt(&look_up_old, "cuCtxPushCurrent") == CALL_REQUIRES_NEWER_DRIVER);
  CHECK(cuguest_driver_adopt(&look_up_old, NULL) == 0);
  guards_switch_elide_and_nest(a, b);
  CHECK(cuguest_ref_borrow(&ref, b) == 0 && ref.id == 0 && cuguest_ref_check(&ref) == 0);
  CHECK(cuguest_primary_retain(&primary, 0) == 0 && primary_is_active());
  CHECK(cuguest_primary_release(&primary) == 0 && !primary_is_active());
}

static void guards_repair_with_little(context_t a, context_t b) {
  context_t popped;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  CHECK(cuguest_guard_enter(&guard, b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(driver.push(a) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0 && STACK_IS(a));
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(driver.pop(&popped) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0 && STACK_IS(a));
  /* What is gone is not pushed. */
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(driver.destroy(a) == 0);
  CHECK(cuguest_guard_leave(&guard) == CONTEXT_IS_DESTROYED && STACK_IS_EMPTY());
}

static void a_table_with_ids_is_adopted(void) {
  context_t a, b;
  cuguest_ref ref = CUGUEST_REF_INIT;
  begin();
  a = make_context();
  b = make_context();
  least_id = "cuCtxGetId";
  CHECK(cuguest_driver_adopt(&look_up_least, NULL) == 0);
  if (get_id == NULL) _exit(SKIPPED);
  guards_switch_elide_and_nest(a, b);
  CHECK(cuguest_ref_borrow(&ref, a) == 0 && ref.id != 0);
  guards_repair_with_little(a, b);
  CHECK(cuguest_ref_check(&ref) == CONTEXT_IS_DESTROYED);
}

static void a_table_of_what_guards_call_is_adopted(void) {
  context_t a, b;
  cuguest_ref ref = CUGUEST_REF_INIT;
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
  cuguest_capture_guard capture = CUGUEST_INIT(cuguest_capture_guard);
  begin();
  a = make_context();
  b = make_context();
  CHECK(cuguest_driver_adopt(&look_up_least, "cuCtxPopCurrent") == CALL_REQUIRES_NEWER_DRIVER);
  least_id = "neither";
  CHECK(cuguest_driver_adopt(&look_up_least, NULL) == CALL_REQUIRES_NEWER_DRIVER);
  least_id = "cuCtxGetApiVersion";
  CHECK(cuguest_driver_adopt(&look_up_least, NULL) == 0);
  guards_switch_elide_and_nest(a, b);
  /* All else needs more, and says so. */
  CHECK(cuguest_ref_borrow(&ref, a) == 0 && ref.id == 0);
  CHECK(cuguest_primary_retain(&primary, 0) == CALL_REQUIRES_NEWER_DRIVER);
  CHECK(cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE) == CALL_REQUIRES_NEWER_DRIVER);
  CHECK(cuguest_acquire_from_pointer(&acquired, 64, CUGUEST_REFUSE) == CALL_REQUIRES_NEWER_DRIVER);
  CHECK(cuguest_shared_context_create(&shared, 0, 0) == CALL_REQUIRES_NEWER_DRIVER);
  CHECK(cuguest_shared_context_attach(&shared, a) == CALL_REQUIRES_NEWER_DRIVER);
  CHECK(cuguest_capture_guard_enter(&capture, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE) != 0);
  CHECK(STACK_IS(a));
  guards_repair_with_little(a, b);
}

static void adopting_after_the_first_use_is_refused(void) {
  context_t a;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  begin();
  a = make_context();
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_driver_adopt(&look_up, NULL) == ILLEGAL_STATE);
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(pushes == 0 && STACK_IS_EMPTY());
}

static void remove_itself(const cuguest_incident* incident, void* user) {
  (void)incident;
  CHECK(cuguest_incident_listener_remove(user) == 0);
  memset(user, 0, sizeof(cuguest_incident_listener));
}

static void leave_a_push(context_t a, context_t b) {
  context_t popped;
  CUGUEST_SCOPE(cuguest_guard, guard);
  CHECK(cuguest_guard_enter(&guard, a, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(driver.push(b) == 0);
  (void)popped;
}

static void listeners_are_called_until_they_are_removed(void) {
  struct told told[2] = {{0, {0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0}},
                         {0, {0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0}}};
  context_t a, b;
  cuguest_incident_listener first = CUGUEST_INIT(cuguest_incident_listener);
  cuguest_incident_listener second = CUGUEST_INIT(cuguest_incident_listener);
  cuguest_incident_listener third = CUGUEST_INIT(cuguest_incident_listener);
  begin();
  a = make_context();
  b = make_context();
  CHECK(cuguest_incident_listener_remove(&first) == ILLEGAL_STATE);
  CHECK(cuguest_incident_listener_register(&first, &note, &told[0]) == 0);
  CHECK(cuguest_incident_listener_register(&first, &note, &told[1]) == ILLEGAL_STATE);
  CHECK(cuguest_incident_listener_register(&third, &remove_itself, &third) == 0);
  CHECK(cuguest_incident_listener_register(&second, &note, &told[1]) == 0);
  leave_a_push(a, b);
  CHECK(told[0].count == 1 && told[1].count == 1);
  CHECK(cuguest_incident_listener_remove(&first) == 0);
  CHECK(cuguest_incident_listener_remove(&first) == ILLEGAL_STATE);
  leave_a_push(a, b);
  CHECK(told[0].count == 1 && told[1].count == 2);
  CHECK(cuguest_incident_listener_remove(&second) == 0);
  leave_a_push(a, b);
  CHECK(told[0].count == 1 && told[1].count == 2);
  CHECK(cuguest_incident_count(-1) == 3);
}

/* A listener that removes itself in its callback, while its owner removes it. */
struct one_shot {
  cuguest_incident_listener listener;
  context_t context;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int called, code_of_callback, is_done, removes_first;
};
static void wait_for(struct one_shot* it, const int* what) {
  CHECK(pthread_mutex_lock(&it->mutex) == 0);
  while (!*what) CHECK(pthread_cond_wait(&it->changed, &it->mutex) == 0);
  CHECK(pthread_mutex_unlock(&it->mutex) == 0);
}
static void happened(struct one_shot* it, int* what) {
  CHECK(pthread_mutex_lock(&it->mutex) == 0);
  *what = 1;
  CHECK(pthread_cond_broadcast(&it->changed) == 0);
  CHECK(pthread_mutex_unlock(&it->mutex) == 0);
}
static void pause_a_little(void) {
  const struct timespec moment = {0, 20 * 1000 * 1000};
  CHECK(nanosleep(&moment, NULL) == 0);
}
static void remove_in_callback(const cuguest_incident* incident, void* user) {
  struct one_shot* const it = user;
  (void)incident;
  if (it->removes_first) it->code_of_callback = cuguest_incident_listener_remove(&it->listener);
  happened(it, &it->called);
  pause_a_little(); /* the owner is removing it now */
  if (!it->removes_first) it->code_of_callback = cuguest_incident_listener_remove(&it->listener);
  it->is_done = 1;
}
static void* cause_an_incident(void* argument) {
  struct one_shot* const it = argument;
  leave_a_push(it->context, it->context);
  return NULL;
}

static void a_listener_is_removed_twice_at_once(void) {
  int removes_first;
  context_t a;
  begin();
  a = make_context();
  for (removes_first = 0; removes_first < 2; ++removes_first) {
    struct one_shot it;
    pthread_t guest;
    int code;
    memset(&it, 0, sizeof(it));
    it.listener.size = sizeof(it.listener);
    it.context = a;
    it.removes_first = removes_first;
    CHECK(pthread_mutex_init(&it.mutex, NULL) == 0 && pthread_cond_init(&it.changed, NULL) == 0);
    CHECK(cuguest_incident_listener_register(&it.listener, &remove_in_callback, &it) == 0);
    CHECK(pthread_create(&guest, NULL, &cause_an_incident, &it) == 0);
    wait_for(&it, &it.called);
    code = cuguest_incident_listener_remove(&it.listener);
    CHECK(it.is_done); /* also where the callback has removed it */
    CHECK(!removes_first || code == ILLEGAL_STATE);
    CHECK(code + it.code_of_callback == ILLEGAL_STATE); /* one of them has removed it */
    CHECK(pthread_join(guest, NULL) == 0);
    CHECK(cuguest_incident_listener_register(&it.listener, &remove_in_callback, &it) == 0);
    CHECK(cuguest_incident_listener_remove(&it.listener) == 0);
  }
}

/* A listener that leaves its callback by longjmp(). */
static int jumps_now;
static void jump(const cuguest_incident* incident, void* user) {
  (void)incident;
  if (jumps_now) longjmp(user, 1);
}
/* Whether `call` was left so. */
static int is_left(int (*call)(void*), void* argument, jmp_buf* where) {
  if (setjmp(*where) != 0) return 1;
  CHECK(call(argument) == 0);
  return 0;
}
static void overwrite_the_stack(void) {
  volatile char bytes[8192];
  size_t i;
  for (i = 0; i < sizeof(bytes); ++i) bytes[i] = 0x5a;
  CHECK(bytes[0] == 0x5a);
}
struct jumper {
  context_t a, b, c;
  jmp_buf where;
  cuguest_guard guard;
  int has_jumped;
};
static int leave_it(void* guard) { return cuguest_guard_leave(guard); }
static int move_it(void* argument) {
  struct jumper* const it = argument;
  return cuguest_guard_move_to(&it->guard, it->b, CUGUEST_HERE);
}
static int reassert_it(void* argument) {
  struct jumper* const it = argument;
  return cuguest_guard_reassert(&it->guard);
}
static int pop_it(void* unused) {
  (void)unused;
  return cuguest_pop();
}
/* Each time a callee leaves a push of C. */
static void jump_out_of_everything(struct jumper* it) {
  int round;
  CHECK(driver.push(it->a) == 0);
  for (round = 0; round < 3; ++round) {
    CHECK(cuguest_guard_enter(&it->guard, it->b, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    CHECK(driver.push(it->c) == 0);
    CHECK(is_left(&leave_it, &it->guard, &it->where));
    overwrite_the_stack();
    CHECK(STACK_IS(it->a));
    CHECK(cuguest_guard_leave(&it->guard) == 0);
    CHECK(cuguest_push(it->b) == 0 && driver.push(it->c) == 0);
    CHECK(is_left(&pop_it, NULL, &it->where));
    CHECK(STACK_IS(it->a));
    CHECK(cuguest_guard_enter(&it->guard, it->c, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    CHECK(driver.push(it->a) == 0);
    CHECK(is_left(round == 0 ? &reassert_it : &move_it, it, &it->where));
    overwrite_the_stack();
    CHECK(STACK_IS(it->a));
    CHECK(cuguest_guard_reassert(&it->guard) == ILLEGAL_STATE);
    CHECK(cuguest_guard_leave(&it->guard) == 0);
    CHECK(cuguest_guard_leave(&it->guard) == ILLEGAL_STATE);
    CHECK(STACK_IS(it->a));
  }
  CHECK(driver.pop(&it->a) == 0);
}
static void* jump_and_end(void* argument) {
  struct jumper* const it = argument;
  jump_out_of_everything(it);
  return NULL;
}
/* Neither inlined nor without a byte that nobody reads, or the frames below are no deeper than
 * those of the caller. */
__attribute__((noinline)) static void jump_from_deep(struct jumper* it) {
  char bytes[8192];
  __asm__ volatile("" : : "r"(bytes) : "memory");
  jump_out_of_everything(it);
  __asm__ volatile("" : : "r"(bytes) : "memory");
}
static int enter_it(void* argument) {
  struct jumper* const it = argument;
  return cuguest_guard_enter(&it->guard, it->b, CUGUEST_ELIDE, CUGUEST_HERE);
}
static void* leave_not_ready(void* guard) {
  CHECK(cuguest_guard_leave(guard) == NOT_READY);
  return NULL;
}
/* To enter closes what another thread has ended, and reports it. */
static void jump_out_of_entering(struct jumper* it) {
  cuguest_guard above = CUGUEST_INIT(cuguest_guard);
  CHECK(driver.push(it->a) == 0);
  CHECK(cuguest_guard_enter(&above, it->c, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(driver.push(it->b) == 0);
  jumps_now = 0;
  on_another_thread(&leave_not_ready, &above);
  jumps_now = 1;
  CHECK(is_left(&enter_it, it, &it->where));
  overwrite_the_stack();
  CHECK(STACK_IS(it->a));
  CHECK(cuguest_guard_leave(&it->guard) == 0);
  CHECK(cuguest_guard_leave(&it->guard) == ILLEGAL_STATE);
  CHECK(STACK_IS(it->a));
  CHECK(driver.pop(&it->a) == 0);
}
static void* jump_and_stay(void* argument) {
  struct jumper* const it = argument;
  jump_out_of_everything(it);
  __atomic_store_n(&it->has_jumped, 1, __ATOMIC_RELEASE);
  pause_a_little(); /* while it is removed */
  return NULL;
}
static void* remove_it(void* listener) {
  CHECK(cuguest_incident_listener_remove(listener) == 0);
  return NULL;
}

static void a_listener_leaves_by_longjmp(void) {
  struct jumper it;
  struct told told = {0, {0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0}};
  cuguest_incident_listener first = CUGUEST_INIT(cuguest_incident_listener);
  cuguest_incident_listener jumps = CUGUEST_INIT(cuguest_incident_listener);
  pthread_t thread;
  int elsewhere;
  memset(&it, 0, sizeof(it));
  begin();
  it.a = make_context();
  it.b = make_context();
  it.c = make_context();
  CHECK(cuguest_incident_listener_register(&first, &note, &told) == 0);
  for (elsewhere = 0; elsewhere < 2; ++elsewhere) {
    told.count = 0;
    jumps_now = 1;
    CHECK(cuguest_incident_listener_register(&jumps, &jump, &it.where) == 0);
    if (elsewhere) {
      on_another_thread(&jump_and_end, &it);
    } else {
      jump_out_of_everything(&it);
    }
    overwrite_the_stack();
    CHECK(told.count == 9);
    CHECK(cuguest_incident_listener_remove(&jumps) == 0);
    leave_a_push(it.a, it.b);
    CHECK(told.count == 10);
  }
  /* Removed elsewhere, once another incident has come up. */
  CHECK(cuguest_incident_listener_register(&jumps, &jump, &it.where) == 0);
  jump_from_deep(&it);
  jumps_now = 0;
  leave_a_push(it.a, it.b);
  CHECK(told.count == 20);
  on_another_thread(&remove_it, &jumps);
  CHECK(cuguest_incident_listener_register(&jumps, &jump, &it.where) == 0);
  jump_out_of_entering(&it);
  CHECK(cuguest_incident_listener_remove(&jumps) == 0);
  /* Removed while its thread still runs, and does nothing more. */
  told.count = 0;
  jumps_now = 1;
  CHECK(cuguest_incident_listener_register(&jumps, &jump, &it.where) == 0);
  CHECK(pthread_create(&thread, NULL, &jump_and_stay, &it) == 0);
  while (!__atomic_load_n(&it.has_jumped, __ATOMIC_ACQUIRE)) continue;
  CHECK(cuguest_incident_listener_remove(&jumps) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(cuguest_incident_listener_remove(&first) == 0);
  CHECK(STACK_IS_EMPTY());
}

/* A listener that leaves what reports. */
static int leave_home(void* home) { return cuguest_thread_home_leave(home); }
static int clean_up_home(void* home) {
  cuguest_thread_home_cleanup(home);
  return 0;
}
struct leaver {
  int (*leave)(void*);
  void* scope;
  int count;
};
static void leave_what_reports(const cuguest_incident* incident, void* user) {
  struct leaver* const leaver = user;
  (void)incident;
  ++leaver->count;
  CHECK(leaver->leave(leaver->scope) == 0);
}
/* How many references to the primary context of device 0 there were: none is left. */
static int released_references(void) {
  unsigned flags = 0;
  int active = 1, count = -1;
  while (active) {
    CHECK(driver.state(0, &flags, &active) == 0);
    ++count;
    if (active) CHECK(driver.release(0) == 0);
  }
  return count;
}
static void a_listener_leaves_what_reports(void) {
  int (*const leaves[])(void*) = {&leave_home, &clean_up_home};
  size_t i;
  context_t primary;
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  cuguest_thread_home home = CUGUEST_INIT(cuguest_thread_home);
  struct leaver leaver = {&leave_it, NULL, 0};
  CUGUEST_SCOPE(cuguest_incident_listener, listener);
  begin();
  CHECK(cuguest_incident_listener_register(&listener, &leave_what_reports, &leaver) == 0);
  CHECK(driver.retain(&primary, 0) == 0 && driver.retain(&primary, 0) == 0);
  leaver.scope = &guard;
  CHECK(cuguest_guard_enter_device(&guard, 0, CUGUEST_REFUSE, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
  CHECK(cuguest_guard_relax(&guard, CUGUEST_HERE) == 0);
  CHECK(driver.push(primary) == 0);
  CHECK(cuguest_guard_leave(&guard) == 0);
  CHECK(leaver.count == 1 && STACK_IS_EMPTY());
  CHECK(cuguest_guard_leave(&guard) == ILLEGAL_STATE);
  CHECK(released_references() == 2);
  leaver.scope = &home;
  for (i = 0; i < 4; ++i) {
    leaver.leave = leaves[i % 2];
    CHECK(driver.retain(&primary, 0) == 0 && driver.retain(&primary, 0) == 0);
    CHECK(cuguest_thread_home_enter_device(&home, 0, CUGUEST_HOME_HOLDS, CUGUEST_HERE) == 0);
    CHECK(driver.push(primary) == 0);
    CHECK(leaves[i / 2](&home) == 0);
    CHECK(leaver.count == 2 + (int)i && STACK_IS_EMPTY());
    CHECK(cuguest_thread_home_leave(&home) == ILLEGAL_STATE);
    CHECK(released_references() == 2);
  }
  /* What is over by then is not entered again. */
  CHECK(driver.retain(&primary, 0) == 0);
  CHECK(cuguest_thread_home_enter_device(&home, 0, CUGUEST_HOME_REENTERS, CUGUEST_HERE) == 0);
  CHECK(driver.push(primary) == 0);
  CHECK(driver.reset(0) == 0 && driver.retain(&primary, 0) == 0);
  CHECK(cuguest_thread_home_check(&home) == ILLEGAL_STATE);
  CHECK(leaver.count == 6 && STACK_IS_EMPTY());
  CHECK(cuguest_thread_home_leave(&home) == ILLEGAL_STATE);
  CHECK(released_references() == 2);
}

static void a_code_is_written_as_one_text(void) {
  char text[400];
  char filled[8] = "1234567";
  size_t whole = cuguest_error_write(INVALID_CONTEXT, "enter a context", text, sizeof(text));
  CHECK(whole == strlen(text) && whole < sizeof(text));
  CHECK(strstr(text, "enter a context, no context was given: CUDA_ERROR_INVALID_CONTEXT (201): ") ==
        text);
  CHECK(strstr(text, cuguest_error_text(INVALID_CONTEXT)) != NULL);
  CHECK(cuguest_error_write(INVALID_CONTEXT, "enter a context", NULL, 0) == whole);
  CHECK(cuguest_error_write(INVALID_CONTEXT, "enter a context", filled, 6) == whole);
  CHECK(memcmp(filled,
               "enter\0"
               "7",
               8) == 0);
  whole = cuguest_error_write(2, NULL, text, sizeof(text));
  CHECK(whole == strlen(text) && strstr(text, "CUDA_ERROR_OUT_OF_MEMORY (2): ") != NULL);
  CHECK(cuguest_error_write(-5, "", text, sizeof(text)) == strlen(text));
  CHECK(strstr(text, "CUDA_ERROR_UNRECOGNIZED (-5): ") == text);
  CHECK(cuguest_error_write(0, "enter a context", text, sizeof(text)) == 0 && *text == '\0');
}

static void names_and_texts_of_anything(void) {
  int kind;
  /* Compiled programs have these. */
  CHECK(CUGUEST_ELIDE == 0 && CUGUEST_ALWAYS_PUSH == 1);
  CHECK(CUGUEST_CAPTURE_GLOBAL == 0 && CUGUEST_CAPTURE_THREAD_LOCAL == 1);
  CHECK(CUGUEST_CAPTURE_RELAXED == 2);
  CHECK(CUGUEST_REFUSE == 0 && CUGUEST_CREATE == 1 && CUGUEST_NO_DEVICE == -1);
  CHECK(CUGUEST_FROM_STREAM == 0 && CUGUEST_FROM_POINTER == 1 && CUGUEST_FROM_CURRENT == 2);
  CHECK(CUGUEST_FROM_PRIMARY == 3 && CUGUEST_FROM_CREATED == 4);
  CHECK(CUGUEST_REPLACED == 0 && CUGUEST_LEAKED_PUSH == 1 && CUGUEST_EXTRA_POP == 2);
  CHECK(CUGUEST_DESTROYED == 3 && CUGUEST_FAILED == 4 && CUGUEST_CAPTURE_MODE == 5);
  CHECK(CUGUEST_LAST_ERROR == 6 && CUGUEST_ELSEWHERE == 7 && CUGUEST_UNASKED == 8);
  CHECK(CUGUEST_OUT_OF_TURN == 9);
  CHECK(CUGUEST_REPAIRED == 0 && CUGUEST_INFERRED == 1 && CUGUEST_UNREPAIRED == 2);
  CHECK(strcmp(cuguest_error_name(0), "CUDA_SUCCESS") == 0);
  CHECK(strcmp(cuguest_error_name(2), "CUDA_ERROR_OUT_OF_MEMORY") == 0);
  CHECK(strcmp(cuguest_error_name(-5), "CUDA_ERROR_UNRECOGNIZED") == 0);
  CHECK(strlen(cuguest_error_text(2)) > 0 && strlen(cuguest_error_text(1 << 30)) > 0);
  CHECK(strstr(cuguest_error_advice(INVALID_CONTEXT), "no context was given") != NULL);
  CHECK(strcmp(cuguest_error_advice(0), "") == 0);
  CHECK(cuguest_incident_count(-2) == 0 && cuguest_incident_count(9) == 0);
  for (kind = -300; kind < 300; ++kind) {
    CHECK(strlen(cuguest_incident_name(kind)) > 0 && strlen(cuguest_repair_name(kind)) > 0);
  }
  CHECK(strcmp(cuguest_incident_name(256), "did something unknown") == 0);
}

#define CASE(name) \
  { #name, &name }
static const struct test_case kCases[] = {
    CASE(a_guard_enters_and_leaves),
    CASE(a_code_is_written_as_one_text),
    CASE(a_guard_by_reference_refuses_what_is_over),
    CASE(a_cleared_reference_names_none),
    CASE(a_scope_ends_with_its_block),
    CASE(a_guard_repairs_what_a_callee_did),
    CASE(an_incident_names_the_helpers_caller),
    CASE(reasserting_comes_back),
    CASE(a_guard_moves),
    CASE(null_storage_is_refused),
    CASE(smaller_storage_is_refused),
    CASE(a_guard_left_twice),
    CASE(a_guard_entered_twice),
    CASE(a_copy_of_a_guard_is_none),
    CASE(a_guard_that_was_never_left),
    CASE(a_guard_left_out_of_turn),
    CASE(a_scope_outlives_its_context),
    CASE(a_thread_that_ends_inside),
    CASE(a_guard_left_on_another_thread),
    CASE(a_push_is_popped),
    CASE(a_pop_by_hand_between),
    CASE(a_push_by_hand_between),
    CASE(a_pop_too_many_inside_a_push),
    CASE(a_pop_out_of_turn),
    CASE(a_pop_inside_a_host_scope),
    CASE(pushes_of_two_threads),
    CASE(guards_nested_64_deep),
#ifndef _WIN32
    CASE(a_forked_child_is_refused),
#endif
    CASE(nothing_is_current_for_a_scope),
    CASE(the_host_has_its_stack_in_a_callback),
    CASE(a_capture_guard_sets_the_mode),
    CASE(a_host_scope_gives_the_mode_back),
    CASE(scopes_name_their_context),
    CASE(a_push_by_reference),
    CASE(a_thread_has_a_home),
    CASE(refs_name_incarnations),
    CASE(three_questions),
    CASE(a_context_is_acquired_on_a_device),
    CASE(a_context_is_acquired_from_a_pointer_or_a_stream),
    CASE(a_floating_context_is_shared),
    CASE(zeros_are_empty_storage),
    CASE(storage_is_made_by_a_function),
    CASE(a_primary_context_has_a_name),
    CASE(what_holds_a_reference_moves),
    CASE(a_value_is_cached_for_a_context),
    CASE(a_pin_keeps_a_closed_caches_value),
    CASE(a_copy_of_a_cache_is_none),
    CASE(a_cache_is_first_used_by_many_threads),
    CASE(a_driver_is_adopted),
    CASE(a_driver_of_before_11_0_is_adopted),
    CASE(a_table_of_what_guards_call_is_adopted),
    CASE(a_table_with_ids_is_adopted),
    CASE(guards_make_the_calls_that_the_header_counts),
    CASE(adopting_after_the_first_use_is_refused),
    CASE(listeners_are_called_until_they_are_removed),
    CASE(a_listener_is_removed_twice_at_once),
    CASE(a_listener_leaves_by_longjmp),
    CASE(a_listener_leaves_what_reports),
    CASE(names_and_texts_of_anything),
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, kCases, (int)(sizeof(kCases) / sizeof(kCases[0])));
}
