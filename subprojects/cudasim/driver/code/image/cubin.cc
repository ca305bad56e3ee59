// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/image/cubin.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "driver/code/function_attribute.h"
#include "driver/code/image/ptx_variable.h"

namespace cudasim::driver {
namespace {

using cudaimage::CubinAttribute;
using cudaimage::ElfSection;

// Calls `visit` for each attribute of a .nv.info section, up to where it is damaged.
template <typename Visit>
void ForEachAttribute(const ElfSection& list, const Visit& visit) {
  const auto take = [&visit](CubinAttribute number, const cudaimage::Bytes& value) {
    visit(number, value);
    return cudaimage::Status();
  };
  static_cast<void>(cudaimage::ForEachRecord(list.bytes, take));
}

// Parameters and traits of a kernel.

constexpr size_t kReservedShared = 1024;  // of each block, for the system

// In the module's list: a symbol and a number.
struct OfSymbol {
  std::uint32_t symbol;
  std::uint32_t value;
};

void ReadModuleList(const cudaimage::Cubin& cubin, size_t symbol, FunctionTraits* traits) {
  const ElfSection* info = cubin.file.Find(".nv.info");
  if (info == nullptr) return;
  ForEachAttribute(*info, [&](CubinAttribute number, const cudaimage::Bytes& bytes) {
    if (!bytes.Has(0, sizeof(OfSymbol))) return;
    const auto value = bytes.At<OfSymbol>(0);
    if (value.symbol != symbol) return;
    if (number == CubinAttribute::kRegisterCount) traits->registers = value.value;
    if (number == CubinAttribute::kFrameSize) traits->local = value.value;
  });
}

using Threads = std::array<std::uint32_t, 3>;

void ReadOwnList(const ElfSection& info, FunctionTraits* traits) {
  ForEachAttribute(info, [&](CubinAttribute number, const cudaimage::Bytes& bytes) {
    const bool required = number == CubinAttribute::kRequiredBlock;
    if (!required && number != CubinAttribute::kMaxThreads) return;
    if (!bytes.Has(0, sizeof(Threads))) return;
    const auto threads = bytes.At<Threads>(0);
    for (size_t i = 0; i < 3 && required; ++i) traits->required_block[i] = threads[i];
    traits->max_threads = threads[0] * threads[1] * threads[2];
  });
}

// The architecture that the PTX was for: in a note, behind its header, the maker's name
// and a version.
void ReadPtxVersion(const cudaimage::Cubin& cubin, FunctionTraits* traits) {
  struct Note {
    std::uint32_t header[3];
    char maker[12];
    std::uint16_t version;
    std::uint16_t architecture;
  };
  const ElfSection* section = cubin.file.Find(".note.nv.cuinfo");
  if (section != nullptr && section->bytes.Has(0, sizeof(Note))) {
    traits->ptx_version = section->bytes.At<Note>(0).architecture;
  }
}

// `symbol` is the kernel's place in cubin.symbols.
FunctionTraits ReadCubinTraits(const cudaimage::Cubin& cubin, size_t symbol) {
  FunctionTraits traits;
  const std::string name(cubin.symbols[symbol].name);
  ReadModuleList(cubin, symbol, &traits);
  const ElfSection* info = cubin.file.Find(".nv.info." + name);
  if (info != nullptr) ReadOwnList(*info, &traits);
  const ElfSection* shared = cubin.file.Find(".nv.shared." + name);
  if (shared != nullptr && shared->header.sh_size > kReservedShared) {
    traits.static_shared = shared->header.sh_size - kReservedShared;
  }
  const ElfSection* constants = cubin.file.Find(".nv.constant3");
  if (constants != nullptr) traits.constant = constants->header.sh_size;
  ReadPtxVersion(cubin, &traits);
  return traits;
}

struct ParameterValue {
  std::uint32_t index;
  std::uint16_t ordinal;
  std::uint16_t offset;
  std::uint32_t size;  // unless large: from bit 18
};

using Parameters = std::map<size_t, PtxParameter>;  // by ordinal

Parameters ReadParameters(const ElfSection& info) {
  Parameters parameters;
  ForEachAttribute(info, [&](CubinAttribute number, const cudaimage::Bytes& bytes) {
    const bool large = number == CubinAttribute::kLargeParameter;
    if (!large && number != CubinAttribute::kParameter) return;
    if (!bytes.Has(0, sizeof(ParameterValue))) return;
    const auto value = bytes.At<ParameterValue>(0);
    PtxParameter& parameter = parameters[value.ordinal];
    parameter.offset = value.offset;
    parameter.size = large ? value.size : value.size >> 18;
  });
  return parameters;
}

PtxEntry ReadKernel(const cudaimage::Cubin& cubin, size_t symbol) {
  PtxEntry entry;
  entry.name = std::string(cubin.symbols[symbol].name);
  entry.traits = ReadCubinTraits(cubin, symbol);
  const ElfSection* info = cubin.file.Find(".nv.info." + entry.name);
  if (info == nullptr) return entry;
  for (const auto& parameter : ReadParameters(*info)) {
    entry.parameters.push_back(parameter.second);
  }
  return entry;
}

// Variables, and their initial values.

constexpr std::uint8_t kManagedMark = 4;
constexpr size_t kMostAlignment = 16;

bool HoldsVariables(std::string_view section) {
  return section == ".nv.global" || section == ".nv.global.init" || section == ".nv.constant3";
}

// What its place in the section allows: the file does not say more.
size_t AlignmentOf(std::uint64_t place) {
  return place == 0 ? kMostAlignment : std::min<size_t>(place & (~place + 1), kMostAlignment);
}

Variable ReadVariable(const cudaimage::CubinSymbol& symbol, const ElfSection& section) {
  Variable variable;
  variable.name = std::string(symbol.name);
  variable.size = symbol.entry.st_size;
  variable.alignment = AlignmentOf(symbol.entry.st_value);
  variable.is_constant = section.name == ".nv.constant3";
  variable.is_managed = (symbol.entry.st_other & kManagedMark) != 0;
  if (symbol.entry.st_value < section.bytes.size()) {
    const std::string_view value =
        section.bytes.text().substr(symbol.entry.st_value, symbol.entry.st_size);
    variable.value.assign(value.begin(), value.end());
  }
  return variable;
}

// Global, constant and managed ones, in the order of their symbols. Addresses of others in
// their values are not read: those bytes are zeros.
std::vector<Variable> ReadCubinVariables(const cudaimage::Cubin& cubin) {
  std::vector<Variable> variables;
  for (const cudaimage::CubinSymbol& symbol : cubin.symbols) {
    if (symbol.type() != STT_OBJECT || symbol.section == SHN_UNDEF) continue;
    const ElfSection& section = cubin.file.sections[symbol.section];
    const bool inside = symbol.entry.st_value <= section.header.sh_size &&
                        symbol.entry.st_size <= section.header.sh_size - symbol.entry.st_value;
    if (HoldsVariables(section.name) && inside) variables.push_back(ReadVariable(symbol, section));
  }
  return variables;
}

}  // namespace

bool ReadCubinTables(std::string_view bytes, cudaimage::Cubin* cubin) {
  const cudaimage::Bytes all(bytes);
  return cudaimage::IsDeviceElf(all) && cudaimage::Cubin::Read(all, cubin).ok() &&
         !cubin->file.sections.empty();
}

CUresult ReadCubin(std::string_view bytes, int architecture, Image* image) {
  cudaimage::Cubin cubin;
  if (!ReadCubinTables(bytes, &cubin)) return CUDA_ERROR_INVALID_IMAGE;
  if (cubin.Architecture() != architecture) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  for (size_t i = 0; i < cubin.symbols.size(); ++i) {
    if (cubin.symbols[i].IsKernel()) image->entries.push_back(ReadKernel(cubin, i));
  }
  image->variables = ReadCubinVariables(cubin);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
