// SPDX-License-Identifier: Apache-2.0
//
// What bytes of device code are and hold. The driver trusts what an image says about
// itself: where its tables are, how long they are, what they refer to. Damage there ends in
// a crash or an endless loop inside of it, so all of that is checked here.         tier: 3
//
// Errors: kInvalidArgument, with the offset and what is wrong there.

#ifndef CUGUEST_LIB_MODULE_CODE_CONTENTS_H_
#define CUGUEST_LIB_MODULE_CODE_CONTENTS_H_

#include <cstddef>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/code_image.h"
#include "cuguest/export.h"
#include "lib/module/image_bytes.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

struct CodeContents {
  CodeKind kind = CodeKind::kPtx;
  std::set<std::string> kernels;
  bool names_all = true;  // whether `kernels` are all
  bool lto_ir = false;
  std::size_t images = 0;  // that a container holds
};

absl::StatusOr<CodeContents> ReadCode(const ImageBytes& bytes);

// The readers below are for bytes that begin as such a thing does, and add what they find.

// Text without a NUL behind it.
bool IsPtx(const ImageBytes& bytes);
absl::Status ReadPtx(const ImageBytes& bytes, CodeContents* contents);

bool IsFatbin(const ImageBytes& bytes);
// Adds what one container holds; `size` is the container's, header included.
absl::Status ReadFatbin(const ImageBytes& bytes, CodeContents* contents, std::size_t* size);

bool IsElf(const ImageBytes& bytes);
bool IsDeviceElf(const ImageBytes& bytes);
bool IsRelocatable(const ImageBytes& bytes);  // of a device ELF
absl::Status ReadDeviceElf(const ImageBytes& bytes, CodeContents* contents);
// Adds what the fatbins in an object of the host hold; it may have none.
absl::Status ReadHostObject(const ImageBytes& bytes, CodeContents* contents);

bool IsArchive(const ImageBytes& bytes);
// Adds what the objects in an archive hold.
absl::Status ReadArchive(const ImageBytes& bytes, CodeContents* contents);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_CODE_CONTENTS_H_
