// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 1
//
// Not for embedders. The driver calls that a guard makes in line: with them, a guard around a
// context that is current already costs two queries and a few nanoseconds; out of line it cost
// as much again as the queries (test/benchmark/context_rows.cc).

#ifndef CUGUEST_INTERNAL_STACK_CALLS_H_
#define CUGUEST_INTERNAL_STACK_CALLS_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "cuguest/internal/compiler.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What `get_current` gives until the driver table is resolved, and for good where there is
// no usable driver. No driver says it: it is the last value that the enumeration can hold.
CUGUEST_HIDE inline constexpr CUresult kNotResolved = static_cast<CUresult>(1023);

// Never null. `get_current` is written last and read first: a thread that has had an answer
// from it other than kNotResolved may call the others.
struct StackCalls {
  CUresult(CUDAAPI* get_current)(CUcontext*);
  CUresult(CUDAAPI* push)(CUcontext);
  CUresult(CUDAAPI* pop)(CUcontext*);
  // cuCtxGetId. Below CUDA 12.0 a function that gives id 0 if the context is alive.
  CUresult(CUDAAPI* get_id)(CUcontext, unsigned long long*);
};
CUGUEST_API extern StackCalls g_stack_calls;

CUGUEST_HIDE inline CUresult GetCurrent(CUcontext* current) noexcept {
  return LoadAcquire(&g_stack_calls.get_current)(current);
}
CUGUEST_HIDE inline CUresult Push(CUcontext context) noexcept {
  return LoadRelaxed(&g_stack_calls.push)(context);
}
CUGUEST_HIDE inline CUresult Pop(CUcontext* popped) noexcept {
  return LoadRelaxed(&g_stack_calls.pop)(popped);
}
// Of the current context for nullptr.
CUGUEST_HIDE inline CUresult GetId(CUcontext context, unsigned long long* id) noexcept {
  return LoadRelaxed(&g_stack_calls.get_id)(context, id);
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_STACK_CALLS_H_
