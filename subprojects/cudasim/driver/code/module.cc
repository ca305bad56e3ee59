// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/module.h"

#include <stdlib.h>

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "driver/api.h"
#include "driver/code/file.h"
#include "driver/code/image.h"
#include "driver/code/jit.h"
#include "driver/code/library.h"
#include "driver/context/stack.h"
#include "driver/handle_table.h"
#include "driver/panic.h"
#include "driver/process.h"
#include "driver/stream/capture.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {
namespace {

struct Module {
  Incarnation incarnation;
  CUlibrary library = nullptr;  // that it is of
  std::map<std::string, CUfunction, std::less<>> functions;
  std::shared_ptr<const PlacedVariables> variables = std::make_shared<PlacedVariables>();
  std::shared_ptr<const PlacedVariables> managed;  // those that are the library's
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

// Of a kernel, they follow the kernel's.
std::shared_ptr<FunctionSettings> SettingsOf(const PtxEntry& entry, const LibraryParts& parts,
                                             CUdevice device) {
  const auto found = parts.settings.find(entry.name);
  if (found == parts.settings.end()) return std::make_shared<FunctionSettings>();
  return std::make_shared<FunctionSettings>((*found->second)[static_cast<size_t>(device)]);
}

CUresult AddFunctions(const Image& image, const LibraryParts& parts, CUmodule handle,
                      Module* module) {
  for (const PtxEntry& entry : image.entries) {
    const Function function = {module->incarnation, handle, std::make_shared<const PtxEntry>(entry),
                               SettingsOf(entry, parts, module->incarnation.context->device())};
    const CUresult code = Functions().Add(function, &module->functions[entry.name]);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult AddVariables(const Image& image, Module* module) {
  auto placed = std::make_shared<PlacedVariables>();
  const CUresult code =
      PlaceVariables(image.variables, *module->managed, module->incarnation, placed.get());
  if (code == CUDA_SUCCESS) module->variables = placed;
  return code;
}

CUresult LoadFrom(std::string_view bytes, const JitRequest& request, const Incarnation& incarnation,
                  CUmodule* handle) {
  Image image;
  const JitOutcome outcome = ReadImage(bytes, request, &image);
  request.Answer(outcome);
  return outcome.code != CUDA_SUCCESS ? outcome.code
                                      : LoadModule(image, LibraryParts{}, incarnation, handle);
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

CUresult LoadModule(const Image& image, const LibraryParts& parts, const Incarnation& incarnation,
                    CUmodule* handle) {
  if (image.load_code != CUDA_SUCCESS) return image.load_code;
  Module module;
  module.incarnation = incarnation;
  module.library = parts.library;
  module.managed = parts.managed;
  CUresult code = Modules().Add(module, handle);
  if (code != CUDA_SUCCESS) return code;
  code = AddFunctions(image, parts, *handle, &module);
  if (code == CUDA_SUCCESS) code = AddVariables(image, &module);
  Modules().Set(*handle, module);
  if (code != CUDA_SUCCESS) UnloadModule(*handle);
  return code;
}

void UnloadModule(CUmodule handle) {
  Module module;
  const Handled found = Modules().Find(handle, &module);
  if (found == Handled::kNever) return;
  RemoveFunctions(module);
  // A context takes its memory along, and what is there now may be another's.
  if (found == Handled::kAlive) RemoveVariables(*module.variables, *module.managed);
  Modules().Remove(handle);
}

CUresult FindVariablesOf(CUmodule handle, std::shared_ptr<const PlacedVariables>* variables) {
  Module module;
  const CUresult code = FindModule(handle, &module);
  if (code == CUDA_SUCCESS) *variables = module.variables;
  return code;
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
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr || bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitRequest request;
  code = JitRequest::Read(JitRequest::Call::kLoad, count, options, values, &request);
  return code != CUDA_SUCCESS ? code : LoadFrom(WholeImage(bytes), request, incarnation, handle);
}

CUresult ModuleLoad(CUmodule* handle, const char* path) {
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string data;
  code = ReadFile(path, &data);
  return code != CUDA_SUCCESS ? code : LoadFrom(data, JitRequest(), incarnation, handle);
}

// It takes a cubin and PTX, too.
CUresult ModuleLoadFatBinary(CUmodule* handle, const void* image) {
  return ModuleLoadData(handle, image);
}

CUresult ModuleUnload(CUmodule handle) {
  Module module;
  // Unlike the other calls, which find that it is gone: a real driver crashes.
  if (Modules().Find(handle, &module) == Handled::kGone) {
    PanicHandle(handle, "the module was unloaded");
  }
  CUresult code = FindModule(handle, &module);
  if (code == CUDA_SUCCESS) code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  if (module.library != nullptr) return CUDA_ERROR_NOT_PERMITTED;
  Schedule::WaitForContext(module.incarnation.id);
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
  // Lazy loading is the default since CUDA 12.2 (the programming guide's "Lazy Loading").
  const char* by_default = Process::DriverVersion() < 12020 ? "EAGER" : "LAZY";
  const char* asked = secure_getenv("CUDA_MODULE_LOADING");
  const bool eager = std::strcmp(asked != nullptr ? asked : by_default, "EAGER") == 0;
  *mode = eager ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
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

}  // namespace cudasim::driver
