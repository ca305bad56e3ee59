// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
/// \file
/// The driver's own reasons, for C99: a DriverLog (driver_log.h) as functions. They are in the
/// whole library, not in the core and not in the two files; conventions are those of c.h.
///
///   void tell(int code, void (*log)(const char*)) {  /* on the thread that got it */
///     char reason[501];
///     cuguest_driver_log_reason(code, reason, sizeof(reason));
///     log(cuguest_error_text(code));
///     log(reason);
///   }

#ifndef CUGUEST_OBJECTS_C_DRIVER_LOG_H_
#define CUGUEST_OBJECTS_C_DRIVER_LOG_H_

#include <stddef.h>

#include "cuguest/c.h"

#if defined(CUGUEST_NAMESPACE_SUFFIX)
#define cuguest_driver_log_close CUGUEST_INTERNAL_C_NAME(cuguest_driver_log_close)
#define cuguest_driver_log_open CUGUEST_INTERNAL_C_NAME(cuguest_driver_log_open)
#define cuguest_driver_log_reason CUGUEST_INTERNAL_C_NAME(cuguest_driver_log_reason)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// cuguest_driver_log_open(), cuguest_driver_log_close()
///
/// As DriverLog::Open() and Close(): each open is counted, and needs a close.
///
/// Threads: any.
/// Errors:  CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER (36)  to open: the driver has no
///                                                      cuLogsRegisterCallback, from CUDA 12.9 on
///          CUDA_ERROR_NOT_INITIALIZED (3)              to open: in a forked child
///          CUDA_ERROR_ILLEGAL_STATE (401)              to close: none is open that this process
///                                                      has opened in C
///          what the driver gave: what was open stays so
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_driver_log_open(void);
CUGUEST_C_API int cuguest_driver_log_close(void);

/// The driver's reason, "cuLaunchKernel: ...", if the last call of the driver that cuguest made on
/// this thread failed with `code`; "" otherwise. Written to `text` as far as `size` bytes have
/// room, with a NUL behind it; returns the number of bytes without that which the whole has. `text`
/// may be null if `size` is 0.
///
/// Threads: any. No driver call.
CUGUEST_C_API size_t cuguest_driver_log_reason(int code, char* text, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // CUGUEST_OBJECTS_C_DRIVER_LOG_H_
