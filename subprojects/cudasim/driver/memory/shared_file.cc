// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/memory/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace cudasim::driver {
namespace {

bool WriteAll(int file, const void* data, size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(file, from, bytes);
    if (written <= 0) return false;
    from += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

std::uint64_t InodeOf(int file) {
  struct stat status = {};
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

bool SharePages(void* pages, size_t bytes, SharedFile* shared) {
  const int file = memfd_create("cudasim", MFD_CLOEXEC);
  if (file < 0) return false;
  const bool done =
      WriteAll(file, pages, bytes) &&
      mmap(pages, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
  if (!done) {
    close(file);
    return false;
  }
  *shared = {getpid(), file, InodeOf(file)};
  return true;
}

void UnsharePages(void* pages, size_t bytes, const SharedFile& shared) {
  mmap(pages, bytes, PROT_READ | PROT_WRITE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  close(shared.file);
}

void* MapShared(const SharedFile& shared, size_t bytes) {
  const std::string path =
      "/proc/" + std::to_string(shared.process) + "/fd/" + std::to_string(shared.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* pages = InodeOf(file) == shared.inode
                    ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                    : MAP_FAILED;
  close(file);
  return pages != MAP_FAILED ? pages : nullptr;
}

void UnmapShared(void* pages, size_t bytes) { munmap(pages, bytes); }

}  // namespace cudasim::driver
