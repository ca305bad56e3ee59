// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects of the host's compiler, in which nvcc puts fatbins, and archives of them.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "cudaimage/contents.h"
#include "cudaimage/cubin.h"
#include "cudaimage/fatbin.h"

CUDAIMAGE_BEGIN_NAMESPACE
namespace {

bool IsInFile(std::uint32_t type) { return type != SHT_NOBITS; }

// Of nvcc -c and of nvcc -dc.
bool HoldsFatbins(const ElfSection& section) {
  return section.name == ".nv_fatbin" || section.name == "__nv_relfatbin";
}

// The fatbins of a section, one behind the other, each at a multiple of 8.
class Fatbins {
 public:
  explicit Fatbins(const Bytes& section) : rest_(section) {}

  // False at the end, at what is damaged and at what is no fatbin.
  bool Next(Bytes* fatbin) {
    while (rest_.Has(0, kStep) && rest_.At<std::uint64_t>(0) == 0) rest_ = rest_.From(kStep);
    std::size_t size = 0;
    if (IsFatbin(rest_)) status_ = FindFatbinSize(rest_, &size);
    if (size == 0) return false;
    *fatbin = rest_.Part(0, size);
    rest_ = rest_.From(std::min(rest_.size(), (size + kStep - 1) / kStep * kStep));
    return true;
  }
  // What is not read.
  const Bytes& rest() const { return rest_; }
  const Status& status() const { return status_; }

 private:
  static constexpr std::size_t kStep = 8;

  Bytes rest_;
  Status status_;
};

Status ReadFatbins(const Bytes& section, CodeContents* contents) {
  Fatbins fatbins(section);
  Bytes fatbin;
  while (fatbins.Next(&fatbin)) {
    const Status status = ReadFatbin(fatbin, contents);
    if (!status.ok()) return status;
  }
  if (fatbins.rest().size() > 0) contents->names_all = false;
  return fatbins.status();
}

bool SectionHasLtoIr(const Bytes& section) {
  Fatbins fatbins(section);
  Bytes fatbin;
  while (fatbins.Next(&fatbin)) {
    if (FatbinHasLtoIr(fatbin)) return true;
  }
  return false;
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

// The members of an archive, one by one.
class Members {
 public:
  explicit Members(const Bytes& archive) : archive_(archive), at_(kArchiveMagic.size()) {}

  // False at the end, and at what is damaged.
  bool Next(Bytes* member) {
    if (at_ >= archive_.size() || !status_.ok()) return false;
    status_ = Take(member);
    return status_.ok();
  }

  // Where the member that was taken last has its header.
  std::uint64_t header() const { return header_; }
  const Status& status() const { return status_; }
  // The same, if the archive ends too early.
  const Status& whole() const { return whole_; }

 private:
  Status Take(Bytes* member) {
    header_ = at_;
    if (!archive_.Has(at_, sizeof(MemberHeader))) {
      return whole_ = Damaged(archive_, at_, "it ends within the header of a member");
    }
    const auto header = archive_.At<MemberHeader>(at_);
    const std::string_view end(header.end, sizeof(header.end));
    std::uint64_t size = 0;
    if (end != "`\n" || !ReadDecimal({header.size, sizeof(header.size)}, &size)) {
      return Damaged(archive_, at_, "no header of a member");
    }
    if (!archive_.Has(at_ + sizeof(header), size)) {
      return whole_ = Damaged(archive_, at_, "a member of ", size, " bytes, where there are ",
                              archive_.size() - at_ - sizeof(header));
    }
    *member = archive_.Part(at_ + sizeof(header), size);
    at_ += sizeof(header) + (size + 1) / 2 * 2;
    return Status();
  }

  const Bytes archive_;
  std::uint64_t at_;
  std::uint64_t header_ = 0;
  Status status_;
  Status whole_;
};

Status ReadMember(const Bytes& member, CodeContents* contents) {
  if (IsDeviceElf(member)) {
    ++contents->images;
    return ReadDeviceElf(member, contents);
  }
  return IsElf(member) ? ReadHostObject(member, contents) : Status();  // an index
}

}  // namespace

bool HostObjectHasLtoIr(const Bytes& bytes) {
  ElfFile file;
  if (!ElfFile::Read(bytes, IsInFile, &file).ok()) return false;
  return std::any_of(file.sections.begin(), file.sections.end(), [](const ElfSection& section) {
    return HoldsFatbins(section) && SectionHasLtoIr(section.bytes);
  });
}

Status ReadHostObject(const Bytes& bytes, CodeContents* contents) {
  ElfFile file;
  CUDAIMAGE_RETURN_IF_ERROR(ElfFile::Read(bytes, IsInFile, &file));
  for (const ElfSection& section : file.sections) {
    if (!HoldsFatbins(section)) continue;
    const Status status = ReadFatbins(section.bytes, contents);
    if (!status.ok()) return Within(section.ToString(), status);
  }
  return Status();
}

bool IsArchive(const Bytes& bytes) {
  return bytes.text().substr(0, kArchiveMagic.size()) == kArchiveMagic;
}

Status CheckArchiveSize(const Bytes& bytes) {
  Members members(bytes);
  Bytes member;
  while (members.Next(&member)) {
  }
  return members.whole();
}

bool ArchiveHasLtoIr(const Bytes& bytes) {
  Members members(bytes);
  Bytes member;
  while (members.Next(&member)) {
    if (IsElf(member) && !IsDeviceElf(member) && HostObjectHasLtoIr(member)) return true;
  }
  return false;
}

Status ReadArchive(const Bytes& bytes, CodeContents* contents) {
  Members members(bytes);
  Bytes member;
  while (members.Next(&member)) {
    const Status status = ReadMember(member, contents);
    if (!status.ok()) return Within(Text("member at ", members.header()), status);
  }
  return members.status();
}

CUDAIMAGE_END_NAMESPACE
