// SPDX-License-Identifier: Apache-2.0
//
// What nvcc compresses the entries of a fatbin with (--compress-mode). Neither format has
// a checksum here, so that damage may well decompress to something.                tier: 3
//
// Errors: kInvalidArgument  damaged, or not `size` bytes
// Memory: no more than twice what comes out.

#ifndef CUGUEST_LIB_MODULE_DECOMPRESS_H_
#define CUGUEST_LIB_MODULE_DECOMPRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "lib/module/image_bytes.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// One block. Source: LZ4 Block Format Description, 1.6.4.
absl::StatusOr<std::string> DecompressLz4(const ImageBytes& packed, std::uint64_t size);

// One frame, without a dictionary. Source: RFC 8878.
absl::StatusOr<std::string> DecompressZstd(const ImageBytes& packed, std::uint64_t size);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_DECOMPRESS_H_
