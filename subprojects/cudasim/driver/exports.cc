// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exported symbols and the table of them.
//
// Note [Symbols by asm label]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// <cuda.h> declares only the newest version of most names and defines macros over
// them (cuCtxCreate is cuCtxCreate_v4, and the others are not declared at all), so
// the functions here have names of their own, and the symbol is given as an asm
// label. The signatures are checked against <cudaTypedefs.h>, which has them all
// when asked, in this one file, with the macro below.

#define __CUDA_API_VERSION_INTERNAL  // also the typedefs of superseded versions
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

#include <string_view>
#include <type_traits>

#include "driver/api.h"
#include "driver/entry.h"
#include "driver/error_log.h"
#include "driver/tool.h"

namespace cudasim::driver {
namespace {

enum Row : size_t {
#define CUDASIM_ROW(Base, version, suffix, Function, floor, parameters, arguments) \
  kRow_##Base##_##version,
#define CUDASIM_ROW_TWIN(Base, version, suffix, twin_version, twin_suffix, Function, floor, \
                         parameters, arguments)                                             \
  kRow_##Base##_##version, kRow_##Base##_##version##_twin,
  CUDASIM_ENTRIES(CUDASIM_ROW, CUDASIM_ROW_TWIN)
#undef CUDASIM_ROW
#undef CUDASIM_ROW_TWIN
      kRowCount
};

const Entry& EntryAt(size_t row) { return Entries().begin_row[row]; }

template <size_t count>
CallReport Report(size_t row, const std::array<const void*, count>& arguments) {
  const Entry& entry = EntryAt(row);
  return CallReport(&TheTool(), cudasimDriverCall, row, entry.base, entry.symbol, arguments);
}

// What is not modelled answers the same whatever it is called with: it has no parameters.
template <typename Export, typename Declared>
constexpr bool IsDeclared(std::string_view function) {
  return function == "NotModelled" || std::is_same_v<Export, Declared>;
}

#define CUDASIM_TYPEDEF(Base, version, ...) using PFN_cu##Base##_v##version = CUresult (*)();
#define CUDASIM_TYPEDEF_TWIN(Base, version, suffix, twin_version, twin_suffix, ...) \
  CUDASIM_TYPEDEF(Base, version, suffix)                                            \
  using PFN_cu##Base##_v##twin_version##_##twin_suffix = CUresult (*)();
CUDASIM_GRAPHICS_ENTRIES(CUDASIM_TYPEDEF, CUDASIM_TYPEDEF_TWIN)
CUDASIM_LATER_ENTRIES(CUDASIM_TYPEDEF, CUDASIM_TYPEDEF_TWIN)
#undef CUDASIM_TYPEDEF
#undef CUDASIM_TYPEDEF_TWIN
// Modelled, of 13.1.
using PFN_cuDevSmResourceSplit_v13010 = CUresult (*)(CUdevResource*, unsigned, const CUdevResource*,
                                                     CUdevResource*, unsigned, SmGroup*);
using PFN_cuStreamGetDevResource_v13010 = CUresult (*)(CUstream, CUdevResource*, CUdevResourceType);
using PFN_cuStreamGetDevResource_v13010_ptsz = PFN_cuStreamGetDevResource_v13010;

}  // namespace

#define CUDASIM_EXPORT_AS(symbol, id, Function, parameters, arguments)             \
  extern "C" __attribute__((visibility("default")))                                \
  CUresult Export_##id parameters __asm__(symbol);                                 \
  CUresult Export_##id parameters {                                                \
    const auto pointers = PointersTo arguments;                                    \
    CallReport report = Report(kRow_##id, pointers);                               \
    const EntryScope scope(EntryAt(kRow_##id));                                    \
    return report.Leave(Logged(EntryAt(kRow_##id), scope.refusal() != CUDA_SUCCESS \
                                                       ? scope.refusal()           \
                                                       : Function arguments));     \
  }
#define CUDASIM_EXPORT(Base, version, suffix, Function, floor, parameters, arguments)     \
  CUDASIM_EXPORT_AS("cu" #Base suffix, Base##_##version, Function, parameters, arguments) \
  static_assert(                                                                          \
      IsDeclared<decltype(&Export_##Base##_##version), PFN_cu##Base##_v##version>(#Function));
#define CUDASIM_EXPORT_TWIN(Base, version, suffix, twin_version, twin_suffix, Function, floor, \
                            parameters, arguments)                                             \
  CUDASIM_EXPORT(Base, version, suffix, Function, floor, parameters, arguments)                \
  CUDASIM_EXPORT_AS("cu" #Base suffix "_" #twin_suffix, Base##_##version##_twin, Function,     \
                    parameters, arguments)                                                     \
  static_assert(IsDeclared<decltype(&Export_##Base##_##version##_twin),                        \
                           PFN_cu##Base##_v##twin_version##_##twin_suffix>(#Function));
CUDASIM_ENTRIES(CUDASIM_EXPORT, CUDASIM_EXPORT_TWIN)

namespace {

constexpr std::string_view kBases[] = {
#define CUDASIM_BASE(Base, version, suffix, Function, floor, parameters, arguments) "cu" #Base,
#define CUDASIM_BASE_TWIN(Base, version, suffix, twin_version, twin_suffix, Function, floor, \
                          parameters, arguments)                                             \
  "cu" #Base, "cu" #Base,
    CUDASIM_ENTRIES(CUDASIM_BASE, CUDASIM_BASE_TWIN)};

// A number of each name, because to compare the texts of all pairs takes the compiler longer than
// all else here.
struct BaseNumbers {
  constexpr BaseNumbers() {
    for (size_t row = 0; row < kRowCount; ++row) {
      for (const char* letter = kBases[row].data(); *letter != 0; ++letter) {
        of[row] = (of[row] ^ static_cast<uint32_t>(*letter)) * 16777619u;  // FNV
      }
    }
  }
  uint32_t of[kRowCount] = {};
};
constexpr BaseNumbers kNumbers;

constexpr size_t FindFirstOfBase(size_t row) {
  const uint32_t* const numbers = kNumbers.of;
  size_t first = 0;
  while (numbers[first] != numbers[row] || kBases[first] != kBases[row]) ++first;
  return first;
}

// Each evaluated by itself: all at once would exceed a compiler's limit of steps.
template <size_t row>
constexpr size_t kFirstOfBase = FindFirstOfBase(row);

// A function, because the address as a void* is no constant expression.
template <auto function>
void* Address() {
  return reinterpret_cast<void*>(function);
}

#define CUDASIM_ADDRESS(id) &Address<&Export_##id>
#define CUDASIM_ENTRY(Base, version, suffix, Function, floor, parameters, arguments) \
  {"cu" #Base,                                                                       \
   "cu" #Base suffix,                                                                \
   version,                                                                          \
   Floor::floor,                                                                     \
   false,                                                                            \
   CUDASIM_ADDRESS(Base##_##version),                                                \
   kFirstOfBase<kRow_##Base##_##version>},
#define CUDASIM_ENTRY_TWIN(Base, version, suffix, twin_version, twin_suffix, Function, floor, \
                           parameters, arguments)                                             \
  CUDASIM_ENTRY(Base, version, suffix, Function, floor, parameters, arguments){               \
      "cu" #Base,                                                                             \
      "cu" #Base suffix "_" #twin_suffix,                                                     \
      twin_version,                                                                           \
      Floor::floor,                                                                           \
      true,                                                                                   \
      CUDASIM_ADDRESS(Base##_##version##_twin),                                               \
      kFirstOfBase<kRow_##Base##_##version##_twin>},

// Constant-initialised: an entry may be called from a constructor of any library.
constexpr Entry kEntries[kRowCount] = {CUDASIM_ENTRIES(CUDASIM_ENTRY, CUDASIM_ENTRY_TWIN)};
constexpr EntryTable kTable = {kEntries, kRowCount};

}  // namespace

const EntryTable& Entries() { return kTable; }

}  // namespace cudasim::driver
