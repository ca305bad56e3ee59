// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Links: what one does, by the toolkit's linker, with the codes and the logs of a driver; and those
// in progress.

#ifndef CUDASIM_DRIVER_CODE_LINK_H_
#define CUDASIM_DRIVER_CODE_LINK_H_

#include <cuda.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "driver/code/jit.h"
#include "driver/code/nvjitlink.h"

namespace cudasim::driver {

// Linking
//
// What each step says is added to the logs, and the caller's values are written at each
// (measured on an H100, driver 580.159.04).
//
// Threads: one at a time.
class Linking {
 public:
  explicit Linking(const JitRequest& request);

  // What fails as a whole, fails for good: every later step returns the same code. A PTX
  // text that cannot be compiled, and what is not of its kind, are left out.
  CUresult Add(CUjitInputType kind, std::string_view data, const std::string& name);

  // Once. The bytes live as long as this does.
  CUresult Complete(std::string_view* cubin);

 private:
  CUresult Check(CUjitInputType kind, std::string_view data, const std::string& name);
  CUresult CheckCubin(std::string_view data);
  CUresult CheckPtx(std::string_view data);
  CUresult AddToLinker(CUjitInputType kind, std::string_view data, const std::string& name);
  CUresult Define(std::string_view data, const std::string& name);
  CUresult TellWrongKind(CUjitInputType kind, const std::string& name);
  CUresult Finish();
  void TellLinker();
  void TellError(const std::string& text);

  JitRequest request_;
  std::unique_ptr<NvJitLink> linker_;
  JitOutcome outcome_;                          // its code: of the failure for good
  std::string linker_errors_;                   // those of its log that were told
  std::map<std::string, std::string> defined_;  // symbol, input that defines it
  std::string cubin_;
  bool is_complete_ = false;
};

// Links that were made with cuLinkCreate and not destroyed; no context takes them along.
size_t CountLinkStates();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_LINK_H_
