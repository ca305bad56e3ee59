// SPDX-License-Identifier: Apache-2.0
//
// Objects of the host's compiler, in which nvcc puts fatbins, and archives of them.

#include <cstdint>
#include <string>

#include "lib/module/code_contents.h"
#include "lib/module/elf_file.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

bool HasNoBytes(std::uint32_t type) { return type == SHT_NOBITS; }

// Of nvcc -c and of nvcc -dc.
bool HoldsFatbins(const ElfSection& section) {
  return section.name == ".nv_fatbin" || section.name == "__nv_relfatbin";
}

// One behind the other, each at a multiple of 8.
absl::Status ReadFatbins(const ImageBytes& bytes, CodeContents* contents) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ImageBytes rest = bytes.From(at);
    if (!IsFatbin(rest)) return Damaged(rest, 0, "no fatbin");
    std::size_t size = 0;
    const absl::Status status = ReadFatbin(rest, contents, &size);
    if (!status.ok()) return status;
    at += (size + 7) / 8 * 8;
  }
  return absl::OkStatus();
}

constexpr std::string_view kArchiveMagic = "!<arch>\n";

struct MemberHeader {
  char name[16];
  char unused[32];
  char size[10];  // decimal, blanks behind it
  char end[2];
};
static_assert(sizeof(MemberHeader) == 60, "as ar(5) has it");

// False if it is no number.
bool ReadDecimal(std::string_view text, std::uint64_t* value) {
  *value = 0;
  text = text.substr(0, text.find(' '));
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return false;
    *value = *value * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return !text.empty();
}

absl::Status ReadMember(const ImageBytes& member, CodeContents* contents) {
  if (IsDeviceElf(member)) {
    ++contents->images;
    return ReadDeviceElf(member, contents);
  }
  return IsElf(member) ? ReadHostObject(member, contents) : absl::OkStatus();  // an index
}

}  // namespace

absl::Status ReadHostObject(const ImageBytes& bytes, CodeContents* contents) {
  const absl::StatusOr<ElfFile> file = ElfFile::Read(bytes, HasNoBytes);
  if (!file.ok()) return file.status();
  for (const ElfSection& section : file->sections) {
    if (!HoldsFatbins(section)) continue;
    const absl::Status status = ReadFatbins(section.bytes, contents);
    if (!status.ok()) return Within(section.ToString(), status);
  }
  return absl::OkStatus();
}

bool IsArchive(const ImageBytes& bytes) {
  return bytes.text().substr(0, kArchiveMagic.size()) == kArchiveMagic;
}

absl::Status ReadArchive(const ImageBytes& bytes, CodeContents* contents) {
  std::uint64_t at = kArchiveMagic.size();
  while (at < bytes.size()) {
    std::uint64_t size = 0;
    if (!bytes.Has(at, sizeof(MemberHeader))) {
      return Damaged(bytes, at, "it ends within the header of a member");
    }
    const auto header = bytes.At<MemberHeader>(at);
    const std::string_view end(header.end, sizeof(header.end));
    if (end != "`\n" || !ReadDecimal({header.size, sizeof(header.size)}, &size)) {
      return Damaged(bytes, at, "no header of a member");
    }
    if (!bytes.Has(at + sizeof(header), size)) {
      return Damaged(bytes, at, "a member of ", size, " bytes, where there are ",
                     bytes.size() - at - sizeof(header));
    }
    const ImageBytes member = bytes.Part(at + sizeof(header), size);
    const absl::Status status = ReadMember(member, contents);
    if (!status.ok()) return Within(absl::StrCat("member at ", at), status);
    at += sizeof(header) + (size + 1) / 2 * 2;
  }
  return absl::OkStatus();
}

}  // namespace internal
CUGUEST_END_NAMESPACE
