// SPDX-License-Identifier: Apache-2.0

#include "driver/code/image.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "cudaimage/fatbin.h"
#include "driver/code/compile.h"
#include "driver/code/image/cubin.h"

namespace cudasim::driver {
namespace {

using cudaimage::FatbinEntry;
using cudaimage::FatbinEntryHeader;
using Members = std::vector<FatbinEntry>;

JitOutcome Failure(CUresult code) {
  JitOutcome outcome;
  outcome.code = code;
  return outcome;
}

JitOutcome Unrecognized() {
  JitOutcome outcome = Failure(CUDA_ERROR_INVALID_IMAGE);
  outcome.error_log = "error   : Binary format for key='0', ident='' is not recognized";
  return outcome;
}

// What the compiler decided and the text does not say.
void TakeDecisions(const Image& compiled, Image* image) {
  for (PtxEntry& entry : image->entries) {
    for (const PtxEntry& other : compiled.entries) {
      if (other.name != entry.name) continue;
      entry.traits.registers = other.traits.registers;
      entry.traits.local = other.traits.local;
      entry.traits.static_shared = other.traits.static_shared;
    }
  }
}

// The compiler's verdict, and the reader's where there is no compiler. What only the
// compiler can read has the names and parameters that its result has.
JitOutcome Finish(const Compiled& compiled, CUresult read, const JitRequest& request,
                  Image* image) {
  JitOutcome outcome = compiled.outcome;
  if (outcome.code != CUDA_SUCCESS) return outcome;
  Image machine;
  const CUresult built =
      compiled.cubin.empty() ? read : ReadCubin(compiled.cubin, request.Architecture(), &machine);
  if (read == CUDA_SUCCESS) {
    TakeDecisions(machine, image);
    return outcome;
  }
  image->entries = machine.entries;
  image->variables = machine.variables;
  outcome.code = built;
  return outcome;
}

JitOutcome LoadPtx(std::string_view text, const JitRequest& request, Image* image) {
  if (!IsPtx(text)) return Unrecognized();
  if (request.TargetCode() != CUDA_SUCCESS) return Failure(request.TargetCode());
  // With the NUL behind it.
  const Compiled compiled = Compile(CompilerInput::kPtx, {text.data(), text.size() + 1}, request);
  return Finish(compiled, ReadPtx(text, image), request, image);
}

JitOutcome LoadCubin(std::string_view bytes, const JitRequest& request, Image* image) {
  const CUresult read = ReadCubin(bytes, request.Architecture(), image);
  if (read == CUDA_ERROR_INVALID_IMAGE) return Unrecognized();
  return Failure(read);
}

int ArchitectureOf(const FatbinEntry& member) {
  return static_cast<int>(member.header.architecture);
}

// A container is known by a pointer only, as a driver is given it: its header says how far it goes.
// A text that is shorter than a magic number differs in an earlier byte.
bool IsFatbin(const void* image) {
  constexpr char kMagic[] = "\x50\xed\x55\xba";  // little-endian
  return std::strncmp(static_cast<const char*>(image), kMagic, 4) == 0;
}

// False if one of them is not inside.
bool ReadMembers(const void* image, Members* members) {
  cudaimage::FatbinHeader header;
  std::memcpy(&header, image, sizeof(header));
  const auto* bytes = static_cast<const unsigned char*>(image);
  cudaimage::FatbinEntries entries(cudaimage::Bytes(bytes, header.header_size + header.size));
  FatbinEntry entry;
  while (entries.Next(&entry)) members->push_back(entry);
  return entries.status().ok();
}

const FatbinEntry* FindCubin(const Members& members, int architecture) {
  if (IsSet("CUDA_FORCE_PTX_JIT")) return nullptr;
  for (const FatbinEntry& member : members) {
    const bool fits = member.header.kind == FatbinEntryHeader::kElf && !member.IsCompressed() &&
                      ArchitectureOf(member) == architecture;
    if (fits) return &member;
  }
  return nullptr;
}

// The newest that is not too new.
const FatbinEntry* FindPtx(const Members& members, int architecture) {
  const FatbinEntry* best = nullptr;
  for (const FatbinEntry& member : members) {
    if (member.header.kind != FatbinEntryHeader::kPtx || ArchitectureOf(member) > architecture)
      continue;
    if (best == nullptr || ArchitectureOf(member) > ArchitectureOf(*best)) best = &member;
  }
  return best;
}

// A container of one member, for the compiler to unpack.
std::string ContainerOf(const void* bytes, const FatbinEntry& member) {
  std::string container(static_cast<const char*>(bytes), sizeof(cudaimage::FatbinHeader));
  const std::uint64_t size = member.whole.size();
  std::memcpy(&container[sizeof(std::uint64_t)], &size, sizeof(size));
  return container.append(member.whole.text());
}

JitOutcome LoadPtxMember(const void* bytes, const FatbinEntry& member, const JitRequest& request,
                         Image* image) {
  if (!member.IsCompressed()) {
    const std::string_view data = member.payload.text();
    const std::string text(data.substr(0, data.find('\0')));
    return LoadPtx(text, request, image);
  }
  const Compiled compiled = Compile(CompilerInput::kFatbin, ContainerOf(bytes, member), request);
  return Finish(compiled, CUDA_ERROR_NO_BINARY_FOR_GPU, request, image);
}

JitOutcome LoadFatbin(const void* bytes, const JitRequest& request, Image* image) {
  Members members;
  if (!ReadMembers(bytes, &members)) return Unrecognized();
  const FatbinEntry* cubin = FindCubin(members, request.Architecture());
  if (cubin != nullptr) return LoadCubin(cubin->payload.text(), request, image);
  const FatbinEntry* ptx = FindPtx(members, request.Architecture());
  return ptx != nullptr ? LoadPtxMember(bytes, *ptx, request, image)
                        : Failure(CUDA_ERROR_NO_BINARY_FOR_GPU);
}

}  // namespace

JitOutcome ReadImage(const void* bytes, const JitRequest& request, Image* image) {
  if (request.Architecture() != kArchitecture) image->load_code = CUDA_ERROR_INVALID_SOURCE;
  const auto* text = static_cast<const char*>(bytes);
  if (std::strncmp(text, "\177ELF", 4) == 0)
    return LoadCubin({text, cudaimage::SizeOfCubin(bytes)}, request, image);
  if (IsFatbin(bytes)) return LoadFatbin(bytes, request, image);
  return LoadPtx(text, request, image);
}

}  // namespace cudasim::driver
