// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface between the host and its libraries: plain C, without cuguest. A library counts
// votes on the GPU, in a context and on a stream of the host's.

#ifndef CUGUEST_EXAMPLES_CODE_TWO_LIBRARIES_ONE_MODULE_LIBRARY_H_
#define CUGUEST_EXAMPLES_CODE_TWO_LIBRARIES_ONE_MODULE_LIBRARY_H_

#include <cuda.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The functions return null on success, and otherwise an error message that is valid until the
// calling thread's next call or the library's unloading.
struct Library {
  // The first call.
  const char* (*load)(void);

  // counts[i] += value, submitted to `stream`.
  const char* (*count)(CUdeviceptr counts, size_t size, unsigned value, CUstream stream);

  // Writes and reads a variable of the code, in the context of `stream`; waits for it.
  const char* (*set_mark)(unsigned mark, CUstream stream);
  const char* (*get_mark)(unsigned* mark, CUstream stream);

  // The last call.
  const char* (*unload)(void);
};

// What a library exports.
#define LIBRARY_ENTRY "GetLibrary"
typedef const struct Library* (*GetLibraryFunction)(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // CUGUEST_EXAMPLES_CODE_TWO_LIBRARIES_ONE_MODULE_LIBRARY_H_
