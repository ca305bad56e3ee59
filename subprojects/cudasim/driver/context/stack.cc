// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/context/stack.h"

#include <pthread.h>

#include <vector>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"

namespace cudasim::driver {
namespace {

using StackEntries = std::vector<Context*>;

// Not a thread_local with a destructor: the main thread's would run at exit before
// the first atexit handler. A key's destructor runs only when a thread ends.
thread_local StackEntries* this_stack = nullptr;

void FreeStack(void* stack) {
  auto* entries = static_cast<StackEntries*>(stack);
  this_stack = nullptr;
  for (Context* context : *entries) context->Unhold();
  delete entries;
}

pthread_key_t MakeKey() {
  pthread_key_t key;
  if (pthread_key_create(&key, FreeStack) != 0) Panic("no pthread key is left for the stacks");
  return key;
}

StackEntries& ThisStack() {
  if (this_stack == nullptr) {
    static const pthread_key_t key = MakeKey();
    this_stack = new StackEntries;
    pthread_setspecific(key, this_stack);
  }
  return *this_stack;
}

// A hold on `handle` for a new stack entry.
CUresult HoldForEntry(CUcontext handle, Context** context) {
  const CUresult code = Context::FindNamed(handle, context);
  if (code == CUDA_SUCCESS && !(*context)->Hold()) {
    PanicHandle(handle,
                "the context was destroyed and is on no stack; a real driver accepts it and "
                "corrupts the heap later (measured on an H100, driver 580.159.04)");
  }
  return code;
}

}  // namespace

Context* Stack::Top() {
  return this_stack == nullptr || this_stack->empty() ? nullptr : this_stack->back();
}

void Stack::Push(Context* context) { ThisStack().push_back(context); }

void Stack::Pop() {
  if (Top() == nullptr) return;
  Context* context = this_stack->back();
  this_stack->pop_back();
  context->Unhold();
}

CUresult Current(Context** context) {
  *context = Stack::Top();
  return *context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CurrentPlace(Incarnation* incarnation) {
  Context* context = nullptr;
  const CUresult code = Current(&context);
  if (code != CUDA_SUCCESS) return code;
  *incarnation = IncarnationOf(context);
  return context->IsAlive() ? AskCaptures(*incarnation) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult CurrentAlive(Incarnation* incarnation) {
  const CUresult code = CurrentPlace(incarnation);
  if (code == CUDA_SUCCESS) *incarnation = OwnerOf(*incarnation);
  return code;
}

CUresult CurrentReady(Incarnation* incarnation) {
  const CUresult code = CurrentAlive(incarnation);
  return code != CUDA_SUCCESS ? code : StickyError();
}

CUresult ReadyOrNothingCurrent() {
  const CUresult captures = AskCaptures();
  if (captures != CUDA_SUCCESS) return captures;
  Incarnation incarnation;
  const CUresult code = CurrentReady(&incarnation);
  return code == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : code;
}

CUresult CtxPushCurrent(CUcontext handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = HoldForEntry(handle, &context);
  if (code == CUDA_SUCCESS) Stack::Push(context);
  return code;
}

CUresult CtxPopCurrent(CUcontext* handle) {
  Context* context = nullptr;
  const CUresult code = Current(&context);
  if (code != CUDA_SUCCESS) return code;
  if (handle != nullptr) *handle = context->handle();
  Stack::Pop();
  return CUDA_SUCCESS;
}

CUresult CtxSetCurrent(CUcontext handle) {
  if (handle == nullptr) {
    Stack::Pop();  // one entry, or nothing on an empty stack
    return CUDA_SUCCESS;
  }
  Context* context = nullptr;
  const CUresult code = HoldForEntry(handle, &context);
  if (code != CUDA_SUCCESS) return code;
  Stack::Pop();
  Stack::Push(context);
  return CUDA_SUCCESS;
}

CUresult CtxGetCurrent(CUcontext* handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = Stack::Top();
  *handle = context != nullptr ? context->handle() : nullptr;
  return CUDA_SUCCESS;
}

Incarnation NamedOrGreen(const Incarnation& named) {
  Context* const top = Stack::Top();
  const bool is_green = named.context == nullptr && top != nullptr && top->is_green();
  return is_green ? IncarnationOf(top) : named;
}

}  // namespace cudasim::driver
