// SPDX-License-Identifier: Apache-2.0
//
// Fatbins: a container header, and entries of a header and a payload each. The layout is not
// published; this is what nvcc 11.8 to 13.0 write. A container or an entry of another version may
// have more in its header, and says so; kinds of entries and of compression that are not known are
// not looked into.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/module/code_contents.h"
#include "lib/module/decompress.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t size;  // of what follows the header
};

struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_size;  // with options and a name behind these fields
  std::uint64_t payload_size;
  std::uint32_t compressed_size;  // within the payload, which is padded
  std::uint32_t options_offset;   // 0: none
  std::uint32_t code_version;
  std::uint32_t architecture;
  std::uint32_t name_offset;
  std::uint32_t name_size;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t decompressed_size;
};
static_assert(sizeof(EntryHeader) == 64, "as nvcc writes it");

// To where its sizes end.
constexpr std::size_t kLeastHeader = offsetof(EntryHeader, compressed_size);

struct OptionsPlace {
  std::uint32_t offset;
  std::uint32_t size;
};

enum EntryKind : std::uint16_t { kPtxEntry = 1, kElfEntry = 2, kLtoIrEntry = 8 };
constexpr std::uint64_t kCompression = 0xf000;  // of the flags
constexpr std::uint64_t kLz4 = 0x2000;
constexpr std::uint64_t kZstd = 0x8000;

struct Entry {
  EntryHeader header;
  ImageBytes payload;
};

// The entries of one container, one by one.
class Entries {
 public:
  explicit Entries(const ImageBytes& fatbin) : status_(Open(fatbin)) {}

  // False at the end, and at what is damaged.
  bool Next(Entry* entry) {
    if (!status_.ok() || rest_.size() == 0) return false;
    ++number_;
    status_ = Within(name(), Take(entry));
    return status_.ok();
  }

  // "entry 2", of the one that was taken last.
  std::string name() const { return absl::StrCat("entry ", number_); }
  // Why it ended.
  const absl::Status& status() const { return status_; }
  // Of the container, header included.
  std::size_t size() const { return size_; }

 private:
  absl::Status Open(const ImageBytes& fatbin);
  absl::Status Take(Entry* entry);

  ImageBytes rest_;
  std::size_t size_ = 0;
  int number_ = 0;
  absl::Status status_;
};

absl::Status Entries::Open(const ImageBytes& fatbin) {
  if (!fatbin.Has(0, sizeof(ContainerHeader))) {
    return Damaged(fatbin, fatbin.size(), "it ends within the header of a fatbin");
  }
  const auto header = fatbin.At<ContainerHeader>(0);
  if (header.header_size < sizeof(header)) {
    return Damaged(fatbin, 0, "a fatbin with a header of ", header.header_size, " bytes");
  }
  if (!fatbin.Has(header.header_size, header.size)) {
    return Damaged(fatbin, 0, "a fatbin of ", header.size,
                   " bytes behind its header, where there are ",
                   fatbin.size() - std::min<std::size_t>(fatbin.size(), header.header_size));
  }
  rest_ = fatbin.Part(header.header_size, header.size);
  size_ = header.header_size + static_cast<std::size_t>(header.size);
  return absl::OkStatus();
}

// A compiler's options are a text behind the fields.
absl::Status CheckOptions(const EntryHeader& header, const ImageBytes& fields) {
  const std::size_t at = header.options_offset;
  if (at >= sizeof(header) && fields.Has(at, sizeof(OptionsPlace))) {
    const auto place = fields.At<OptionsPlace>(at);
    const bool inside = fields.Has(place.offset, place.size);
    if (inside && fields.From(place.offset).text().find('\0') != std::string_view::npos) {
      return absl::OkStatus();
    }
  }
  return Damaged(fields, offsetof(EntryHeader, options_offset), "its options at ", at,
                 " are no text in its header");
}

absl::Status Entries::Take(Entry* entry) {
  if (!rest_.Has(0, sizeof(EntryHeader))) {
    return Damaged(rest_, 0, "the fatbin ends within its header");
  }
  auto header = rest_.At<EntryHeader>(0);
  if (header.header_size < kLeastHeader || !rest_.Has(header.header_size, header.payload_size)) {
    return Damaged(rest_, 0, "a header of ", header.header_size, " bytes and ", header.payload_size,
                   " behind it, of ", rest_.size());
  }
  if (header.header_size < sizeof(header)) {  // what it has not is nothing
    std::memset(reinterpret_cast<char*>(&header) + header.header_size, 0,
                sizeof(header) - header.header_size);
  }
  const ImageBytes fields = rest_.Part(0, header.header_size);
  if (!fields.Has(header.name_offset, header.name_size)) {
    return Damaged(rest_, offsetof(EntryHeader, name_offset), "its name is not in its header");
  }
  if (header.options_offset != 0) {
    const absl::Status options = CheckOptions(header, fields);
    if (!options.ok()) return options;
  }
  *entry = {header, rest_.Part(header.header_size, header.payload_size)};
  rest_ = rest_.From(header.header_size + entry->payload.size());
  return absl::OkStatus();
}

absl::Status ReadPtxEntry(const ImageBytes& bytes, CodeContents* contents) {
  ImageBytes text = bytes;
  while (text.size() > 0 && text.data()[text.size() - 1] == 0) text = text.Part(0, text.size() - 1);
  if (IsPtx(text)) return ReadPtx(text, contents);
  contents->names_all = false;
  return absl::OkStatus();
}

absl::Status ReadElfEntry(const ImageBytes& elf, CodeContents* contents) {
  if (IsDeviceElf(elf)) return ReadDeviceElf(elf, contents);
  if (!IsElf(elf)) return Damaged(elf, 0, "no ELF file");
  contents->names_all = false;
  return absl::OkStatus();
}

using ReadPayload = absl::Status (*)(const ImageBytes& payload, CodeContents* contents);
using Decompress = absl::StatusOr<UnpackedBytes> (*)(const ImageBytes& packed, std::uint64_t size);

// Null where it is not known, or tells nothing.
ReadPayload ReaderOf(std::uint16_t kind) {
  if (kind == kPtxEntry) return ReadPtxEntry;
  return kind == kElfEntry ? ReadElfEntry : nullptr;
}
Decompress DecompressorOf(std::uint64_t flags) {
  if ((flags & kCompression) == kLz4) return DecompressLz4;
  return (flags & kCompression) == kZstd ? DecompressZstd : nullptr;
}

absl::Status ReadCompressed(Decompress decompress, const Entry& entry, ReadPayload read,
                            CodeContents* contents) {
  const EntryHeader& header = entry.header;
  if (header.compressed_size > entry.payload.size()) {
    return Damaged(entry.payload, 0, header.compressed_size, " compressed bytes of ",
                   entry.payload.size());
  }
  const ImageBytes packed = entry.payload.Part(0, header.compressed_size);
  const absl::StatusOr<UnpackedBytes> unpacked = decompress(packed, header.decompressed_size);
  if (absl::IsUnavailable(unpacked.status())) {  // nobody can look
    contents->names_all = false;
    return absl::OkStatus();
  }
  if (!unpacked.ok()) return unpacked.status();
  return Within("decompressed", read(ImageBytes(unpacked->data.get(), unpacked->size), contents));
}

absl::Status ReadEntry(const Entry& entry, CodeContents* contents) {
  ++contents->images;
  const ReadPayload read = ReaderOf(entry.header.kind);
  if (read != nullptr && (entry.header.flags & kCompression) == 0) {
    return read(entry.payload, contents);
  }
  const Decompress decompress = DecompressorOf(entry.header.flags);
  if (read != nullptr && decompress != nullptr) {
    return ReadCompressed(decompress, entry, read, contents);
  }
  contents->names_all = false;
  return absl::OkStatus();
}

}  // namespace

bool IsFatbin(const ImageBytes& bytes) {
  return bytes.Has(0, sizeof(kMagic)) && bytes.At<std::uint32_t>(0) == kMagic;
}

absl::Status FindFatbinSize(const ImageBytes& bytes, std::size_t* size) {
  const Entries entries(bytes);
  *size = entries.size();
  return entries.status();
}

bool FatbinHasLtoIr(const ImageBytes& bytes) {
  Entries entries(bytes);
  Entry entry;
  while (entries.Next(&entry)) {
    if (entry.header.kind == kLtoIrEntry) return true;
  }
  return false;
}

absl::Status ReadFatbin(const ImageBytes& bytes, CodeContents* contents) {
  Entries entries(bytes);
  Entry entry;
  while (entries.Next(&entry)) {
    const absl::Status status = ReadEntry(entry, contents);
    if (!status.ok()) return Within(entries.name(), status);
  }
  return entries.status();
}

}  // namespace internal
CUGUEST_END_NAMESPACE
