// SPDX-License-Identifier: Apache-2.0

#include "driver/code/image/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace cudasim::driver {
namespace {

constexpr std::uint16_t kCudaMachine = 190;
constexpr std::uint8_t kKernelMark = 0x10;
constexpr std::uint64_t kAbsurd = std::uint64_t{1} << 32;

// The part of `bytes` from `offset`; false if it is not inside.
bool Part(std::string_view bytes, std::uint64_t offset, std::uint64_t size,
          std::string_view* part) {
  if (offset > bytes.size() || size > bytes.size() - offset) return false;
  *part = bytes.substr(offset, size);
  return true;
}

template <typename T>
T At(std::string_view bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// The text at `offset` of a string table; false unless it ends in there.
bool Text(std::string_view table, std::uint64_t offset, std::string_view* text) {
  if (offset >= table.size()) return false;
  const size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return false;
  *text = table.substr(offset, end - offset);
  return true;
}

// CUDA 13's compilers moved the architecture to the second byte, with a new version of
// the format.
int ArchitectureOf(const Elf64_Ehdr& header) {
  const bool is_new = header.e_ident[EI_ABIVERSION] >= 8;
  return static_cast<int>((is_new ? header.e_flags >> 8 : header.e_flags) & 0xff);
}

bool HasContent(const Elf64_Shdr& section) {
  return section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL;
}

bool ReadSections(std::string_view bytes, const Elf64_Ehdr& header, std::string_view table,
                  Elf* elf) {
  std::string_view names;
  const auto of_names = At<Elf64_Shdr>(table, header.e_shstrndx);
  if (!Part(bytes, of_names.sh_offset, of_names.sh_size, &names)) return false;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const auto from = At<Elf64_Shdr>(table, i);
    ElfSection section;
    section.type = from.sh_type;
    section.info = from.sh_info;
    section.size = from.sh_size;
    if (!Text(names, from.sh_name, &section.name)) return false;
    const bool inside =
        !HasContent(from) || Part(bytes, from.sh_offset, from.sh_size, &section.content);
    if (!inside) return false;
    elf->sections.push_back(section);
  }
  return true;
}

bool ReadSymbol(const Elf64_Sym& from, std::string_view names, ElfSymbol* symbol) {
  symbol->type = ELF64_ST_TYPE(from.st_info);
  symbol->other = from.st_other;
  symbol->is_global = ELF64_ST_BIND(from.st_info) == STB_GLOBAL;
  symbol->is_defined = from.st_shndx != SHN_UNDEF;
  symbol->section = from.st_shndx;
  symbol->value = from.st_value;
  symbol->size = from.st_size;
  return Text(names, from.st_name, &symbol->name);
}

bool ReadSymbols(std::string_view table, Elf* elf) {
  for (size_t i = 0; i < elf->sections.size(); ++i) {
    const auto header = At<Elf64_Shdr>(table, i);
    if (header.sh_type != SHT_SYMTAB) continue;
    if (header.sh_link >= elf->sections.size()) return false;
    const std::string_view names = elf->sections[header.sh_link].content;
    const std::string_view symbols = elf->sections[i].content;
    for (size_t j = 0; j < symbols.size() / sizeof(Elf64_Sym); ++j) {
      ElfSymbol symbol;
      if (!ReadSymbol(At<Elf64_Sym>(symbols, j), names, &symbol)) return false;
      elf->symbols.push_back(symbol);
    }
  }
  return true;
}

bool IsForGpu(const Elf64_Ehdr& header) {
  return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
         header.e_machine == kCudaMachine && header.e_shentsize == sizeof(Elf64_Shdr) &&
         header.e_shstrndx < header.e_shnum;
}

}  // namespace

bool ElfSymbol::IsKernel() const {
  return type == STT_FUNC && is_defined && (other & kKernelMark) != 0;
}

const ElfSection* Elf::Find(std::string_view name) const {
  const auto found = std::find_if(sections.begin(), sections.end(),
                                  [&](const ElfSection& section) { return section.name == name; });
  return found != sections.end() ? &*found : nullptr;
}

bool IsElf(std::string_view bytes) { return bytes.substr(0, SELFMAG) == ELFMAG; }

std::uint64_t SizeOfElf(const void* image) {
  const auto header = At<Elf64_Ehdr>({static_cast<const char*>(image), sizeof(Elf64_Ehdr)}, 0);
  const std::uint64_t table_size = std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  if (!IsForGpu(header) || header.e_shoff > kAbsurd) return 0;
  std::uint64_t size = std::max<std::uint64_t>(header.e_shoff + table_size, sizeof(header));
  const std::string_view table(static_cast<const char*>(image) + header.e_shoff, table_size);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const auto section = At<Elf64_Shdr>(table, i);
    if (!HasContent(section)) continue;
    if (section.sh_offset > kAbsurd || section.sh_size > kAbsurd) return 0;
    size = std::max(size, section.sh_offset + section.sh_size);
  }
  return size;
}

bool ReadElf(std::string_view bytes, Elf* elf) {
  if (!IsElf(bytes) || bytes.size() < sizeof(Elf64_Ehdr)) return false;
  const auto header = At<Elf64_Ehdr>(bytes, 0);
  if (!IsForGpu(header)) return false;
  elf->architecture = ArchitectureOf(header);
  elf->is_relocatable = header.e_type == ET_REL;
  std::string_view table;
  return Part(bytes, header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), &table) &&
         ReadSections(bytes, header, table, elf) && ReadSymbols(table, elf);
}

}  // namespace cudasim::driver
