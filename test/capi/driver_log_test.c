/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The driver's reasons, in C99: what includes no header of CUDA asks for them. */

#define _POSIX_C_SOURCE 200809L

#include <dlfcn.h>
#include <string.h>

#include "cudasim/sim_c.h"
#include "cuguest/objects/c_driver_log.h"
#include "test/capi/c_test.h"

static void the_reason_of_a_call_of_ours(void) {
  CUGUEST_SCOPE(cuguest_primary, primary);
  char reason[501];
  if (dlopen("libcuda.so.1", RTLD_NOW) == NULL || !cudasim_is_active()) _exit(SKIPPED);
  CHECK(cuguest_driver_log_open() == 0);
  cudasim_fail_call("cuDevicePrimaryCtxRetain", 1, 201);
  CHECK(cuguest_primary_retain(&primary, 0) == 201);
  CHECK(cuguest_driver_log_reason(201, reason, sizeof(reason)) == strlen(reason));
  CHECK(strncmp(reason, "cuDevicePrimaryCtxRetain: ", 26) == 0);
  CHECK(strlen(reason) > 26);
  CHECK(cuguest_primary_retain(&primary, 0) == 0); /* ends what was said */
  CHECK(cuguest_driver_log_reason(201, reason, sizeof(reason)) == 0 && reason[0] == '\0');
  CHECK(cuguest_driver_log_close() == 0);
}

static void without_one_there_is_no_reason(void) {
  char reason[8] = "before";
  CHECK(cuguest_driver_log_close() == 401);
  CHECK(cuguest_driver_log_reason(201, reason, sizeof(reason)) == 0 && reason[0] == '\0');
}

#define CASE(name) \
  { #name, &name }
static const struct test_case kCases[] = {
    CASE(the_reason_of_a_call_of_ours),
    CASE(without_one_there_is_no_reason),
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, kCases, (int)(sizeof(kCases) / sizeof(kCases[0])));
}
