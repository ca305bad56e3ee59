// SPDX-License-Identifier: Apache-2.0

#include "lib/module/elf_file.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

absl::Status ReadHeader(ElfFile* file) {
  const ImageBytes& bytes = file->bytes;
  if (!bytes.Has(0, sizeof(Elf64_Ehdr))) {
    return Damaged(bytes, bytes.size(), "it ends within the ELF header");
  }
  file->header = bytes.At<Elf64_Ehdr>(0);
  const Elf64_Ehdr& header = file->header;
  const unsigned char* ident = header.e_ident;
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB) {
    return Damaged(bytes, EI_CLASS, "not a 64-bit little-endian ELF file");
  }
  if (ident[EI_VERSION] != EV_CURRENT || header.e_version != EV_CURRENT) {
    return Damaged(bytes, EI_VERSION, "ELF version ", header.e_version, ", which there is not");
  }
  if (header.e_ehsize != sizeof(Elf64_Ehdr)) {
    return Damaged(bytes, offsetof(Elf64_Ehdr, e_ehsize), "an ELF header of ", header.e_ehsize,
                   " bytes");
  }
  return absl::OkStatus();
}

// A table of `count` entries that take `entry_size` bytes each by the header's account.
absl::Status CheckTable(const ImageBytes& bytes, const char* what, std::uint64_t offset,
                        std::uint64_t count, std::uint64_t entry_size, std::uint64_t expected) {
  if (entry_size != expected) {
    return Damaged(bytes, 0, "the ELF header says that ", what, " headers take ", entry_size,
                   " bytes each, which are ", expected);
  }
  if (bytes.Has(offset, count * expected)) return absl::OkStatus();
  return Damaged(bytes, 0, "the ELF header puts ", count, " ", what, " headers at ", offset, " of ",
                 bytes.size(), " bytes");
}

absl::Status ReadSections(ElfFile* file, ElfFile::HasNoBytes has_no_bytes) {
  const ImageBytes& bytes = file->bytes;
  const Elf64_Ehdr& header = file->header;
  if (header.e_shnum == 0) return Damaged(bytes, 0, "an ELF file without sections");
  const absl::Status inside = CheckTable(bytes, "section", header.e_shoff, header.e_shnum,
                                         header.e_shentsize, sizeof(Elf64_Shdr));
  if (!inside.ok()) return inside;
  file->sections.resize(header.e_shnum);
  for (std::size_t i = 0; i < file->sections.size(); ++i) {
    ElfSection* const section = &file->sections[i];
    section->number = i;
    section->at = static_cast<std::size_t>(header.e_shoff) + i * sizeof(Elf64_Shdr);
    section->header = bytes.At<Elf64_Shdr>(section->at);
    const Elf64_Shdr& place = section->header;
    const std::uint64_t size = has_no_bytes(place.sh_type) ? 0 : place.sh_size;
    if (!bytes.Has(place.sh_offset, size)) {
      return Damaged(bytes, section->at, "section ", i, " has ", size, " bytes at ",
                     place.sh_offset, " of ", bytes.size());
    }
    section->bytes = bytes.Part(place.sh_offset, size);
  }
  return absl::OkStatus();
}

absl::Status CheckFirstSection(const ElfFile& file) {
  const ImageBytes header = file.bytes.Part(file.sections[0].at, sizeof(Elf64_Shdr));
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header.data()[i] != 0) return Damaged(header, i, "section 0 is not empty");
  }
  return absl::OkStatus();
}

absl::Status NameSections(ElfFile* file) {
  const std::size_t number = file->header.e_shstrndx;
  if (number == 0 || number >= file->sections.size()) {
    return Damaged(file->bytes, offsetof(Elf64_Ehdr, e_shstrndx), "the names of sections are in ",
                   number, " of ", file->sections.size(), " sections");
  }
  const ElfSection& names = file->sections[number];
  const absl::Status strings = CheckStrings(names);
  if (!strings.ok()) return strings;
  for (ElfSection& section : file->sections) {
    if (section.header.sh_name >= names.bytes.size()) {
      return Damaged(file->bytes, section.at, "section ", section.number, " has its name at ",
                     section.header.sh_name, " of ", names.bytes.size(), " bytes of names");
    }
    section.name = StringAt(names.bytes, section.header.sh_name);
  }
  return absl::OkStatus();
}

absl::Status CheckSegments(const ElfFile& file) {
  const ImageBytes& bytes = file.bytes;
  const Elf64_Ehdr& header = file.header;
  if (header.e_phnum == 0 && header.e_phoff == 0) return absl::OkStatus();
  const absl::Status inside = CheckTable(bytes, "program", header.e_phoff, header.e_phnum,
                                         header.e_phentsize, sizeof(Elf64_Phdr));
  if (!inside.ok()) return inside;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const std::uint64_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    const auto segment = bytes.At<Elf64_Phdr>(at);
    if (!bytes.Has(segment.p_offset, segment.p_filesz)) {
      return Damaged(bytes, at, "segment ", i, " has ", segment.p_filesz, " bytes at ",
                     segment.p_offset, " of ", bytes.size());
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ElfSection::ToString() const {
  return absl::StrCat("section ", number, " \"", std::string(name), "\"");
}

absl::Status CheckStrings(const ElfSection& section) {
  const std::string_view text = section.bytes.text();
  if (section.header.sh_type != SHT_STRTAB) {
    return Damaged(section.bytes, 0, "section ", section.number, " should be a string table");
  }
  if (!text.empty() && text.front() == '\0' && text.back() == '\0') return absl::OkStatus();
  return Damaged(section.bytes, 0, "section ", section.number,
                 " is a string table that does not begin and end with a NUL");
}

absl::StatusOr<ElfFile> ElfFile::Read(const ImageBytes& bytes, HasNoBytes has_no_bytes) {
  ElfFile file;
  file.bytes = bytes;
  absl::Status status = ReadHeader(&file);
  if (status.ok()) status = ReadSections(&file, has_no_bytes);
  if (status.ok()) status = CheckFirstSection(file);
  if (status.ok()) status = NameSections(&file);
  if (status.ok()) status = CheckSegments(file);
  if (!status.ok()) return status;
  return file;
}

const ElfSection* ElfFile::Find(std::string_view name) const {
  for (const ElfSection& section : sections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
