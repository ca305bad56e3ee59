// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/cubin.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "lib/sim/elf.h"

namespace cuguest_sim {
namespace {

// What .nv.info.KERNEL says is a list of attributes: a format, a number, and two bytes
// that are the value, or the size of the value that follows.
struct Attribute {
  std::uint8_t format;
  std::uint8_t number;
  std::uint16_t size;
};
constexpr std::uint8_t kSizedValue = 4;

// One parameter. The second form came with parameters of more than 4 KiB.
constexpr std::uint8_t kParameter = 0x17;
constexpr std::uint8_t kLargeParameter = 0x45;
struct ParameterValue {
  std::uint32_t index;
  std::uint16_t ordinal;
  std::uint16_t offset;
  std::uint32_t size;  // of the first form: from bit 18
};

using Parameters = std::map<size_t, PtxParameter>;  // by ordinal

void ReadParameter(const Attribute& attribute, std::string_view bytes, Parameters* parameters) {
  ParameterValue value;
  if (bytes.size() < sizeof(value)) return;
  std::memcpy(&value, bytes.data(), sizeof(value));
  PtxParameter parameter;
  parameter.offset = value.offset;
  parameter.size = attribute.number == kParameter ? value.size >> 18 : value.size;
  (*parameters)[value.ordinal] = parameter;
}

Parameters ReadParameters(std::string_view info) {
  Parameters parameters;
  Attribute attribute;
  while (info.size() >= sizeof(attribute)) {
    std::memcpy(&attribute, info.data(), sizeof(attribute));
    info.remove_prefix(sizeof(attribute));
    if (attribute.format != kSizedValue) continue;
    const std::string_view value = info.substr(0, attribute.size);
    if (attribute.number == kParameter || attribute.number == kLargeParameter) {
      ReadParameter(attribute, value, &parameters);
    }
    info.remove_prefix(value.size());
  }
  return parameters;
}

PtxEntry ReadKernel(const Elf& elf, std::string_view name) {
  PtxEntry entry;
  entry.name = std::string(name);
  const ElfSection* info = elf.Find(".nv.info." + entry.name);
  if (info == nullptr) return entry;
  for (const auto& parameter : ReadParameters(info->content)) {
    entry.parameters.push_back(parameter.second);
  }
  return entry;
}

}  // namespace

CUresult ReadCubin(std::string_view bytes, int architecture, Image* image) {
  Elf elf;
  if (!ReadElf(bytes, &elf)) return CUDA_ERROR_INVALID_IMAGE;
  if (elf.architecture != architecture) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  for (const ElfSymbol& symbol : elf.symbols) {
    if (symbol.IsKernel()) image->entries.push_back(ReadKernel(elf, symbol.name));
  }
  return CUDA_SUCCESS;
}

}  // namespace cuguest_sim
