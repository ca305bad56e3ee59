// SPDX-License-Identifier: Apache-2.0

#include "driver/code/image/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "driver/code/function_attribute.h"
#include "driver/code/image/elf.h"
#include "driver/code/image/ptx_variable.h"

namespace cudasim::driver {
namespace {

// The lists of attributes in the .nv.info sections.

// Those that are read here; numbers as nvcc's code has them.
enum class CubinAttribute : std::uint8_t {
  kMaxThreads = 0x05,
  kRequiredThreads = 0x10,
  kFrameSize = 0x11,
  kParameter = 0x17,
  kRegisters = 0x2f,
  kLargeParameter = 0x45,  // came with parameters of more than 4 KiB
};

// Calls `visit` with the number and the value of each that has a value of some size: a
// format, a number, two bytes of size, the value.
template <typename Visit>
void ForEachAttribute(std::string_view info, const Visit& visit) {
  struct {
    std::uint8_t format;
    std::uint8_t number;
    std::uint16_t size;
  } header;
  constexpr std::uint8_t kSizedValue = 4;
  while (info.size() >= sizeof(header)) {
    std::memcpy(&header, info.data(), sizeof(header));
    info.remove_prefix(sizeof(header));
    if (header.format != kSizedValue) continue;
    const std::string_view value = info.substr(0, header.size);
    visit(static_cast<CubinAttribute>(header.number), value);
    info.remove_prefix(value.size());
  }
}

// False if the value is shorter than that.
template <typename T>
bool ReadValue(std::string_view value, T* to) {
  if (value.size() < sizeof(T)) return false;
  std::memcpy(to, value.data(), sizeof(T));
  return true;
}

// Parameters and traits of a kernel.

constexpr size_t kReservedShared = 1024;  // of each block, for the system

// In the module's list: a symbol and a number.
struct OfSymbol {
  std::uint32_t symbol;
  std::uint32_t value;
};

void ReadModuleList(const Elf& elf, size_t symbol, FunctionTraits* traits) {
  const ElfSection* info = elf.Find(".nv.info");
  if (info == nullptr) return;
  ForEachAttribute(info->content, [&](CubinAttribute number, std::string_view bytes) {
    OfSymbol value;
    if (!ReadValue(bytes, &value) || value.symbol != symbol) return;
    if (number == CubinAttribute::kRegisters) traits->registers = value.value;
    if (number == CubinAttribute::kFrameSize) traits->local = value.value;
  });
}

void ReadOwnList(const ElfSection& info, FunctionTraits* traits) {
  ForEachAttribute(info.content, [&](CubinAttribute number, std::string_view bytes) {
    std::uint32_t threads[3];
    const bool required = number == CubinAttribute::kRequiredThreads;
    if (!required && number != CubinAttribute::kMaxThreads) return;
    if (!ReadValue(bytes, &threads)) return;
    for (int i = 0; i < 3 && required; ++i) traits->required_block[i] = threads[i];
    traits->max_threads = threads[0] * threads[1] * threads[2];
  });
}

// The architecture that the PTX was for: in a note, behind its header, the maker's name
// and a version.
void ReadPtxVersion(const Elf& elf, FunctionTraits* traits) {
  struct {
    std::uint32_t header[3];
    char maker[12];
    std::uint16_t version;
    std::uint16_t architecture;
  } note;
  const ElfSection* section = elf.Find(".note.nv.cuinfo");
  if (section != nullptr && ReadValue(section->content, &note)) {
    traits->ptx_version = note.architecture;
  }
}

// `symbol` is the kernel's place in elf.symbols.
FunctionTraits ReadCubinTraits(const Elf& elf, size_t symbol) {
  FunctionTraits traits;
  const std::string name(elf.symbols[symbol].name);
  ReadModuleList(elf, symbol, &traits);
  const ElfSection* info = elf.Find(".nv.info." + name);
  if (info != nullptr) ReadOwnList(*info, &traits);
  const ElfSection* shared = elf.Find(".nv.shared." + name);
  if (shared != nullptr && shared->size > kReservedShared) {
    traits.static_shared = shared->size - kReservedShared;
  }
  const ElfSection* constants = elf.Find(".nv.constant3");
  if (constants != nullptr) traits.constant = constants->size;
  ReadPtxVersion(elf, &traits);
  return traits;
}

struct ParameterValue {
  std::uint32_t index;
  std::uint16_t ordinal;
  std::uint16_t offset;
  std::uint32_t size;  // unless large: from bit 18
};

using Parameters = std::map<size_t, PtxParameter>;  // by ordinal

Parameters ReadParameters(std::string_view info) {
  Parameters parameters;
  ForEachAttribute(info, [&](CubinAttribute number, std::string_view bytes) {
    const bool large = number == CubinAttribute::kLargeParameter;
    if (!large && number != CubinAttribute::kParameter) return;
    ParameterValue value;
    if (!ReadValue(bytes, &value)) return;
    PtxParameter& parameter = parameters[value.ordinal];
    parameter.offset = value.offset;
    parameter.size = large ? value.size : value.size >> 18;
  });
  return parameters;
}

PtxEntry ReadKernel(const Elf& elf, size_t symbol) {
  PtxEntry entry;
  entry.name = std::string(elf.symbols[symbol].name);
  entry.traits = ReadCubinTraits(elf, symbol);
  const ElfSection* info = elf.Find(".nv.info." + entry.name);
  if (info == nullptr) return entry;
  for (const auto& parameter : ReadParameters(info->content)) {
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

Variable ReadVariable(const ElfSymbol& symbol, const ElfSection& section) {
  Variable variable;
  variable.name = std::string(symbol.name);
  variable.size = symbol.size;
  variable.alignment = AlignmentOf(symbol.value);
  variable.is_constant = section.name == ".nv.constant3";
  variable.is_managed = (symbol.other & kManagedMark) != 0;
  if (symbol.value < section.content.size()) {
    const std::string_view value = section.content.substr(symbol.value, symbol.size);
    variable.value.assign(value.begin(), value.end());
  }
  return variable;
}

// Global, constant and managed ones, in the order of their symbols. Addresses of others in
// their values are not read: those bytes are zeros.
std::vector<Variable> ReadCubinVariables(const Elf& elf) {
  std::vector<Variable> variables;
  for (const ElfSymbol& symbol : elf.symbols) {
    if (symbol.type != STT_OBJECT || symbol.section >= elf.sections.size()) continue;
    const ElfSection& section = elf.sections[symbol.section];
    const bool inside = symbol.value <= section.size && symbol.size <= section.size - symbol.value;
    if (HoldsVariables(section.name) && inside) variables.push_back(ReadVariable(symbol, section));
  }
  return variables;
}

}  // namespace

CUresult ReadCubin(std::string_view bytes, int architecture, Image* image) {
  Elf elf;
  if (!ReadElf(bytes, &elf)) return CUDA_ERROR_INVALID_IMAGE;
  if (elf.architecture != architecture) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  for (size_t i = 0; i < elf.symbols.size(); ++i) {
    if (elf.symbols[i].IsKernel()) image->entries.push_back(ReadKernel(elf, i));
  }
  image->variables = ReadCubinVariables(elf);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
