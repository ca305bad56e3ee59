// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudaimage/decompress.h"

#include <climits>
#include <cstddef>
#include <new>
#include <utility>

#include "cudaimage/library_function.h"

CUDAIMAGE_BEGIN_NAMESPACE
namespace {

// Most that LZ4 takes, and more than an image of code has.
constexpr std::uint64_t kMostBytes = INT_MAX;

// In the libraries' own words: lz4.h 1.7, zstd.h 1.0.
using Lz4DecompressSafe = int (*)(const char* from, char* to, int bytes, int capacity);
using ZstdDecompress = std::size_t (*)(void* to, std::size_t capacity, const void* from,
                                       std::size_t bytes);

LibraryFunction<Lz4DecompressSafe> g_lz4("liblz4.so.1", "LZ4_decompress_safe");
LibraryFunction<ZstdDecompress> g_zstd("libzstd.so.1", "ZSTD_decompress");

Status NoLibrary(const char* soname) {
  return Status(Status::Code::kUnavailable, Text(soname, " could not be loaded"));
}

// `decompress(to)` writes up to `size` bytes and returns how many it did; of damage, a number
// that `size` cannot be.
template <typename Decompress>
Status Unpack(const Bytes& packed, std::uint64_t size, const char* format,
              const Decompress& decompress, UnpackedBytes* unpacked) {
  if (size > kMostBytes || packed.size() > kMostBytes) {
    return Damaged(packed, 0, "it claims to decompress to ", size, " bytes");
  }
  std::unique_ptr<unsigned char[]> bytes(new (std::nothrow) unsigned char[size + 1]);
  if (bytes == nullptr) return Status(Status::Code::kNoMemory, Text(size, " bytes"));
  if (decompress(bytes.get()) == size) {
    *unpacked = {std::move(bytes), static_cast<std::size_t>(size)};
    return Status();
  }
  return Damaged(packed, 0, "it does not decompress, by ", format, ", to ", size, " bytes");
}

}  // namespace

Status DecompressLz4(const Bytes& packed, std::uint64_t size, UnpackedBytes* unpacked) {
  const Lz4DecompressSafe decompress = g_lz4.Find();
  if (decompress == nullptr) return NoLibrary(g_lz4.soname());
  return Unpack(
      packed, size, "LZ4",
      [&](unsigned char* to) {
        return static_cast<std::uint64_t>(
            decompress(reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(to),
                       static_cast<int>(packed.size()), static_cast<int>(size)));
      },
      unpacked);
}

Status DecompressZstd(const Bytes& packed, std::uint64_t size, UnpackedBytes* unpacked) {
  const ZstdDecompress decompress = g_zstd.Find();
  if (decompress == nullptr) return NoLibrary(g_zstd.soname());
  return Unpack(
      packed, size, "zstd",
      [&](unsigned char* to) -> std::uint64_t {
        return decompress(to, static_cast<std::size_t>(size), packed.data(), packed.size());
      },
      unpacked);
}

CUDAIMAGE_END_NAMESPACE
