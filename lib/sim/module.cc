// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/module.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/sim/api.h"
#include "lib/sim/capture_rules.h"
#include "lib/sim/handle_table.h"
#include "lib/sim/image.h"
#include "lib/sim/jit.h"
#include "lib/sim/library.h"
#include "lib/sim/panic.h"
#include "lib/sim/stack.h"

namespace cuguest_sim {
namespace {

struct Module {
  Life life;
  CUlibrary library = nullptr;  // that it is of
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

CUresult AddFunctions(const std::vector<PtxEntry>& entries, CUmodule handle, Module* module) {
  for (const PtxEntry& entry : entries) {
    const Function function = {module->life, handle, std::make_shared<const PtxEntry>(entry)};
    const CUresult code = Functions().Add(function, &module->functions[entry.name]);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult FindFunction(CUfunction handle, Function* function) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Handled found = Functions().Find(handle, function);
  if (found == Handled::kNever && !IsKernel(handle)) {
    PanicHandle(handle, "this never was a function");
  }
  return found == Handled::kAlive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult LoadModule(const Image& image, CUlibrary library, const Life& life, CUmodule* handle) {
  if (image.load_code != CUDA_SUCCESS) return image.load_code;
  Module module = {life, library, {}};
  CUresult code = Modules().Add(module, handle);
  if (code != CUDA_SUCCESS) return code;
  code = AddFunctions(image.entries, *handle, &module);
  Modules().Set(*handle, module);
  if (code != CUDA_SUCCESS) UnloadModule(*handle);
  return code;
}

void UnloadModule(CUmodule handle) {
  Module module;
  if (Modules().Find(handle, &module) == Handled::kNever) return;
  RemoveFunctions(module);
  Modules().Remove(handle);
}

CUresult GetFunctionAttribute(CUfunction_attribute attribute, int* value) {
  if (value == nullptr || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) {
    return CUDA_ERROR_INVALID_VALUE;
  }
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

CUresult GetParameter(const PtxEntry& entry, size_t index, size_t* offset, size_t* size) {
  if (index >= entry.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = entry.parameters[index].offset;
  if (size != nullptr) *size = entry.parameters[index].size;
  return CUDA_SUCCESS;
}

size_t CountModules() { return Modules().CountAlive(); }

CUresult ModuleLoadData(CUmodule* handle, const void* bytes) {
  return ModuleLoadDataEx(handle, bytes, 0, nullptr, nullptr);
}

CUresult ModuleLoadDataEx(CUmodule* handle, const void* bytes, unsigned count,
                          CUjit_option* options, void** values) {
  Life life;
  CUresult code = CurrentReady(&life);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr || bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitRequest request;
  code = JitRequest::Read(JitRequest::Call::kLoad, count, options, values, &request);
  if (code != CUDA_SUCCESS) return code;
  Image image;
  const JitOutcome outcome = ReadImage(bytes, request, &image);
  request.Answer(outcome);
  return outcome.code != CUDA_SUCCESS ? outcome.code : LoadModule(image, nullptr, life, handle);
}

CUresult ModuleUnload(CUmodule handle) {
  Module module;
  CUresult code = FindModule(handle, &module);
  if (code == CUDA_SUCCESS) code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  if (module.library != nullptr) return CUDA_ERROR_NOT_PERMITTED;
  UnloadModule(handle);
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

CUresult ModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module module;
  const CUresult code = FindModule(handle, &module);
  if (code == CUDA_SUCCESS) *count = static_cast<unsigned>(module.functions.size());
  return code;
}

CUresult ModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule handle) {
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module module;
  const CUresult code = FindModule(handle, &module);
  if (code != CUDA_SUCCESS) return code;
  for (const auto& function : module.functions) {
    if (count-- == 0) break;
    *functions++ = function.second;
  }
  return CUDA_SUCCESS;
}

// What the environment asks for. Nothing here is slow to load, so all of it is loaded
// at once, and a function says so in both modes.
CUresult ModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) PanicNull();
  const char* asked = std::getenv("CUDA_MODULE_LOADING");
  const bool eager = asked != nullptr && std::strcmp(asked, "EAGER") == 0;
  *mode = eager ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult FuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  int known = 0;
  CUresult code = GetFunctionAttribute(attribute, value != nullptr ? &known : nullptr);
  if (code != CUDA_SUCCESS) return code;
  Function function;
  code = FindFunction(handle, &function);
  if (code == CUDA_SUCCESS) *value = known;
  return code;
}

CUresult FuncGetModule(CUmodule* module, CUfunction handle) {
  if (module == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function function;
  const CUresult code = FindFunction(handle, &function);
  if (code == CUDA_SUCCESS) *module = function.module;
  return code;
}

// The text lives as long as the module.
CUresult FuncGetName(const char** name, CUfunction handle) {
  if (name == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function function;
  const CUresult code = FindFunction(handle, &function);
  if (code == CUDA_SUCCESS) *name = function.entry->name.c_str();
  return code;
}

CUresult FuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  if (offset == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function function;
  const CUresult code = FindFunction(handle, &function);
  return code != CUDA_SUCCESS ? code : GetParameter(*function.entry, index, offset, size);
}

CUresult FuncLoad(CUfunction handle) {
  Function function;
  return FindFunction(handle, &function);
}

CUresult FuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function function;
  const CUresult code = FindFunction(handle, &function);
  if (code == CUDA_SUCCESS) *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return code;
}

}  // namespace cuguest_sim
