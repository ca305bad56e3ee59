// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cubins. Which damage ends in a crash of the driver was measured, by loading tens of
// thousands of damaged cubins: places, names and counts in the tables, symbols, relocations.
// Damage of code and data does not, and cannot be told from code and data.
//
// Of every cubin it is checked what ELF itself lays down: that tables, names and entries are
// inside of what they are in. Which parts refer to which (a kernel's code, its records, their
// symbols) is NVIDIA's to lay down, by an ABI whose version is in the header; of a version that is
// not known, none of that is held against the file. What is known of those that are:
// test/device_code holds it against all that there is of real compilers and libraries.

#include "cudaimage/cubin.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cudaimage/contents.h"

CUDAIMAGE_BEGIN_NAMESPACE
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

// Those of the compilers from CUDA 11 to 12.9 and of CUDA 13: EI_OSABI and EI_ABIVERSION.
bool IsKnownAbi(const Bytes& elf) {
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

Status CheckEntries(const Bytes& file, const ElfSection& section, std::size_t size) {
  if (section.header.sh_entsize == size && section.bytes.size() % size == 0) return Status();
  return Damaged(file, section.at, "a table of ", section.bytes.size(), " bytes with entries of ",
                 section.header.sh_entsize, ", which take ", size);
}

class SymbolReader {
 public:
  explicit SymbolReader(Cubin* cubin) : file_(cubin->file), cubin_(cubin) {}

  Status Read() {
    for (const ElfSection& section : file_.sections) {
      const std::uint32_t type = section.header.sh_type;
      if (type == SHT_SYMTAB && cubin_->symbol_table == nullptr) cubin_->symbol_table = &section;
      if (type == SHT_SYMTAB_SHNDX) extended_ = &section;
    }
    if (cubin_->symbol_table == nullptr) return Status();
    CUDAIMAGE_RETURN_IF_ERROR(CheckTable(*cubin_->symbol_table));
    const Bytes& bytes = cubin_->symbol_table->bytes;
    const std::size_t count = bytes.size() / sizeof(Elf64_Sym);
    for (std::size_t i = 0; i < count; ++i) {
      CubinSymbol symbol;
      symbol.bytes = bytes.Part(i * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
      CUDAIMAGE_RETURN_IF_ERROR(Within(Text("symbol ", i), Take(i, &symbol)));
      cubin_->symbols.push_back(symbol);
    }
    return Status();
  }

 private:
  Status CheckTable(const ElfSection& table) {
    if (table.header.sh_link >= file_.sections.size()) {
      return Damaged(file_.bytes, table.at, "the symbol table's names are in section ",
                     table.header.sh_link, " of ", file_.sections.size());
    }
    cubin_->symbol_names = &file_.sections[table.header.sh_link];
    CUDAIMAGE_RETURN_IF_ERROR(CheckStrings(*cubin_->symbol_names));
    CUDAIMAGE_RETURN_IF_ERROR(CheckEntries(file_.bytes, table, sizeof(Elf64_Sym)));
    const std::size_t count = table.bytes.size() / sizeof(Elf64_Sym);
    if (table.header.sh_info <= count) return Status();
    return Damaged(file_.bytes, table.at, table.header.sh_info, " local symbols of ", count);
  }

  Status Take(std::size_t number, CubinSymbol* symbol) {
    const Bytes& names = cubin_->symbol_names->bytes;
    symbol->entry = symbol->bytes.At<Elf64_Sym>(0);
    if (symbol->entry.st_name >= names.size()) {
      return Damaged(symbol->bytes, 0, "its name is at ", symbol->entry.st_name, " of ",
                     names.size(), " bytes of names");
    }
    symbol->name = StringAt(names, symbol->entry.st_name);
    symbol->section = SectionOf(number, symbol->entry);
    if (symbol->section < file_.sections.size() || symbol->section == SHN_UNDEF) return Status();
    return Damaged(symbol->bytes, 0, "it is in section ", symbol->section, " of ",
                   file_.sections.size());
  }

  // SHN_UNDEF of one that is in no section of this file.
  std::size_t SectionOf(std::size_t number, const Elf64_Sym& symbol) const {
    if (symbol.st_shndx < SHN_LORESERVE) return symbol.st_shndx;
    const std::size_t at = number * sizeof(std::uint32_t);
    const bool extended = symbol.st_shndx == SHN_XINDEX && extended_ != nullptr &&
                          extended_->bytes.Has(at, sizeof(std::uint32_t));
    return extended ? extended_->bytes.At<std::uint32_t>(at) : std::size_t{SHN_UNDEF};
  }

  const ElfFile& file_;
  Cubin* const cubin_;
  const ElfSection* extended_ = nullptr;  // numbers of sections that symbols have no room for
};

class CubinCheck {
 public:
  CubinCheck(const Cubin& cubin, CodeContents* contents)
      : file_(cubin.file),
        known_(cubin.has_known_abi),
        symbols_(cubin.symbol_table),
        strings_(cubin.symbol_names),
        symbol_table_(cubin.symbols),
        contents_(contents) {
    for (const ElfSection& section : file_.sections) {
      if (section.header.sh_type == kInfo) infos_.emplace(section.name, &section);
    }
  }

  // `read` is what reading it said.
  Status Check(const Status& read) {
    CUDAIMAGE_RETURN_IF_ERROR(TakeSymbols());
    CUDAIMAGE_RETURN_IF_ERROR(read);
    if (symbols_ == nullptr) {
      contents_->names_all = false;
      return known_ ? Damaged(file_.bytes, 0, "a cubin without a symbol table") : Status();
    }
    for (const ElfSection& section : file_.sections) {
      CUDAIMAGE_RETURN_IF_ERROR(Within(section.ToString(), CheckSection(section)));
    }
    return Status();
  }

 private:
  template <typename... Parts>
  Status Wrong(const ElfSection& section, const Parts&... what) const {
    return Damaged(file_.bytes, section.at, what...);
  }

  Status TakeSymbols() {
    for (std::size_t i = 0; i < symbol_table_.size(); ++i) {
      const CubinSymbol& symbol = symbol_table_[i];
      if (symbol.section == SHN_UNDEF) continue;  // for a linker, or the driver
      if (known_) {
        CUDAIMAGE_RETURN_IF_ERROR(
            Within(Text("symbol ", i), CheckDefined(symbol, file_.sections[symbol.section])));
      }
      const std::string name(symbol.name);
      if (symbol.IsKernel()) contents_->AddKernel(name, ReadKernel(name));
    }
    return Status();
  }

  // By the records about a kernel, each parameter of which has one.
  KernelContents ReadKernel(const std::string& kernel) const {
    const std::string name = ".nv.info." + kernel;
    const auto found = infos_.find(std::string_view(name));
    KernelContents contents;
    if (found == infos_.end()) return contents;
    const Bytes& records = found->second->bytes;
    std::uint32_t parameters = 0;
    const unsigned char* end = records.data();
    const auto read = [&](CubinAttribute attribute, const Bytes& words) {
      if (attribute == CubinAttribute::kRequiredBlock && words.Has(0, sizeof(contents.block))) {
        contents.block = words.At<RequiredBlock>(0);
      }
      parameters +=
          attribute == CubinAttribute::kParameter || attribute == CubinAttribute::kLargeParameter;
      end = words.data() + words.size();
      return Status();
    };
    static_cast<void>(ForEachRecord(records, read));  // to where it is damaged, or not understood
    if (known_ && end == records.data() + records.size()) contents.parameters = parameters;
    return contents;
  }

  Status CheckDefined(const CubinSymbol& symbol, const ElfSection& section) const {
    const Elf64_Sym& entry = symbol.entry;
    const std::uint64_t size = section.header.sh_size;
    // Before linking, the value of what takes no place is its alignment.
    const bool placed = file_.header.e_type == ET_EXEC || HasBytes(section.header.sh_type);
    if (!placed && entry.st_value != 0 && !IsAlignment(entry.st_value)) {
      return Damaged(symbol.bytes, 0, "an alignment of ", entry.st_value);
    }
    const std::uint64_t start = placed ? entry.st_value : 0;
    // A label of no bytes may lie behind: ptxas -g puts them into what shared memory there was.
    if (entry.st_size > 0 && (start > size || entry.st_size > size - start)) {
      return Damaged(symbol.bytes, 0, entry.st_size, " bytes at ", entry.st_value, " of ",
                     section.ToString(), ", which has ", size);
    }
    if (!symbol.IsKernel() || section.name == Text(kCode, symbol.name)) return Status();
    return Damaged(symbol.bytes, 0, "kernel \"", symbol.name, "\" is in ", section.ToString());
  }

  Status CheckSection(const ElfSection& section) const {
    if (section.number == 0) return Status();
    Status status = CheckMemory(section);
    if (status.ok()) status = CheckRelocations(section);
    if (status.ok() && known_) status = CheckByAbi(section);
    return status;
  }

  Status CheckByAbi(const ElfSection& section) const {
    if (section.header.sh_addralign == 0 && section.Is(SHF_ALLOC)) {
      return Wrong(section, "it asks for an alignment of 0");
    }
    Status status = CheckTypeAgreesWithName(section);
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
        return Status();
    }
  }

  Status CheckTypeAgreesWithName(const ElfSection& section) const {
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
    if (agree) return Status();
    return Wrong(section, "its type ", type, " and flags ", section.header.sh_flags,
                 " are not those of its name");
  }

  Status CheckMemory(const ElfSection& section) const {
    if (section.header.sh_size > kMostMemory) {
      return Wrong(section, "it asks for ", section.header.sh_size, " bytes of memory");
    }
    if (IsAlignment(section.header.sh_addralign)) return Status();
    return Wrong(section, "it asks for an alignment of ", section.header.sh_addralign);
  }

  // Code names its function.
  Status CheckCode(const ElfSection& section) const {
    const std::uint32_t number = section.header.sh_info & kSymbolMask;
    if (number < symbol_table_.size() && symbol_table_[number].entry.st_shndx == section.number) {
      return Status();
    }
    return Wrong(section, "it is the code of symbol ", number, ", which is not in it");
  }

  // What belongs to another section says to which, in sh_info, and by its name.
  Status CheckLinks(const ElfSection& section) const {
    const std::uint32_t link = section.header.sh_link;
    const std::uint32_t number = section.header.sh_info;
    if (link >= file_.sections.size()) return Wrong(section, "it refers to section ", link);
    const bool must = IsRelocation(section) || section.Is(SHF_INFO_LINK);
    const bool names_symbol =
        section.Is(SHF_EXECINSTR) || section.Is(kMercury) || &section == symbols_;
    if (!must && (number == 0 || names_symbol || section.header.sh_type == SHT_NOTE)) {
      return Status();
    }
    if (number == 0 || number >= file_.sections.size()) {
      return Wrong(section, "it belongs to section ", number, " of ", file_.sections.size());
    }
    if (section.header.sh_type == SHT_NOTE) return Status();
    if (EndsWith(section.name, NameInOthers(file_.sections[number].name))) return Status();
    return Wrong(section, "it belongs to ", file_.sections[number].ToString());
  }

  static bool IsRelocation(const ElfSection& section) {
    return section.header.sh_type == SHT_RELA || section.header.sh_type == SHT_REL;
  }

  Status CheckRelocations(const ElfSection& section) const {
    if (section.header.sh_type == SHT_RELA) return CheckRelocationsOf<Elf64_Rela>(section);
    if (section.header.sh_type == SHT_REL) return CheckRelocationsOf<Elf64_Rel>(section);
    return Status();
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
  Status CheckRelocationsOf(const ElfSection& section) const {
    const Status entries = CheckEntries(file_.bytes, section, sizeof(Relocation));
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
    return Status();
  }

  Status CheckInfo(const Bytes& bytes) const {
    return ForEachRecord(bytes, [this](CubinAttribute attribute, const Bytes& words) {
      return CheckRecord(attribute, words);
    });
  }

  // Of the records that name symbols.
  Status CheckRecord(CubinAttribute attribute, const Bytes& words) const {
    switch (attribute) {
      case CubinAttribute::kFrameSize:
      case CubinAttribute::kMinStackSize:
      case CubinAttribute::kMaxStackSize:
      case CubinAttribute::kRegisterCount:
        if (words.size() != 2 * sizeof(std::uint32_t)) break;
        return CheckNamesSymbol(words, 0, STT_FUNC);
      case CubinAttribute::kExterns:
        for (std::size_t at = 0; words.Has(at, sizeof(std::uint32_t));
             at += sizeof(std::uint32_t)) {
          const Status status = CheckIsSymbol(words, at);
          if (!status.ok()) return status;
        }
        return Status();
      case CubinAttribute::kParameter:
        if (words.size() != 3 * sizeof(std::uint32_t)) break;
        return CheckIsSymbol(words, 0);
      case CubinAttribute::kParameterBank:
        if (words.size() != 2 * sizeof(std::uint32_t)) break;
        return CheckIsSymbol(words, 0);
      default:
        return Status();
    }
    return Damaged(words, 0, "a record of attribute ", attribute, " with ", words.size(), " bytes");
  }

  Status CheckIsSymbol(const Bytes& words, std::size_t at) const {
    const auto number = words.At<std::uint32_t>(at);
    if (number < symbol_table_.size()) return Status();
    return Damaged(words, at, "it names symbol ", number, " of ", symbol_table_.size());
  }

  Status CheckNamesSymbol(const Bytes& words, std::size_t at, unsigned type) const {
    const auto number = words.At<std::uint32_t>(at);
    if (number < symbol_table_.size() && symbol_table_[number].type() == type) {
      return Status();
    }
    return Damaged(words, at, "a record about symbol ", number, " of ", symbol_table_.size(),
                   ", which is none of type ", type);
  }

  // Pairs of a function, or nobody, and what it calls, in parts that a mark begins: a symbol; in
  // the part of calls by pointer the place of the types among the names of symbols.
  Status CheckCallGraph(const Bytes& bytes) const {
    constexpr std::uint32_t kFirstMark = 0xfffffff0;
    constexpr std::uint32_t kCallsByPointer = 0xfffffffd;
    std::uint32_t part = 0;
    for (std::size_t at = 0; at < bytes.size(); at += kPair) {
      if (!bytes.Has(at, kPair)) return Damaged(bytes, at, "it ends within a pair");
      const auto callee = bytes.At<std::uint32_t>(at + kPair / 2);
      const bool nobody = bytes.At<std::uint32_t>(at) == 0;
      Status status = nobody ? Status() : CheckNamesSymbol(bytes, at, STT_FUNC);
      if (callee >= kFirstMark) {
        part = callee;
      } else if (status.ok()) {
        status = part == kCallsByPointer ? CheckTypes(bytes, at + kPair / 2)
                                         : CheckIsSymbol(bytes, at + kPair / 2);
      }
      if (!status.ok()) return status;
    }
    return Status();
  }

  // Of a function: where its types are among the names of symbols.
  Status CheckTypes(const Bytes& words, std::size_t at) const {
    const auto types = words.At<std::uint32_t>(at);
    if (types < strings_->bytes.size()) return Status();
    return Damaged(words, at, "types at ", types, " of ", strings_->bytes.size());
  }

  // Pairs of a function and where its types are among the names of symbols.
  Status CheckPrototypes(const Bytes& bytes) const {
    for (std::size_t at = 0; at < bytes.size(); at += kPair) {
      if (!bytes.Has(at, kPair)) return Damaged(bytes, at, "it ends within a pair");
      Status status = CheckNamesSymbol(bytes, at, STT_FUNC);
      if (status.ok()) status = CheckTypes(bytes, at + kPair / 2);
      if (!status.ok()) return status;
    }
    return Status();
  }

  static Status CheckNotes(const ElfSection& section) {
    const Bytes& bytes = section.bytes;
    std::size_t at = 0;
    while (at < bytes.size()) {
      if (!bytes.Has(at, sizeof(Elf64_Nhdr))) return Damaged(bytes, at, "it ends within a note");
      const auto note = bytes.At<Elf64_Nhdr>(at);
      const std::uint64_t name = Padded(note.n_namesz);
      const std::uint64_t size = name + Padded(note.n_descsz);
      at += sizeof(note);
      if (!bytes.Has(at, size)) return Damaged(bytes, at, "a note of ", size, " bytes");
      if (section.name == kToolNotes) {
        const Status status = CheckToolNote(bytes.Part(at + name, note.n_descsz));
        if (!status.ok()) return status;
      }
      at += size;
    }
    return Status();
  }

  // A version, a zero, and the places of four strings behind them.
  static Status CheckToolNote(const Bytes& note) {
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
    return Status();
  }

  static std::uint64_t Padded(std::uint64_t size) { return (size + 3) / 4 * 4; }

  const ElfFile& file_;
  const bool known_;  // its ABI
  const ElfSection* const symbols_;
  const ElfSection* const strings_;
  const std::vector<CubinSymbol>& symbol_table_;
  CodeContents* const contents_;
  std::unordered_map<std::string_view, const ElfSection*> infos_;  // by name
};

}  // namespace

bool CubinSymbol::IsKernel() const noexcept {
  return type() == STT_FUNC && section != SHN_UNDEF && (entry.st_other & kEntry) != 0;
}

// CUDA 13's compilers moved the architecture to the second byte, with a new version of the format.
int Cubin::Architecture() const noexcept {
  const bool is_new = file.header.e_ident[EI_ABIVERSION] >= 8;
  return static_cast<int>((is_new ? file.header.e_flags >> 8 : file.header.e_flags) & 0xff);
}

Status Cubin::Read(const Bytes& bytes, Cubin* cubin) {
  cubin->has_known_abi = IsKnownAbi(bytes);
  CUDAIMAGE_RETURN_IF_ERROR(
      ElfFile::Read(bytes, cubin->has_known_abi ? HasBytes : HasBytesAnywhere, &cubin->file));
  return SymbolReader(cubin).Read();
}

bool IsDeviceElf(const Bytes& bytes) {
  return IsElf(bytes) && bytes.Has(0, sizeof(Elf64_Ehdr)) &&
         bytes.At<Elf64_Ehdr>(0).e_machine == kMachine;
}

bool IsRelocatable(const Bytes& bytes) { return bytes.At<Elf64_Ehdr>(0).e_type == ET_REL; }

std::uint64_t SizeOfCubin(const void* image) {
  const Bytes header(static_cast<const unsigned char*>(image), sizeof(Elf64_Ehdr));
  return IsDeviceElf(header) ? SizeOfElf(image, IsKnownAbi(header) ? HasBytes : HasBytesAnywhere)
                             : 0;
}

Status ReadDeviceElf(const Bytes& bytes, CodeContents* contents) {
  Cubin cubin;
  const Status read = Cubin::Read(bytes, &cubin);
  contents->AddTarget(Text("sm_", cubin.Architecture()));
  return CubinCheck(cubin, contents).Check(read);
}

CUDAIMAGE_END_NAMESPACE
