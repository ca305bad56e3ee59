// SPDX-License-Identifier: Apache-2.0
//
// What nvcc compresses the entries of a fatbin with (--compress-mode). Neither format has
// a checksum here, so that damage may well decompress to something.                tier: 3
//
// By liblz4 and libzstd, loaded at run time by their names: every Linux distribution has
// them, and nobody who embeds this library must.
//
// Errors: kInvalidArgument    damaged, or not `size` bytes
//         kUnavailable        the machine lacks the library
//         kResourceExhausted  no host memory

#ifndef CUGUEST_LIB_MODULE_DECOMPRESS_H_
#define CUGUEST_LIB_MODULE_DECOMPRESS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "lib/module/image_bytes.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

struct UnpackedBytes {
  std::unique_ptr<unsigned char[]> data;
  std::size_t size = 0;
};

// One block.
absl::StatusOr<UnpackedBytes> DecompressLz4(const ImageBytes& packed, std::uint64_t size);

// Frames, without a dictionary.
absl::StatusOr<UnpackedBytes> DecompressZstd(const ImageBytes& packed, std::uint64_t size);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_DECOMPRESS_H_
