// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/image.h"

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "cudaimage/fatbin.h"
#include "driver/code/compile.h"
#include "driver/code/image/cubin.h"

namespace cudasim::driver {
namespace {

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
  const Compiled compiled = Compile({text.data(), text.size() + 1}, request);
  return Finish(compiled, ReadPtx(text, image), request, image);
}

JitOutcome LoadCubin(std::string_view bytes, const JitRequest& request, Image* image) {
  const CUresult read = ReadCubin(bytes, request.Architecture(), image);
  if (read == CUDA_ERROR_INVALID_IMAGE) return Unrecognized();
  return Failure(read);
}

// A text that is shorter than a magic number differs in an earlier byte.
bool IsElf(const char* bytes) { return std::strncmp(bytes, "\177ELF", 4) == 0; }
bool IsFatbin(const char* bytes) {
  constexpr char kMagic[] = "\x50\xed\x55\xba";  // little-endian
  return std::strncmp(bytes, kMagic, 4) == 0;
}

JitOutcome LoadFatbin(std::string_view bytes, const JitRequest& request, Image* loaded) {
  const cudaimage::Bytes fatbin(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  std::optional<cudaimage::FatbinEntry> entry;
  const auto architecture = static_cast<unsigned>(request.Architecture());
  const bool only_ptx = IsSet("CUDA_FORCE_PTX_JIT");
  if (!cudaimage::ChooseEntry(fatbin, architecture, only_ptx, &entry).ok()) return Unrecognized();
  if (!entry) return Failure(CUDA_ERROR_NO_BINARY_FOR_GPU);
  cudaimage::UnpackedBytes storage;
  cudaimage::Bytes unpacked;
  const cudaimage::Status status = cudaimage::UnpackEntry(*entry, &storage, &unpacked);
  if (status.code() == cudaimage::Status::Code::kUnavailable) {
    return Failure(CUDA_ERROR_NO_BINARY_FOR_GPU);
  }
  if (!status.ok()) return Unrecognized();
  const std::string_view code = unpacked.text();
  if (entry->header.kind == cudaimage::FatbinEntryHeader::kElf) {
    return LoadCubin(code, request, loaded);
  }
  return LoadPtx(std::string(code.substr(0, code.find('\0'))), request, loaded);
}

}  // namespace

std::string_view WholeImage(const void* bytes) {
  const auto* text = static_cast<const char*>(bytes);
  if (IsElf(text)) return {text, cudaimage::SizeOfCubin(bytes)};
  if (!IsFatbin(text)) return text;
  cudaimage::FatbinHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  return {text, header.header_size + header.size};
}

JitOutcome ReadImage(std::string_view bytes, const JitRequest& request, Image* image) {
  if (request.Architecture() != kArchitecture) image->load_code = CUDA_ERROR_INVALID_SOURCE;
  if (IsElf(bytes.data())) return LoadCubin(bytes, request, image);
  if (IsFatbin(bytes.data())) return LoadFatbin(bytes, request, image);
  return LoadPtx(bytes.substr(0, bytes.find('\0')), request, image);
}

}  // namespace cudasim::driver
