// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVIDIA's compiler and linker of device code, the CUDA Toolkit's nvJitLink, loaded when
// it is first wanted: it needs no GPU, and it says of a PTX text what a driver says.

#ifndef CUDASIM_DRIVER_CODE_NVJITLINK_H_
#define CUDASIM_DRIVER_CODE_NVJITLINK_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cudaimage/nvjitlink.h"

namespace cudasim::driver {

// One link of some inputs to a cubin.
//
// Threads: one at a time for one object; calls from several take turns.
class NvJitLink {
 public:
  using Input = cudaimage::NvJitLinkInput;

  // As nvJitLinkResult has them, where they are told apart here.
  enum class Result { kSuccess = 0, kWrongKind = 12, kOther = -1 };

  // Whether there is one. CUDASIM_NVJITLINK names it (empty: none); else the dynamic
  // linker's path is searched, and the toolkit's usual place. None after exit() began.
  static bool IsThere();

  // nullptr where there is none, or it does not know the options.
  static std::unique_ptr<NvJitLink> Create(const std::vector<std::string>& options);
  ~NvJitLink();
  NvJitLink(const NvJitLink&) = delete;
  NvJitLink& operator=(const NvJitLink&) = delete;

  Result Add(Input kind, std::string_view data, const std::string& name);
  Result Complete();

  // Empty before Complete() succeeded.
  std::string Cubin() const;

  // What a driver's logs have: without the lines that nvJitLink says of itself, and
  // without the last line end. From all calls so far.
  std::string ErrorLog() const;
  std::string InfoLog() const;

 private:
  explicit NvJitLink(cudaimage::NvJitLinkState* handle) : handle_(handle) {}

  cudaimage::NvJitLinkState* handle_;
  std::list<std::string> names_;  // which nvJitLink does not copy
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_NVJITLINK_H_
