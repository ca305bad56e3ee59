// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX to machine code, as a driver does it.

#ifndef CUDASIM_DRIVER_CODE_COMPILE_H_
#define CUDASIM_DRIVER_CODE_COMPILE_H_

#include <string>
#include <string_view>

#include "driver/code/jit.h"

namespace cudasim::driver {

struct Compiled {
  JitOutcome outcome;
  std::string cubin;  // empty where there is no compiler, or it failed
};

// Compiles a PTX text for the device or the target asked for. The process compiles each text once
// for the same options; then, as with a driver that has it in its cache, a success takes no
// time and says nothing (CUDA_CACHE_DISABLE=1: the first answer again). Where the toolkit's
// compiler is not there or does not know the options, all is well and the info log says so.
//
// Errors: INVALID_PTX, UNSUPPORTED_PTX_VERSION: as the log says
//         JIT_COMPILATION_DISABLED: by CUDA_DISABLE_JIT or CUDA_DISABLE_PTX_JIT, and not in
//           the cache
Compiled Compile(std::string_view text, const JitRequest& request);

// What one of the compiler's error logs means.
CUresult CodeOfErrorLog(std::string_view log);

// By the environment.
bool IsJitDisabled();

// Whether the variable is set to something other than 0.
bool IsSet(const char* variable);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_COMPILE_H_
