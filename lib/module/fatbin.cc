// SPDX-License-Identifier: Apache-2.0
//
// Fatbins: a container header, and entries of a header and a payload each. The layout is not
// published; this is what nvcc 13.0 writes.

#include <cstddef>
#include <cstdint>
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

struct OptionsPlace {
  std::uint32_t offset;
  std::uint32_t size;
};

enum EntryKind : std::uint16_t { kPtxEntry = 1, kElfEntry = 2, kLtoIrEntry = 8 };
constexpr std::uint64_t kCompression = 0xf000;  // of the flags
constexpr std::uint64_t kLz4 = 0x2000;
constexpr std::uint64_t kZstd = 0x8000;

absl::Status ReadPtxEntry(ImageBytes text, CodeContents* contents) {
  while (text.size() > 0 && text.data()[text.size() - 1] == 0) text = text.Part(0, text.size() - 1);
  if (!IsPtx(text)) return Damaged(text, 0, "no PTX, which begins with .version");
  return ReadPtx(text, contents);
}

absl::Status ReadElfEntry(const ImageBytes& elf, CodeContents* contents) {
  if (IsDeviceElf(elf)) return ReadDeviceElf(elf, contents);
  return Damaged(elf, 0, "no cubin");
}

absl::Status ReadPayload(const EntryHeader& header, const ImageBytes& payload,
                         CodeContents* contents) {
  if (header.kind == kPtxEntry) return ReadPtxEntry(payload, contents);
  if (header.kind == kElfEntry) return ReadElfEntry(payload, contents);
  return absl::OkStatus();  // opaque: nothing that is loaded
}

using Decompress = absl::StatusOr<UnpackedBytes> (*)(const ImageBytes& packed, std::uint64_t size);

absl::Status ReadCompressed(Decompress decompress, const EntryHeader& header,
                            const ImageBytes& payload, CodeContents* contents) {
  if (header.compressed_size > payload.size()) {
    return Damaged(payload, 0, header.compressed_size, " compressed bytes of ", payload.size());
  }
  const ImageBytes packed = payload.Part(0, header.compressed_size);
  const absl::StatusOr<UnpackedBytes> unpacked = decompress(packed, header.decompressed_size);
  if (absl::IsUnavailable(unpacked.status())) {  // nobody can look
    contents->names_all = false;
    return absl::OkStatus();
  }
  if (!unpacked.ok()) return unpacked.status();
  const ImageBytes bytes(unpacked->data.get(), unpacked->size);
  return Within("decompressed", ReadPayload(header, bytes, contents));
}

absl::Status ReadEntry(const EntryHeader& header, const ImageBytes& payload,
                       CodeContents* contents) {
  ++contents->images;
  if (header.kind == kLtoIrEntry) {
    contents->lto_ir = true;
    contents->names_all = false;
    return absl::OkStatus();
  }
  switch (header.flags & kCompression) {
    case 0:
      return ReadPayload(header, payload, contents);
    case kLz4:
      return ReadCompressed(DecompressLz4, header, payload, contents);
    case kZstd:
      return ReadCompressed(DecompressZstd, header, payload, contents);
  }
  return Damaged(payload, 0, "a payload compressed in an unknown way, by flags ", header.flags);
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

absl::Status CheckEntryHeader(const EntryHeader& header, const ImageBytes& rest) {
  if (header.header_size < sizeof(header) || !rest.Has(header.header_size, header.payload_size)) {
    return Damaged(rest, 0, "a header of ", header.header_size, " bytes and ", header.payload_size,
                   " behind it, of ", rest.size());
  }
  const ImageBytes fields = rest.Part(0, header.header_size);
  if (!fields.Has(header.name_offset, header.name_size)) {
    return Damaged(rest, offsetof(EntryHeader, name_offset), "its name is not in its header");
  }
  return header.options_offset == 0 ? absl::OkStatus() : CheckOptions(header, fields);
}

absl::Status ReadEntries(const ImageBytes& bytes, CodeContents* contents) {
  std::size_t at = 0;
  for (int number = 1; at < bytes.size(); ++number) {
    const std::string entry = absl::StrCat("entry ", number);
    const ImageBytes rest = bytes.From(at);
    if (!rest.Has(0, sizeof(EntryHeader))) {
      return Within(entry, Damaged(rest, 0, "the fatbin ends within its header"));
    }
    const auto header = rest.At<EntryHeader>(0);
    absl::Status status = CheckEntryHeader(header, rest);
    if (!status.ok()) return Within(entry, status);
    const ImageBytes payload = rest.Part(header.header_size, header.payload_size);
    status = ReadEntry(header, payload, contents);
    if (!status.ok()) return Within(entry, status);
    at += header.header_size + payload.size();
  }
  return absl::OkStatus();
}

}  // namespace

bool IsFatbin(const ImageBytes& bytes) {
  return bytes.Has(0, sizeof(kMagic)) && bytes.At<std::uint32_t>(0) == kMagic;
}

absl::Status ReadFatbin(const ImageBytes& bytes, CodeContents* contents, std::size_t* size) {
  if (!bytes.Has(0, sizeof(ContainerHeader))) {
    return Damaged(bytes, bytes.size(), "it ends within the header of a fatbin");
  }
  const auto header = bytes.At<ContainerHeader>(0);
  if (header.version != 1 || header.header_size != sizeof(header)) {
    return Damaged(bytes, 0, "a fatbin of version ", header.version, " with a header of ",
                   header.header_size, " bytes");
  }
  if (!bytes.Has(sizeof(header), header.size)) {
    return Damaged(bytes, 0, "a fatbin of ", header.size,
                   " bytes behind its header, where there "
                   "are ",
                   bytes.size() - sizeof(header));
  }
  *size = sizeof(header) + static_cast<std::size_t>(header.size);
  return ReadEntries(bytes.Part(sizeof(header), header.size), contents);
}

}  // namespace internal
CUGUEST_END_NAMESPACE
