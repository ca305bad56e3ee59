// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/code_image.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "test/objects/code/code.h"
#include "test/objects/code/mutations.h"
#include "test/support/scenario.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(code_image)

using namespace module_test;
using cuguest::HostSpan;
using cuguest_test::OnlyIf;

namespace {

using Names = std::vector<std::string>;
const Names kNames = {
    "_Z5greeti", "_Z9incrementIdEvPT_", "_Z9incrementIiEvPT_", "mirror", "nothing", "weigh"};

absl::StatusOr<CodeImage> Look(const Bytes& bytes) { return CodeImage::Copy(bytes, "image"); }

// What Validate() says of bytes that are accepted as an image.
absl::Status Refusal(const Bytes& bytes) {
  const auto image = Look(bytes);
  DONE(image.status());
  return image.ok() ? image->Validate() : image.status();
}
// Of bytes that are not.
absl::Status NoImage(const Bytes& bytes) { return Look(bytes).status(); }

absl::Status RefusalOfPtx(std::string_view text) {
  const auto image = CodeImage::FromPtx(text, "p");
  DONE(image.status());
  return image.ok() ? image->Validate() : image.status();
}

Bytes ToBytes(std::string_view text) { return Bytes(text.begin(), text.end()); }

// Of the sample, with `value` at `offset`.
template <typename T>
Bytes Patched(Bytes bytes, std::size_t offset, T value) {
  BOOST_TEST_REQUIRE(offset + sizeof(value) <= bytes.size());
  std::memcpy(&bytes[offset], &value, sizeof(value));
  return bytes;
}

template <typename T>
T At(const Bytes& bytes, std::size_t offset) {
  T value;
  BOOST_TEST_REQUIRE(offset + sizeof(value) <= bytes.size());
  std::memcpy(&value, &bytes[offset], sizeof(value));
  return value;
}

// Where things are in a cubin.
struct Cubin {
  explicit Cubin(const char* sample = "images_cubin") : bytes(SampleOf(sample).bytes) {}

  Bytes bytes;

  Elf64_Ehdr Header() const { return At<Elf64_Ehdr>(bytes, 0); }
  std::size_t HeaderOf(std::size_t section) const {
    return Header().e_shoff + section * sizeof(Elf64_Shdr);
  }
  Elf64_Shdr Section(std::size_t number) const { return At<Elf64_Shdr>(bytes, HeaderOf(number)); }
  std::string NameOf(std::size_t number) const {
    const std::size_t names = Section(Header().e_shstrndx).sh_offset;
    return reinterpret_cast<const char*>(&bytes[names + Section(number).sh_name]);
  }
  std::size_t Find(const std::string& name) const {
    for (std::size_t i = 1; i < Header().e_shnum; ++i) {
      if (NameOf(i) == name) return i;
    }
    BOOST_FAIL("no section " << name);
    return 0;
  }
  std::size_t Begin(const std::string& name) const { return Section(Find(name)).sh_offset; }
  std::size_t Size(const std::string& name) const { return Section(Find(name)).sh_size; }
  std::size_t Symbol(const std::string& name) const {
    const std::size_t strings = Begin(".strtab");
    for (std::size_t at = Begin(".symtab");; at += sizeof(Elf64_Sym)) {
      const auto symbol = At<Elf64_Sym>(bytes, at);
      if (name == reinterpret_cast<const char*>(&bytes[strings + symbol.st_name])) return at;
    }
  }
  // Of the first .nv.info record of this attribute.
  std::size_t Record(const std::string& section, unsigned char attribute) const {
    std::size_t at = Begin(section);
    while (bytes[at + 1] != attribute) {
      at += bytes[at] == 4 ? 4 + At<std::uint16_t>(bytes, at + 2) : 4;
    }
    return at;
  }

  // The refusal of the cubin with `value` in a field of a section's header.
  template <typename Field>
  absl::Status WithSection(const std::string& name, Field Elf64_Shdr::*field, Field value) const {
    Elf64_Shdr header = Section(Find(name));
    header.*field = value;
    return Refusal(Patched(bytes, HeaderOf(Find(name)), header));
  }
  template <typename Field>
  absl::Status WithHeader(Field Elf64_Ehdr::*field, Field value) const {
    return Refusal(HeaderWith(field, value));
  }
  template <typename Field>
  Bytes HeaderWith(Field Elf64_Ehdr::*field, Field value) const {
    Elf64_Ehdr header = Header();
    header.*field = value;
    return Patched(bytes, 0, header);
  }
  template <typename Field>
  absl::Status WithSymbol(const std::string& name, Field Elf64_Sym::*field, Field value) const {
    auto symbol = At<Elf64_Sym>(bytes, Symbol(name));
    symbol.*field = value;
    return Refusal(Patched(bytes, Symbol(name), symbol));
  }
};

// A directory of its own, gone with the object.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/cuguest_code_image_XXXXXX";
    BOOST_TEST_REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Folder() {
    unlink(File().c_str());
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }
  std::string File() const { return path_ + "/image"; }
  void Write(const Bytes& bytes) const {
    std::ofstream(File(), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

bool IsNotRoot() { return geteuid() != 0; }

constexpr std::size_t kFatbinHeader = 16;
enum EntryKind : std::uint16_t { kPtxEntry = 1, kCubinEntry = 2 };
// Of an entry's header.
constexpr std::size_t kHeaderSize = 4;
constexpr std::size_t kPayloadSize = 8;
constexpr std::size_t kOptionsOffset = 20;
constexpr std::size_t kNameOffset = 32;
constexpr std::size_t kFlags = 40;
constexpr std::size_t kDecompressedSize = 56;

// Where the first entry of this kind is.
std::size_t EntryOf(const Bytes& fatbin, EntryKind kind) {
  std::size_t at = kFatbinHeader;
  while (At<std::uint16_t>(fatbin, at) != kind) {
    at += At<std::uint32_t>(fatbin, at + kHeaderSize) +
          static_cast<std::size_t>(At<std::uint64_t>(fatbin, at + kPayloadSize));
  }
  return at;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_is_recognised) {
  for (const Sample& sample : Samples()) {
    BOOST_TEST_CONTEXT(sample.name) {
      const auto image = CodeImage::Copy(sample.bytes, sample.name);
      BOOST_TEST_REQUIRE(image.ok(), image.status().ToString());
      BOOST_TEST((image->kind() == sample.kind), Name(image->kind()));
      BOOST_TEST(image->has_lto_ir() == sample.lto_ir);
      BOOST_TEST(image->name() == sample.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(kernels_are_named_also_where_they_are_compressed_or_in_a_container) {
  for (const char* name :
       {"images_ptx", "images_cubin", "images_relocatable_cubin", "images_fatbin",
        "images_compressed_fatbin", "images_fast_fatbin", "images_object", "images_archive"}) {
    BOOST_TEST_CONTEXT(name) {
      const auto image = Look(SampleOf(name).bytes);
      BOOST_TEST_REQUIRE(image.ok(), image.status().ToString());
      BOOST_TEST(image->kernel_names() == kNames, boost::test_tools::per_element());
      BOOST_TEST(image->names_all_kernels());
    }
  }
  for (const char* name : {"images_lto_ir", "images_lto_fatbin"}) {
    const auto image = Look(SampleOf(name).bytes);
    BOOST_TEST(image->kernel_names().empty());
    BOOST_TEST(!image->names_all_kernels());
  }
}

CHILD(cannot_decompress) {
  for (const char* name : {"images_compressed_fatbin", "images_fast_fatbin"}) {
    const CodeImage image = Look(SampleOf(name).bytes).value();
    CHECK(!image.names_all_kernels() && !image.has_lto_ir());
    if (!Sim::IsActive()) continue;
    // Where a Module is the image itself, a name that cannot be looked up may be one.
    Sim::SetDriverVersion(11080);
    const Module module = Module::Load(image).value();
    CHECK(module.GetKernel("unseen").ok());
    CHECK(Says(module.KernelNames().status(), "compressed"));
  }
  CHECK(Look(SampleOf("images_fatbin").bytes)->names_all_kernels());
  return 0;
}

BOOST_AUTO_TEST_CASE(what_cannot_be_decompressed_is_taken_unseen) {
  const Folder folder;
  const char* const names[] = {"/liblz4.so.1", "/libzstd.so.1"};
  for (const char* name : names) std::ofstream(folder.path() + name) << "no library";
  const char* const others = getenv("LD_LIBRARY_PATH");
  const std::string path =
      "LD_LIBRARY_PATH=" + folder.path() + ":" + (others != nullptr ? others : "");
  const cuguest_test::Ended ended = cuguest_test::RunSelf({"--child=cannot_decompress"}, {path});
  for (const char* name : names) unlink((folder.path() + name).c_str());
  BOOST_TEST(ended.code == 0, ended.output);
}

BOOST_AUTO_TEST_CASE(what_is_in_comments_and_strings_is_no_kernel) {
  const auto image = CodeImage::FromPtx(
      "// .entry a\n/* .entry b */ .version 8.0\n.target sm_75\n.file 1 \".entry c\"\n"
      ".visible .entry\n  real (.param .u64 p) { ret; }\n.entry /* x */ second { ret; } .entry",
      "text");
  BOOST_TEST_REQUIRE(image.ok());
  BOOST_TEST(image->kernel_names() == (Names{"real", "second"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(ptx_ends_in_one_nul_at_least_which_is_counted) {
  const std::string text = ".version 8.0\n.target sm_75\n";
  const std::string terminated = text + '\0';
  for (const Bytes& bytes : {ToBytes(text), ToBytes(terminated)}) {
    for (const auto& image : {CodeImage::Copy(bytes, "p"), CodeImage::Borrow(bytes, "p")}) {
      BOOST_TEST_REQUIRE(image.ok());
      BOOST_TEST(image->bytes().size() == terminated.size());
      BOOST_TEST(image->bytes().data()[text.size()] == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_borrowed_stays_where_it_is_if_the_driver_can_read_it_there) {
  alignas(8) static unsigned char memory[4096] = ".version 8.0";
  const auto image = CodeImage::Borrow(HostSpan<const unsigned char>(memory, 13), "p");
  BOOST_TEST_REQUIRE(image.ok());
  BOOST_TEST(image->bytes().data() == memory);
  const auto unterminated = CodeImage::Borrow(HostSpan<const unsigned char>(memory, 12), "p");
  BOOST_TEST(unterminated->bytes().data() != memory);
  std::memmove(memory + 1, memory, 13);
  const auto odd = CodeImage::Borrow(HostSpan<const unsigned char>(memory + 1, 13), "p");
  BOOST_TEST(odd->bytes().data() != memory + 1);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(odd->bytes().data()) % 8 == 0U);
  const auto copied = CodeImage::Copy(HostSpan<const unsigned char>(memory + 1, 13), "p");
  std::memset(memory, 0, sizeof(memory));
  BOOST_TEST(copied->bytes().data()[0] == '.');
}

BOOST_AUTO_TEST_CASE(copies_share_the_bytes_and_a_moved_image_is_still_one) {
  const CodeImage image = Ptx();
  CodeImage other = image;
  const CodeImage third = std::move(other);
  BOOST_TEST(third.bytes().data() == image.bytes().data());
  BOOST_TEST(other.bytes().data() == image.bytes().data());  // NOLINT: what is tested
  BOOST_TEST(other.name() == "code");
}

BOOST_AUTO_TEST_CASE(an_image_without_a_name_has_one_in_messages) {
  BOOST_TEST(CodeImage::FromPtx(kCode, "")->name() == "(unnamed)");
  REFUSED(CodeImage::Copy({}, "").status(), kInvalidArgument, "(unnamed)");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_device_code_are_refused) {
  REFUSED(NoImage({}), kInvalidArgument, "\"image\", it is empty");
  REFUSED(NoImage({0, 0, 0}), kInvalidArgument, "neither PTX");
  REFUSED(NoImage(ToBytes("int main() {}")), kInvalidArgument, "neither PTX");
  REFUSED(NoImage({0xb1, 0x43, 0x62, 0x46, 1, 0, 0, 0}), kInvalidArgument, "wrapper");
  REFUSED(NoImage(ToBytes("!<arch>\nnothing")), kInvalidArgument, "at offset 8: ");
  REFUSED(NoImage({0xed, 0x43, 0x4e, 0x7f, 1}), kInvalidArgument, "at offset 5: ");
  REFUSED(CodeImage::FromPtx("", "p").status(), kInvalidArgument, "empty");
  const HostSpan<const unsigned char> nowhere(nullptr, 8);
  REFUSED(CodeImage::Copy(nowhere, "p").status(), kInvalidArgument, "\"p\": 8 bytes at null");
  REFUSED(CodeImage::Borrow(nowhere, "").status(), kInvalidArgument, "(unnamed)");
  const Bytes& cubin = SampleOf("images_cubin").bytes;
  const std::string_view text(reinterpret_cast<const char*>(cubin.data()), cubin.size());
  REFUSED(CodeImage::FromPtx(text, "p").status(), kInvalidArgument, "it is a cubin, not PTX");
}

BOOST_AUTO_TEST_CASE(ptx_with_a_nul_inside_is_damaged) {
  REFUSED(RefusalOfPtx(std::string_view(".version 8.0\0.target", 20)), kInvalidArgument,
          "PTX, at offset 12: ");
}

BOOST_AUTO_TEST_CASE(ptx_that_declares_a_function_of_its_own_and_never_defines_it_is_damaged) {
  const std::string head = ".version 8.0\n.target sm_75\n";
  const std::string declared = ".func (.param .b32 r) f (.param .b32 p);\n";
  const std::string defined = ".func (.param .b32 r) f (.param .b32 p) { ret; }\n";
  REFUSED(RefusalOfPtx(head + declared), kInvalidArgument,
          "at offset " + std::to_string(head.size() + declared.find(" f ") + 1) +
              ": function \"f\" is declared");
  DONE(RefusalOfPtx(head + declared + defined));
  DONE(RefusalOfPtx(head + ".extern " + declared));
  DONE(RefusalOfPtx(head + ".visible " + declared));
  DONE(RefusalOfPtx(head + ".func"));
}

BOOST_AUTO_TEST_CASE(every_truncation_of_what_says_its_size_is_refused) {
  for (const char* name : {"images_cubin", "images_relocatable_cubin", "images_fatbin",
                           "images_compressed_fatbin", "images_fast_fatbin", "images_object"}) {
    BOOST_TEST_CONTEXT(name) {
      Bytes bytes = SampleOf(name).bytes;
      const std::size_t step = 1 + bytes.size() / 500;
      while (bytes.size() > step) {
        bytes.resize(bytes.size() - step);
        const AtTheEndOfMemory memory(bytes);
        const auto image = CodeImage::Borrow(memory.span(), "image");
        BOOST_TEST((image.status().code() == StatusCode::kInvalidArgument), bytes.size());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_lacks_what_its_elf_header_promises_is_no_image) {
  for (const char* sample : {"images_cubin", "images_relocatable_cubin", "images_object"}) {
    const Cubin cubin(sample);
    REFUSED(NoImage(cubin.HeaderWith(&Elf64_Ehdr::e_shnum, Elf64_Half{60000})), kInvalidArgument,
            "60000 section headers");
    REFUSED(NoImage(cubin.HeaderWith(&Elf64_Ehdr::e_shentsize, Elf64_Half{40})), kInvalidArgument,
            "40 bytes");
    REFUSED(NoImage(cubin.HeaderWith(&Elf64_Ehdr::e_shoff, ~Elf64_Off{0} - 10)), kInvalidArgument,
            "section headers at");
    REFUSED(NoImage(Bytes(cubin.bytes.begin(), cubin.bytes.begin() + 40)), kInvalidArgument,
            "it ends within the ELF header");
  }
  const Cubin cubin;
  REFUSED(NoImage(cubin.HeaderWith(&Elf64_Ehdr::e_phoff, ~Elf64_Off{0})), kInvalidArgument,
          "program headers at");
  REFUSED(NoImage(cubin.HeaderWith(&Elf64_Ehdr::e_phentsize, Elf64_Half{0})), kInvalidArgument,
          "program headers take 0");
}

BOOST_AUTO_TEST_CASE(an_elf_header_is_checked) {
  const Cubin cubin;
  REFUSED(cubin.WithHeader(&Elf64_Ehdr::e_shnum, Elf64_Half{0}), kInvalidArgument, "0 sections");
  REFUSED(cubin.WithHeader(&Elf64_Ehdr::e_shstrndx, Elf64_Half{4000}), kInvalidArgument,
          "names of sections");
}

// Versions, types and flags of a compiler that is newer than this library.
BOOST_AUTO_TEST_CASE(what_is_not_understood_is_accepted) {
  for (const char* sample : {"images_cubin", "images_relocatable_cubin"}) {
    const Cubin cubin(sample);
    DONE(cubin.WithHeader(&Elf64_Ehdr::e_version, Elf64_Word{0x8f}));
    DONE(cubin.WithHeader(&Elf64_Ehdr::e_flags, ~Elf64_Word{0}));
    DONE(cubin.WithHeader(&Elf64_Ehdr::e_ehsize, Elf64_Half{80}));
    DONE(Refusal(Patched(cubin.bytes, EI_VERSION, '\2')));
    DONE(Refusal(Patched(cubin.bytes, EI_CLASS, '\1')));
    const Bytes newer = Patched(cubin.bytes, EI_ABIVERSION, '\x9');
    DONE(Refusal(newer));
    BOOST_TEST(Look(newer)->kernel_names() == kNames, boost::test_tools::per_element());
    for (unsigned char type = 0; type < 16; ++type) {
      const auto info = static_cast<unsigned char>(ELF64_ST_INFO(STB_LOCAL, type));
      DONE(cubin.WithSymbol("table", &Elf64_Sym::st_info, info));
      DONE(cubin.WithSymbol("vprintf", &Elf64_Sym::st_info,
                            static_cast<unsigned char>(ELF64_ST_INFO(type, STT_FUNC))));
    }
    for (const std::uint32_t type : {256U, 5000U, 65536U, ~0U}) {  // of a relocation
      DONE(Refusal(Patched(cubin.bytes, cubin.Begin(".rela.debug_frame") + 8, type)));
    }
    DONE(Refusal(Patched(cubin.bytes, cubin.Record(".nv.info", 0x2f), '\7')));  // of a record
    DONE(Refusal(Patched(cubin.bytes, cubin.Record(".nv.info", 0x2f) + 1, '\xee')));
  }
  Cubin newer;
  newer.bytes[EI_ABIVERSION] = 9;
  for (const Elf64_Word type : {SHT_LOPROC + 0x0U, SHT_LOPROC + 0x99U, SHT_LOOS + 5U}) {
    Elf64_Shdr section = newer.Section(newer.Find(".text.weigh"));
    section.sh_type = type;
    section.sh_offset = Elf64_Off{1} << 40;  // nobody knows whether that means anything
    DONE(Refusal(Patched(newer.bytes, newer.HeaderOf(newer.Find(".text.weigh")), section)));
  }
  const Bytes& fatbin = SampleOf("images_fatbin").bytes;
  const Bytes& compressed = SampleOf("images_compressed_fatbin").bytes;
  const auto accepted = [](const Bytes& bytes) {
    DONE(Refusal(bytes));
    BOOST_TEST(!Look(bytes)->names_all_kernels());
  };
  DONE(Refusal(Patched(fatbin, 4, std::uint16_t{2})));
  for (const std::uint64_t flags : {0xf011, 0x1011, 0x4011}) {
    accepted(Patched(compressed, kFatbinHeader + kFlags, flags));
  }
  for (const std::uint16_t kind : {3, 16, 999}) {
    accepted(Patched(fatbin, EntryOf(fatbin, kCubinEntry), kind));
  }
  accepted(Patched(fatbin, EntryOf(fatbin, kCubinEntry), kPtxEntry));
}

// More sections than the header has room to count: section 0 has the numbers.
BOOST_AUTO_TEST_CASE(an_elf_file_of_many_sections_is_read) {
  const Cubin cubin;
  const Elf64_Ehdr header = cubin.Header();
  Elf64_Shdr first = cubin.Section(0);
  first.sh_size = header.e_shnum;
  first.sh_link = header.e_shstrndx;
  first.sh_info = header.e_phnum;
  Elf64_Ehdr counted = header;
  counted.e_shnum = 0;
  counted.e_shstrndx = SHN_XINDEX;
  counted.e_phnum = PN_XNUM;
  const Bytes bytes = Patched(Patched(cubin.bytes, cubin.HeaderOf(0), first), 0, counted);
  DONE(Refusal(bytes));
  BOOST_TEST(Look(bytes)->kernel_names() == kNames, boost::test_tools::per_element());
  first.sh_size = 1 << 20;
  REFUSED(NoImage(Patched(bytes, cubin.HeaderOf(0), first)), kInvalidArgument,
          "1048576 section headers");
}

// Whatever Validate() says of an image, it can be made and given to the driver.
BOOST_AUTO_TEST_CASE(a_damaged_image_is_one) {
  const Cubin cubin;
  for (const std::size_t at : {cubin.Begin(".symtab") + 24, cubin.Begin(".nv.info") + 2,
                               cubin.HeaderOf(3) + offsetof(Elf64_Shdr, sh_offset)}) {
    const auto image = Look(Patched(cubin.bytes, at, ~std::uint64_t{0}));
    DONE(image.status());
    BOOST_TEST((image->Validate().code() == StatusCode::kInvalidArgument));
    BOOST_TEST(!image->names_all_kernels());
    BOOST_TEST((image->Validate() == image->Validate()));
    BOOST_TEST((CodeImage(*image).Validate() == image->Validate()), "a copy");
  }
}

BOOST_AUTO_TEST_CASE(sections_and_segments_are_checked) {
  const Cubin cubin;
  const std::string code = ".text.weigh";
  const std::string offset = "at offset " + std::to_string(cubin.HeaderOf(cubin.Find(code))) + ": ";
  REFUSED(cubin.WithSection(code, &Elf64_Shdr::sh_size, Elf64_Xword{1} << 63), kInvalidArgument,
          offset);
  REFUSED(cubin.WithSection(code, &Elf64_Shdr::sh_offset, Elf64_Off{1} << 40), kInvalidArgument,
          offset);
  REFUSED(cubin.WithSection(code, &Elf64_Shdr::sh_name, ~Elf64_Word{0}), kInvalidArgument,
          "bytes of names");
  REFUSED(cubin.WithSection(code, &Elf64_Shdr::sh_flags, Elf64_Xword{0}), kInvalidArgument,
          "\".text.weigh\", ");
  REFUSED(cubin.WithSection(code, &Elf64_Shdr::sh_link, Elf64_Word{5000}), kInvalidArgument,
          "refers to section 5000");
  REFUSED(cubin.WithSection(code, &Elf64_Shdr::sh_info, Elf64_Word{5000}), kInvalidArgument,
          "the code of symbol 5000");
  REFUSED(cubin.WithSection(".nv.info.weigh", &Elf64_Shdr::sh_info, Elf64_Word{5000}),
          kInvalidArgument, "belongs to section 5000");
  REFUSED(cubin.WithSection(".nv.info.weigh", &Elf64_Shdr::sh_info,
                            static_cast<Elf64_Word>(cubin.Find(".text.mirror"))),
          kInvalidArgument, "belongs to section");
  REFUSED(cubin.WithSection(".nv.info", &Elf64_Shdr::sh_info, Elf64_Word{5000}), kInvalidArgument,
          "belongs to section 5000");
  REFUSED(cubin.WithSection(".nv.info", &Elf64_Shdr::sh_type, Elf64_Word{SHT_STRTAB}),
          kInvalidArgument, "not those of its name");
  REFUSED(cubin.WithSection(".nv.global", &Elf64_Shdr::sh_size, Elf64_Xword{1} << 50),
          kInvalidArgument, "bytes of memory");
  for (const Elf64_Xword alignment : {0, 3}) {
    REFUSED(cubin.WithSection(code, &Elf64_Shdr::sh_addralign, alignment), kInvalidArgument,
            "an alignment of " + std::to_string(alignment));
  }
  REFUSED(cubin.WithSection(".nv.constant4", &Elf64_Shdr::sh_info,
                            static_cast<Elf64_Word>(cubin.Find(code))),
          kInvalidArgument, "belongs to section");
  DONE(cubin.WithSection(".nv.global", &Elf64_Shdr::sh_offset, Elf64_Off{1} << 40));
  REFUSED(Refusal(Patched(cubin.bytes, cubin.Header().e_phoff + offsetof(Elf64_Phdr, p_filesz),
                          Elf64_Xword{1} << 60)),
          kInvalidArgument, "segment 0 has");
}

BOOST_AUTO_TEST_CASE(string_tables_are_checked) {
  const Cubin cubin;
  for (const char* name : {".shstrtab", ".strtab"}) {
    const std::size_t begin = cubin.Begin(name);
    REFUSED(Refusal(Patched(cubin.bytes, begin + cubin.Size(name) - 1, 'x')), kInvalidArgument,
            "does not end with a NUL");
    REFUSED(cubin.WithSection(name, &Elf64_Shdr::sh_type, Elf64_Word{SHT_PROGBITS}),
            kInvalidArgument, "should be a string table");
  }
}

BOOST_AUTO_TEST_CASE(symbols_are_checked) {
  const Cubin cubin;
  REFUSED(cubin.WithSection(".symtab", &Elf64_Shdr::sh_entsize, Elf64_Xword{23}), kInvalidArgument,
          "entries of 23");
  REFUSED(cubin.WithSection(".symtab", &Elf64_Shdr::sh_info, Elf64_Word{9999}), kInvalidArgument,
          "9999 local symbols");
  REFUSED(cubin.WithSection(".symtab", &Elf64_Shdr::sh_link, Elf64_Word{3}), kInvalidArgument,
          "should be a string table");
  REFUSED(cubin.WithSection(".symtab", &Elf64_Shdr::sh_type, Elf64_Word{SHT_PROGBITS}),
          kInvalidArgument, "without a symbol table");
  const std::string offset = "at offset " + std::to_string(cubin.Symbol("weigh")) + ": ";
  REFUSED(cubin.WithSymbol("weigh", &Elf64_Sym::st_name, ~Elf64_Word{0}), kInvalidArgument, offset);
  REFUSED(cubin.WithSymbol("weigh", &Elf64_Sym::st_shndx, Elf64_Section{5000}), kInvalidArgument,
          "in section 5000");
  REFUSED(cubin.WithSymbol("weigh", &Elf64_Sym::st_shndx, Elf64_Section{1}), kInvalidArgument,
          offset);
  REFUSED(cubin.WithSymbol("weigh", &Elf64_Sym::st_size, ~Elf64_Xword{0}), kInvalidArgument,
          offset);
  REFUSED(cubin.WithSymbol("weigh", &Elf64_Sym::st_value, ~Elf64_Addr{0}), kInvalidArgument,
          offset);
  REFUSED(cubin.WithSymbol("weigh", &Elf64_Sym::st_name,
                           At<Elf64_Sym>(cubin.bytes, cubin.Symbol("mirror")).st_name),
          kInvalidArgument, "kernel \"mirror\" is in");
}

BOOST_AUTO_TEST_CASE(relocations_are_checked) {
  const Cubin cubin;
  const std::size_t first = cubin.Begin(".rela.debug_frame");
  const std::string offset = "at offset " + std::to_string(first) + ": ";
  REFUSED(Refusal(Patched(cubin.bytes, first, std::uint64_t{1} << 40)), kInvalidArgument, offset);
  REFUSED(Refusal(Patched(cubin.bytes, first + 12, 5000)), kInvalidArgument, "by symbol 5000");
  REFUSED(cubin.WithSection(".rela.debug_frame", &Elf64_Shdr::sh_entsize, Elf64_Xword{16}),
          kInvalidArgument, "entries of 16");
  DONE(cubin.WithSection(".rela.debug_frame", &Elf64_Shdr::sh_link, Elf64_Word{1}));
  REFUSED(cubin.WithSection(".rela.debug_frame", &Elf64_Shdr::sh_info, Elf64_Word{0}),
          kInvalidArgument, "a relocation of byte");
}

BOOST_AUTO_TEST_CASE(records_and_notes_are_checked) {
  const Cubin cubin;
  const std::size_t registers = cubin.Record(".nv.info", 0x2f);
  REFUSED(Refusal(Patched(cubin.bytes, registers + 4, 5000)), kInvalidArgument,
          "at offset " + std::to_string(registers + 4) + ": a record about symbol 5000");
  REFUSED(Refusal(Patched(cubin.bytes, registers + 2, std::uint16_t{0xffff})), kInvalidArgument,
          "a record of 65535 bytes");
  REFUSED(Refusal(Patched(cubin.bytes, cubin.Record(".nv.info._Z5greeti", 0x0f) + 4, 5000)),
          kInvalidArgument, "it names symbol 5000");
  REFUSED(Refusal(Patched(cubin.bytes, cubin.Record(".nv.info._Z5greeti", 0x17) + 4, 5000)),
          kInvalidArgument, "it names symbol 5000");
  REFUSED(Refusal(Patched(cubin.bytes, cubin.Begin(".nv.callgraph"), 5000)), kInvalidArgument,
          "a record about symbol 5000");
  const std::size_t note = cubin.Begin(".note.nv.tkinfo");
  REFUSED(Refusal(Patched(cubin.bytes, note, ~0U)), kInvalidArgument, "a note of");
  REFUSED(Refusal(Patched(cubin.bytes, note + 32, 0x7fffffff)), kInvalidArgument,
          "at offset " + std::to_string(note + 32) + ": a tool's name");
  const std::size_t end = note + cubin.Size(".note.nv.tkinfo") - 1;
  REFUSED(Refusal(Patched(cubin.bytes, end, 'x')), kInvalidArgument, "does not end in a NUL");
}

BOOST_AUTO_TEST_CASE(what_only_a_linker_reads_is_checked) {
  const Cubin cubin("images_relocatable_cubin");
  REFUSED(cubin.WithSymbol("table", &Elf64_Sym::st_value, Elf64_Addr{0xfffffff0}), kInvalidArgument,
          "an alignment of");
  REFUSED(Refusal(Patched(cubin.bytes, cubin.Begin(".nv.prototype"), 0)), kInvalidArgument,
          "a record about symbol 0");
  REFUSED(Refusal(Patched(cubin.bytes, cubin.Begin(".nv.prototype") + 4, 0xec0001)),
          kInvalidArgument, "types at ");
  REFUSED(Refusal(Patched(cubin.bytes, cubin.Begin(".nv.callgraph") + 4, 5000)), kInvalidArgument,
          "it names symbol 5000");
}

BOOST_AUTO_TEST_CASE(fatbins_are_checked) {
  const Bytes& fatbin = SampleOf("images_fatbin").bytes;
  const Bytes& compressed = SampleOf("images_compressed_fatbin").bytes;
  REFUSED(NoImage(Patched(fatbin, 6, std::uint16_t{8})), kInvalidArgument, "header of 8");
  REFUSED(NoImage(Patched(fatbin, 6, std::uint16_t{64})), kInvalidArgument, "behind its header");
  REFUSED(NoImage(Patched(fatbin, 8, ~std::uint64_t{0})), kInvalidArgument, "at offset 0: ");
  REFUSED(NoImage({fatbin.begin(), fatbin.begin() + 10}), kInvalidArgument, "within the header");
  REFUSED(Refusal(Patched(fatbin, 8, std::uint64_t{8})), kInvalidArgument, "entry 1, at offset 16");
  REFUSED(Refusal(Patched(fatbin, kFatbinHeader + kHeaderSize, 8)), kInvalidArgument,
          "a header of 8 bytes");
  REFUSED(Refusal(Patched(fatbin, kFatbinHeader + kPayloadSize, std::uint64_t{1} << 60)),
          kInvalidArgument, "entry 1, at offset 16: ");
  REFUSED(Refusal(Patched(fatbin, kFatbinHeader + kNameOffset, ~0U)), kInvalidArgument, "its name");
  REFUSED(Refusal(Patched(fatbin, EntryOf(fatbin, kPtxEntry), kCubinEntry)), kInvalidArgument,
          "no ELF file");
  const std::size_t ptx = EntryOf(fatbin, kPtxEntry);
  REFUSED(Refusal(Patched(fatbin, ptx + kOptionsOffset, 3)), kInvalidArgument, "its options at 3");
  REFUSED(Refusal(Patched(fatbin, ptx + 64, 0xb948)), kInvalidArgument, "its options at 64");
  REFUSED(Refusal(Patched(compressed, kFatbinHeader + 16, ~0U)), kInvalidArgument,
          "compressed bytes of");
}

BOOST_AUTO_TEST_CASE(what_does_not_decompress_to_the_promised_size_is_refused) {
  for (const char* name : {"images_compressed_fatbin", "images_fast_fatbin"}) {
    const Bytes& bytes = SampleOf(name).bytes;
    const std::size_t entry = EntryOf(bytes, kPtxEntry);
    const auto size = At<std::uint64_t>(bytes, entry + kDecompressedSize);
    for (const std::uint64_t wrong : {size - 1, size + 1, std::uint64_t{1} << 62}) {
      REFUSED(Refusal(Patched(bytes, entry + kDecompressedSize, wrong)), kInvalidArgument,
              "entry ");
    }
  }
}

BOOST_AUTO_TEST_CASE(damage_inside_of_containers_is_found_and_placed) {
  const Bytes& fatbin = SampleOf("images_fatbin").bytes;
  const std::size_t entry = EntryOf(fatbin, kCubinEntry);
  const std::size_t elf = entry + At<std::uint32_t>(fatbin, entry + kHeaderSize);
  const std::size_t section = elf + At<Elf64_Ehdr>(fatbin, elf).e_shoff + sizeof(Elf64_Shdr);
  REFUSED(Refusal(Patched(fatbin, section + offsetof(Elf64_Shdr, sh_size), Elf64_Xword{1} << 60)),
          kInvalidArgument, ", at offset " + std::to_string(section) + ": section 1 has");
  const Bytes& object = SampleOf("images_object").bytes;
  const auto inner = std::search(object.begin(), object.end(), fatbin.begin(), fatbin.begin() + 8);
  const auto inner_at = static_cast<std::size_t>(inner - object.begin());
  REFUSED(Refusal(Patched(object, inner_at + 8, std::uint64_t{1} << 60)), kInvalidArgument,
          "an object, section");
  const Bytes& archive = SampleOf("images_archive").bytes;
  const std::string_view end = "`\n";
  const auto member = std::search(archive.begin() + 100, archive.end(), end.begin(), end.end());
  const auto member_end = static_cast<std::size_t>(member - archive.begin());
  REFUSED(Refusal(Patched(archive, member_end - 10, '9')), kInvalidArgument, "an archive, ");
  REFUSED(Refusal(Patched(archive, member_end, 'x')), kInvalidArgument, "no header of a member");
}

BOOST_AUTO_TEST_CASE(an_object_without_device_code_is_not_sound) {
  const auto image = CodeImage::FromFile("/proc/self/exe");
  DONE(image.status());
  REFUSED(image->Validate(), kInvalidArgument, "nvcc -dc");
}

BOOST_AUTO_TEST_CASE(a_file_is_read_at_once) {
  const Folder folder;
  for (const Sample& sample : Samples()) {
    folder.Write(sample.bytes);
    const auto image = CodeImage::FromFile(folder.File());
    folder.Write({});
    BOOST_TEST_REQUIRE(image.ok(), image.status().ToString());
    BOOST_TEST(image->name() == folder.File());
    BOOST_TEST((image->kind() == sample.kind));
    BOOST_TEST(std::equal(sample.bytes.begin(), sample.bytes.end(), image->bytes().data()));
  }
}

BOOST_AUTO_TEST_CASE(files_that_cannot_be_read_are_refused_by_name) {
  const Folder folder;
  const std::string missing = "read device code from \"" + folder.File() + "\": ";
  REFUSED(CodeImage::FromFile(folder.File()).status(), kNotFound, missing);
  REFUSED(CodeImage::FromFile("").status(), kNotFound, "\"\"");
  REFUSED(CodeImage::FromFile(folder.path()).status(), kInvalidArgument, "not a regular file");
  folder.Write({});
  REFUSED(CodeImage::FromFile(folder.File()).status(), kInvalidArgument, "it is empty");
  REFUSED(CodeImage::FromFile(folder.File() + "/x").status(), kNotFound, "/x\": ");
  unlink(folder.File().c_str());
  BOOST_TEST_REQUIRE(mkfifo(folder.File().c_str(), 0600) == 0);
  REFUSED(CodeImage::FromFile(folder.File()).status(), kInvalidArgument, "not a regular file");
}

BOOST_AUTO_TEST_CASE(a_file_with_a_nul_in_its_name_is_refused) {
  REFUSED(CodeImage::FromFile(std::string("/proc/self/exe\0x", 16)).status(), kInvalidArgument,
          "NUL");
}

BOOST_AUTO_TEST_CASE(a_huge_file_is_refused_before_it_is_read) {
  const Folder folder;
  folder.Write(ToBytes(".version"));
  BOOST_TEST_REQUIRE(truncate(folder.File().c_str(), off_t{3} << 30) == 0);
  REFUSED(CodeImage::FromFile(folder.File()).status(), kResourceExhausted, "3221225472 bytes");
}

BOOST_AUTO_TEST_CASE(an_unreadable_file_is_refused,
                     *OnlyIf(&IsNotRoot, "root may read everything")) {
  const Folder folder;
  folder.Write(ToBytes(".version"));
  BOOST_TEST_REQUIRE(chmod(folder.File().c_str(), 0) == 0);
  REFUSED(CodeImage::FromFile(folder.File()).status(), kPermissionDenied, folder.File());
}

BOOST_AUTO_TEST_SUITE_END()
