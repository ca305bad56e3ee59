// SPDX-License-Identifier: Apache-2.0

#include "lib/module/code_contents.h"

#include <cstdint>

#include "lib/module/elf_file.h"

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

bool IsLtoIr(const ImageBytes& bytes) { return StartsWith(bytes, kLtoIrMagic); }
bool IsCubin(const ImageBytes& bytes) { return IsDeviceElf(bytes) && !IsRelocatable(bytes); }

absl::Status CheckLtoIrSize(const ImageBytes& bytes) {
  if (bytes.size() > kLtoIrHeader) return absl::OkStatus();
  return Damaged(bytes, bytes.size(), "it ends within the header of LTO IR");
}

absl::Status HasNoSize(const ImageBytes& /*bytes*/) { return absl::OkStatus(); }

bool Never(const ImageBytes& /*bytes*/) { return false; }
bool Always(const ImageBytes& /*bytes*/) { return true; }

absl::Status CheckFatbinSize(const ImageBytes& bytes) {
  std::size_t size = 0;
  return FindFatbinSize(bytes, &size);
}

absl::Status ReadWholeHostObject(const ImageBytes& bytes, CodeContents* contents) {
  const absl::Status status = ReadHostObject(bytes, contents);
  if (!status.ok() || contents->images > 0) return status;
  return Damaged(bytes, 0,
                 "an object of the host without device code for a linker: compile it "
                 "with nvcc -dc");
}

// It does not tell its kernels.
absl::Status ReadLtoIr(const ImageBytes& /*bytes*/, CodeContents* contents) {
  contents->names_all = false;
  return absl::OkStatus();
}

struct Format {
  CodeKind kind;
  bool (*is)(const ImageBytes& bytes);
  absl::Status (*check_size)(const ImageBytes& bytes);
  bool (*has_lto_ir)(const ImageBytes& bytes);
  absl::Status (*read)(const ImageBytes& bytes, CodeContents* contents);
};

// The first that it is.
constexpr Format kFormats[] = {
    {CodeKind::kFatbin, IsFatbin, CheckFatbinSize, FatbinHasLtoIr, ReadFatbin},
    {CodeKind::kCubin, IsCubin, CheckElfSize, Never, ReadDeviceElf},
    {CodeKind::kRelocatableCubin, IsDeviceElf, CheckElfSize, Never, ReadDeviceElf},
    {CodeKind::kObject, IsElf, CheckElfSize, HostObjectHasLtoIr, ReadWholeHostObject},
    {CodeKind::kArchive, IsArchive, CheckArchiveSize, ArchiveHasLtoIr, ReadArchive},
    {CodeKind::kLtoIr, IsLtoIr, CheckLtoIrSize, Always, ReadLtoIr},
    {CodeKind::kPtx, IsPtx, HasNoSize, Never, ReadPtx},
};

const Format& FormatOf(CodeKind kind) {
  const Format* format = kFormats;
  while (format->kind != kind) ++format;
  return *format;
}

}  // namespace

absl::StatusOr<CodeKind> RecogniseCode(const ImageBytes& bytes) {
  if (bytes.size() == 0) return absl::InvalidArgumentError("it is empty");
  for (const Format& format : kFormats) {
    if (!format.is(bytes)) continue;
    const absl::Status whole = format.check_size(bytes);
    if (!whole.ok()) return Within(ToString(format.kind), whole);
    return format.kind;
  }
  if (StartsWith(bytes, kFatbinWrapper)) {
    return absl::InvalidArgumentError(
        "it is a fatbin's wrapper, which holds a pointer to the fatbin: give the fatbin itself");
  }
  return absl::InvalidArgumentError(
      "it is neither PTX, which begins with .version, nor a cubin, a fatbin, an object, an archive "
      "or LTO IR");
}

bool HasLtoIr(CodeKind kind, const ImageBytes& bytes) { return FormatOf(kind).has_lto_ir(bytes); }

absl::Status ReadCode(CodeKind kind, const ImageBytes& bytes, CodeContents* contents) {
  const absl::Status status = FormatOf(kind).read(bytes, contents);
  if (!status.ok()) contents->names_all = false;
  return Within(ToString(kind), status);
}

}  // namespace internal
CUGUEST_END_NAMESPACE
