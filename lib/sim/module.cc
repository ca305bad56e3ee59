// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/module.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/sim/api.h"
#include "lib/sim/capture_rules.h"
#include "lib/sim/handle_table.h"
#include "lib/sim/panic.h"
#include "lib/sim/stack.h"

namespace cuguest_sim {
namespace {

struct Module {
  Life life;
  std::map<std::string, CUfunction, std::less<>> functions;
};

HandleTable<CUmodule, Module>& Modules() {
  static auto& table = *new HandleTable<CUmodule, Module>(3);
  return table;
}

HandleTable<CUfunction, Function>& Functions() {
  static auto& table = *new HandleTable<CUfunction, Function>(4);
  return table;
}

// Unloaded, or gone with its context: INVALID_HANDLE (measured on an H100, driver
// 580.159.04).
CUresult FindModule(CUmodule handle, Module* module) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Handled found = Modules().Find(handle, module);
  if (found == Handled::kNever) PanicHandle(handle, "this never was a module");
  return found == Handled::kAlive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void RemoveFunctions(const Module& module) {
  for (const auto& function : module.functions) Functions().Remove(function.second);
}

CUresult AddFunctions(const std::vector<PtxEntry>& entries, Module* module) {
  for (const PtxEntry& entry : entries) {
    const Function function = {module->life, std::make_shared<const PtxEntry>(entry)};
    const CUresult code = Functions().Add(function, &module->functions[entry.name]);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult Load(CUmodule* handle, const void* image, const Life& life) {
  std::vector<PtxEntry> entries;
  CUresult code = ReadImage(image, &entries);
  if (code != CUDA_SUCCESS) return code;
  Module module;
  module.life = life;
  code = AddFunctions(entries, &module);
  if (code == CUDA_SUCCESS) code = Modules().Add(module, handle);
  if (code != CUDA_SUCCESS) RemoveFunctions(module);
  return code;
}

}  // namespace

CUresult FindFunction(CUfunction handle, Function* function) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Handled found = Functions().Find(handle, function);
  if (found == Handled::kNever) PanicHandle(handle, "this never was a function");
  return found == Handled::kAlive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

size_t CountModules() { return Modules().CountAlive(); }

CUresult ModuleLoadData(CUmodule* handle, const void* image) {
  Life life;
  const CUresult code = CurrentReady(&life);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Load(handle, image, life);
}

// The options tell a compiler what to do, and there is none. What it would answer
// through them is nothing: empty logs, no time.
CUresult ModuleLoadDataEx(CUmodule* handle, const void* image, unsigned count,
                          CUjit_option* options, void** values) {
  if (count > 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = ModuleLoadData(handle, image);
  for (unsigned i = 0; i < count; ++i) {
    const bool answers = options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
                         options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ||
                         options[i] == CU_JIT_WALL_TIME;
    if (answers) values[i] = nullptr;
  }
  return code;
}

CUresult ModuleUnload(CUmodule handle) {
  Module module;
  CUresult code = FindModule(handle, &module);
  if (code == CUDA_SUCCESS) code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  RemoveFunctions(module);
  Modules().Remove(handle);
  return CUDA_SUCCESS;
}

CUresult ModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  Module module;
  const CUresult code = FindModule(handle, &module);
  if (code != CUDA_SUCCESS) return code;
  if (function == nullptr || name == nullptr || *name == '\0') return CUDA_ERROR_INVALID_VALUE;
  const auto found = module.functions.find(name);
  *function = found != module.functions.end() ? found->second : nullptr;
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult FuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  if (value == nullptr || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Function function;
  const CUresult code = FindFunction(handle, &function);
  if (code != CUDA_SUCCESS) return code;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      break;
    default:
      *value = 0;  // no registers, no static memory: there is no code
  }
  return CUDA_SUCCESS;
}

}  // namespace cuguest_sim
