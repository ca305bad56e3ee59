// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fatbin containers: several images of the same code, of which a driver chooses one.

#ifndef CUDAIMAGE_FATBIN_H_
#define CUDAIMAGE_FATBIN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "bytes.h"
#include "decompress.h"

CUDAIMAGE_BEGIN_NAMESPACE

struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t size;  // of what follows the header
};

struct FatbinEntryHeader {
  enum Kind : std::uint16_t { kPtx = 1, kElf = 2, kLtoIr = 8 };

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

struct FatbinEntry {
  FatbinEntryHeader header;
  Bytes payload;  // without the header

  bool IsCompressed() const noexcept { return (header.flags & 0xf000) != 0; }
};

// The entries of one container, one by one.
class FatbinEntries {
 public:
  explicit FatbinEntries(const Bytes& fatbin) : status_(Open(fatbin)) {}

  // False at the end, and at what is damaged.
  bool Next(FatbinEntry* entry) {
    if (!status_.ok() || rest_.size() == 0) return false;
    ++number_;
    status_ = Within(name(), Take(entry));
    return status_.ok();
  }

  // "entry 2", of the one that was taken last.
  std::string name() const { return Text("entry ", number_); }
  // Why it ended.
  const Status& status() const { return status_; }
  // Of the container, header included.
  std::size_t size() const { return size_; }

 private:
  Status Open(const Bytes& fatbin);
  Status Take(FatbinEntry* entry);

  Bytes rest_;
  std::size_t size_ = 0;
  int number_ = 0;
  Status status_;
};

bool IsFatbin(const Bytes& bytes);

// Of one container, header included: refused if it is not all there.
Status FindFatbinSize(const Bytes& bytes, std::size_t* size);

bool FatbinHasLtoIr(const Bytes& bytes);

// The entry that a driver takes for a device of `architecture` (90 is sm_90): machine code for just
// that, unless `only_ptx`, or else the newest PTX that is not newer. Nothing if no entry fits.
//
// Errors: kDamaged  an entry is not inside of the container
Status ChooseEntry(const Bytes& fatbin, std::uint32_t architecture, bool only_ptx,
                   std::optional<FatbinEntry>* chosen);

// The payload of an entry as the compiler made it: decompressed into `storage`, if need be.
//
// Errors: those of decompress.h; kUnavailable also for a compression that is not known
Status UnpackEntry(const FatbinEntry& entry, UnpackedBytes* storage, Bytes* unpacked);

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_FATBIN_H_
