// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The readers on images that are made here: what they find, and that every truncation of an image
// and every changed byte of its tables is an error or another image, and no read outside of it.

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cudaimage/contents.h"
#include "cudaimage/cubin.h"
#include "cudaimage/decompress.h"
#include "cudaimage/fatbin.h"
#include "cudaimage/kernel_names.h"
#include "cudaimage/nvjitlink.h"
#include "cudaimage/ptx.h"

namespace {

using namespace cudaimage;

int failures = 0;

void Check(bool holds, const char* what, int line) {
  if (holds) return;
  std::printf("image_test.cc:%d: %s\n", line, what);
  ++failures;
}
#define CHECK(condition) Check((condition), #condition, __LINE__)

template <typename T>
void Append(std::string* to, const T& value) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

constexpr std::uint32_t kInfo = SHT_LOPROC;

// A kernel "k" for sm_90 that must be launched with blocks of 64 x 2 x 1.
std::string MakeCubin() {
  const std::string names("\0.shstrtab\0.strtab\0.symtab\0.text.k\0.nv.info.k\0", 46);
  const std::string strings("\0k\0", 3);
  std::string symbols;
  Append(&symbols, Elf64_Sym{});
  Elf64_Sym kernel = {};
  kernel.st_name = 1;
  kernel.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  kernel.st_other = 0x10;
  kernel.st_shndx = 4;
  kernel.st_size = 16;
  Append(&symbols, kernel);
  std::string info("\x04\x10\x0c\x00", 4);
  for (const std::uint32_t size : {64u, 2u, 1u}) Append(&info, size);

  std::string file(sizeof(Elf64_Ehdr), '\0');
  std::string table;
  Append(&table, Elf64_Shdr{});
  const auto add = [&](std::uint32_t name, std::uint32_t type, std::uint64_t flags,
                       const std::string& bytes, std::uint32_t link, std::uint32_t of,
                       std::uint64_t entry) {
    Elf64_Shdr header = {};
    header.sh_name = name;
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_offset = file.size();
    header.sh_size = bytes.size();
    header.sh_link = link;
    header.sh_info = of;
    header.sh_addralign = 1;
    header.sh_entsize = entry;
    Append(&table, header);
    file += bytes;
  };
  add(1, SHT_STRTAB, 0, names, 0, 0, 0);
  add(11, SHT_STRTAB, 0, strings, 0, 0, 0);
  add(19, SHT_SYMTAB, 0, symbols, 2, 1, sizeof(Elf64_Sym));
  add(27, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, std::string(16, '\0'), 3, 1, 0);
  add(35, kInfo, 0, info, 3, 4, 0);
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_OSABI] = 0x33;
  header.e_ident[EI_ABIVERSION] = 7;
  header.e_type = ET_EXEC;
  header.e_machine = EM_CUDA;
  header.e_flags = 90;
  header.e_shoff = file.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 6;
  header.e_shstrndx = 1;
  std::memcpy(&file[0], &header, sizeof(header));
  return file + table;
}

constexpr char kPtxText[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    "// .entry no()\n"
    ".visible .entry p(.param .u64 x) .reqntid 32, 4 { ret; }\n";

struct Payload {
  std::uint16_t kind;
  std::string bytes;
  std::uint32_t architecture = 90;
  std::uint64_t flags = 0;
  std::uint64_t decompressed_size = 0;
};

std::string MakeFatbin(const std::vector<Payload>& entries) {
  std::string body;
  for (const Payload& entry : entries) {
    FatbinEntryHeader header = {};
    header.kind = entry.kind;
    header.header_size = sizeof(header);
    header.payload_size = entry.bytes.size();
    header.compressed_size = static_cast<std::uint32_t>(entry.bytes.size());
    header.architecture = entry.architecture;
    header.flags = entry.flags;
    header.decompressed_size = entry.decompressed_size;
    Append(&body, header);
    body += entry.bytes;
  }
  std::string file;
  Append(&file, FatbinHeader{0xba55ed50, 1, sizeof(FatbinHeader), body.size()});
  return file + body;
}

// In memory of its own, behind which a sanitizer or the end of a page would tell.
Status Read(const std::string& image, CodeKind* kind, CodeContents* contents) {
  const std::unique_ptr<unsigned char[]> own(new unsigned char[image.size()]);
  std::memcpy(own.get(), image.data(), image.size());
  const Bytes bytes(own.get(), image.size());
  CUDAIMAGE_RETURN_IF_ERROR(RecogniseCode(bytes, kind));
  return ReadCode(*kind, bytes, contents);
}

void FindsKernels() {
  CodeKind kind = CodeKind::kPtx;
  CodeContents contents;
  CHECK(Read(MakeCubin(), &kind, &contents).ok());
  CHECK(kind == CodeKind::kCubin && contents.names_all && contents.kernels.size() == 1);
  CHECK((contents.kernels["k"].block == RequiredBlock{64, 2, 1}));
  contents = {};
  CHECK(Read(kPtxText, &kind, &contents).ok());
  CHECK(kind == CodeKind::kPtx && contents.kernels.size() == 1);
  CHECK((contents.kernels["p"].block == RequiredBlock{32, 4, 1}));
  for (const char* const kernel : {"p", "q"}) {  // NULs behind the text are no part of it
    contents = {};
    std::string text = std::string(kPtxText) + ".entry q() { ret; }" + std::string(3, '\0');
    CHECK(Read(text, &kind, &contents).ok() && contents.kernels.count(kernel) == 1);
  }
  contents = {};
  CHECK(Read(MakeFatbin(
                 {{FatbinEntryHeader::kElf, MakeCubin()}, {FatbinEntryHeader::kPtx, kPtxText}}),
             &kind, &contents)
            .ok());
  CHECK(kind == CodeKind::kFatbin && contents.names_all && contents.images == 2);
  CHECK(contents.kernels.size() == 2);
}

// The targets, one behind the other.
std::string TargetsOf(const std::string& image) {
  CodeKind kind = CodeKind::kPtx;
  CodeContents contents;
  static_cast<void>(Read(image, &kind, &contents));
  std::string text;
  for (const std::string& target : contents.targets) text += (text.empty() ? "" : ", ") + target;
  return text;
}

void ImagesHaveTargets() {
  constexpr std::uint64_t kUnknownCompression = 0x1000;
  CHECK(TargetsOf(MakeCubin()) == "sm_90");
  CHECK(TargetsOf(kPtxText) == "PTX for sm_90");
  CHECK(TargetsOf(".version 8.0\n.target sm_90a, debug\n") == "PTX for sm_90a");
  CHECK(TargetsOf(".version 8.0\n") == "");
  const std::string fatbin = MakeFatbin({{FatbinEntryHeader::kElf, MakeCubin()},
                                         {FatbinEntryHeader::kElf, MakeCubin()},
                                         {FatbinEntryHeader::kPtx, kPtxText},
                                         {FatbinEntryHeader::kLtoIr, "lto", 80},
                                         {FatbinEntryHeader::kElf, "x", 75, kUnknownCompression},
                                         {FatbinEntryHeader::kPtx, "x", 70, kUnknownCompression}});
  CHECK(TargetsOf(fatbin) == "sm_90, PTX for sm_90, LTO IR for sm_80, sm_75, PTX for sm_70");
}

void CubinsHaveTables() {
  const std::string image = MakeCubin();
  Cubin cubin;
  CHECK(IsDeviceElf(Bytes(image)) && Cubin::Read(Bytes(image), &cubin).ok());
  CHECK(cubin.Architecture() == 90 && !cubin.IsRelocatable() && cubin.has_known_abi);
  CHECK(cubin.symbols.size() == 2 && cubin.symbols[1].IsKernel() && cubin.symbols[1].name == "k");
  CHECK(cubin.file.Find(".text.k") != nullptr && cubin.file.Find(".text") == nullptr);
  CHECK(SizeOfCubin(image.data()) == image.size());
}

PtxEntry Entry(std::string_view text) {
  PtxTokens tokens(text);
  return ReadPtxEntry(&tokens);
}

void EntriesHaveParametersAndShapes() {
  PtxTokens tokens(
      "k(.param .u64 .ptr .global .align 4 k_0, .param .align 16 .b8 k_1[48], .param .f32 k_2)\n"
      ".maxntid 64, 2 .minnctapersm 1 .reqnctapercluster 2 .maxnreg 40 .maxclusterrank 4\n"
      ".explicitcluster { ret; }");
  const PtxEntry entry = ReadPtxEntry(&tokens);
  CHECK(entry.name == "k" && entry.is_understood && entry.has_body && tokens.Next() == "ret");
  CHECK(entry.parameters.size() == 3);
  CHECK(entry.parameters[0].size == 8 && entry.parameters[0].alignment == 8);
  CHECK(entry.parameters[1].size == 48 && entry.parameters[1].alignment == 16);
  CHECK(entry.parameters[2].size == 4 && entry.parameters[2].alignment == 4);
  CHECK((entry.max_block == PtxEntry::Sizes{64, 2, 1}));
  CHECK((entry.required_block == PtxEntry::Sizes{}));
  CHECK((entry.required_cluster == PtxEntry::Sizes{2, 1, 1}));
  CHECK(entry.max_registers == 40 && entry.max_cluster_rank == 4 && entry.must_have_cluster);
  const PtxEntry declared = Entry("d .reqntid 8, 4, 2;");
  CHECK(declared.is_understood && !declared.has_body && declared.parameters.empty());
  CHECK((declared.required_block == PtxEntry::Sizes{8, 4, 2}));
  const PtxEntry strange = Entry("s(.param .texref t) .reqntid 8 { ret; }");
  CHECK(!strange.is_understood && strange.has_body && strange.required_block[0] == 8);
  CHECK(!Entry("(.param .u64 x) { ret; }").is_understood);
  CHECK(!Entry("u(.param .u64 x").is_understood);
}

void EntriesAreChosenForADevice() {
  constexpr auto kElf = FatbinEntryHeader::kElf;
  constexpr auto kPtx = FatbinEntryHeader::kPtx;
  const std::string fatbin = MakeFatbin(
      {{kPtx, "old", 50}, {kElf, "code80", 80}, {kPtx, "new", 80}, {kElf, "code90", 90}});
  const auto chosen = [](const std::string& image, std::uint32_t architecture, bool only_ptx) {
    std::optional<FatbinEntry> entry;
    if (!ChooseEntry(Bytes(image), architecture, only_ptx, &entry).ok())
      return std::string("damaged");
    return entry ? std::string(entry->payload.text()) : std::string("none");
  };
  CHECK(chosen(fatbin, 90, false) == "code90");
  CHECK(chosen(fatbin, 80, false) == "code80");
  CHECK(chosen(fatbin, 86, false) == "new");
  CHECK(chosen(fatbin, 75, false) == "old");
  CHECK(chosen(fatbin, 35, false) == "none");
  CHECK(chosen(fatbin, 90, true) == "new");
  CHECK(chosen(MakeFatbin({{kElf, "code90", 90}}), 90, true) == "none");
  CHECK(chosen(fatbin.substr(0, fatbin.size() - 1), 90, false) == "damaged");
}

void DamageIsSaid() {
  CodeKind kind = CodeKind::kPtx;
  CodeContents contents;
  const std::string cubin = MakeCubin();
  for (const std::string& whole : {cubin, MakeFatbin({{FatbinEntryHeader::kElf, cubin}})}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      contents = {};
      const Status status = Read(whole.substr(0, size), &kind, &contents);
      CHECK(status.code() == Status::Code::kDamaged && !status.message().empty());
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const char byte : {'\0', '\x7f', '\xff'}) {
        std::string changed = whole;
        changed[at] = byte;
        contents = {};
        static_cast<void>(Read(changed, &kind, &contents));
      }
    }
  }
  std::string misplaced = cubin;
  const std::uint64_t far = 1 << 20;
  std::memcpy(&misplaced[offsetof(Elf64_Ehdr, e_shoff)], &far, sizeof(far));
  const Status status = Read(misplaced, &kind, &contents);
  CHECK(status.message().find("at offset 0: the ELF header puts") != std::string::npos);
  CHECK(!Read(std::string(kPtxText) + std::string("\0x", 2), &kind, &contents).ok());
}

void CompressionIsUndone() {
  // One LZ4 block: a token for four letters as they are.
  const std::string packed("\x40wolf", 5);
  UnpackedBytes unpacked;
  const Status status = DecompressLz4(Bytes(packed), 4, &unpacked);
  if (status.code() == Status::Code::kUnavailable) return;
  CHECK(status.ok() && unpacked.size == 4 && std::memcmp(unpacked.data.get(), "wolf", 4) == 0);
  CHECK(DecompressLz4(Bytes(packed), 5, &unpacked).code() == Status::Code::kDamaged);
  constexpr std::uint64_t kLz4 = 0x2000;
  const auto unpack = [&unpacked](std::uint64_t flags, Bytes* bytes) {
    const std::string fatbin =
        MakeFatbin({{FatbinEntryHeader::kPtx, std::string("\x40wolf", 5), 90, flags, 4}});
    std::optional<FatbinEntry> entry;
    CHECK(ChooseEntry(Bytes(fatbin), 90, false, &entry).ok() && entry);
    const Status said = UnpackEntry(*entry, &unpacked, bytes);
    CHECK(flags != 0 || bytes->text() == std::string("\x40wolf", 5));
    return said;
  };
  Bytes bytes;
  CHECK(unpack(kLz4, &bytes).ok() && bytes.text() == "wolf");
  CHECK(unpack(0, &bytes).ok());
  CHECK(unpack(0x1000, &bytes).code() == Status::Code::kUnavailable);
  CHECK(DecompressZstd(Bytes(packed), 4, &unpacked).code() != Status::Code::kOk);
}

void MissingKernelsAreExplained() {
  const auto explain = [](std::string_view wanted, const std::vector<std::string>& names) {
    return ExplainMissingKernel(wanted, names);
  };
  CHECK(explain("scale", {}) == "there is none of that name");
  CHECK(explain("stone", {"fill", "store"}) ==
        "there is none of that name; the nearest is \"store\"; it has store, fill");
  CHECK(explain("nothing_like_them", {"fill"}) == "there is none of that name; it has fill");
  const std::string mangled = explain("scale", {"_ZN7filters5scaleIfEEvPT_i", "fill"});
  CHECK(mangled ==
        "there is none of that name; \"_ZN7filters5scaleIfEEvPT_i\" is "
        "void filters::scale<float>(float*, int): declare it extern \"C\", or ask for the mangled "
        "name; it has _ZN7filters5scaleIfEEvPT_i, fill");
  std::vector<std::string> many;
  for (char letter = 'a'; letter <= 'z'; ++letter) many.emplace_back(1, letter);
  const std::string listed = explain("kernel", many);
  CHECK(listed.substr(listed.rfind(',')) == ", o and 10 more");
}

void LibrariesAreToldApart() {
  NvJitLinkTable table;
  CHECK(NvJitLinkTable::Load("libno_such.so", &table).code() == Status::Code::kUnavailable);
  const Status status = NvJitLinkTable::Load("libc.so.6", &table);
  CHECK(status.code() == Status::Code::kTooOld);
  CHECK(status.message() == "libc.so.6 has no nvJitLinkCreate");
  CHECK(std::string(NvJitLinkTable::ErrorName(4)) == "NVJITLINK_ERROR_PTX_COMPILE");
  for (const int unknown : {-1, 19, 1 << 20}) {
    CHECK(std::string(NvJitLinkTable::ErrorName(unknown)) == "an nvJitLink error of no known name");
  }
}

}  // namespace

int main() {
  FindsKernels();
  ImagesHaveTargets();
  CubinsHaveTables();
  EntriesHaveParametersAndShapes();
  EntriesAreChosenForADevice();
  DamageIsSaid();
  CompressionIsUndone();
  MissingKernelsAreExplained();
  LibrariesAreToldApart();
  std::printf("cases: %d passed, %d failed, 0 skipped\n", failures == 0 ? 9 : 0, failures);
  return failures == 0 ? 0 : 1;
}
