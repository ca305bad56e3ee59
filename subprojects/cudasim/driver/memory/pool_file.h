// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the memory of a pool is in that other processes may map: a file without a name, whose first
// page says what pool it is.

#ifndef CUDASIM_DRIVER_MEMORY_POOL_FILE_H_
#define CUDASIM_DRIVER_MEMORY_POOL_FILE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace cudasim::driver {

// PoolFile
//
// Each allocation has pages of its own, at an offset that no other one had.
//
// Threads: any.
class PoolFile {
 public:
  // nullptr if there is no room for it.
  static std::shared_ptr<PoolFile> Create(CUdevice device, bool lies_on_host);
  // That of the descriptor, which stays the caller's; nullptr if that is no pool's.
  static std::shared_ptr<PoolFile> Open(int descriptor);

  explicit PoolFile(int file) : file_(file) {}
  ~PoolFile();
  PoolFile(const PoolFile&) = delete;
  PoolFile& operator=(const PoolFile&) = delete;

  CUdevice device() const;
  bool lies_on_host() const;
  // The same in every process that has it.
  std::uint64_t id() const;
  // A descriptor for the caller, or -1.
  int Duplicate() const;

  // Zeros; nullptr if there is no room for them.
  void* MapNew(size_t bytes, std::uint64_t* offset);
  // What another process put there; nullptr if there is nothing.
  void* Map(std::uint64_t offset, size_t bytes) const;
  static void Unmap(void* pages, size_t bytes);
  // The room that they took, of nobody's any more.
  void Discard(std::uint64_t offset, size_t bytes) const;

 private:
  struct Header;
  bool ReadHeader(Header* header) const;

  const int file_;
  std::mutex mutex_;
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_POOL_FILE_H_
