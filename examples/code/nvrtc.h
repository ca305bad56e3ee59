// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVRTC, the toolkit's compiler for CUDA C++ at run time. It is loaded at its first use, so that a
// program also starts where it is missing, and can report that.

#ifndef CUGUEST_EXAMPLES_CODE_NVRTC_H_
#define CUGUEST_EXAMPLES_CODE_NVRTC_H_

#include <nvrtc.h>

#include <string>

#include "absl/status/statusor.h"

namespace server {

// X(Name): the function nvrtc<Name>.
#define NVRTC_ENTRIES(X)  \
  X(CreateProgram)        \
  X(CompileProgram)       \
  X(DestroyProgram)       \
  X(GetErrorString)       \
  X(GetNumSupportedArchs) \
  X(GetProgramLog)        \
  X(GetProgramLogSize)    \
  X(GetPTX)               \
  X(GetPTXSize)           \
  X(GetSupportedArchs)

// Threads: any.
class Nvrtc {
 public:
  // Errors: kUnavailable  there is no library of the toolkit's major version
  [[nodiscard]] static absl::StatusOr<const Nvrtc*> Get();

  // PTX for the oldest architecture that this NVRTC knows, which all newer ones run. `name` is the
  // file's in the compiler's messages.
  //
  // Errors: kInvalidArgument  with the compiler's log
  [[nodiscard]] absl::StatusOr<std::string> Compile(const std::string& source,
                                                    const std::string& name) const;

 private:
  [[nodiscard]] static absl::StatusOr<Nvrtc> Load();
  [[nodiscard]] std::string OldestArchitecture() const;
  [[nodiscard]] std::string LogOf(nvrtcProgram program) const;

#define NVRTC_DECLARE(Name) decltype(&::nvrtc##Name) Name##_ = nullptr;
  NVRTC_ENTRIES(NVRTC_DECLARE)
#undef NVRTC_DECLARE
};

}  // namespace server

#endif  // CUGUEST_EXAMPLES_CODE_NVRTC_H_
