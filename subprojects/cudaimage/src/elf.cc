// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudaimage/elf.h"

#include <algorithm>
#include <cstring>

CUDAIMAGE_BEGIN_NAMESPACE
namespace {

// Whether its tables are as they are read here.
bool IsReadable(const Elf64_Ehdr& header) {
  return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB;
}

// A table of `count` entries that take `entry_size` bytes each by the header's account.
Status CheckTable(const Bytes& bytes, const char* what, std::uint64_t offset, std::uint64_t count,
                  std::uint64_t entry_size, std::uint64_t expected) {
  if (entry_size != expected) {
    return Damaged(bytes, 0, "the ELF header says that ", what, " headers take ", entry_size,
                   " bytes each, which are ", expected);
  }
  if (count <= bytes.size() && bytes.Has(offset, count * expected)) return Status();
  return Damaged(bytes, 0, "the ELF header puts ", count, " ", what, " headers at ", offset, " of ",
                 bytes.size(), " bytes");
}

// What the header counts is more where it has no room for the number: section 0 has it then.
struct Counts {
  std::uint64_t sections = 0;
  std::uint64_t segments = 0;
  std::uint64_t names = 0;
};

Status FindCounts(const Bytes& bytes, const Elf64_Ehdr& header, Counts* counts) {
  *counts = {header.e_shnum, header.e_phnum, header.e_shstrndx};
  if (header.e_shoff == 0) {
    counts->sections = 0;
    return Status();
  }
  const Status first =
      CheckTable(bytes, "section", header.e_shoff, 1, header.e_shentsize, sizeof(Elf64_Shdr));
  if (!first.ok()) return first;
  const auto section = bytes.At<Elf64_Shdr>(header.e_shoff);
  if (header.e_shnum == 0) counts->sections = section.sh_size;
  if (header.e_phnum == PN_XNUM) counts->segments = section.sh_info;
  if (header.e_shstrndx == SHN_XINDEX) counts->names = section.sh_link;
  return CheckTable(bytes, "section", header.e_shoff, counts->sections, header.e_shentsize,
                    sizeof(Elf64_Shdr));
}

// The header, and where the tables are.
Status ReadHeader(const Bytes& bytes, Elf64_Ehdr* header, Counts* counts) {
  if (!bytes.Has(0, sizeof(Elf64_Ehdr))) {
    return Damaged(bytes, bytes.size(), "it ends within the ELF header");
  }
  *header = bytes.At<Elf64_Ehdr>(0);
  if (!IsReadable(*header)) return Status();
  const Status sections = FindCounts(bytes, *header, counts);
  if (!sections.ok() || counts->segments == 0) return sections;
  return CheckTable(bytes, "program", header->e_phoff, counts->segments, header->e_phentsize,
                    sizeof(Elf64_Phdr));
}

Status ReadSections(ElfFile* file, std::uint64_t count, ElfFile::HasBytes has_bytes) {
  const Bytes& bytes = file->bytes;
  file->sections.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < file->sections.size(); ++i) {
    ElfSection* const section = &file->sections[i];
    section->number = i;
    section->at = static_cast<std::size_t>(file->header.e_shoff) + i * sizeof(Elf64_Shdr);
    section->header = bytes.At<Elf64_Shdr>(section->at);
    const Elf64_Shdr& place = section->header;
    if (i == 0 || !has_bytes(place.sh_type)) continue;
    if (!bytes.Has(place.sh_offset, place.sh_size)) {
      return Damaged(bytes, section->at, "section ", i, " has ", place.sh_size, " bytes at ",
                     place.sh_offset, " of ", bytes.size());
    }
    section->bytes = bytes.Part(place.sh_offset, place.sh_size);
  }
  return Status();
}

Status NameSections(ElfFile* file, std::uint64_t number) {
  if (number == 0) return Status();
  if (number >= file->sections.size()) {
    return Damaged(file->bytes, offsetof(Elf64_Ehdr, e_shstrndx), "the names of sections are in ",
                   number, " of ", file->sections.size(), " sections");
  }
  file->names = static_cast<std::size_t>(number);
  const ElfSection& names = file->sections[file->names];
  const Status strings = CheckStrings(names);
  if (!strings.ok()) return strings;
  for (ElfSection& section : file->sections) {
    if (section.header.sh_name >= names.bytes.size()) {
      return Damaged(file->bytes, section.at, "section ", section.number, " has its name at ",
                     section.header.sh_name, " of ", names.bytes.size(), " bytes of names");
    }
    section.name = StringAt(names.bytes, section.header.sh_name);
  }
  return Status();
}

Status CheckSegments(const ElfFile& file, std::uint64_t count) {
  const Bytes& bytes = file.bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = file.header.e_phoff + i * sizeof(Elf64_Phdr);
    const auto segment = bytes.At<Elf64_Phdr>(at);
    if (segment.p_type != PT_NULL && !bytes.Has(segment.p_offset, segment.p_filesz)) {
      return Damaged(bytes, at, "segment ", i, " has ", segment.p_filesz, " bytes at ",
                     segment.p_offset, " of ", bytes.size());
    }
  }
  return Status();
}

}  // namespace

std::string ElfSection::ToString() const {
  return Text("section ", number, " \"", std::string(name), "\"");
}

Status CheckStrings(const ElfSection& section) {
  const std::string_view text = section.bytes.text();
  if (section.header.sh_type != SHT_STRTAB) {
    return Damaged(section.bytes, 0, "section ", section.number, " should be a string table");
  }
  if (!text.empty() && text.back() == '\0') return Status();
  return Damaged(section.bytes, 0, "section ", section.number,
                 " is a string table that does not end with a NUL");
}

bool IsElf(const Bytes& bytes) {
  return bytes.Has(0, SELFMAG) && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
}

std::uint64_t SizeOfElf(const void* image, ElfFile::HasBytes has_bytes) {
  constexpr std::uint64_t kAbsurd = std::uint64_t{1} << 32;
  const Bytes all(static_cast<const unsigned char*>(image), kAbsurd);
  const auto header = all.At<Elf64_Ehdr>(0);
  if (!IsReadable(header) || header.e_shoff > kAbsurd || header.e_phoff > kAbsurd) return 0;
  const std::uint64_t sections = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
  const std::uint64_t segments = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
  std::uint64_t size = std::max({sizeof(header) + std::uint64_t{0}, sections, segments});
  const auto take = [&size](std::uint64_t offset, std::uint64_t count) {
    const bool sane = offset <= kAbsurd && count <= kAbsurd;
    if (sane) size = std::max(size, offset + count);
    return sane;
  };
  for (std::uint64_t at = header.e_shoff; at < sections; at += sizeof(Elf64_Shdr)) {
    const auto section = all.At<Elf64_Shdr>(at);
    const bool in_file = section.sh_type != SHT_NULL && has_bytes(section.sh_type);
    if (in_file && !take(section.sh_offset, section.sh_size)) return 0;
  }
  for (std::uint64_t at = header.e_phoff; at < segments; at += sizeof(Elf64_Phdr)) {
    const auto segment = all.At<Elf64_Phdr>(at);
    if (segment.p_type != PT_NULL && !take(segment.p_offset, segment.p_filesz)) return 0;
  }
  return size;
}

Status CheckElfSize(const Bytes& bytes) {
  Elf64_Ehdr header;
  Counts counts;
  return ReadHeader(bytes, &header, &counts);
}

Status ElfFile::Read(const Bytes& bytes, HasBytes has_bytes, ElfFile* file) {
  file->bytes = bytes;
  Counts counts;
  CUDAIMAGE_RETURN_IF_ERROR(ReadHeader(bytes, &file->header, &counts));
  CUDAIMAGE_RETURN_IF_ERROR(ReadSections(file, counts.sections, has_bytes));
  CUDAIMAGE_RETURN_IF_ERROR(NameSections(file, counts.names));
  return CheckSegments(*file, counts.segments);
}

const ElfSection* ElfFile::Find(std::string_view name) const {
  for (const ElfSection& section : sections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

CUDAIMAGE_END_NAMESPACE
