// SPDX-License-Identifier: Apache-2.0
//
// The tables of an ELF file, all inside of its bytes. Read are those of 64-bit little-endian files,
// the only ones that a driver of today loads; another has none here.               tier: 3

#ifndef CUGUEST_LIB_MODULE_ELF_FILE_H_
#define CUGUEST_LIB_MODULE_ELF_FILE_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "lib/module/image_bytes.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

struct ElfSection {
  Elf64_Shdr header = {};
  std::size_t number = 0;
  std::size_t at = 0;  // where the header is
  std::string_view name;
  ImageBytes bytes;  // none of a section that takes no place in the file

  bool Is(std::uint64_t flag) const noexcept { return (header.sh_flags & flag) != 0; }
  std::string ToString() const;  // `section 3 ".symtab"`
};

struct ElfFile {
  // Whether a section of this type is known to take as much place in the file as its size says.
  using HasBytes = bool (*)(std::uint32_t type);

  // Checks the header, the sections' places and names, and the segments' places.
  static absl::StatusOr<ElfFile> Read(const ImageBytes& bytes, HasBytes has_bytes);

  // Null if there is none.
  const ElfSection* Find(std::string_view name) const;

  ImageBytes bytes;
  Elf64_Ehdr header = {};
  std::vector<ElfSection> sections;
  std::size_t names = 0;  // the section of the sections' names; 0: they have none
};

// Whether the file has all of the header, and of the tables that it places.
absl::Status CheckElfSize(const ImageBytes& bytes);

// The text at `offset` of a string table that ends in a NUL.
inline std::string_view StringAt(const ImageBytes& table, std::uint32_t offset) {
  return std::string_view(reinterpret_cast<const char*>(table.data()) + offset);
}
// A string table that ends in a NUL.
absl::Status CheckStrings(const ElfSection& section);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_ELF_FILE_H_
