// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/library.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "driver/api.h"
#include "driver/code/file.h"
#include "driver/code/image.h"
#include "driver/code/image/ptx.h"
#include "driver/code/jit.h"
#include "driver/code/module.h"
#include "driver/context/device.h"
#include "driver/context/stack.h"
#include "driver/handle_table.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {
namespace {

// By the id of the incarnation they are in.
struct ModulesOfContexts {
  std::mutex mutex;
  std::map<std::uint64_t, CUmodule> by_incarnation;
};

struct Library {
  Eternal incarnation;
  CUresult code = CUDA_SUCCESS;  // of its image, told when it is used
  Image image;
  LibraryParts parts;
  std::map<std::string, CUkernel, std::less<>> kernels;
  std::shared_ptr<ModulesOfContexts> modules;
};

struct Kernel {
  Eternal incarnation;
  CUlibrary library = nullptr;
  std::shared_ptr<const PtxEntry> entry;
  std::shared_ptr<KernelSettings> settings;
};

HandleTable<CUlibrary, Library>& Libraries() {
  static auto& table = *new HandleTable<CUlibrary, Library>(19);
  return table;
}
HandleTable<CUkernel, Kernel>& Kernels() {
  static auto& table = *new HandleTable<CUkernel, Kernel>(20);
  return table;
}

// Panics unless it is there: a real driver may answer from what lies in its memory
// still, and crashes at the next call (measured on an H200, driver 580.159.04).
CUresult FindLibrary(CUlibrary handle, Library* library) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Handled found = Libraries().Find(handle, library);
  if (found == Handled::kNever) PanicHandle(handle, "this never was a library");
  if (found != Handled::kAlive) PanicHandle(handle, "the library was unloaded");
  return CUDA_SUCCESS;
}

CUresult FindKernel(CUkernel handle, Kernel* kernel) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Handled found = Kernels().Find(handle, kernel);
  if (found == Handled::kNever) PanicHandle(handle, "this never was a kernel");
  if (found != Handled::kAlive) PanicHandle(handle, "the library of the kernel was unloaded");
  return CUDA_SUCCESS;
}

CUresult FindKernelOn(CUkernel handle, CUdevice device, Kernel* kernel) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return IsDevice(device) ? FindKernel(handle, kernel) : CUDA_ERROR_INVALID_DEVICE;
}

FunctionSettings& SettingsOn(const Kernel& kernel, CUdevice device) {
  return *(*kernel.settings)[static_cast<size_t>(device)];
}

std::shared_ptr<KernelSettings> MakeSettings() {
  auto settings = std::make_shared<KernelSettings>();
  for (auto& of_device : *settings) of_device = std::make_shared<FunctionSettings>();
  return settings;
}

void AddKernels(CUlibrary handle, Library* library) {
  library->parts.library = handle;
  for (const PtxEntry& entry : library->image.entries) {
    const Kernel kernel = {{}, handle, std::make_shared<const PtxEntry>(entry), MakeSettings()};
    library->parts.settings[entry.name] = kernel.settings;
    static_cast<void>(Kernels().Add(kernel, &library->kernels[entry.name]));
  }
}

CUresult AddManaged(Library* library) {
  auto placed = std::make_shared<PlacedVariables>();
  const CUresult code = PlaceManaged(library->image.variables, placed.get());
  if (code == CUDA_SUCCESS) library->parts.managed = placed;
  return code;
}

CUresult LoadIn(const Library& library, const Incarnation& incarnation, CUmodule* module) {
  if (library.code != CUDA_SUCCESS) return library.code;
  const std::lock_guard<std::mutex> lock(library.modules->mutex);
  const auto found = library.modules->by_incarnation.find(incarnation.id);
  if (found != library.modules->by_incarnation.end()) {
    *module = found->second;
    return CUDA_SUCCESS;
  }
  const CUresult code = LoadModule(library.image, library.parts, incarnation, module);
  if (code == CUDA_SUCCESS) library.modules->by_incarnation.emplace(incarnation.id, *module);
  return code;
}

CUresult CheckOptions(CUlibraryOption* library_options, unsigned library_count) {
  if (library_count > 0 && library_options == nullptr) PanicNull();
  const bool known = std::all_of(library_options, library_options + library_count, [](auto option) {
    return option == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE ||
           option == CU_LIBRARY_BINARY_IS_PRESERVED;
  });
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult LoadFrom(std::string_view bytes, const JitRequest& request, CUlibrary* handle) {
  Library library;
  const JitOutcome outcome = ReadImage(bytes, request, &library.image);
  request.Answer(outcome);
  library.code = outcome.code;
  if (library.code != CUDA_SUCCESS) library.image = Image();
  const CUresult code = AddManaged(&library);
  if (code != CUDA_SUCCESS) return code;
  library.modules = std::make_shared<ModulesOfContexts>();
  static_cast<void>(Libraries().Add(library, handle));
  AddKernels(*handle, &library);
  Libraries().Set(*handle, library);
  return CUDA_SUCCESS;
}

}  // namespace

bool IsKernel(CUfunction handle) {
  Kernel kernel;
  return Kernels().Find(reinterpret_cast<CUkernel>(handle), &kernel) != Handled::kNever;
}

CUresult FunctionOfKernel(CUkernel handle, const Incarnation& incarnation, CUfunction* function) {
  Kernel kernel;
  CUresult code = FindKernel(handle, &kernel);
  if (code != CUDA_SUCCESS) return code;
  Library library;
  code = FindLibrary(kernel.library, &library);
  if (code != CUDA_SUCCESS) return code;
  CUmodule module = nullptr;
  code = LoadIn(library, incarnation, &module);
  return code != CUDA_SUCCESS ? code
                              : ModuleGetFunction(function, module, kernel.entry->name.c_str());
}

CUresult FindManagedOf(CUlibrary handle, std::shared_ptr<const PlacedVariables>* variables) {
  Library library;
  const CUresult code = FindLibrary(handle, &library);
  if (code != CUDA_SUCCESS) return code;
  *variables = library.parts.managed;
  return library.code;
}

size_t CountLibraries() { return Libraries().CountAlive(); }

// The image is copied and compiled, and the compiler's logs are written; the code of what is
// wrong with it is returned at its first use.
CUresult LibraryLoadData(CUlibrary* handle, const void* bytes, CUjit_option* options, void** values,
                         unsigned count, CUlibraryOption* library_options,
                         void** /*library_values*/, unsigned library_count) {
  if (handle == nullptr || bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitRequest request;
  CUresult code = JitRequest::Read(JitRequest::Call::kLoad, count, options, values, &request);
  if (code == CUDA_SUCCESS) code = CheckOptions(library_options, library_count);
  return code != CUDA_SUCCESS ? code : LoadFrom(WholeImage(bytes), request, handle);
}

CUresult LibraryLoadFromFile(CUlibrary* handle, const char* path, CUjit_option* options,
                             void** values, unsigned count, CUlibraryOption* library_options,
                             void** /*library_values*/, unsigned library_count) {
  if (handle == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitRequest request;
  CUresult code = JitRequest::Read(JitRequest::Call::kLoad, count, options, values, &request);
  if (code == CUDA_SUCCESS) code = CheckOptions(library_options, library_count);
  std::string data;
  if (code == CUDA_SUCCESS) code = ReadFile(path, &data);
  if (code == CUDA_SUCCESS && data.empty()) code = CUDA_ERROR_INVALID_IMAGE;
  return code != CUDA_SUCCESS ? code : LoadFrom(data, request, handle);
}

CUresult LibraryUnload(CUlibrary handle) {
  Library library;
  CUresult code = FindLibrary(handle, &library);
  if (code == CUDA_SUCCESS) code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  Schedule::WaitForAll();
  Libraries().Remove(handle);
  for (const auto& kernel : library.kernels) Kernels().Remove(kernel.second);
  const std::lock_guard<std::mutex> lock(library.modules->mutex);
  for (const auto& module : library.modules->by_incarnation) UnloadModule(module.second);
  RemoveVariables(*library.parts.managed, {});
  return CUDA_SUCCESS;
}

CUresult LibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Library library;
  const CUresult code = FindLibrary(handle, &library);
  if (code != CUDA_SUCCESS) return code;
  if (library.code != CUDA_SUCCESS) return library.code;
  const auto found = library.kernels.find(name);
  if (found == library.kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *kernel = found->second;
  return CUDA_SUCCESS;
}

// None, of an image that cannot be used.
CUresult LibraryGetKernelCount(unsigned* count, CUlibrary handle) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Library library;
  const CUresult code = FindLibrary(handle, &library);
  if (code == CUDA_SUCCESS) *count = static_cast<unsigned>(library.kernels.size());
  return code;
}

CUresult LibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary handle) {
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Library library;
  const CUresult code = FindLibrary(handle, &library);
  if (code != CUDA_SUCCESS) return code;
  for (const auto& kernel : library.kernels) {
    if (count-- == 0) break;
    *kernels++ = kernel.second;
  }
  return CUDA_SUCCESS;
}

CUresult LibraryGetModule(CUmodule* module, CUlibrary handle) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Library library;
  CUresult code = FindLibrary(handle, &library);
  if (code != CUDA_SUCCESS) return code;
  Incarnation incarnation;
  code = CurrentReady(&incarnation);
  return code != CUDA_SUCCESS ? code : LoadIn(library, incarnation, module);
}

CUresult KernelGetFunction(CUfunction* function, CUkernel handle) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Kernel kernel;
  CUresult code = FindKernel(handle, &kernel);
  if (code != CUDA_SUCCESS) return code;
  Incarnation incarnation;
  code = CurrentReady(&incarnation);
  return code != CUDA_SUCCESS ? code : FunctionOfKernel(handle, incarnation, function);
}

CUresult KernelGetLibrary(CUlibrary* library, CUkernel handle) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Kernel kernel;
  const CUresult code = FindKernel(handle, &kernel);
  if (code == CUDA_SUCCESS) *library = kernel.library;
  return code;
}

// The text lives as long as the library.
CUresult KernelGetName(const char** name, CUkernel handle) {
  if (name == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Kernel kernel;
  const CUresult code = FindKernel(handle, &kernel);
  if (code == CUDA_SUCCESS) *name = kernel.entry->name.c_str();
  return code;
}

CUresult KernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
  if (offset == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  Kernel kernel;
  code = FindKernel(handle, &kernel);
  return code != CUDA_SUCCESS ? code : GetParameter(*kernel.entry, index, offset, size);
}

// What is asked or set of a kernel on a device needs no context.
CUresult KernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                            CUdevice device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Kernel kernel;
  const CUresult code = FindKernelOn(handle, device, &kernel);
  return code != CUDA_SUCCESS
             ? code
             : SettingsOn(kernel, device).Get(kernel.entry->traits, attribute, value);
}

CUresult KernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                            CUdevice device) {
  Kernel kernel;
  const CUresult code = FindKernelOn(handle, device, &kernel);
  return code != CUDA_SUCCESS
             ? code
             : SettingsOn(kernel, device).Set(kernel.entry->traits, attribute, value);
}

CUresult KernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  Kernel kernel;
  const CUresult code = FindKernelOn(handle, device, &kernel);
  return code != CUDA_SUCCESS ? code : CheckCacheConfig(config);
}

}  // namespace cudasim::driver
