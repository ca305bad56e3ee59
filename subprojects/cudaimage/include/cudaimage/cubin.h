// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cubins: machine code for GPUs in an ELF file, with its symbols and its records of attributes.

#ifndef CUDAIMAGE_CUBIN_H_
#define CUDAIMAGE_CUBIN_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "elf.h"

CUDAIMAGE_BEGIN_NAMESPACE

struct CubinSymbol {
  Elf64_Sym entry = {};
  std::string_view name;
  std::size_t section = SHN_UNDEF;  // SHN_UNDEF of one that is in no section of this file
  Bytes bytes;                      // where `entry` was read

  unsigned type() const noexcept { return ELF64_ST_TYPE(entry.st_info); }
  bool IsKernel() const noexcept;
};

// Views into the bytes that it was read from.
struct Cubin {
  Cubin() = default;
  Cubin(const Cubin&) = delete;
  Cubin& operator=(const Cubin&) = delete;

  // What IsDeviceElf(bytes) holds of. Checks what ElfFile::Read() does, and the places of symbols
  // and of their names. Of a damaged one there is what is in front of the damage.
  static Status Read(const Bytes& bytes, Cubin* cubin);

  bool IsRelocatable() const noexcept { return file.header.e_type == ET_REL; }
  int Architecture() const noexcept;  // 90 for sm_90

  ElfFile file;
  bool has_known_abi = false;                // that of the compilers from CUDA 11 to 13
  const ElfSection* symbol_table = nullptr;  // null: it has none
  const ElfSection* symbol_names = nullptr;
  std::vector<CubinSymbol> symbols;
};

// Attributes in .nv.info and .nv.info.<kernel>, by nvcc's numbers, as far as somebody reads them.
enum class CubinAttribute : std::uint8_t {
  kMaxThreads = 0x05,
  kParameterBank = 0x0a,
  kExterns = 0x0f,
  kRequiredBlock = 0x10,
  kFrameSize = 0x11,
  kMinStackSize = 0x12,
  kParameter = 0x17,
  kMaxStackSize = 0x23,
  kRegisterCount = 0x2f,
  kLargeParameter = 0x45,  // came with parameters of more than 4 KiB
};

// Calls `visit(attribute, value)`, which returns a Status, for each record: a format, an attribute,
// and two bytes that are the value or, in format 4, the length of what follows. After one of
// another format nothing is known.
template <typename Visit>
Status ForEachRecord(const Bytes& bytes, const Visit& visit) {
  constexpr unsigned char kSized = 4;
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (!bytes.Has(at, 4)) return Damaged(bytes, at, "it ends within a record");
    const auto format = bytes.At<unsigned char>(at);
    if (format == 0 || format > kSized) return Status();
    const std::uint64_t size = format == kSized ? bytes.At<std::uint16_t>(at + 2) : 0;
    if (!bytes.Has(at + 4, size)) return Damaged(bytes, at, "a record of ", size, " bytes");
    CUDAIMAGE_RETURN_IF_ERROR(visit(bytes.At<CubinAttribute>(at + 1), bytes.Part(at + 4, size)));
    at += 4 + size;
  }
  return Status();
}

// An ELF file for GPUs.
bool IsDeviceElf(const Bytes& bytes);
bool IsRelocatable(const Bytes& bytes);  // of a device ELF

// Bytes of the cubin that begins there, by what its tables say; 0 if it is none for GPUs. For an
// image that is known by a pointer only, as a driver is given it.
std::uint64_t SizeOfCubin(const void* image);

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_CUBIN_H_
