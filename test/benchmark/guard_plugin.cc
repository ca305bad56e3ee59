// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guards in a library that is loaded at run time, where the thread's variables cost a call.

#include "cuguest/context_guard.h"

extern "C" [[gnu::visibility("default")]] void EnterAndLeave(CUcontext context, int times) {
  for (int i = 0; i < times; ++i) const cuguest::ContextGuard guard(context);
}

extern "C" [[gnu::visibility("default")]] int EnterAskAndLeave(CUcontext context, int times) {
  int entered = 0;
  for (int i = 0; i < times; ++i) {
    const cuguest::ContextGuard guard(context);
    if (guard.ok()) ++entered;
  }
  return entered;
}
