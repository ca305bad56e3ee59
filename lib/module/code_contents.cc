// SPDX-License-Identifier: Apache-2.0

#include "lib/module/code_contents.h"

#include <cstdint>
#include <cstring>

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

// What nvcc puts beside a fatbin for the runtime: fatbinary_section.h.
constexpr std::uint32_t kFatbinWrapper = 0x466243b1;
// The first bytes of nvcc -ltoir. Its format is not published.
constexpr std::uint32_t kLtoIrMagic = 0x7f4e43ed;
constexpr std::size_t kLtoIrHeader = 0x28;  // by its own account, in CUDA 13.0

bool StartsWith(const ImageBytes& bytes, std::uint32_t magic) {
  return bytes.Has(0, sizeof(magic)) && bytes.At<std::uint32_t>(0) == magic;
}

absl::Status ReadWholeFatbin(const ImageBytes& bytes, CodeContents* contents) {
  std::size_t size = 0;
  return ReadFatbin(bytes, contents, &size);
}

absl::Status ReadWholeHostObject(const ImageBytes& bytes, CodeContents* contents) {
  const absl::Status status = ReadHostObject(bytes, contents);
  if (!status.ok() || contents->images > 0) return status;
  return Damaged(bytes, 0,
                 "an object of the host without device code for a linker: compile it "
                 "with nvcc -dc");
}

absl::Status ReadLtoIr(const ImageBytes& bytes, CodeContents* contents) {
  contents->lto_ir = true;
  contents->names_all = false;
  if (bytes.size() > kLtoIrHeader) return absl::OkStatus();
  return Damaged(bytes, bytes.size(), "it ends within the header of LTO IR");
}

struct Format {
  CodeKind kind;
  bool (*is)(const ImageBytes& bytes);
  absl::Status (*read)(const ImageBytes& bytes, CodeContents* contents);
};

bool IsLtoIr(const ImageBytes& bytes) { return StartsWith(bytes, kLtoIrMagic); }
bool IsCubin(const ImageBytes& bytes) { return IsDeviceElf(bytes) && !IsRelocatable(bytes); }

// The first that it is.
constexpr Format kFormats[] = {
    {CodeKind::kFatbin, IsFatbin, ReadWholeFatbin},
    {CodeKind::kCubin, IsCubin, ReadDeviceElf},
    {CodeKind::kRelocatableCubin, IsDeviceElf, ReadDeviceElf},
    {CodeKind::kObject, IsElf, ReadWholeHostObject},
    {CodeKind::kArchive, IsArchive, ReadArchive},
    {CodeKind::kLtoIr, IsLtoIr, ReadLtoIr},
    {CodeKind::kPtx, IsPtx, ReadPtx},
};

}  // namespace

absl::StatusOr<CodeContents> ReadCode(const ImageBytes& bytes) {
  if (bytes.size() == 0) return absl::InvalidArgumentError("it is empty");
  for (const Format& format : kFormats) {
    if (!format.is(bytes)) continue;
    CodeContents contents;
    contents.kind = format.kind;
    const absl::Status status = format.read(bytes, &contents);
    if (!status.ok()) return Within(ToString(format.kind), status);
    return contents;
  }
  if (StartsWith(bytes, kFatbinWrapper)) {
    return absl::InvalidArgumentError(
        "it is a fatbin's wrapper, which holds a pointer to the fatbin: give the fatbin itself");
  }
  return absl::InvalidArgumentError(
      "it is neither PTX, which begins with .version, nor a cubin, a fatbin, an object, an archive "
      "or LTO IR");
}

}  // namespace internal
CUGUEST_END_NAMESPACE
