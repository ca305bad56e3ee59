// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that another process of the machine can map: pages of a file that has no name, which that
// process opens through /proc as long as this one keeps it.

#ifndef CUDASIM_DRIVER_MEMORY_SHARED_FILE_H_
#define CUDASIM_DRIVER_MEMORY_SHARED_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace cudasim::driver {

inline constexpr size_t kPage = 4096;
inline size_t WholePages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// What a process tells another.
struct SharedFile {
  pid_t process = 0;
  int file = -1;
  std::uint64_t inode = 0;  // a closed file's number may be another file's
};

// Makes pages those of a new file, with what is in them. What another thread writes there meanwhile
// may be lost. False if there is no room for it; the pages stay then.
bool SharePages(void* pages, size_t bytes, SharedFile* shared);

// Makes them the process's own again, with zeros in them, and closes the file.
void UnsharePages(void* pages, size_t bytes, const SharedFile& shared);

// Maps what another process shares, of the same user; nullptr if it does not any more.
void* MapShared(const SharedFile& shared, size_t bytes);
void UnmapShared(void* pages, size_t bytes);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_SHARED_FILE_H_
