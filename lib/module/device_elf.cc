// SPDX-License-Identifier: Apache-2.0
//
// Cubins. Which damage ends in a crash of the driver was measured, by loading tens of
// thousands of damaged cubins: places, names and counts in the tables, symbols, relocations.
// Damage of code and data does not, and cannot be told from code and data.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/module/code_contents.h"
#include "lib/module/elf_file.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

// What <elf.h> has not, as nvcc 13.0 writes it.
constexpr unsigned kMachine = EM_CUDA;
constexpr std::uint32_t kInfo = SHT_LOPROC + 0x0;  // .nv.info
constexpr std::uint32_t kCallGraph = SHT_LOPROC + 0x1;
constexpr std::uint32_t kPrototypes = SHT_LOPROC + 0x2;
constexpr std::uint32_t kUninitialised = SHT_LOPROC + 0x7;  // .nv.global
constexpr std::uint32_t kLocal = SHT_LOPROC + 0x9;
constexpr std::uint32_t kShared = SHT_LOPROC + 0xa;
constexpr std::uint32_t kReservedShared = SHT_LOPROC + 0x15;
constexpr std::string_view kCode = ".text.";       // and the function's name
constexpr unsigned char kEntry = 0x10;             // of st_other: a kernel
constexpr std::uint32_t kSymbolMask = 0xffffff;    // of a .text's sh_info; above: registers
constexpr std::uint64_t kMercury = 0x10000000;     // of sh_flags: of a second set, for sm_100 on
constexpr std::uint32_t kMercuryOnly = 1;          // of e_flags
constexpr std::uint32_t kNewestTool = 0x1fffffff;  // of e_flags, for the linker
constexpr std::uint32_t kRelocationTypes = 256;
constexpr std::uint64_t kMostAlignment = std::uint64_t{64} << 10;
constexpr std::size_t kPair = 2 * sizeof(std::uint32_t);
constexpr std::string_view kToolNotes = ".note.nv.tkinfo";
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 40;  // that a section may ask for

// .nv.info's, as far as they name symbols.
enum InfoAttribute : std::uint8_t {
  kParameterBank = 0x0a,
  kExterns = 0x0f,
  kFrameSize = 0x11,
  kMinStackSize = 0x12,
  kParameter = 0x17,
  kMaxStackSize = 0x23,
  kRegisterCount = 0x2f,
};

bool HasNoBytes(std::uint32_t type) {
  return type == SHT_NOBITS || type == kUninitialised || type == kLocal || type == kShared ||
         type == kReservedShared;
}

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// What the names of sections end in that belong to the one of this name: ".k" for ".text.k".
std::string_view NameInOthers(std::string_view name) {
  constexpr std::string_view kMercuryName = ".nv.merc";
  const std::size_t code = name.find(kCode);
  if (code != std::string_view::npos) return name.substr(code + kCode.size() - 1);
  return StartsWith(name, kMercuryName) ? name.substr(kMercuryName.size()) : name;
}

bool IsAlignment(std::uint64_t value) {
  return value != 0 && value <= kMostAlignment && (value & (value - 1)) == 0;
}

class DeviceElf {
 public:
  DeviceElf(ElfFile file, CodeContents* contents) : file_(std::move(file)), contents_(contents) {}

  absl::Status Read() {
    absl::Status status = CheckFlags();
    if (status.ok()) status = FindTables();
    if (status.ok()) status = ReadSymbols();
    for (const ElfSection& section : file_.sections) {
      if (status.ok()) status = Within(section.ToString(), CheckSection(section));
    }
    return status;
  }

 private:
  template <typename... Parts>
  absl::Status Wrong(const ElfSection& section, const Parts&... what) const {
    return Damaged(file_.bytes, section.at, what...);
  }

  absl::Status CheckFlags() const {
    if (IsRelocatable(file_.bytes) && file_.header.e_flags > kNewestTool) {
      return Damaged(file_.bytes, offsetof(Elf64_Ehdr, e_flags), "its flags ", file_.header.e_flags,
                     " are of a tool that is not known");
    }
    bool mercury = (file_.header.e_flags & kMercuryOnly) == 0;
    for (const ElfSection& section : file_.sections) mercury = mercury || section.Is(kMercury);
    if (mercury) return absl::OkStatus();
    return Damaged(file_.bytes, offsetof(Elf64_Ehdr, e_flags), "its flags ", file_.header.e_flags,
                   " promise sections that it has not");
  }

  absl::Status FindTables() {
    symbols_ = file_.Find(".symtab");
    strings_ = file_.Find(".strtab");
    if (symbols_ == nullptr || symbols_->header.sh_type != SHT_SYMTAB) {
      return Damaged(file_.bytes, 0, "a cubin without a symbol table");
    }
    if (strings_ == nullptr || symbols_->header.sh_link != strings_->number) {
      return Wrong(*symbols_, "the symbol table's names are not in .strtab");
    }
    const absl::Status strings = CheckStrings(*strings_);
    return strings.ok() ? CheckEntries(*symbols_, sizeof(Elf64_Sym)) : strings;
  }

  absl::Status CheckEntries(const ElfSection& section, std::size_t size) const {
    if (section.header.sh_entsize == size && section.bytes.size() % size == 0) {
      return absl::OkStatus();
    }
    return Wrong(section, "a table of ", section.bytes.size(), " bytes with entries of ",
                 section.header.sh_entsize, ", which take ", size);
  }

  absl::Status ReadSymbols() {
    const std::size_t count = symbols_->bytes.size() / sizeof(Elf64_Sym);
    if (symbols_->header.sh_info > count) {
      return Wrong(*symbols_, symbols_->header.sh_info, " local symbols of ", count);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = i * sizeof(Elf64_Sym);
      const auto symbol = symbols_->bytes.At<Elf64_Sym>(at);
      const absl::Status status = CheckSymbol(symbol, symbols_->bytes.Part(at, sizeof(symbol)));
      if (!status.ok()) return Within(absl::StrCat("symbol ", i), status);
      symbol_table_.push_back(symbol);
    }
    return absl::OkStatus();
  }

  std::string_view NameOf(const Elf64_Sym& symbol) const {
    return StringAt(strings_->bytes, symbol.st_name);
  }

  absl::Status CheckSymbol(const Elf64_Sym& symbol, const ImageBytes& bytes) {
    if (symbol.st_name >= strings_->bytes.size()) {
      return Damaged(bytes, 0, "its name is at ", symbol.st_name, " of ", strings_->bytes.size(),
                     " bytes of names");
    }
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE) {
      return CheckUndefined(symbol, bytes);
    }
    if (symbol.st_shndx >= file_.sections.size()) {
      return Damaged(bytes, 0, "it is in section ", symbol.st_shndx, " of ", file_.sections.size());
    }
    return CheckDefined(symbol, file_.sections[symbol.st_shndx], bytes);
  }

  // What the driver or a linker provides by name.
  static absl::Status CheckUndefined(const Elf64_Sym& symbol, const ImageBytes& bytes) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    const bool function = type == STT_FUNC && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
    if (function || type == STT_NOTYPE || type == STT_OBJECT) return absl::OkStatus();
    return Damaged(bytes, 0, "it is undefined, of type and binding ", symbol.st_info);
  }

  absl::Status CheckDefined(const Elf64_Sym& symbol, const ElfSection& section,
                            const ImageBytes& bytes) {
    const std::uint64_t size = section.header.sh_size;
    // Before linking, the value of what takes no place is its alignment.
    const bool placed = file_.header.e_type == ET_EXEC || !HasNoBytes(section.header.sh_type);
    if (!placed && symbol.st_value != 0 && !IsAlignment(symbol.st_value)) {
      return Damaged(bytes, 0, "an alignment of ", symbol.st_value);
    }
    const std::uint64_t start = placed ? symbol.st_value : 0;
    if (start > size || symbol.st_size > size - start) {
      return Damaged(bytes, 0, symbol.st_size, " bytes at ", symbol.st_value, " of ",
                     section.ToString(), ", which has ", size);
    }
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return absl::OkStatus();
    if (!section.Is(SHF_EXECINSTR)) {
      return Damaged(bytes, 0, "a function in ", section.ToString(), ", which is no code");
    }
    if ((symbol.st_other & kEntry) == 0) return absl::OkStatus();
    return AddKernel(std::string(NameOf(symbol)), section, bytes);
  }

  absl::Status AddKernel(const std::string& name, const ElfSection& section,
                         const ImageBytes& bytes) {
    if (section.name != std::string(kCode) + name) {
      return Damaged(bytes, 0, "kernel \"", name, "\" is in ", section.ToString());
    }
    contents_->kernels.insert(name);
    return absl::OkStatus();
  }

  absl::Status CheckSection(const ElfSection& section) const {
    if (section.number == 0) return absl::OkStatus();
    if (section.header.sh_type == SHT_NULL) return Wrong(section, "it has no type");
    absl::Status status = CheckTypeAgreesWithName(section);
    if (status.ok()) status = CheckMemory(section);
    if (status.ok() && section.Is(SHF_EXECINSTR)) status = CheckCode(section);
    if (status.ok()) status = CheckLinks(section);
    if (status.ok()) status = CheckRelocations(section);
    if (status.ok() && section.header.sh_type == kInfo) status = CheckInfo(section.bytes);
    if (status.ok() && section.header.sh_type == SHT_NOTE) status = CheckNotes(section);
    if (status.ok() && section.header.sh_type == kCallGraph) status = CheckCallGraph(section.bytes);
    if (status.ok() && section.header.sh_type == kPrototypes) {
      status = CheckPrototypes(section.bytes);
    }
    return status;
  }

  absl::Status CheckTypeAgreesWithName(const ElfSection& section) const {
    const std::uint32_t type = section.header.sh_type;
    const std::string_view name = section.name;
    const bool agree = (type == SHT_SYMTAB) == (&section == symbols_) &&
                       (type == SHT_STRTAB) ==
                           (&section == strings_ || section.number == file_.header.e_shstrndx) &&
                       (type == SHT_RELA) == StartsWith(name, ".rela.") &&
                       (type == SHT_REL) == StartsWith(name, ".rel.") &&
                       (type == SHT_NOTE) == StartsWith(name, ".note.") &&
                       (type == kInfo) == (name == ".nv.info" || StartsWith(name, ".nv.info.")) &&
                       section.Is(SHF_EXECINSTR) == StartsWith(name, kCode);
    if (agree) return absl::OkStatus();
    return Wrong(section, "its type ", type, " and flags ", section.header.sh_flags,
                 " are not those of its name");
  }

  absl::Status CheckMemory(const ElfSection& section) const {
    if (section.header.sh_size > kMostMemory) {
      return Wrong(section, "it asks for ", section.header.sh_size, " bytes of memory");
    }
    if (IsAlignment(section.header.sh_addralign)) return absl::OkStatus();
    return Wrong(section, "it asks for an alignment of ", section.header.sh_addralign);
  }

  // Code names its function.
  absl::Status CheckCode(const ElfSection& section) const {
    const std::uint32_t number = section.header.sh_info & kSymbolMask;
    if (number < symbol_table_.size() && symbol_table_[number].st_shndx == section.number) {
      return absl::OkStatus();
    }
    return Wrong(section, "it is the code of symbol ", number, ", which is not in it");
  }

  // What belongs to another section says to which, in sh_info, and by its name.
  absl::Status CheckLinks(const ElfSection& section) const {
    const std::uint32_t link = section.header.sh_link;
    const std::uint32_t number = section.header.sh_info;
    if (link >= file_.sections.size()) return Wrong(section, "it refers to section ", link);
    const bool must = IsRelocation(section) || section.Is(SHF_INFO_LINK);
    const bool names_symbol =
        section.Is(SHF_EXECINSTR) || section.Is(kMercury) || &section == symbols_;
    if (!must && (number == 0 || names_symbol)) return absl::OkStatus();
    if (number == 0 || number >= file_.sections.size()) {
      return Wrong(section, "it belongs to section ", number, " of ", file_.sections.size());
    }
    if (section.header.sh_type == SHT_NOTE) return absl::OkStatus();
    if (EndsWith(section.name, NameInOthers(file_.sections[number].name))) return absl::OkStatus();
    return Wrong(section, "it belongs to ", file_.sections[number].ToString());
  }

  static bool IsRelocation(const ElfSection& section) {
    return section.header.sh_type == SHT_RELA || section.header.sh_type == SHT_REL;
  }

  absl::Status CheckRelocations(const ElfSection& section) const {
    if (section.header.sh_type == SHT_RELA) return CheckRelocationsOf<Elf64_Rela>(section);
    if (section.header.sh_type == SHT_REL) return CheckRelocationsOf<Elf64_Rel>(section);
    return absl::OkStatus();
  }

  template <typename Relocation>
  absl::Status CheckRelocationsOf(const ElfSection& section) const {
    const absl::Status entries = CheckEntries(section, sizeof(Relocation));
    if (!entries.ok()) return entries;
    if (section.header.sh_link != symbols_->number) {
      return Wrong(section, "relocations by symbols that are not in .symtab");
    }
    const ElfSection& target = file_.sections[section.header.sh_info];
    for (std::size_t at = 0; at < section.bytes.size(); at += sizeof(Relocation)) {
      const auto relocation = section.bytes.At<Relocation>(at);
      if (!target.bytes.Has(relocation.r_offset, sizeof(std::uint32_t))) {
        return Damaged(section.bytes, at, "a relocation of byte ", relocation.r_offset, " of ",
                       target.ToString(), ", which has ", target.bytes.size());
      }
      if (ELF64_R_SYM(relocation.r_info) >= symbol_table_.size() ||
          ELF64_R_TYPE(relocation.r_info) >= kRelocationTypes) {
        return Damaged(section.bytes, at, "a relocation of type ", ELF64_R_TYPE(relocation.r_info),
                       " by symbol ", ELF64_R_SYM(relocation.r_info), " of ", symbol_table_.size());
      }
    }
    return absl::OkStatus();
  }

  // Records: a format, an attribute, and two bytes that are the value or, in format 4, the
  // length of what follows.
  absl::Status CheckInfo(const ImageBytes& bytes) const {
    constexpr unsigned char kSized = 4;
    std::size_t at = 0;
    while (at < bytes.size()) {
      if (!bytes.Has(at, 4)) return Damaged(bytes, at, "it ends within a record");
      const auto format = bytes.At<unsigned char>(at);
      if (format == 0 || format > kSized) {
        return Damaged(bytes, at, "a record of format ", format, ", which there is not");
      }
      const std::uint64_t size = format == kSized ? bytes.At<std::uint16_t>(at + 2) : 0;
      if (!bytes.Has(at + 4, size)) return Damaged(bytes, at, "a record of ", size, " bytes");
      const absl::Status status =
          CheckRecord(bytes.At<InfoAttribute>(at + 1), bytes.Part(at + 4, size));
      if (!status.ok()) return status;
      at += 4 + size;
    }
    return absl::OkStatus();
  }

  // Of the records that name symbols.
  absl::Status CheckRecord(InfoAttribute attribute, const ImageBytes& words) const {
    switch (attribute) {
      case kFrameSize:
      case kMinStackSize:
      case kMaxStackSize:
      case kRegisterCount:
        if (words.size() != 2 * sizeof(std::uint32_t)) break;
        return CheckNamesSymbol(words, 0, STT_FUNC);
      case kExterns:
        for (std::size_t at = 0; words.Has(at, sizeof(std::uint32_t));
             at += sizeof(std::uint32_t)) {
          const absl::Status status = CheckNamesSymbol(words, at, STT_FUNC);
          if (!status.ok()) return status;
        }
        return absl::OkStatus();
      case kParameter:
        if (words.size() != 3 * sizeof(std::uint32_t)) break;
        return CheckIsSymbol(words, 0);
      case kParameterBank:
        if (words.size() != 2 * sizeof(std::uint32_t)) break;
        return CheckNamesSymbol(words, 0, STT_SECTION);
      default:
        return absl::OkStatus();
    }
    return Damaged(words, 0, "a record of attribute ", attribute, " with ", words.size(), " bytes");
  }

  absl::Status CheckIsSymbol(const ImageBytes& words, std::size_t at) const {
    const auto number = words.At<std::uint32_t>(at);
    if (number < symbol_table_.size()) return absl::OkStatus();
    return Damaged(words, at, "it names symbol ", number, " of ", symbol_table_.size());
  }

  absl::Status CheckNamesSymbol(const ImageBytes& words, std::size_t at, unsigned type) const {
    const auto number = words.At<std::uint32_t>(at);
    if (number < symbol_table_.size() && ELF64_ST_TYPE(symbol_table_[number].st_info) == type) {
      return absl::OkStatus();
    }
    return Damaged(words, at, "a record about symbol ", number, " of ", symbol_table_.size(),
                   ", which is none of type ", type);
  }

  // Pairs of symbols: who calls whom, or a few marks instead of the latter.
  absl::Status CheckCallGraph(const ImageBytes& bytes) const {
    constexpr std::uint32_t kFirstMark = 0xfffffff0;
    for (std::size_t at = 0; at < bytes.size(); at += kPair) {
      if (!bytes.Has(at, kPair)) return Damaged(bytes, at, "it ends within a pair");
      absl::Status status = CheckIsSymbol(bytes, at);
      const bool mark = bytes.At<std::uint32_t>(at + kPair / 2) >= kFirstMark;
      if (status.ok() && !mark) status = CheckIsSymbol(bytes, at + kPair / 2);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Pairs of a function and a number.
  absl::Status CheckPrototypes(const ImageBytes& bytes) const {
    for (std::size_t at = 0; at < bytes.size(); at += kPair) {
      if (!bytes.Has(at, kPair)) return Damaged(bytes, at, "it ends within a pair");
      const absl::Status status = CheckNamesSymbol(bytes, at, STT_FUNC);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  static absl::Status CheckNotes(const ElfSection& section) {
    const ImageBytes& bytes = section.bytes;
    std::size_t at = 0;
    while (at < bytes.size()) {
      if (!bytes.Has(at, sizeof(Elf64_Nhdr))) return Damaged(bytes, at, "it ends within a note");
      const auto note = bytes.At<Elf64_Nhdr>(at);
      const std::uint64_t name = Padded(note.n_namesz);
      const std::uint64_t size = name + Padded(note.n_descsz);
      at += sizeof(note);
      if (!bytes.Has(at, size)) return Damaged(bytes, at, "a note of ", size, " bytes");
      if (section.name == kToolNotes) {
        const absl::Status status = CheckToolNote(bytes.Part(at + name, note.n_descsz));
        if (!status.ok()) return status;
      }
      at += size;
    }
    return absl::OkStatus();
  }

  // A version, a zero, and the places of four strings behind them.
  static absl::Status CheckToolNote(const ImageBytes& note) {
    constexpr std::size_t kStrings = 6 * sizeof(std::uint32_t);
    if (!note.Has(0, kStrings + 1) || note.data()[note.size() - 1] != 0) {
      return Damaged(note, 0, "a tool's note of ", note.size(),
                     " bytes that does not end in a NUL");
    }
    for (std::size_t at = 2 * sizeof(std::uint32_t); at < kStrings; at += sizeof(std::uint32_t)) {
      const auto place = note.At<std::uint32_t>(at);
      if (place < note.size() - kStrings) continue;
      return Damaged(note, at, "a tool's name at ", place, " of ", note.size() - kStrings);
    }
    return absl::OkStatus();
  }

  static std::uint64_t Padded(std::uint64_t size) { return (size + 3) / 4 * 4; }

  const ElfFile file_;
  CodeContents* const contents_;
  const ElfSection* symbols_ = nullptr;
  const ElfSection* strings_ = nullptr;
  std::vector<Elf64_Sym> symbol_table_;
};

}  // namespace

bool IsElf(const ImageBytes& bytes) {
  return bytes.Has(0, SELFMAG) && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
}

bool IsDeviceElf(const ImageBytes& bytes) {
  return IsElf(bytes) && bytes.Has(0, sizeof(Elf64_Ehdr)) &&
         bytes.At<Elf64_Ehdr>(0).e_machine == kMachine;
}

bool IsRelocatable(const ImageBytes& bytes) { return bytes.At<Elf64_Ehdr>(0).e_type == ET_REL; }

absl::Status ReadDeviceElf(const ImageBytes& bytes, CodeContents* contents) {
  absl::StatusOr<ElfFile> file = ElfFile::Read(bytes, HasNoBytes);
  if (!file.ok()) return file.status();
  const unsigned type = file->header.e_type;
  if (type != ET_EXEC && type != ET_REL) {
    return Damaged(bytes, offsetof(Elf64_Ehdr, e_type), "ELF type ", type);
  }
  return DeviceElf(*std::move(file), contents).Read();
}

}  // namespace internal
CUGUEST_END_NAMESPACE
