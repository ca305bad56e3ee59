// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/guard/nesting.h"

#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

const char* Advice(CUresult code) noexcept {
  switch (code) {
    case CUDA_ERROR_INVALID_CONTEXT:
      return "no context was given";
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return "the context that the ContextRef names was destroyed or reset";
    case CUDA_ERROR_NOT_INITIALIZED:
      return IsForkedChild() ? "this process was forked from one that used CUDA"
                             : "CUDA is not initialised in this process, so no context can be "
                               "alive here: was it forked from one that used CUDA?";
    case CUDA_ERROR_NOT_PERMITTED:
      return "called from inside a stream callback or host function";
    case CUDA_ERROR_NOT_READY:
      return "the scope has ended; its own thread restores the stack when the scopes inside it "
             "have ended, too";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "the stack is too deep to take apart, or holds an entry whose context is destroyed";
    case CUDA_ERROR_ILLEGAL_STATE:
      return "the scope has ended, another one is inside it, or it belongs to another thread";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "no memory: the driver's, or the host's where over 16 scopes are nested";
    default:
      return "";
  }
}

CUGUEST_END_INTERNAL_NAMESPACE
