// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What bytes of device code are and hold. Three looks at them, each at more than the last:
//
//   RecogniseCode()  how they begin, and whether what says its size is whole: on the way to
//                    the driver, and all that is refused there
//   HasLtoIr()       the headers of a container's entries
//   ReadCode()       everything, decompressed: the kernels, and damage
//
// What is not understood (versions, types, flags, kinds of entries and of compression) is no
// damage: it may be of a newer compiler.

#ifndef CUDAIMAGE_CONTENTS_H_
#define CUDAIMAGE_CONTENTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bytes.h"

CUDAIMAGE_BEGIN_NAMESPACE

enum class CodeKind { kPtx, kCubin, kRelocatableCubin, kFatbin, kObject, kArchive, kLtoIr };

// "a relocatable cubin". Never null.
const char* ToString(CodeKind kind) noexcept;

// The block that a kernel must be launched with (.reqntid). All zeros: any, or nobody knows, as of
// a kernel that is compiled for blocks of different sizes on different architectures.
struct RequiredBlock {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t z = 0;

  bool IsAny() const noexcept { return x == 0 && y == 0 && z == 0; }
  bool operator==(const RequiredBlock& other) const noexcept {
    return x == other.x && y == other.y && z == other.z;
  }
};

// What its image says of a kernel.
struct KernelContents {
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

  RequiredBlock block;
  // How many it takes. kUnknown too where images of one kernel do not agree.
  std::uint32_t parameters = kUnknown;
};

struct CodeContents {
  std::map<std::string, KernelContents> kernels;  // by name
  bool names_all = true;                          // whether `kernels` are all
  std::size_t images = 0;                         // that a container holds
  // What it is for, each once: "sm_80" of machine code, "PTX for sm_90a", "LTO IR for sm_80".
  std::vector<std::string> targets;

  void AddTarget(const std::string& target) {
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) {
      targets.push_back(target);
    }
  }
  void AddKernel(const std::string& name, const KernelContents& kernel) {
    KernelContents& kept = kernels.emplace(name, kernel).first->second;
    if (!(kept.block == kernel.block)) kept.block = RequiredBlock();
    if (kept.parameters != kernel.parameters) kept.parameters = KernelContents::kUnknown;
  }
};

// Errors: kDamaged  neither of a kind that is known, nor whole
Status RecogniseCode(const Bytes& bytes, CodeKind* kind);

// Whether an image of this kind is, or has in it, LTO IR. Of a damaged one what is in front of
// the damage.
bool HasLtoIr(CodeKind kind, const Bytes& bytes);

// Adds what an image of this kind holds, all of it or what is in front of the damage.
//
// Errors: kDamaged  it is damaged: the text has the offset and what is wrong there
Status ReadCode(CodeKind kind, const Bytes& bytes, CodeContents* contents);

// The readers below are for bytes that begin as such a thing does.

// Text, with NULs behind it or without.
bool IsPtx(const Bytes& bytes);
Status ReadPtx(const Bytes& bytes, CodeContents* contents);

// Adds what one container holds.
Status ReadFatbin(const Bytes& bytes, CodeContents* contents);

Status ReadDeviceElf(const Bytes& bytes, CodeContents* contents);

bool HostObjectHasLtoIr(const Bytes& bytes);
// Adds what the fatbins in an object of the host hold; it may have none.
Status ReadHostObject(const Bytes& bytes, CodeContents* contents);

bool IsArchive(const Bytes& bytes);
// Whether the last member is all there.
Status CheckArchiveSize(const Bytes& bytes);
bool ArchiveHasLtoIr(const Bytes& bytes);
// Adds what the objects in an archive hold.
Status ReadArchive(const Bytes& bytes, CodeContents* contents);

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_CONTENTS_H_
