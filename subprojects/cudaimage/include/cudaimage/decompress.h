// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What nvcc compresses the entries of a fatbin with (--compress-mode). Neither format has
// a checksum here, so that damage may well decompress to something.
//
// By liblz4 and libzstd, loaded at run time by their names: every Linux distribution has
// them, and nobody who embeds this library must.
//
// Errors: kDamaged      damaged, or not `size` bytes
//         kUnavailable  the machine lacks the library
//         kNoMemory     no host memory

#ifndef CUDAIMAGE_DECOMPRESS_H_
#define CUDAIMAGE_DECOMPRESS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bytes.h"

CUDAIMAGE_BEGIN_NAMESPACE

struct UnpackedBytes {
  std::unique_ptr<unsigned char[]> data;
  std::size_t size = 0;
};

// One block.
Status DecompressLz4(const Bytes& packed, std::uint64_t size, UnpackedBytes* unpacked);

// Frames, without a dictionary.
Status DecompressZstd(const Bytes& packed, std::uint64_t size, UnpackedBytes* unpacked);

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_DECOMPRESS_H_
