// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thread-safe: yes.

#ifndef CUGUEST_AUDIT_COMMAND_RESULT_NAME_H_
#define CUGUEST_AUDIT_COMMAND_RESULT_NAME_H_

#include <string>

namespace cuguest::audit {

// "CUDA_ERROR_DEINITIALIZED" of a call of the driver, "cudaErrorCudartUnloading" of one of the
// runtime; "error 4711" of a result that neither has.
[[nodiscard]] std::string ResultName(const std::string& call, int result);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_RESULT_NAME_H_
