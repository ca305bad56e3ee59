// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exported symbols and the table of them. The symbol is given as an asm label, since
// <cuda_runtime_api.h> declares the names, and a twin's not at all.

#include <string_view>
#include <type_traits>

#include "runtime/api.h"
#include "runtime/driver.h"
#include "runtime/entry.h"

// Deprecated calls are exported, too.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace cudasim::runtime {
namespace {

enum Row : size_t {
#define CUDASIM_RUNTIME_ROW(Name, Function, floor, parameters, arguments) kRow_##Name,
#define CUDASIM_RUNTIME_ROW_TWIN(Name, twin, Function, floor, parameters, arguments) \
  kRow_##Name, kRow_##Name##_twin,
  CUDASIM_RUNTIME_ENTRIES(CUDASIM_RUNTIME_ROW, CUDASIM_RUNTIME_ROW_TWIN)
#undef CUDASIM_RUNTIME_ROW
#undef CUDASIM_RUNTIME_ROW_TWIN
      kRowCount
};

const Entry& EntryAt(size_t row) { return Entries().begin_row[row]; }

using cudasim::driver::CallReport;
using cudasim::driver::PointersTo;

template <size_t count>
CallReport Report(size_t row, const std::array<const void*, count>& arguments) {
  const Entry& entry = EntryAt(row);
  return CallReport(TheTool(), cudasimRuntimeCall, row, entry.name, entry.symbol, arguments);
}

}  // namespace

#define CUDASIM_RUNTIME_EXPORT_AS(symbol, Name, id, Function, parameters, arguments)         \
  extern "C" __attribute__((visibility("default")))                                          \
  cudaError_t Export_##id parameters __asm__(symbol);                                        \
  cudaError_t Export_##id parameters {                                                       \
    const auto pointers = PointersTo arguments;                                              \
    CallReport report = Report(kRow_##id, pointers);                                         \
    const EntryScope scope(EntryAt(kRow_##id));                                              \
    return report.Leave(                                                                     \
        scope.Leave(scope.refusal() != cudaSuccess ? scope.refusal() : Function arguments)); \
  }                                                                                          \
  static_assert(std::is_same_v<decltype(&Export_##id), decltype(&::cuda##Name)>);
#define CUDASIM_RUNTIME_EXPORT(Name, Function, floor, parameters, arguments) \
  CUDASIM_RUNTIME_EXPORT_AS("cuda" #Name, Name, Name, Function, parameters, arguments)
#define CUDASIM_RUNTIME_EXPORT_TWIN(Name, twin, Function, floor, parameters, arguments)      \
  CUDASIM_RUNTIME_EXPORT(Name, Function, floor, parameters, arguments)                       \
  CUDASIM_RUNTIME_EXPORT_AS("cuda" #Name "_" #twin, Name, Name##_twin, Function, parameters, \
                            arguments)
CUDASIM_RUNTIME_ENTRIES(CUDASIM_RUNTIME_EXPORT, CUDASIM_RUNTIME_EXPORT_TWIN)

// What the stubs of nvcc call for a launch, under the counters of the calls that they are.
#define CUDASIM_RUNTIME_EXPORT_LAUNCH(symbol, Row)                                              \
  extern "C" __attribute__((visibility("default")))                                             \
  cudaError_t Stub_##Row(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,          \
                         size_t shared_bytes, cudaStream_t stream) __asm__(symbol);             \
  cudaError_t Stub_##Row(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,          \
                         size_t shared_bytes, cudaStream_t stream) {                            \
    const auto pointers = PointersTo(kernel, grid, block, arguments, shared_bytes, stream);     \
    CallReport report = Report(kRow_##Row, pointers);                                           \
    const EntryScope scope(EntryAt(kRow_##Row));                                                \
    return report.Leave(                                                                        \
        scope.Leave(scope.refusal() != cudaSuccess                                              \
                        ? scope.refusal()                                                       \
                        : LaunchKernel(kernel, grid, block, arguments, shared_bytes, stream))); \
  }
CUDASIM_RUNTIME_EXPORT_LAUNCH("__cudaLaunchKernel", LaunchKernel)
CUDASIM_RUNTIME_EXPORT_LAUNCH("__cudaLaunchKernel_ptsz", LaunchKernel_twin)

extern "C" __attribute__((visibility("default"))) cudaError_t Stub_GetKernel(
    cudaKernel_t* kernel, const void* symbol) __asm__("__cudaGetKernel");
cudaError_t Stub_GetKernel(cudaKernel_t* kernel, const void* symbol) {
  const EntryScope scope(EntryAt(kRow_GetKernel));
  return scope.Leave(scope.refusal() != cudaSuccess ? scope.refusal() : GetKernel(kernel, symbol));
}

// Without a counter: they neither fail nor do anything.
extern "C" {
__attribute__((visibility("default"))) const char* Export_GetErrorName(cudaError_t code) __asm__(
    "cudaGetErrorName");
const char* Export_GetErrorName(cudaError_t code) { return GetErrorName(code); }

__attribute__((visibility("default"))) const char* Export_GetErrorString(cudaError_t code) __asm__(
    "cudaGetErrorString");
const char* Export_GetErrorString(cudaError_t code) { return GetErrorString(code); }

__attribute__((visibility("default"))) cudaChannelFormatDesc Export_CreateChannelDesc(
    int x, int y, int z, int w, cudaChannelFormatKind kind) __asm__("cudaCreateChannelDesc");
cudaChannelFormatDesc Export_CreateChannelDesc(int x, int y, int z, int w,
                                               cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
}

namespace {

constexpr std::string_view kNames[] = {
#define CUDASIM_RUNTIME_NAME(Name, Function, floor, parameters, arguments) "cuda" #Name,
#define CUDASIM_RUNTIME_NAME_TWIN(Name, twin, Function, floor, parameters, arguments) \
  "cuda" #Name, "cuda" #Name,
    CUDASIM_RUNTIME_ENTRIES(CUDASIM_RUNTIME_NAME, CUDASIM_RUNTIME_NAME_TWIN)};

constexpr size_t FirstOfName(size_t row) {
  while (row > 0 && kNames[row - 1] == kNames[row]) --row;
  return row;
}

#define CUDASIM_RUNTIME_ENTRY(Name, Function, floor, parameters, arguments) \
  {"cuda" #Name, "cuda" #Name, Floor::floor, false, FirstOfName(kRow_##Name)},
#define CUDASIM_RUNTIME_ENTRY_TWIN(Name, twin, Function, floor, parameters, arguments) \
  CUDASIM_RUNTIME_ENTRY(Name, Function, floor, parameters, arguments){                 \
      "cuda" #Name, "cuda" #Name "_" #twin, Floor::floor, true, FirstOfName(kRow_##Name)},

// Constant-initialised: an entry may be called from a constructor of any library.
constexpr Entry kEntries[kRowCount] = {
    CUDASIM_RUNTIME_ENTRIES(CUDASIM_RUNTIME_ENTRY, CUDASIM_RUNTIME_ENTRY_TWIN)};
constexpr EntryTable kTable = {kEntries, kRowCount};

}  // namespace

const EntryTable& Entries() { return kTable; }

}  // namespace cudasim::runtime
