// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables of an ELF file, all inside of its bytes. Read are those of 64-bit little-endian files,
// the only ones that a driver of today loads; another has none here.

#ifndef CUDAIMAGE_ELF_H_
#define CUDAIMAGE_ELF_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bytes.h"

CUDAIMAGE_BEGIN_NAMESPACE

struct ElfSection {
  Elf64_Shdr header = {};
  std::size_t number = 0;
  std::size_t at = 0;  // where the header is
  std::string_view name;
  Bytes bytes;  // none of a section that takes no place in the file

  bool Is(std::uint64_t flag) const noexcept { return (header.sh_flags & flag) != 0; }
  std::string ToString() const;  // `section 3 ".symtab"`
};

struct ElfFile {
  // Whether a section of this type is known to take as much place in the file as its size says.
  using HasBytes = bool (*)(std::uint32_t type);

  // Checks the header, the sections' places and names, and the segments' places.
  static Status Read(const Bytes& bytes, HasBytes has_bytes, ElfFile* file);

  // Null if there is none.
  const ElfSection* Find(std::string_view name) const;

  Bytes bytes;
  Elf64_Ehdr header = {};
  std::vector<ElfSection> sections;
  std::size_t names = 0;  // the section of the sections' names; 0: they have none
};

bool IsElf(const Bytes& bytes);

// Bytes of the 64-bit little-endian ELF file that begins there, by what its tables say; 0 if they
// are absurd. For an image that is known by a pointer only, as a driver is given it.
std::uint64_t SizeOfElf(const void* image, ElfFile::HasBytes has_bytes);

// Whether the file has all of the header, and of the tables that it places.
Status CheckElfSize(const Bytes& bytes);

// The text at `offset` of a string table that ends in a NUL.
inline std::string_view StringAt(const Bytes& table, std::uint32_t offset) {
  return std::string_view(reinterpret_cast<const char*>(table.data()) + offset);
}
// A string table that ends in a NUL.
Status CheckStrings(const ElfSection& section);

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_ELF_H_
