// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A second library like that of guest.h, which calls cuBLAS: the process's, or else the
// machine's; loaded at run time.

#ifndef CUGUEST_TEST_HOSTS_GEMM_GUEST_H_
#define CUGUEST_TEST_HOSTS_GEMM_GUEST_H_

#include <cuda.h>
#include <stddef.h>

#include "test/hosts/guest.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes a handle for each of so many threads. kUnavailable if there is no cuBLAS.
GUEST_EXPORT int gemm_prepare(CUstream stream, const float* values, size_t threads);

// c = a b, of n rows and columns, in the stream's order; may be captured. The workspace must
// stay until then, or as long as the graph.
GUEST_EXPORT int gemm_multiply(CUstream stream, const float* a, const float* b, float* c, size_t n,
                               void* workspace, size_t workspace_bytes);

GUEST_EXPORT const char* gemm_last_error_text(void);

// Destroys the handles.
GUEST_EXPORT int gemm_close(void);

#ifdef __cplusplus
}
#endif

#endif  // CUGUEST_TEST_HOSTS_GEMM_GUEST_H_
