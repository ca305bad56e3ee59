// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fatbins: a container header, and entries of a header and a payload each. The layout is not
// published; this is what nvcc 11.8 to 13.0 write. A container or an entry of another version may
// have more in its header, and says so; kinds of entries and of compression that are not known are
// not looked into.

#include "cudaimage/fatbin.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "cudaimage/contents.h"
#include "cudaimage/cubin.h"
#include "cudaimage/decompress.h"

CUDAIMAGE_BEGIN_NAMESPACE
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;

static_assert(sizeof(FatbinEntryHeader) == 64, "as nvcc writes it");

// To where its sizes end.
constexpr std::size_t kLeastHeader = offsetof(FatbinEntryHeader, compressed_size);

struct OptionsPlace {
  std::uint32_t offset;
  std::uint32_t size;
};

constexpr std::uint64_t kCompression = 0xf000;  // of the flags
constexpr std::uint64_t kLz4 = 0x2000;
constexpr std::uint64_t kZstd = 0x8000;

// A compiler's options are a text behind the fields.
Status CheckOptions(const FatbinEntryHeader& header, const Bytes& fields) {
  const std::size_t at = header.options_offset;
  if (at >= sizeof(header) && fields.Has(at, sizeof(OptionsPlace))) {
    const auto place = fields.At<OptionsPlace>(at);
    const bool inside = fields.Has(place.offset, place.size);
    if (inside && fields.From(place.offset).text().find('\0') != std::string_view::npos) {
      return Status();
    }
  }
  return Damaged(fields, offsetof(FatbinEntryHeader, options_offset), "its options at ", at,
                 " are no text in its header");
}

Status ReadPtxEntry(const Bytes& bytes, CodeContents* contents) {
  if (IsPtx(bytes)) return ReadPtx(bytes, contents);
  contents->names_all = false;
  return Status();
}

Status ReadElfEntry(const Bytes& elf, CodeContents* contents) {
  if (IsDeviceElf(elf)) return ReadDeviceElf(elf, contents);
  if (!IsElf(elf)) return Damaged(elf, 0, "no ELF file");
  contents->names_all = false;
  return Status();
}

using ReadPayload = Status (*)(const Bytes& payload, CodeContents* contents);
using Decompress = Status (*)(const Bytes& packed, std::uint64_t size, UnpackedBytes* unpacked);

// Null where it is not known, or tells nothing.
ReadPayload ReaderOf(std::uint16_t kind) {
  if (kind == FatbinEntryHeader::kPtx) return ReadPtxEntry;
  return kind == FatbinEntryHeader::kElf ? ReadElfEntry : nullptr;
}
Decompress DecompressorOf(std::uint64_t flags) {
  if ((flags & kCompression) == kLz4) return DecompressLz4;
  return (flags & kCompression) == kZstd ? DecompressZstd : nullptr;
}

// By the header alone, which does not tell sm_90a from sm_90.
std::string TargetText(const FatbinEntryHeader& header) {
  const bool is_ptx = header.kind == FatbinEntryHeader::kPtx;
  const bool is_lto_ir = header.kind == FatbinEntryHeader::kLtoIr;
  return Text(is_ptx ? "PTX for sm_" : is_lto_ir ? "LTO IR for sm_" : "sm_", header.architecture);
}

Status ReadEntry(const FatbinEntry& entry, CodeContents* contents) {
  ++contents->images;
  const ReadPayload read = ReaderOf(entry.header.kind);
  UnpackedBytes storage;
  Bytes payload;
  Status status(Status::Code::kUnavailable, "of a kind that is not known");
  if (read != nullptr) status = UnpackEntry(entry, &storage, &payload);
  if (status.code() == Status::Code::kUnavailable) {  // nobody can look
    contents->AddTarget(TargetText(entry.header));
    contents->names_all = false;
    return Status();
  }
  if (!status.ok()) return status;
  status = read(payload, contents);
  return entry.IsCompressed() ? Within("decompressed", status) : status;
}

}  // namespace

Status FatbinEntries::Open(const Bytes& fatbin) {
  if (!fatbin.Has(0, sizeof(FatbinHeader))) {
    return Damaged(fatbin, fatbin.size(), "it ends within the header of a fatbin");
  }
  const auto header = fatbin.At<FatbinHeader>(0);
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
  return Status();
}

Status FatbinEntries::Take(FatbinEntry* entry) {
  if (!rest_.Has(0, sizeof(FatbinEntryHeader))) {
    return Damaged(rest_, 0, "the fatbin ends within its header");
  }
  auto header = rest_.At<FatbinEntryHeader>(0);
  if (header.header_size < kLeastHeader || !rest_.Has(header.header_size, header.payload_size)) {
    return Damaged(rest_, 0, "a header of ", header.header_size, " bytes and ", header.payload_size,
                   " behind it, of ", rest_.size());
  }
  if (header.header_size < sizeof(header)) {  // what it has not is nothing
    std::memset(reinterpret_cast<char*>(&header) + header.header_size, 0,
                sizeof(header) - header.header_size);
  }
  const Bytes fields = rest_.Part(0, header.header_size);
  if (!fields.Has(header.name_offset, header.name_size)) {
    return Damaged(rest_, offsetof(FatbinEntryHeader, name_offset),
                   "its name is not in its header");
  }
  if (header.options_offset != 0) {
    const Status options = CheckOptions(header, fields);
    if (!options.ok()) return options;
  }
  *entry = {header, rest_.Part(header.header_size, header.payload_size)};
  rest_ = rest_.From(header.header_size + header.payload_size);
  return Status();
}

bool IsFatbin(const Bytes& bytes) {
  return bytes.Has(0, sizeof(kMagic)) && bytes.At<std::uint32_t>(0) == kMagic;
}

Status FindFatbinSize(const Bytes& bytes, std::size_t* size) {
  const FatbinEntries entries(bytes);
  *size = entries.size();
  return entries.status();
}

Status ChooseEntry(const Bytes& fatbin, std::uint32_t architecture, bool only_ptx,
                   std::optional<FatbinEntry>* chosen) {
  chosen->reset();
  FatbinEntries entries(fatbin);
  FatbinEntry entry;
  while (entries.Next(&entry)) {
    const FatbinEntryHeader& header = entry.header;
    const bool has_code = *chosen && (*chosen)->header.kind == FatbinEntryHeader::kElf;
    const bool is_code =
        header.kind == FatbinEntryHeader::kElf && !only_ptx && header.architecture == architecture;
    const bool is_ptx =
        header.kind == FatbinEntryHeader::kPtx && header.architecture <= architecture;
    const bool is_newer = !*chosen || header.architecture > (*chosen)->header.architecture;
    if (!has_code && (is_code || (is_ptx && is_newer))) *chosen = entry;
  }
  return entries.status();
}

Status UnpackEntry(const FatbinEntry& entry, UnpackedBytes* storage, Bytes* unpacked) {
  *unpacked = entry.payload;
  if (!entry.IsCompressed()) return Status();
  const FatbinEntryHeader& header = entry.header;
  const Decompress decompress = DecompressorOf(header.flags);
  if (decompress == nullptr) {
    return Status(Status::Code::kUnavailable, "its compression is not known");
  }
  if (header.compressed_size > entry.payload.size()) {
    return Damaged(entry.payload, 0, header.compressed_size, " compressed bytes of ",
                   entry.payload.size());
  }
  CUDAIMAGE_RETURN_IF_ERROR(
      decompress(entry.payload.Part(0, header.compressed_size), header.decompressed_size, storage));
  *unpacked = Bytes(storage->data.get(), storage->size);
  return Status();
}

bool FatbinHasLtoIr(const Bytes& bytes) {
  FatbinEntries entries(bytes);
  FatbinEntry entry;
  while (entries.Next(&entry)) {
    if (entry.header.kind == FatbinEntryHeader::kLtoIr) return true;
  }
  return false;
}

Status ReadFatbin(const Bytes& bytes, CodeContents* contents) {
  FatbinEntries entries(bytes);
  FatbinEntry entry;
  while (entries.Next(&entry)) {
    const Status status = ReadEntry(entry, contents);
    if (!status.ok()) return Within(entries.name(), status);
  }
  return entries.status();
}

CUDAIMAGE_END_NAMESPACE
