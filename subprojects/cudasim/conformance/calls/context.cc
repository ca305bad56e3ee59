// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Context stacks, user contexts, and what is set in a context.

#include "conformance/call.h"

namespace conformance {
namespace {

constexpr const char kAny[] = "CCPG";

void Pushed(Frame& frame) { frame.world.Push(frame.value(0)); }
void Popped(Frame& frame) { frame.world.Pop(); }
void Set(Frame& frame) {
  frame.world.Pop();
  if (!frame.IsNull(0)) frame.world.Push(frame.value(0));
}
void Created(Frame& frame) {
  if (frame.ObjectOf(0) != nullptr) frame.world.Push(frame.value(0));
}
void Destroyed(Frame& frame) {
  const bool is_top = frame.world.Top() == frame.value(0);
  frame.world.EndContext(frame.value(0));
  if (is_top) frame.world.Pop();
}

void Attached(Frame& frame) {
  Object* current = frame.world.Find(frame.world.Top());
  if (current != nullptr) ++current->attached;
}
void Detached(Frame& frame) {
  Object* context = frame.ObjectOf(0);
  if (context->name.kind == 'C' && --context->attached == 0) Destroyed(frame);
}
// The last one destroys the context.
bool MayDetach(const World& world, const Values& values) {
  const Object* context = world.Find(values[0]);
  return context == nullptr || world.cost == Cost::kExpensive || context->attached > 1 ||
         world.Top() != values[0];
}

// Destroying a primary or green context is refused; a user context dies.
bool MayDestroy(const World& world, const Values& values) {
  return values[0].number == 0 || values[0].kind != 'C' || world.cost == Cost::kExpensive ||
         !world.IsAlive(values[0]);
}

bool HasLivingTop(const World& world, const Values&) {
  return world.Top().number == 0 || world.IsAlive(world.Top());
}

using Attach = CUresult (*)(CUcontext*, unsigned);
using Detach = CUresult (*)(CUcontext);
using CreateSecond = CUresult (*)(CUcontext*, unsigned, CUdevice);

// Of a pop, and of nothing else, the output is the top that was.
int Pop(Frame& frame) {
  CUcontext context = nullptr;
  std::memset(&context, Frame::kUntouched, sizeof(context));
  const CUresult code = RAW(cuCtxPopCurrent)(frame.IsNull(0) ? nullptr : &context);
  frame.SayOut(0, &context, sizeof(context), false);
  return code;
}

// What is left, top first: all entries are popped, and pushed again.
int ProbeStack(Frame& frame) {
  std::vector<CUcontext> entries;
  CUcontext context = nullptr;
  while (RAW(cuCtxPopCurrent)(&context) == CUDA_SUCCESS) entries.push_back(context);
  for (const CUcontext entry : entries) {
    const Object* object = frame.world.FindByHandle("CPG", reinterpret_cast<std::uintptr_t>(entry));
    frame.SayText(object != nullptr ? ToText(object->name) : "?");
  }
  CUresult code = CUDA_SUCCESS;
  for (size_t i = entries.size(); i > 0 && code == CUDA_SUCCESS; --i) {
    code = RAW(cuCtxPushCurrent)(entries[i - 1]);
  }
  return code;
}
// A dead context on no stack may not be pushed.
bool HasLivingStack(const World& world, const Values&) {
  for (const Value& context : world.stacks[world.thread]) {
    if (!world.IsAlive(context) && context.kind != 'P') return false;
  }
  return true;
}

// What every other call may raise, and what a kernel's stack or heap would grow.
const Param kLimit = Number({0, 3, 4, 5, 6, 7, 8, 2, 9, 77, -1});
bool IsCheapLimit(const World& world, const Values& values) {
  // A printf or heap size may be set until a kernel has used it.
  return world.cost == Cost::kExpensive || (values[0].number != CU_LIMIT_PRINTF_FIFO_SIZE &&
                                            values[0].number != CU_LIMIT_MALLOC_HEAP_SIZE);
}

}  // namespace

Room ContextRoom() {
  return {
      "contexts",
      {
          {DRIVER(cuCtxPushCurrent), 14, {Use(kAny)}, Pushed},
          {"cuCtxPopCurrent", Pop, 10, {Out("CPG", 10)}, Popped},
          {DRIVER(cuCtxSetCurrent), 8, {Use(kAny, 15)}, Set},
          {DRIVER(cuCtxGetCurrent), 3, {Out("CPG")}},
          {"stack", ProbeStack, 4, {}, {}, HasLivingStack},
          {DRIVER(cuCtxGetDevice), 3, {Out()}},
          {DRIVER(cuCtxGetDevice_v2), 3, {Out(), Use(kAny, 20)}},
          {DRIVER(cuCtxGetId), 4, {Use(kAny, 20), Out("i")}},
          {DRIVER(cuCtxGetApiVersion), 3, {Use(kAny, 20), Out()}},
          {DRIVER(cuCtxGetFlags), 3, {Out()}},
          {DRIVER(cuCtxSetFlags),
           3,
           {Number({0, 1, 2, 4, 8, 16, 24, 3, 5, 0x80, 0x1000})},
           {},
           HasLivingTop},
          {DRIVER(cuCtxGetLimit), 3, {Out(), kLimit}},
          {DRIVER(cuCtxSetLimit),
           3,
           {kLimit, Number({0, 1, 64, 128, 1024, 2048, 4096, 9830400, 8650752, 8 << 20})},
           {},
           IsCheapLimit},
          {DRIVER(cuCtxGetCacheConfig), 2, {Out()}},
          {DRIVER(cuCtxSetCacheConfig), 2, {Number({0, 1, 2, 3, 4, -1})}},
          {DRIVER(cuCtxGetSharedMemConfig), 1, {Out()}},
          {DRIVER(cuCtxSetSharedMemConfig), 1, {Number({0, 1, 2, 3, -1})}},
          {DRIVER(cuCtxGetStreamPriorityRange), 2, {Out(), Out()}},
          {DRIVER(cuCtxResetPersistingL2Cache), 1},
          {DRIVER(cuCtxSynchronize), 4},
          {DRIVER(cuCtxSynchronize_v2), 3, {Use(kAny, 20)}},
          {DRIVER_AS("cuCtxAttach", Attach, "cuCtxAttach"),
           5,
           {Out("CPG"), Number({0, 0, 0, 1})},
           Attached},
          {DRIVER_AS("cuCtxDetach", Detach, "cuCtxDetach"), 5, {Use(kAny, 3)}, Detached, MayDetach},
          {DRIVER(cuCtxCreate),
           2,
           {Make("C"), Number({0}), Number({0, 0, 0, 1, 2, 4, 8, 3, 0x1000}), Number({0, 0, 0, 7})},
           Created,
           IsExpensive()},
          {DRIVER_AS("cuCtxCreate_v2", CreateSecond, "cuCtxCreate_v2"),
           1,
           {Make("C"), Number({0, 0, 4, 3}), Number({0, 0, 0, -1})},
           Created,
           IsExpensive()},
          {DRIVER(cuCtxDestroy), 4, {Use(kAny)}, Destroyed, MayDestroy},
      },
  };
}

}  // namespace conformance
