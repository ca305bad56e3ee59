// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a caller asks of the compiler through an array of CUjit_option, and what it is
// answered through the same array.

#ifndef CUDASIM_DRIVER_CODE_JIT_H_
#define CUDASIM_DRIVER_CODE_JIT_H_

#include <cuda.h>

#include <cstddef>
#include <string>
#include <vector>

namespace cudasim::driver {

// What a compilation or a link has said by now.
struct JitOutcome {
  CUresult code = CUDA_SUCCESS;
  std::string error_log;
  std::string info_log;
  float milliseconds = 0;
};

// JitRequest
//
// The options of one call, checked as a driver does before it looks at the image: what
// is wrong with them is INVALID_VALUE, and then nothing is written. Panics for what
// crashes a driver (measured on an H100, driver 580.159.04).
class JitRequest {
 public:
  // Loads take all of them, cuLinkCreate not quite, cuLinkAdd only those of a compiler.
  enum class Call { kLoad, kLinkCreate, kLinkAdd };

  static CUresult Read(Call call, unsigned count, const CUjit_option* options, void** values,
                       JitRequest* request);

  // For nvJitLink.
  std::vector<std::string> CompilerOptions() const;

  // INVALID_IMAGE for a target that no driver compiles for any more, else CUDA_SUCCESS.
  CUresult TargetCode() const;
  // That of the target, else that of the simulated devices.
  int Architecture() const;
  bool IsVerbose() const { return verbose_; }

  // Writes to the caller's buffers and values: a log, cut to its buffer with a NUL at its
  // end; in the place of the buffer's size the length of the log, or that size again if the
  // log was cut; and the time, a float in the first bytes of its value.
  void Answer(const JitOutcome& outcome) const;

 private:
  struct Log {
    char* buffer = nullptr;
    void** size_value = nullptr;
    size_t size = 0;
    bool has_buffer = false;

    bool IsValid() const;
    void Write(const std::string& text) const;
  };

  CUresult ReadOption(Call call, CUjit_option option, void** value);
  CUresult ReadTarget(unsigned target);
  std::string ArchitectureOption() const;
  void AddThreads(std::vector<std::string>* options) const;

  Log info_;
  Log error_;
  void** time_ = nullptr;
  void** threads_value_ = nullptr;
  unsigned threads_ = 0;
  unsigned registers_ = 0;
  unsigned target_ = 0;
  bool has_target_ = false;
  bool verbose_ = false;
  std::vector<std::string> others_;
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_JIT_H_
