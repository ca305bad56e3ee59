// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/runtime/driver.h"

#include <dlfcn.h>

#include "lib/sim/panic.h"

#define CUGUEST_SIM_RUNTIME_TEXT_(text) #text
#define CUGUEST_SIM_RUNTIME_TEXT(text) CUGUEST_SIM_RUNTIME_TEXT_(text)

namespace cuguest_sim_runtime {
namespace {

DriverApi api;
int device_count = 0;

template <typename Function>
void Find(void* library, const char* symbol, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (*function == nullptr) {
    cuguest_sim::Panic("libcuda.so.1 has no %s, which the simulated runtime is written on", symbol);
  }
}

void FindAll(void* library) {
#define CUGUEST_SIM_RUNTIME_FIND(name) Find(library, CUGUEST_SIM_RUNTIME_TEXT(name), &api.name);
#define CUGUEST_SIM_RUNTIME_FIND_TWINS(name)                   \
  Find(library, CUGUEST_SIM_RUNTIME_TEXT(name), &api.name[0]); \
  Find(library, CUGUEST_SIM_RUNTIME_TEXT(name) "_ptds", &api.name[1]);
  CUGUEST_SIM_RUNTIME_DRIVER(CUGUEST_SIM_RUNTIME_FIND)
  CUGUEST_SIM_RUNTIME_DRIVER_TWINS(CUGUEST_SIM_RUNTIME_FIND_TWINS)
#undef CUGUEST_SIM_RUNTIME_FIND
#undef CUGUEST_SIM_RUNTIME_FIND_TWINS
}

void* Library() {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

cudaError_t Open() {
  int version = 0;
  const cudaError_t code = DriverVersion(&version);
  if (code != cudaSuccess) return code;
  if (version / 1000 < CUDART_VERSION / 1000) return cudaErrorInsufficientDriver;
  FindAll(Library());
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
  Find(Library(), "cuDriverGetVersion", &get_version);
  return ToError(get_version(version));
}

const DriverApi& Driver() { return api; }

int DeviceCount() { return device_count; }

}  // namespace cuguest_sim_runtime
