// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without elfutils: functions by the symbol table of the object's own file, neither lines nor what
// was inlined.

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "audit/command/symbols.h"

namespace cuguest::audit {

// Neither is in an unnamed namespace: Symbols::File has one as a member, of which GCC warns where
// several sources are compiled as one.

// What a file has; nothing if it cannot be read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return;
    struct stat about = {};
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
      const auto size = static_cast<std::size_t>(about.st_size);
      void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (mapped != MAP_FAILED) bytes_ = {static_cast<const char*>(mapped), size};
    }
    close(file);
  }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// A file of which any part may be missing or wrong.
class ElfFile {
 public:
  using Section = ElfW(Shdr);

  explicit ElfFile(const std::string& path) : file_(path), bytes_(file_.bytes()) {
    ElfW(Ehdr) header = {};
    if (!Read(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
    Section section = {};
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
      if (Read(header.e_shoff + i * sizeof(section), &section)) sections_.push_back(section);
    }
  }

  [[nodiscard]] const std::vector<Section>& sections() const { return sections_; }

  template <typename Type>
  bool Read(std::uint64_t at, Type* value) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(Type)) return false;
    std::memcpy(value, bytes_.data() + at, sizeof(Type));
    return true;
  }

  // To its zero.
  [[nodiscard]] std::string Text(std::uint64_t at) const {
    if (at >= bytes_.size()) return "";
    return std::string(bytes_.substr(at, bytes_.find('\0', at) - at));
  }

  [[nodiscard]] std::string BuildId() const {
    constexpr char kDigits[] = "0123456789abcdef";
    for (const Section& section : sections_) {
      ElfW(Nhdr) note = {};
      if (section.sh_type != SHT_NOTE || !Read(section.sh_offset, &note)) continue;
      const std::uint64_t name = section.sh_offset + sizeof(note);
      if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU")) continue;
      if (Text(name) != "GNU") continue;  // another's, with the same number
      const std::uint64_t id = name + sizeof("GNU");
      std::string text;
      unsigned char byte = 0;
      for (std::uint64_t i = 0; i < note.n_descsz && Read(id + i, &byte); ++i) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
      }
      return text;
    }
    return "";
  }

  // Of the function that has `address`; empty if none is known.
  [[nodiscard]] std::string SymbolAt(std::uint64_t address) const {
    for (const Section& section : sections_) {
      if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
      if (section.sh_link >= sections_.size()) continue;
      ElfW(Sym) symbol = {};
      for (std::uint64_t at = 0; at + sizeof(symbol) <= section.sh_size; at += sizeof(symbol)) {
        if (!Read(section.sh_offset + at, &symbol)) break;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && address >= symbol.st_value &&
            address - symbol.st_value < symbol.st_size) {
          return Text(sections_[section.sh_link].sh_offset + symbol.st_name);
        }
      }
    }
    return "";
  }

 private:
  const MappedFile file_;
  const std::string_view bytes_;
  std::vector<Section> sections_;
};

struct Symbols::File {
  explicit File(const std::string& path) : elf(path) {}

  ElfFile elf;
  bool is_same = false;  // as was loaded
};

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

std::string Symbols::Unavailable() {
  return "code has no lines: cuguest-audit was built without elfutils (libdw-dev)";
}

Symbols::File* Symbols::Open(const Object& object) {
  std::unique_ptr<File>& file = files_[object.path];
  if (file != nullptr) return file.get();
  file = std::make_unique<File>(object.file.empty() ? object.path : object.file);
  file->is_same = object.build_id.empty() || object.build_id == file->elf.BuildId();
  return file.get();
}

std::vector<Function> Symbols::Of(const Object* object, std::uint64_t offset) {
  Function own;
  own.offset = offset;
  if (object == nullptr) return {own};
  own.object = object->path;
  const File* file = Open(*object);
  if (file->is_same && offset != 0) {
    own.symbol = file->elf.SymbolAt(offset - 1);  // of the call that returns there
    own.name = WithoutParameters(Demangled(own.symbol));
  }
  return {own};
}

}  // namespace cuguest::audit
