// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudaimage/contents.h"

#include <cstdint>

#include "cudaimage/cubin.h"
#include "cudaimage/fatbin.h"

CUDAIMAGE_BEGIN_NAMESPACE
namespace {

// What nvcc puts beside a fatbin for the runtime: fatbinary_section.h.
constexpr std::uint32_t kFatbinWrapper = 0x466243b1;
// The first bytes of nvcc -ltoir. Its format is not published.
constexpr std::uint32_t kLtoIrMagic = 0x7f4e43ed;
constexpr std::size_t kLtoIrHeader = 0x28;  // by its own account, in CUDA 13.0

bool StartsWith(const Bytes& bytes, std::uint32_t magic) {
  return bytes.Has(0, sizeof(magic)) && bytes.At<std::uint32_t>(0) == magic;
}

bool IsLtoIr(const Bytes& bytes) { return StartsWith(bytes, kLtoIrMagic); }
bool IsCubin(const Bytes& bytes) { return IsDeviceElf(bytes) && !IsRelocatable(bytes); }

Status CheckLtoIrSize(const Bytes& bytes) {
  if (bytes.size() > kLtoIrHeader) return Status();
  return Damaged(bytes, bytes.size(), "it ends within the header of LTO IR");
}

Status HasNoSize(const Bytes& /*bytes*/) { return Status(); }

bool Never(const Bytes& /*bytes*/) { return false; }
bool Always(const Bytes& /*bytes*/) { return true; }

Status CheckFatbinSize(const Bytes& bytes) {
  std::size_t size = 0;
  return FindFatbinSize(bytes, &size);
}

Status ReadWholeHostObject(const Bytes& bytes, CodeContents* contents) {
  const Status status = ReadHostObject(bytes, contents);
  if (!status.ok() || contents->images > 0) return status;
  return Damaged(bytes, 0,
                 "an object of the host without device code for a linker: compile it "
                 "with nvcc -dc");
}

// It does not tell its kernels.
Status ReadLtoIr(const Bytes& /*bytes*/, CodeContents* contents) {
  contents->names_all = false;
  return Status();
}

struct CodeFormat {
  CodeKind kind;
  bool (*is)(const Bytes& bytes);
  Status (*check_size)(const Bytes& bytes);
  bool (*has_lto_ir)(const Bytes& bytes);
  Status (*read)(const Bytes& bytes, CodeContents* contents);
};

// The first that it is.
constexpr CodeFormat kCodeFormats[] = {
    {CodeKind::kFatbin, IsFatbin, CheckFatbinSize, FatbinHasLtoIr, ReadFatbin},
    {CodeKind::kCubin, IsCubin, CheckElfSize, Never, ReadDeviceElf},
    {CodeKind::kRelocatableCubin, IsDeviceElf, CheckElfSize, Never, ReadDeviceElf},
    {CodeKind::kObject, IsElf, CheckElfSize, HostObjectHasLtoIr, ReadWholeHostObject},
    {CodeKind::kArchive, IsArchive, CheckArchiveSize, ArchiveHasLtoIr, ReadArchive},
    {CodeKind::kLtoIr, IsLtoIr, CheckLtoIrSize, Always, ReadLtoIr},
    {CodeKind::kPtx, IsPtx, HasNoSize, Never, ReadPtx},
};

const CodeFormat& FormatOf(CodeKind kind) {
  const CodeFormat* format = kCodeFormats;
  while (format->kind != kind) ++format;
  return *format;
}

}  // namespace

Status RecogniseCode(const Bytes& bytes, CodeKind* kind) {
  if (bytes.size() == 0) return Status(Status::Code::kDamaged, "it is empty");
  for (const CodeFormat& format : kCodeFormats) {
    if (!format.is(bytes)) continue;
    *kind = format.kind;
    return Within(ToString(format.kind), format.check_size(bytes));
  }
  if (StartsWith(bytes, kFatbinWrapper)) {
    return Status(
        Status::Code::kDamaged,
        "it is a fatbin's wrapper, which holds a pointer to the fatbin: give the fatbin itself");
  }
  return Status(
      Status::Code::kDamaged,
      "it is neither PTX, which begins with .version, nor a cubin, a fatbin, an object, an archive "
      "or LTO IR");
}

const char* ToString(CodeKind kind) noexcept {
  switch (kind) {
    case CodeKind::kPtx:
      return "PTX";
    case CodeKind::kCubin:
      return "a cubin";
    case CodeKind::kRelocatableCubin:
      return "a relocatable cubin";
    case CodeKind::kFatbin:
      return "a fatbin";
    case CodeKind::kObject:
      return "an object";
    case CodeKind::kArchive:
      return "an archive";
    case CodeKind::kLtoIr:
      return "LTO IR";
  }
  return "no device code";
}

bool HasLtoIr(CodeKind kind, const Bytes& bytes) { return FormatOf(kind).has_lto_ir(bytes); }

Status ReadCode(CodeKind kind, const Bytes& bytes, CodeContents* contents) {
  const Status status = FormatOf(kind).read(bytes, contents);
  if (!status.ok()) contents->names_all = false;
  return Within(ToString(kind), status);
}

CUDAIMAGE_END_NAMESPACE
