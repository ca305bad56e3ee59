// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/driver.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "driver/control.h"
#include "driver/environment.h"
#include "driver/panic.h"

#define CUDASIM_RUNTIME_TEXT_(text) #text
#define CUDASIM_RUNTIME_TEXT(text) CUDASIM_RUNTIME_TEXT_(text)

namespace cudasim::runtime {
namespace {

DriverApi api;
int device_count = 0;
std::atomic<const cudasim::driver::Tool*> the_tool{nullptr};
constexpr int kOldestRuntime = 12000;  // whose headers the simulation is written against
// It has what came until then that it models: execution contexts.
constexpr int kNewestRuntime = std::max(CUDART_VERSION, 13050);

void* Library() {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

// The simulated driver's table; nullptr where there is no driver, or another one.
const cudasim::driver::Control* FindControl(void* library) {
  void* symbol = library != nullptr ? dlsym(library, cudasim::driver::kControlSymbol) : nullptr;
  if (symbol == nullptr) return nullptr;
  const auto* control = reinterpret_cast<const cudasim::driver::Control* (*)()>(symbol)();
  return control->version == cudasim::driver::kControlVersion ? control : nullptr;
}

const cudasim::driver::Control* TheControl() {
  static const cudasim::driver::Control* const control = FindControl(Library());
  return control;
}

// An older simulated driver does not export all of these; a real runtime of its time did the
// same through tables of its own.
template <typename Function>
void Find(const char* symbol, Function* function) {
  const cudasim::driver::Control* const control = TheControl();
  *function = reinterpret_cast<Function>(control != nullptr ? control->find_entry(symbol)
                                                            : dlsym(Library(), symbol));
  if (*function == nullptr) {
    cudasim::driver::Panic("libcuda.so.1 has no %s, which the simulated runtime is written on",
                           symbol);
  }
}

void FindAll() {
#define CUDASIM_RUNTIME_FIND(name) Find(CUDASIM_RUNTIME_TEXT(name), &api.name);
#define CUDASIM_RUNTIME_FIND_TWINS(name)          \
  Find(CUDASIM_RUNTIME_TEXT(name), &api.name[0]); \
  Find(CUDASIM_RUNTIME_TEXT(name) "_ptds", &api.name[1]);
  CUDASIM_RUNTIME_DRIVER(CUDASIM_RUNTIME_FIND)
  CUDASIM_RUNTIME_DRIVER_TWINS(CUDASIM_RUNTIME_FIND_TWINS)
#undef CUDASIM_RUNTIME_FIND
#undef CUDASIM_RUNTIME_FIND_TWINS
}

// "12.4" is 12040; 0 for what is no version.
int ParseVersion(const char* text) {
  int major = 0;
  int minor = 0;
  int size = 0;
  const bool is_one =
      std::sscanf(text, "%2d.%1d%n", &major, &minor, &size) == 2 && text[size] == '\0';
  return is_one ? major * 1000 + minor * 10 : 0;
}

int ReadRuntimeVersion() {
  const char* asked = Setting("RUNTIME_VERSION");
  if (asked == nullptr) return CUDART_VERSION;
  const int version = ParseVersion(asked);
  if (version < kOldestRuntime || version > kNewestRuntime) {
    cudasim::driver::Panic("CUDASIM_RUNTIME_VERSION=%s: 12.0 to %d.%d", asked,
                           kNewestRuntime / 1000, kNewestRuntime % 1000 / 10);
  }
  return version;
}

// Does nothing for nullptr, and for a driver that is not simulated.
void FindTool(void* library) {
  if (const auto* control = FindControl(library)) the_tool.store(&control->tool());
}

cudaError_t Open() {
  int version = 0;
  const cudaError_t code = DriverVersion(&version);
  if (code != cudaSuccess) return code;
  if (version / 1000 < RuntimeVersion() / 1000) return cudaErrorInsufficientDriver;
  FindAll();
  FindTool(Library());
  const CUresult initialized = api.cuInit(0);
  if (initialized != CUDA_SUCCESS) return ToError(initialized);
  return ToError(api.cuDeviceGetCount(&device_count));
}

}  // namespace

cudaError_t EnsureDriver() {
  static const cudaError_t opened = Open();
  return opened;
}

cudaError_t DriverVersion(int* version) {
  *version = 0;
  if (Library() == nullptr) return cudaSuccess;
  decltype(&::cuDriverGetVersion) get_version = nullptr;
  Find("cuDriverGetVersion", &get_version);
  return ToError(get_version(version));
}

const DriverApi& Driver() { return api; }

int DeviceCount() { return device_count; }

CUcontext PrimaryHandle(int device) {
  const cudasim::driver::Control* const control = TheControl();
  return control != nullptr ? control->primary_handle(device) : nullptr;
}

// The runtime's first call is seen by a tool that is injected into the driver, and by one that has
// subscribed to the driver before.
const cudasim::driver::Tool* TheTool() {
  const cudasim::driver::Tool* tool = the_tool.load(std::memory_order_acquire);
  if (tool != nullptr) return tool;
  if (secure_getenv("CUDA_INJECTION64_PATH") != nullptr) {
    EnsureDriver();
  } else {
    FindTool(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
  }
  return the_tool.load(std::memory_order_acquire);
}

void CountUnmodelled(const char* symbol) {
  if (const auto* control = TheControl()) control->count_unmodelled(symbol);
}

int RuntimeVersion() {
  static const int version = ReadRuntimeVersion();
  return version;
}

}  // namespace cudasim::runtime
