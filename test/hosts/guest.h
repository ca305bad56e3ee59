// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A small library as others load it: a C interface, no CUDA library linked, a copy of cuguest
// inside. It works on its caller's stream and memory, and in contexts of its own.
//
// A stream is the caller's: its context is where the work goes; for stream 0, which has none,
// the memory's context is. Memory is of device or managed memory, or of a pool.
//
// Every int is 0, or an absl::StatusCode whose text guest_last_error_text() has.
//
// Stack:   as it was, with every function; so are counts, captures and last errors.
// Threads: any, at the same time; guest_close() alone.

#ifndef CUGUEST_TEST_HOSTS_GUEST_H_
#define CUGUEST_TEST_HOSTS_GUEST_H_

#include <cuda.h>
#include <stddef.h>

#define GUEST_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// Everything that must be there before a capture of `stream`.
GUEST_EXPORT int guest_prepare(CUstream stream, const float* values);

// These are done in the stream's order, and may be captured.
GUEST_EXPORT int guest_fill(CUstream stream, float* values, size_t count, float value);
GUEST_EXPORT int guest_scale_add(CUstream stream, float a, const float* x, float* y,
                                 size_t count);  // y = a x + y

// Through memory of its own; waits for the stream. Refused while that captures.
GUEST_EXPORT int guest_sum(CUstream stream, const float* values, size_t count, double* sum);

// The sum of `count` elements of 2 x + 1 with x = 3, worked out in a context that the library
// makes for itself at the first call; or in the device's primary one, which it holds for the
// time of the call.
GUEST_EXPORT int guest_work_in_own_context(int device, size_t count, double* sum);
GUEST_EXPORT int guest_work_in_primary_context(int device, size_t count, double* sum);

// Of the calling thread's last function that did not return 0; "" before.
GUEST_EXPORT const char* guest_last_error_text(void);

// Contexts and buffers that the library owns now; its code is not counted.
GUEST_EXPORT long guest_live(void);

// Gives everything back. The library can be used again.
GUEST_EXPORT int guest_close(void);

#ifdef __cplusplus
}
#endif

#endif  // CUGUEST_TEST_HOSTS_GUEST_H_
