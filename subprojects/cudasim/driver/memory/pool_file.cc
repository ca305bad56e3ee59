// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/memory/pool_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "driver/memory/shared_file.h"

namespace cudasim::driver {
namespace {

constexpr char kPoolFileMagic[8] = "simpool";

std::uint64_t SizeOf(int file) {
  struct stat status = {};
  return fstat(file, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace

struct PoolFile::Header {
  char magic[sizeof(kPoolFileMagic)] = {};
  CUdevice device = 0;
  bool lies_on_host = false;
};

std::shared_ptr<PoolFile> PoolFile::Create(CUdevice device, bool lies_on_host) {
  const int descriptor = memfd_create("cudasim-pool", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  auto file = std::make_shared<PoolFile>(descriptor);
  Header header;
  std::memcpy(header.magic, kPoolFileMagic, sizeof(kPoolFileMagic));
  header.device = device;
  header.lies_on_host = lies_on_host;
  const bool done = pwrite(descriptor, &header, sizeof(header), 0) == sizeof(header) &&
                    ftruncate(descriptor, kPage) == 0;
  return done ? file : nullptr;
}

std::shared_ptr<PoolFile> PoolFile::Open(int descriptor) {
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return nullptr;
  auto file = std::make_shared<PoolFile>(own);
  Header header;
  return file->ReadHeader(&header) ? file : nullptr;
}

PoolFile::~PoolFile() { close(file_); }

bool PoolFile::ReadHeader(Header* header) const {
  return pread(file_, header, sizeof(*header), 0) == sizeof(*header) &&
         std::memcmp(header->magic, kPoolFileMagic, sizeof(kPoolFileMagic)) == 0;
}

CUdevice PoolFile::device() const {
  Header header;
  ReadHeader(&header);
  return header.device;
}

bool PoolFile::lies_on_host() const {
  Header header;
  ReadHeader(&header);
  return header.lies_on_host;
}

std::uint64_t PoolFile::id() const {
  struct stat status = {};
  return fstat(file_, &status) == 0 ? status.st_ino : 0;
}

int PoolFile::Duplicate() const { return fcntl(file_, F_DUPFD_CLOEXEC, 0); }

void* PoolFile::MapNew(size_t bytes, std::uint64_t* offset) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    *offset = SizeOf(file_);
    if (ftruncate(file_, static_cast<off_t>(*offset + WholePages(bytes))) != 0) return nullptr;
  }
  return Map(*offset, bytes);
}

void* PoolFile::Map(std::uint64_t offset, size_t bytes) const {
  const std::uint64_t size = SizeOf(file_);
  if (offset > size || bytes > size - offset) return nullptr;
  void* pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(offset));
  return pages != MAP_FAILED ? pages : nullptr;
}

void PoolFile::Unmap(void* pages, size_t bytes) { munmap(pages, bytes); }

void PoolFile::Discard(std::uint64_t offset, size_t bytes) const {
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(WholePages(bytes)));
}

}  // namespace cudasim::driver
