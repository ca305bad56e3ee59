// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that does what the collector is to see. It is built twice, as two libraries.

#include <cuda.h>

#include <cstdlib>

#include "subprojects/cudasim/test/support/raw_driver.h"

#define GUEST(name) extern "C" __attribute__((visibility("default"), noinline)) int name

GUEST(Push)(CUcontext context) {
  return RAW_AS(decltype(&cuCtxPushCurrent), "cuCtxPushCurrent_v2")(context) + 0;
}

GUEST(Pop)() {
  CUcontext popped = nullptr;
  return RAW_AS(decltype(&cuCtxPopCurrent), "cuCtxPopCurrent_v2")(&popped) + 0;
}

GUEST(PushAndPop)(CUcontext context) {
  const int code = Push(context);
  return code != 0 ? code : Pop() + 0;
}

GUEST(PushAndExit)(CUcontext context) { std::exit(Push(context)); }

GUEST(Synchronize)() { return RAW(cuCtxSynchronize)() + 0; }
