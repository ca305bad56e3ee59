// SPDX-License-Identifier: Apache-2.0
//
// What bytes of device code are and hold. Three looks at them, each at more than the last:
//
//   RecogniseCode()  how they begin, and whether what says its size is whole: on the way to
//                    the driver, and all that is refused there
//   HasLtoIr()       the headers of a container's entries
//   ReadCode()       everything, decompressed: the kernels, and damage
//
// What is not understood (versions, types, flags, kinds of entries and of compression) is no
// damage: it may be of a newer compiler.                                           tier: 3

#ifndef CUGUEST_LIB_MODULE_CODE_CONTENTS_H_
#define CUGUEST_LIB_MODULE_CODE_CONTENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/code_image.h"
#include "cuguest/export.h"
#include "lib/module/image_bytes.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// Of a kernel that is compiled for blocks of different sizes on different architectures.
constexpr std::uint64_t kAnyBlock = 0;

struct CodeContents {
  // By name; as PackSizes(), the block that a kernel must be launched with, or kAnyBlock.
  std::map<std::string, std::uint64_t> kernels;
  bool names_all = true;   // whether `kernels` are all
  std::size_t images = 0;  // that a container holds

  void AddKernel(const std::string& name, std::uint64_t block) {
    const auto added = kernels.emplace(name, block);
    if (added.first->second != block) added.first->second = kAnyBlock;
  }
};

// Errors: kInvalidArgument  neither of a kind that is known, nor whole
absl::StatusOr<CodeKind> RecogniseCode(const ImageBytes& bytes);

// Whether an image of this kind is, or has in it, LTO IR. Of a damaged one what is in front of
// the damage.
bool HasLtoIr(CodeKind kind, const ImageBytes& bytes);

// Adds what an image of this kind holds, all of it or what is in front of the damage.
//
// Errors: kInvalidArgument  it is damaged: the text has the offset and what is wrong there
absl::Status ReadCode(CodeKind kind, const ImageBytes& bytes, CodeContents* contents);

// The readers below are for bytes that begin as such a thing does.

// Text without a NUL behind it.
bool IsPtx(const ImageBytes& bytes);
absl::Status ReadPtx(const ImageBytes& bytes, CodeContents* contents);

bool IsFatbin(const ImageBytes& bytes);
// Of one container, header included: refused if it is not all there.
absl::Status FindFatbinSize(const ImageBytes& bytes, std::size_t* size);
bool FatbinHasLtoIr(const ImageBytes& bytes);
// Adds what one container holds.
absl::Status ReadFatbin(const ImageBytes& bytes, CodeContents* contents);

bool IsElf(const ImageBytes& bytes);
bool IsDeviceElf(const ImageBytes& bytes);
bool IsRelocatable(const ImageBytes& bytes);  // of a device ELF
absl::Status ReadDeviceElf(const ImageBytes& bytes, CodeContents* contents);

bool HostObjectHasLtoIr(const ImageBytes& bytes);
// Adds what the fatbins in an object of the host hold; it may have none.
absl::Status ReadHostObject(const ImageBytes& bytes, CodeContents* contents);

bool IsArchive(const ImageBytes& bytes);
// Whether the last member is all there.
absl::Status CheckArchiveSize(const ImageBytes& bytes);
bool ArchiveHasLtoIr(const ImageBytes& bytes);
// Adds what the objects in an archive hold.
absl::Status ReadArchive(const ImageBytes& bytes, CodeContents* contents);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_CODE_CONTENTS_H_
