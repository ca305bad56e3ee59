// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef ACME_SCALE_H_
#define ACME_SCALE_H_

#include <cuda.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Multiplies `count` values in device memory by `factor`, in the order of `stream` and in its
// context, whichever is current. Leaves the caller's stack of contexts as it is.
// Returns a CUresult: 0, or why nothing was submitted, with a sentence in `text`, of `size` bytes.
__attribute__((visibility("default"))) int acme_scale(CUstream stream, float* values, size_t count,
                                                      float factor, char* text, size_t size);

// Replaces each of `count` values by the mean of it and its neighbours, with memory of its own
// meanwhile. All else as acme_scale(); also while `stream` captures: then at each launch of the
// graph.
__attribute__((visibility("default"))) int acme_smooth(CUstream stream, float* values, size_t count,
                                                       char* text, size_t size);

// Frees what the calls of both have loaded into the driver; call it before dlclose(). The work that
// they submitted has ended, and no other call runs meanwhile. A later call loads it again. Leaves
// the caller's stack of contexts as it is, and does nothing in a forked child. Returns a CUresult:
// 0, or why the code is still loaded, as in a stream callback.
__attribute__((visibility("default"))) int acme_scale_close(void);

#ifdef __cplusplus
}
#endif

#endif  // ACME_SCALE_H_
