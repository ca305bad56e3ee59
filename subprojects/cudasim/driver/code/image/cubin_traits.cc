// SPDX-License-Identifier: Apache-2.0

#include "driver/code/image/cubin_traits.h"

#include <cstdint>
#include <string_view>

#include "driver/code/image/cubin_attribute.h"

namespace cudasim::driver {
namespace {

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

}  // namespace

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

}  // namespace cudasim::driver
