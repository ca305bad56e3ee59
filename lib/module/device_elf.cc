// SPDX-License-Identifier: Apache-2.0
//
// Cubins. Which damage ends in a crash of the driver was measured, by loading tens of
// thousands of damaged cubins: places, names and counts in the tables, symbols, relocations.
// Damage of code and data does not, and cannot be told from code and data.
//
// Of every cubin it is checked what ELF itself lays down: that tables, names and entries are
// inside of what they are in. What belongs to what (a kernel's code, its records, their symbols) is
// NVIDIA's to lay down, by an ABI whose version is in the header; of a version that is not known,
// none of that is held against the file. What is known of those that are: test/module/device_code
// holds it against all that there is of real compilers and libraries.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/module/code_contents.h"
#include "lib/module/elf_file.h"
#include "lib/module/packed_sizes.h"

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
constexpr std::string_view kCode = ".text.";     // and the function's name
constexpr unsigned char kEntry = 0x10;           // of st_other: a kernel
constexpr std::uint32_t kSymbolMask = 0xffffff;  // of a .text's sh_info; above: registers
constexpr std::uint64_t kMercury = 0x10000000;   // of sh_flags: of a second set, for sm_100 on
constexpr std::size_t kPair = 2 * sizeof(std::uint32_t);
constexpr std::string_view kToolNotes = ".note.nv.tkinfo";
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 40;  // that a section may ask for

// .nv.info's, as far as they name symbols; and the block that a kernel must be launched with.
enum InfoAttribute : std::uint8_t {
  kParameterBank = 0x0a,
  kExterns = 0x0f,
  kRequiredBlock = 0x10,
  kFrameSize = 0x11,
  kMinStackSize = 0x12,
  kParameter = 0x17,
  kMaxStackSize = 0x23,
  kRegisterCount = 0x2f,
};

// Those of the compilers from CUDA 11 to 12.9 and of CUDA 13: EI_OSABI and EI_ABIVERSION.
bool IsKnownAbi(const ImageBytes& elf) {
  struct Abi {
    unsigned char os;
    unsigned char version;
  };
  constexpr Abi kKnown[] = {{0x33, 7}, {0x41, 8}};
  const auto header = elf.At<Elf64_Ehdr>(0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&header](const Abi& abi) {
    return header.e_ident[EI_OSABI] == abi.os && header.e_ident[EI_ABIVERSION] == abi.version;
  });
}

// By NVIDIA's ABI.
bool HasBytes(std::uint32_t type) {
  return type != SHT_NOBITS && type != kUninitialised && type != kLocal && type != kShared &&
         type != kReservedShared;
}

// By ELF alone.
bool HasBytesAnywhere(std::uint32_t type) { return type != SHT_NOBITS && type < SHT_LOOS; }

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

// 0 is none, as 1 is.
bool IsAlignment(std::uint64_t value) { return (value & (value - 1)) == 0; }

class DeviceElf {
 public:
  DeviceElf(ElfFile file, CodeContents* contents)
      : file_(std::move(file)), known_(IsKnownAbi(file_.bytes)), contents_(contents) {}

  absl::Status Read() {
    if (!FindSymbols()) {
      contents_->names_all = false;
      return known_ ? Damaged(file_.bytes, 0, "a cubin without a symbol table") : absl::OkStatus();
    }
    absl::Status status = CheckSymbolTable();
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

  // False if it has none.
  bool FindSymbols() {
    for (const ElfSection& section : file_.sections) {
      const std::uint32_t type = section.header.sh_type;
      if (type == SHT_SYMTAB && symbols_ == nullptr) symbols_ = &section;
      if (type == SHT_SYMTAB_SHNDX) extended_ = &section;
      if (type == kInfo) infos_.emplace(section.name, &section);
    }
    return symbols_ != nullptr;
  }

  absl::Status CheckSymbolTable() {
    if (symbols_->header.sh_link >= file_.sections.size()) {
      return Wrong(*symbols_, "the symbol table's names are in section ", symbols_->header.sh_link,
                   " of ", file_.sections.size());
    }
    strings_ = &file_.sections[symbols_->header.sh_link];
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
    const std::size_t number = SectionOf(symbol, bytes);
    if (number == SHN_UNDEF) return absl::OkStatus();  // for a linker, or the driver
    if (number >= file_.sections.size()) {
      return Damaged(bytes, 0, "it is in section ", number, " of ", file_.sections.size());
    }
    const ElfSection& section = file_.sections[number];
    if (known_) {
      const absl::Status status = CheckDefined(symbol, section, bytes);
      if (!status.ok()) return status;
    }
    if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && (symbol.st_other & kEntry) != 0) {
      const std::string name(NameOf(symbol));
      contents_->AddKernel(name, RequiredBlock(name));
    }
    return absl::OkStatus();
  }

  // SHN_UNDEF of one that is in no section of this file.
  std::size_t SectionOf(const Elf64_Sym& symbol, const ImageBytes& bytes) const {
    if (symbol.st_shndx < SHN_LORESERVE) return symbol.st_shndx;
    const std::size_t at =
        (bytes.origin() - symbols_->bytes.origin()) / sizeof(Elf64_Sym) * sizeof(std::uint32_t);
    const bool extended = symbol.st_shndx == SHN_XINDEX && extended_ != nullptr &&
                          extended_->bytes.Has(at, sizeof(std::uint32_t));
    return extended ? extended_->bytes.At<std::uint32_t>(at) : std::size_t{SHN_UNDEF};
  }

  // By the records about a kernel.
  std::uint64_t RequiredBlock(const std::string& kernel) const {
    const std::string name = ".nv.info." + kernel;
    const auto found = infos_.find(std::string_view(name));
    std::uint64_t block = kAnyBlock;
    if (found == infos_.end()) return block;
    const auto read = [&block](InfoAttribute attribute, const ImageBytes& words) {
      if (attribute == kRequiredBlock && words.Has(0, 3 * sizeof(std::uint32_t))) {
        block = PackSizes(words.At<std::uint32_t>(0), words.At<std::uint32_t>(4),
                          words.At<std::uint32_t>(8));
      }
      return absl::OkStatus();
    };
    static_cast<void>(ForEachRecord(found->second->bytes, read));  // to where it is damaged
    return block;
  }

  absl::Status CheckDefined(const Elf64_Sym& symbol, const ElfSection& section,
                            const ImageBytes& bytes) {
    const std::uint64_t size = section.header.sh_size;
    // Before linking, the value of what takes no place is its alignment.
    const bool placed = file_.header.e_type == ET_EXEC || HasBytes(section.header.sh_type);
    if (!placed && symbol.st_value != 0 && !IsAlignment(symbol.st_value)) {
      return Damaged(bytes, 0, "an alignment of ", symbol.st_value);
    }
    const std::uint64_t start = placed ? symbol.st_value : 0;
    // A label of no bytes may lie behind: ptxas -g puts them into what shared memory there was.
    if (symbol.st_size > 0 && (start > size || symbol.st_size > size - start)) {
      return Damaged(bytes, 0, symbol.st_size, " bytes at ", symbol.st_value, " of ",
                     section.ToString(), ", which has ", size);
    }
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return absl::OkStatus();
    if ((symbol.st_other & kEntry) == 0) return absl::OkStatus();
    if (section.name == std::string(kCode) + std::string(NameOf(symbol))) return absl::OkStatus();
    return Damaged(bytes, 0, "kernel \"", std::string(NameOf(symbol)), "\" is in ",
                   section.ToString());
  }

  absl::Status CheckSection(const ElfSection& section) const {
    if (section.number == 0) return absl::OkStatus();
    absl::Status status = CheckMemory(section);
    if (status.ok()) status = CheckRelocations(section);
    if (status.ok() && known_) status = CheckByAbi(section);
    return status;
  }

  absl::Status CheckByAbi(const ElfSection& section) const {
    if (section.header.sh_addralign == 0 && section.Is(SHF_ALLOC)) {
      return Wrong(section, "it asks for an alignment of 0");
    }
    absl::Status status = CheckTypeAgreesWithName(section);
    if (status.ok() && section.Is(SHF_EXECINSTR)) status = CheckCode(section);
    if (status.ok()) status = CheckLinks(section);
    if (!status.ok()) return status;
    switch (section.header.sh_type) {
      case kInfo:
        return CheckInfo(section.bytes);
      case SHT_NOTE:
        return CheckNotes(section);
      case kCallGraph:
        return CheckCallGraph(section.bytes);
      case kPrototypes:
        return CheckPrototypes(section.bytes);
      default:
        return absl::OkStatus();
    }
  }

  absl::Status CheckTypeAgreesWithName(const ElfSection& section) const {
    const std::uint32_t type = section.header.sh_type;
    const std::string_view name = section.name;
    const bool agree =
        (type == SHT_SYMTAB) == (&section == symbols_) &&
        (type == SHT_STRTAB) == (&section == strings_ || section.number == file_.names) &&
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
    if (!must && (number == 0 || names_symbol || section.header.sh_type == SHT_NOTE)) {
      return absl::OkStatus();
    }
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

  // What relocations say they are by is no symbol table at all in what ptxas -g writes, up to
  // CUDA 12.9: it is .symtab there, too.
  bool IsByOtherSymbols(const ElfSection& section) const {
    const std::uint32_t link = section.header.sh_link;
    return link != symbols_->number && link < file_.sections.size() &&
           (file_.sections[link].header.sh_type == SHT_SYMTAB ||
            file_.sections[link].header.sh_type == SHT_DYNSYM);
  }

  template <typename Relocation>
  absl::Status CheckRelocationsOf(const ElfSection& section) const {
    const absl::Status entries = CheckEntries(section, sizeof(Relocation));
    if (!entries.ok()) return entries;
    if (section.header.sh_info >= file_.sections.size()) {
      return Wrong(section, "it belongs to section ", section.header.sh_info, " of ",
                   file_.sections.size());
    }
    const ElfSection& target = file_.sections[section.header.sh_info];
    for (std::size_t at = 0; at < section.bytes.size(); at += sizeof(Relocation)) {
      const auto relocation = section.bytes.At<Relocation>(at);
      if (!target.bytes.Has(relocation.r_offset, sizeof(std::uint32_t))) {
        return Damaged(section.bytes, at, "a relocation of byte ", relocation.r_offset, " of ",
                       target.ToString(), ", which has ", target.bytes.size());
      }
      if (ELF64_R_SYM(relocation.r_info) >= symbol_table_.size() && !IsByOtherSymbols(section)) {
        return Damaged(section.bytes, at, "a relocation of type ", ELF64_R_TYPE(relocation.r_info),
                       " by symbol ", ELF64_R_SYM(relocation.r_info), " of ", symbol_table_.size());
      }
    }
    return absl::OkStatus();
  }

  // Records: a format, an attribute, and two bytes that are the value or, in format 4, the
  // length of what follows. Behind one of another format nothing is known.
  template <typename Visit>
  static absl::Status ForEachRecord(const ImageBytes& bytes, const Visit& visit) {
    constexpr unsigned char kSized = 4;
    std::size_t at = 0;
    while (at < bytes.size()) {
      if (!bytes.Has(at, 4)) return Damaged(bytes, at, "it ends within a record");
      const auto format = bytes.At<unsigned char>(at);
      if (format == 0 || format > kSized) return absl::OkStatus();
      const std::uint64_t size = format == kSized ? bytes.At<std::uint16_t>(at + 2) : 0;
      if (!bytes.Has(at + 4, size)) return Damaged(bytes, at, "a record of ", size, " bytes");
      const absl::Status status = visit(bytes.At<InfoAttribute>(at + 1), bytes.Part(at + 4, size));
      if (!status.ok()) return status;
      at += 4 + size;
    }
    return absl::OkStatus();
  }

  absl::Status CheckInfo(const ImageBytes& bytes) const {
    return ForEachRecord(bytes, [this](InfoAttribute attribute, const ImageBytes& words) {
      return CheckRecord(attribute, words);
    });
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
          const absl::Status status = CheckIsSymbol(words, at);
          if (!status.ok()) return status;
        }
        return absl::OkStatus();
      case kParameter:
        if (words.size() != 3 * sizeof(std::uint32_t)) break;
        return CheckIsSymbol(words, 0);
      case kParameterBank:
        if (words.size() != 2 * sizeof(std::uint32_t)) break;
        return CheckIsSymbol(words, 0);
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

  // Pairs of symbols: a function or nobody, and what it calls or a mark.
  absl::Status CheckCallGraph(const ImageBytes& bytes) const {
    constexpr std::uint32_t kFirstMark = 0xfffffff0;
    for (std::size_t at = 0; at < bytes.size(); at += kPair) {
      if (!bytes.Has(at, kPair)) return Damaged(bytes, at, "it ends within a pair");
      const bool mark = bytes.At<std::uint32_t>(at + kPair / 2) >= kFirstMark;
      const bool nobody = bytes.At<std::uint32_t>(at) == 0;
      absl::Status status = nobody ? absl::OkStatus() : CheckNamesSymbol(bytes, at, STT_FUNC);
      if (status.ok() && !mark) status = CheckIsSymbol(bytes, at + kPair / 2);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Pairs of a function and where its types are among the names of symbols.
  absl::Status CheckPrototypes(const ImageBytes& bytes) const {
    for (std::size_t at = 0; at < bytes.size(); at += kPair) {
      if (!bytes.Has(at, kPair)) return Damaged(bytes, at, "it ends within a pair");
      const absl::Status status = CheckNamesSymbol(bytes, at, STT_FUNC);
      if (!status.ok()) return status;
      const auto types = bytes.At<std::uint32_t>(at + kPair / 2);
      if (types < strings_->bytes.size()) continue;
      return Damaged(bytes, at, "types at ", types, " of ", strings_->bytes.size());
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
  const bool known_;  // its ABI
  CodeContents* const contents_;
  const ElfSection* symbols_ = nullptr;
  const ElfSection* strings_ = nullptr;
  const ElfSection* extended_ = nullptr;  // numbers of sections that symbols have no room for
  std::unordered_map<std::string_view, const ElfSection*> infos_;  // by name
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
  const bool known = IsKnownAbi(bytes);
  absl::StatusOr<ElfFile> file = ElfFile::Read(bytes, known ? HasBytes : HasBytesAnywhere);
  if (!file.ok()) return file.status();
  return DeviceElf(*std::move(file), contents).Read();
}

}  // namespace internal
CUGUEST_END_NAMESPACE
