// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of recipes in C begin with. Each is compiled twice: with the recipe (RECIPE) as it
// is before it uses cuguest, and after (IS_AFTER). What is undefined before is what the simulation
// makes of it.

#ifndef CUGUEST_TEST_CAPI_RECIPE_TEST_H_
#define CUGUEST_TEST_CAPI_RECIPE_TEST_H_

#define _POSIX_C_SOURCE 200809L

#include RECIPE

#include <signal.h>
#include <stddef.h>

#include "cudasim/sim_c.h"
#include "test/capi/c_test.h"

#ifdef IS_AFTER
#define EXPECTED(before, after) (after)
#else
#define EXPECTED(before, after) (before)
#endif

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);

static void begin(void) {
  if (!cudasim_is_active()) _exit(SKIPPED);
  CHECK(cuInit(0) == CUDA_SUCCESS);
}

/* A context on the first device, current on no thread. */
static CUcontext make_context(void) {
  CUcontext context = NULL, popped = NULL;
  CHECK(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
  CHECK(cuCtxPopCurrent(&popped) == CUDA_SUCCESS && popped == context);
  return context;
}

static CUcontext current(void) {
  CUcontext context = NULL;
  CHECK(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  return context;
}

/* The same stack, and the same primary contexts. */
static int is_as_it_was(const cudasim_probe* before) {
  return !cudasim_probe_differs(before, NULL, 0);
}

/* The signal that ends a process of its own in which `run` runs; 0 if it returns. Nothing of CUDA
 * may have been used before. */
static int signal_of(void (*run)(void)) {
  int status = 0;
  pid_t child;
  fflush(stdout);
  child = fork();
  if (child == 0) {
    run();
    fflush(stdout);
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  if (WEXITSTATUS(status) != 0) _exit(WEXITSTATUS(status));
  return 0;
}

/* A stream of the current context that captures, as a host does. */
static CUstream begin_capture(void) {
  CUstream stream = NULL;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  return stream;
}
static CUresult end_capture(CUstream stream) {
  CUgraph graph = NULL;
  return cuStreamEndCapture(stream, &graph);
}

#endif  // CUGUEST_TEST_CAPI_RECIPE_TEST_H_
