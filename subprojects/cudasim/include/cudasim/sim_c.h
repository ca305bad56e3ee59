// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -----------------------------------------------------------------------------
// cudasim/sim_c.h
// -----------------------------------------------------------------------------
/// \file
/// What a test in C needs of sim.h and stack_probe.h, which say more: calls that fail, counts of
/// calls, and a probe of what a library must leave alone. It includes nothing of CUDA. The archive
/// is C++, so the program is linked with the C++ library.
///
///   cudasim_probe* before = cudasim_probe_take();
///   char text[500];
///   cudasim_fail_call("cuMemAlloc", 2, 2);  /* CUDA_ERROR_OUT_OF_MEMORY */
///   assert(encode(frame) != 0);
///   assert(!cudasim_probe_differs(before, text, sizeof text));
///   cudasim_probe_free(before);
///   cudasim_reset();

#ifndef CUDASIM_SIM_C_H_
#define CUDASIM_SIM_C_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Whether the process's driver is the simulated one. With another, or without one, the functions
/// below change nothing and count nothing; the probe works all the same.
int cudasim_is_active(void);

/// The `nth` call (1 is the next) of the driver's function `entry`, by any thread, returns the
/// CUresult `code` and does nothing else.
void cudasim_fail_call(const char* entry, unsigned nth, int code);

/// Takes back what is to fail, and begins to count calls at 0.
void cudasim_reset(void);

/// How many calls of `entry`, or of all, there were since the last cudasim_reset().
unsigned long long cudasim_calls(const char* entry);
unsigned long long cudasim_total_calls(void);

/// How many devices there are, and the CUDA version that the driver claims, 12080 for 12.8. Before
/// the first call of the driver.
void cudasim_set_device_count(int count);
void cudasim_set_driver_version(int version);

/// cudasim_probe
///
/// The calling thread's stack of contexts, the flags of the current one, and the primary context of
/// every device, as StackProbe has them. Null without memory; free it by cudasim_probe_free(),
/// which takes null, too.
typedef struct cudasim_probe cudasim_probe;
cudasim_probe* cudasim_probe_take(void);
void cudasim_probe_free(cudasim_probe* probe);

/// Whether that is otherwise now. What is otherwise is written to `text`, a line each, cut to fit
/// `size` bytes with the terminating zero; nothing if `size` is 0. True for null.
int cudasim_probe_differs(const cudasim_probe* before, char* text, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // CUDASIM_SIM_C_H_
