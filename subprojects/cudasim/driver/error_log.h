// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The log of calls that fail (CUDA Driver API, "Error Log Management"; on a real driver from 570
// on, here of every version): CUDA_LOG_FILE names a file, or stdout or stderr, that gets the lines
// of each of them, also where the caller expects the failure; so does each callback of
// cuLogsRegisterCallback, on the thread of the call and before that returns. The last line of a
// call names code and function, one before it says why, here of some codes only.
// CUDA_ERROR_NOT_READY is an answer and none, and a call before cuInit has no line
// (test/errors_and_init_facts_test.cc, test/error_log_facts_test.cc).

#ifndef CUDASIM_DRIVER_ERROR_LOG_H_
#define CUDASIM_DRIVER_ERROR_LOG_H_

#include <cuda.h>

#include "driver/entry.h"

namespace cudasim::driver {

void LogFailure(const Entry& entry, CUresult code);

// `code`, which the call returns.
inline CUresult Logged(const Entry& entry, CUresult code) {
  if (code != CUDA_SUCCESS && code != CUDA_ERROR_NOT_READY) LogFailure(entry, code);
  return code;
}

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_ERROR_LOG_H_
