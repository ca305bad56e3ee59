// SPDX-License-Identifier: Apache-2.0
//
// Machine code for GPUs, as an ELF file has it (a cubin): its sections and symbols, all
// of them checked to lie inside the file.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_ELF_H_
#define CUDASIM_DRIVER_CODE_IMAGE_ELF_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace cudasim::driver {

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint32_t info = 0;
  std::uint64_t size = 0;
  std::string_view content;  // empty where the file holds none (.nv.global)
};

struct ElfSymbol {
  std::string_view name;
  std::uint8_t type = 0;   // STT_FUNC, STT_OBJECT ...
  std::uint8_t other = 0;  // bit 4: a kernel
  bool is_global = false;  // and not weak: there may be one of them
  bool is_defined = false;
  std::uint16_t section = 0;
  std::uint64_t value = 0;
  std::uint64_t size = 0;

  bool IsKernel() const;
};

// Views into the bytes that it was read from.
struct Elf {
  int architecture = 0;  // 90 for sm_90
  bool is_relocatable = false;
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;

  // Null if there is none.
  const ElfSection* Find(std::string_view name) const;
};

// Whether it begins as an ELF file does.
bool IsElf(std::string_view bytes);

// Bytes of the ELF file that begins there, by what its tables say; 0 if they are absurd.
// For an image that is known by a pointer only, as a driver is given it.
std::uint64_t SizeOfElf(const void* image);

// False unless it is an ELF file for a GPU and all that it refers to lies inside.
bool ReadElf(std::string_view bytes, Elf* elf);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_ELF_H_
