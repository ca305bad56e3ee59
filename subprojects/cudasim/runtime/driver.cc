// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/runtime/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "lib/sim/control.h"
#include "lib/sim/panic.h"

#define CUGUEST_SIM_RUNTIME_TEXT_(text) #text
#define CUGUEST_SIM_RUNTIME_TEXT(text) CUGUEST_SIM_RUNTIME_TEXT_(text)

namespace cuguest_sim_runtime {
namespace {

DriverApi api;
int device_count = 0;
constexpr int kOldestRuntime = 12000;  // that cuguest can be built with

void* Library() {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

// The simulated driver's table; nullptr where the driver is another one.
const cuguest_sim::Control* FindControl() {
  void* symbol = dlsym(Library(), cuguest_sim::kControlSymbol);
  if (symbol == nullptr) return nullptr;
  const auto* control = reinterpret_cast<const cuguest_sim::Control* (*)()>(symbol)();
  return control->version == cuguest_sim::kControlVersion ? control : nullptr;
}

// An older simulated driver does not export all of these; a real runtime of its time did the
// same through tables of its own.
template <typename Function>
void Find(const char* symbol, Function* function) {
  static const cuguest_sim::Control* const control = FindControl();
  *function = reinterpret_cast<Function>(control != nullptr ? control->find_entry(symbol)
                                                            : dlsym(Library(), symbol));
  if (*function == nullptr) {
    cuguest_sim::Panic("libcuda.so.1 has no %s, which the simulated runtime is written on", symbol);
  }
}

void FindAll() {
#define CUGUEST_SIM_RUNTIME_FIND(name) Find(CUGUEST_SIM_RUNTIME_TEXT(name), &api.name);
#define CUGUEST_SIM_RUNTIME_FIND_TWINS(name)          \
  Find(CUGUEST_SIM_RUNTIME_TEXT(name), &api.name[0]); \
  Find(CUGUEST_SIM_RUNTIME_TEXT(name) "_ptds", &api.name[1]);
  CUGUEST_SIM_RUNTIME_DRIVER(CUGUEST_SIM_RUNTIME_FIND)
  CUGUEST_SIM_RUNTIME_DRIVER_TWINS(CUGUEST_SIM_RUNTIME_FIND_TWINS)
#undef CUGUEST_SIM_RUNTIME_FIND
#undef CUGUEST_SIM_RUNTIME_FIND_TWINS
}

// "12.4" is 12040; 0 for what is no version.
int ParseVersion(const char* text) {
  int major = 0;
  int minor = 0;
  return std::sscanf(text, "%d.%d", &major, &minor) == 2 ? major * 1000 + minor * 10 : 0;
}

int ReadRuntimeVersion() {
  const char* asked = std::getenv("CUGUEST_SIM_RUNTIME_VERSION");
  if (asked == nullptr) return CUDART_VERSION;
  const int version = ParseVersion(asked);
  if (version < kOldestRuntime || version > CUDART_VERSION) {
    cuguest_sim::Panic("CUGUEST_SIM_RUNTIME_VERSION=%s: 12.0 to %d.%d", asked,
                       CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  return version;
}

cudaError_t Open() {
  int version = 0;
  const cudaError_t code = DriverVersion(&version);
  if (code != cudaSuccess) return code;
  if (version / 1000 < RuntimeVersion() / 1000) return cudaErrorInsufficientDriver;
  FindAll();
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

int RuntimeVersion() {
  static const int version = ReadRuntimeVersion();
  return version;
}

}  // namespace cuguest_sim_runtime
