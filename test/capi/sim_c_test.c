// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cudasim/sim_c.h from C99: a test of a library in C on the simulated driver.

#define _POSIX_C_SOURCE 200809L

#include "cudasim/sim_c.h"

#include <dlfcn.h>

#include "cuguest/c.h"
#include "test/capi/c_test.h"

enum { OUT_OF_MEMORY = 2, UNKNOWN = 999 };

static int (*init)(unsigned);
static int (*pop)(struct CUctx_st**);
static int (*count_devices)(int*);

static void find(void* library, const char* name, void* function) {
  void* const address = dlsym(library, name);
  CHECK(address != NULL);
  memcpy(function, &address, sizeof(address));
}

static void begin(void) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL || !cudasim_is_active()) _exit(SKIPPED);
  find(library, "cuInit", &init);
  find(library, "cuCtxPopCurrent_v2", &pop);
  find(library, "cuDeviceGetCount", &count_devices);
  cudasim_set_device_count(3);
  CHECK(init(0) == 0);
}

static void calls_fail_and_are_counted(void) {
  int devices = 0;
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  begin();
  CHECK(count_devices(&devices) == 0 && devices == 3);
  cudasim_fail_call("cuDevicePrimaryCtxRetain", 2, OUT_OF_MEMORY);
  CHECK(cuguest_primary_retain(&primary, 0) == 0);
  CHECK(cuguest_primary_release(&primary) == 0);
  CHECK(cuguest_primary_retain(&primary, 0) == OUT_OF_MEMORY);
  CHECK(cudasim_calls("cuDevicePrimaryCtxRetain") == 2 && cudasim_total_calls() >= 3);
  cudasim_fail_call("cuDevicePrimaryCtxRetain", 1, UNKNOWN);
  cudasim_reset();
  CHECK(cudasim_total_calls() == 0);
  CHECK(cuguest_primary_retain(&primary, 0) == 0);
  CHECK(cudasim_calls("cuDevicePrimaryCtxRetain") == 1);
  CHECK(cuguest_primary_release(&primary) == 0);
}

static void a_probe_sees_what_is_left_behind(void) {
  char text[200], little[6];
  struct CUctx_st* popped;
  cuguest_ref ref = CUGUEST_REF_INIT;
  cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
  cudasim_probe* before;
  begin();
  CHECK(cuguest_shared_context_create(&shared, 0, 0) == 0);
  CHECK(cuguest_shared_context_ref(&shared, &ref) == 0);
  before = cudasim_probe_take();
  CHECK(before != NULL);
  {
    CUGUEST_SCOPE(cuguest_guard, guard);
    CHECK(cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) == 0);
    CHECK(cudasim_probe_differs(before, text, sizeof(text)) && strlen(text) > 0);
    CHECK(cudasim_probe_differs(before, little, sizeof(little)) && strlen(little) == 5);
    CHECK(cudasim_probe_differs(before, NULL, 0));
  }
  CHECK(!cudasim_probe_differs(before, text, sizeof(text)) && strlen(text) == 0);
  CHECK(cuguest_push(ref.context) == 0);
  CHECK(cudasim_probe_differs(before, text, sizeof(text)));
  CHECK(pop(&popped) == 0 && popped == ref.context);
  CHECK(!cudasim_probe_differs(before, text, sizeof(text)));
  CHECK(cudasim_probe_differs(NULL, text, sizeof(text)));
  cudasim_probe_free(before);
  cudasim_probe_free(NULL);
}

#define CASE(name) \
  { #name, &name }
static const struct test_case kCases[] = {
    CASE(calls_fail_and_are_counted),
    CASE(a_probe_sees_what_is_left_behind),
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, kCases, (int)(sizeof(kCases) / sizeof(kCases[0])));
}
