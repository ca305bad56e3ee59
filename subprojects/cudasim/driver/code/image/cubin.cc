// SPDX-License-Identifier: Apache-2.0

#include "driver/code/image/cubin.h"

#include <cstdint>
#include <map>
#include <string>

#include "driver/code/image/cubin_attribute.h"
#include "driver/code/image/cubin_traits.h"
#include "driver/code/image/cubin_variable.h"
#include "driver/code/image/elf.h"

namespace cudasim::driver {
namespace {

struct ParameterValue {
  std::uint32_t index;
  std::uint16_t ordinal;
  std::uint16_t offset;
  std::uint32_t size;  // unless large: from bit 18
};

using Parameters = std::map<size_t, PtxParameter>;  // by ordinal

Parameters ReadParameters(std::string_view info) {
  Parameters parameters;
  ForEachAttribute(info, [&](CubinAttribute number, std::string_view bytes) {
    const bool large = number == CubinAttribute::kLargeParameter;
    if (!large && number != CubinAttribute::kParameter) return;
    ParameterValue value;
    if (!ReadValue(bytes, &value)) return;
    PtxParameter& parameter = parameters[value.ordinal];
    parameter.offset = value.offset;
    parameter.size = large ? value.size : value.size >> 18;
  });
  return parameters;
}

PtxEntry ReadKernel(const Elf& elf, size_t symbol) {
  PtxEntry entry;
  entry.name = std::string(elf.symbols[symbol].name);
  entry.traits = ReadCubinTraits(elf, symbol);
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
  for (size_t i = 0; i < elf.symbols.size(); ++i) {
    if (elf.symbols[i].IsKernel()) image->entries.push_back(ReadKernel(elf, i));
  }
  image->variables = ReadCubinVariables(elf);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
