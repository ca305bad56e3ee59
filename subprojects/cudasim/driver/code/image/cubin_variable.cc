// SPDX-License-Identifier: Apache-2.0

#include "driver/code/image/cubin_variable.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace cudasim::driver {
namespace {

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

}  // namespace

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

}  // namespace cudasim::driver
