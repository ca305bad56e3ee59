// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/variable.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "driver/api.h"
#include "driver/code/library.h"
#include "driver/code/module.h"
#include "driver/memory/memory.h"

namespace cudasim::driver {
namespace {

// The places of constants in their bank, in the order in which they are declared.
template <typename Each>
size_t LayOutConstants(const std::vector<Variable>& variables, const Each& each) {
  size_t size = 0;
  for (const Variable& variable : variables) {
    if (!variable.is_constant) continue;
    size = AlignUp(size, variable.alignment);
    each(variable, size);
    size += variable.size;
  }
  return size;
}

// Zeros. An `incarnation` of no context: of a library.
CUresult Allocate(MemoryKind kind, size_t size, const Incarnation& incarnation,
                  CUdeviceptr* address) {
  Allocation allocation;
  allocation.incarnation = incarnation;
  allocation.device = incarnation.context != nullptr ? incarnation.context->device() : 0;
  allocation.kind = kind;
  allocation.size = std::max<size_t>(size, 1);
  std::uintptr_t base = 0;
  const CUresult code = Memory::AllocateZeros(allocation, &base);
  if (code == CUDA_SUCCESS) *address = base;
  return code;
}

CUresult PlaceOne(const Variable& variable, const Incarnation& incarnation,
                  PlacedVariables* placed) {
  const MemoryKind kind =
      variable.is_managed ? MemoryKind::kManagedVariable : MemoryKind::kVariable;
  PlacedVariable place = {0, variable.size};
  const CUresult code = Allocate(kind, variable.size, incarnation, &place.address);
  if (code == CUDA_SUCCESS) placed->emplace(variable.name, place);
  return code;
}

CUresult PlaceConstants(const std::vector<Variable>& variables, const Incarnation& incarnation,
                        PlacedVariables* placed) {
  CUdeviceptr bank = 0;
  const size_t size = SizeOfConstants(variables);
  const CUresult code =
      size != 0 ? Allocate(MemoryKind::kVariable, size, incarnation, &bank) : CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) return code;
  LayOutConstants(variables, [&](const Variable& variable, size_t offset) {
    placed->emplace(variable.name, PlacedVariable{bank + offset, variable.size});
  });
  return CUDA_SUCCESS;
}

// An address of what is in no variable, a function say, stays 0.
void WriteAddress(const AddressInValue& part, const PlacedVariables& placed, unsigned char* value) {
  const auto found = placed.find(part.name);
  if (found == placed.end()) return;
  const CUdeviceptr address = (found->second.address + part.addend) >> part.shift;
  std::memcpy(value + part.offset, &address, std::min(part.size, sizeof(address)));
}

// Of two that damaged code gives one name, there is room for the first.
void WriteValue(const Variable& variable, const PlacedVariables& placed) {
  const PlacedVariable& place = placed.find(variable.name)->second;
  if (place.size != variable.size) return;
  auto* value = static_cast<unsigned char*>(ToPointer(place.address));
  if (!variable.value.empty()) std::memcpy(value, variable.value.data(), variable.value.size());
  for (const AddressInValue& part : variable.addresses) WriteAddress(part, placed, value);
}

// Those of `variables` that `place` takes.
template <typename Place>
CUresult PlaceEach(const std::vector<Variable>& variables, const Place& place) {
  for (const Variable& variable : variables) {
    const CUresult code = place(variable);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult CheckQuestion(const CUdeviceptr* address, const size_t* size, const char* name) {
  const bool asks = address != nullptr || size != nullptr;
  return asks && name != nullptr && *name != '\0' ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult AnswerPlaced(const PlacedVariables& placed, const char* name, CUdeviceptr* address,
                      size_t* size) {
  const auto found = placed.find(name);
  if (found == placed.end()) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = found->second.address;
  if (size != nullptr) *size = found->second.size;
  return CUDA_SUCCESS;
}

// A name may be a function's, too.
CUresult AnswerOfModule(CUmodule module, const char* name, CUdeviceptr* address, size_t* size) {
  std::shared_ptr<const PlacedVariables> placed;
  CUresult code = FindVariablesOf(module, &placed);
  if (code == CUDA_SUCCESS) code = CheckQuestion(address, size, name);
  if (code != CUDA_SUCCESS) return code;
  CUfunction function = nullptr;
  const bool is_function = ModuleGetFunction(&function, module, name) == CUDA_SUCCESS;
  return is_function ? CUDA_ERROR_INVALID_VALUE : AnswerPlaced(*placed, name, address, size);
}

}  // namespace

CUresult PlaceVariables(const std::vector<Variable>& variables, const PlacedVariables& managed,
                        const Incarnation& incarnation, PlacedVariables* placed) {
  *placed = managed;
  CUresult code = PlaceConstants(variables, incarnation, placed);
  if (code == CUDA_SUCCESS) {
    code = PlaceEach(variables, [&](const Variable& variable) {
      const bool is_there = placed->find(variable.name) != placed->end();
      return is_there ? CUDA_SUCCESS : PlaceOne(variable, incarnation, placed);
    });
  }
  if (code != CUDA_SUCCESS) {
    RemoveVariables(*placed, managed);
    return code;
  }
  for (const Variable& variable : variables) {
    if (managed.find(variable.name) == managed.end()) WriteValue(variable, *placed);
  }
  return CUDA_SUCCESS;
}

CUresult PlaceManaged(const std::vector<Variable>& variables, PlacedVariables* placed) {
  std::vector<Variable> managed;
  std::copy_if(variables.begin(), variables.end(), std::back_inserter(managed),
               [](const Variable& variable) { return variable.is_managed; });
  return PlaceVariables(managed, {}, Incarnation{}, placed);
}

// One of a bank is at its begin, and the others are not there to be freed.
void RemoveVariables(const PlacedVariables& placed, const PlacedVariables& managed) {
  for (const auto& [name, place] : placed) {
    if (managed.find(name) != managed.end()) continue;
    static_cast<void>(
        Memory::Free(place.address, {MemoryKind::kVariable, MemoryKind::kManagedVariable}));
  }
}

size_t SizeOfConstants(const std::vector<Variable>& variables) {
  return LayOutConstants(variables, [](const Variable&, size_t) {});
}

// What it does not find it says in zeros, too.
CUresult ModuleGetGlobal(CUdeviceptr* address, size_t* size, CUmodule module, const char* name) {
  const CUresult code = AnswerOfModule(module, name, address, size);
  if (code == CUDA_SUCCESS) return code;
  if (address != nullptr) *address = 0;
  if (size != nullptr) *size = 0;
  return code;
}

CUresult LibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary library, const char* name) {
  CUmodule module = nullptr;
  const CUresult code = LibraryGetModule(&module, library);
  return code != CUDA_SUCCESS ? code : AnswerOfModule(module, name, address, size);
}

// Needs no context, and works with a dead one current.
CUresult LibraryGetManaged(CUdeviceptr* address, size_t* size, CUlibrary library,
                           const char* name) {
  std::shared_ptr<const PlacedVariables> placed;
  CUresult code = FindManagedOf(library, &placed);
  if (code == CUDA_SUCCESS) code = CheckQuestion(address, size, name);
  return code != CUDA_SUCCESS ? code : AnswerPlaced(*placed, name, address, size);
}

}  // namespace cudasim::driver
