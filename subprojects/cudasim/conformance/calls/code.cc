// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules, and launches of kernels that compute nothing.

#include <string>

#include "conformance/call.h"

namespace conformance {
namespace {

constexpr char kPtx[] = R"(.version 7.0
.target sm_50
.address_size 64
.global .u32 counter;
.visible .global .align 8 .b8 table[24];
.visible .entry nothing() { ret; }
.visible .entry with_two(.param .u64 first, .param .u32 second) { ret; }
)";

constexpr const char* kFunctions[] = {"nothing", "nothing", "with_two", "none_such"};
constexpr const char* kVariables[] = {"table", "none_such"};

int Load(Frame& frame) {
  CUmodule module;
  std::memset(&module, Frame::kUntouched, sizeof(module));
  frame.code = RAW(cuModuleLoadData)(frame.IsNull(0) ? nullptr : &module, kPtx);
  if (!frame.IsNull(0)) frame.SayOut(0, &module, sizeof(module), frame.code == 0);
  return frame.code;
}

void Unloaded(Frame& frame) {
  frame.world.End(frame.value(0));
  for (Object* function : frame.world.All('F')) {
    if (function->place == frame.value(0)) function->is_alive = false;
  }
}

int GetFunction(Frame& frame) {
  CUfunction function;
  std::memset(&function, Frame::kUntouched, sizeof(function));
  frame.code = RAW(cuModuleGetFunction)(frame.IsNull(0) ? nullptr : &function,
                                        frame.As<CUmodule>(1), kFunctions[frame.Number(2)]);
  if (!frame.IsNull(0)) frame.SayOut(0, &function, sizeof(function), frame.code == 0);
  return frame.code;
}
void OfModule(Frame& frame) {
  Object* function = frame.ObjectOf(0);
  const Object* module = frame.ObjectOf(1);
  if (function == nullptr || module == nullptr) return;
  function->owner = module->owner;
  function->place = module->name;
}

int GetGlobal(Frame& frame) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const CUresult code = RAW(cuModuleGetGlobal)(frame.IsNull(0) ? nullptr : &address,
                                               frame.IsNull(1) ? nullptr : &bytes,
                                               frame.As<CUmodule>(2), kVariables[frame.Number(3)]);
  frame.SayNumber(static_cast<long long>(bytes));
  return code;
}

int GetName(Frame& frame) {
  const char* name = nullptr;
  const CUresult code =
      RAW(cuFuncGetName)(frame.IsNull(0) ? nullptr : &name, frame.As<CUfunction>(1));
  frame.SayText(name != nullptr ? name : "0");
  return code;
}

// Parameters for either kernel.
int Launch(Frame& frame) {
  std::uint64_t first = 0;
  unsigned second = 0;
  void* parameters[] = {&first, &second};
  return RAW(cuLaunchKernel)(frame.As<CUfunction>(0), frame.As<unsigned>(1), 1, 1,
                             frame.As<unsigned>(2), 1, 1, frame.As<unsigned>(3),
                             frame.As<CUstream>(4), parameters, nullptr);
}
// A graph needs the module of its kernels.
void Launched(Frame& frame) {
  const Object* function = frame.ObjectOf(0);
  Object* module = function != nullptr ? frame.world.Find(function->place) : nullptr;
  if (module == nullptr || frame.world.captures == 0) return;
  module->is_kept = true;
  if (Object* library = frame.world.Find(module->place)) library->is_kept = true;
}

int LoadLibrary(Frame& frame) {
  CUlibrary library;
  std::memset(&library, Frame::kUntouched, sizeof(library));
  frame.code = RAW(cuLibraryLoadData)(frame.IsNull(0) ? nullptr : &library, kPtx, nullptr, nullptr,
                                      0, nullptr, nullptr, 0);
  if (!frame.IsNull(0)) frame.SayOut(0, &library, sizeof(library), frame.code == 0);
  return frame.code;
}

int GetKernel(Frame& frame) {
  CUkernel kernel;
  std::memset(&kernel, Frame::kUntouched, sizeof(kernel));
  frame.code = RAW(cuLibraryGetKernel)(frame.IsNull(0) ? nullptr : &kernel, frame.As<CUlibrary>(1),
                                       kFunctions[frame.Number(2)]);
  if (!frame.IsNull(0)) frame.SayOut(0, &kernel, sizeof(kernel), frame.code == 0);
  return frame.code;
}
void OfLibrary(Frame& frame) {
  if (Object* kernel = frame.ObjectOf(0)) kernel->place = frame.value(1);
}
// With its kernels, and their functions in each context.
void LibraryUnloaded(Frame& frame) {
  frame.world.End(frame.value(0));
  for (Object* kernel : frame.world.All('K')) {
    if (kernel->place != frame.value(0)) continue;
    kernel->is_alive = false;
    for (Object* function : frame.world.All('F')) {
      if (function->place == kernel->name) function->is_alive = false;
    }
  }
}
void OfKernel(Frame& frame) {
  OfCurrent(0)(frame);
  if (Object* function = frame.ObjectOf(0)) function->place = frame.value(1);
}

}  // namespace

Room CodeRoom() {
  return {
      "code",
      {
          {"cuModuleLoadData", Load, 3, {Make("L")}, OfCurrent(0)},
          {DRIVER(cuModuleUnload), 2, {Use("L", 0)}, Unloaded, IsFree(0)},
          {"cuModuleGetFunction",
           GetFunction,
           5,
           {Make("F"), Use("L", 0), Number({0, 1, 2, 3})},
           OfModule},
          {"cuModuleGetGlobal", GetGlobal, 2, {Out(), Out(), Use("L", 0), Number({0, 1})}},
          {DRIVER(cuModuleGetFunctionCount), 1, {Out(), Use("L", 0)}},
          {DRIVER(cuFuncGetModule), 2, {Out("L"), Use("F", 0)}},
          {"cuFuncGetName", GetName, 1, {Out(), Use("F", 0)}},
          {DRIVER(cuFuncGetAttribute), 3, {Out(), Number({0, 1, 2, 3, 8, 9, 77}), Use("F", 0)}},
          {DRIVER(cuFuncSetAttribute),
           2,
           {Use("F", 0), Number({8, 8, 9, 0, 77}), Number({0, 1024, 49152, 65536, 300000, -1})}},
          {DRIVER(cuFuncIsLoaded), 1, {Out(), Use("F", 0)}},
          {DRIVER(cuFuncLoad), 1, {Use("F", 0)}},
          {"cuLibraryLoadData", LoadLibrary, 2, {Make("Y")}},
          {DRIVER(cuLibraryUnload), 1, {Use("Y", 0)}, LibraryUnloaded, IsFree(0)},
          {"cuLibraryGetKernel",
           GetKernel,
           3,
           {Make("K"), Use("Y", 0), Number({0, 1, 2, 3})},
           OfLibrary},
          {DRIVER(cuLibraryGetKernelCount), 1, {Out(), Use("Y", 0)}},
          {DRIVER(cuKernelGetFunction), 3, {Make("F"), Use("K", 0)}, OfKernel},
          {DRIVER(cuKernelGetLibrary), 1, {Out("Y"), Use("K", 0)}},
          {DRIVER(cuKernelGetAttribute),
           1,
           {Out(), Number({0, 1, 8, 77}), Use("K", 0), Number({0, 0, 7})}},
          {"cuLaunchKernel",
           Launch,
           9,
           {Use("F"), Number({1, 1, 1, 0, 2}), Number({1, 1, 32, 0, 1025}),
            Number({0, 0, 0, 1024, 300000}), UseStream()},
           Launched},
      },
  };
}

}  // namespace conformance
