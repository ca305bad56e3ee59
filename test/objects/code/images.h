// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An image of every kind, as kernels/ has them, and ways to damage one.

#ifndef CUGUEST_TEST_OBJECTS_CODE_IMAGES_H_
#define CUGUEST_TEST_OBJECTS_CODE_IMAGES_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "cuguest/objects/code_image.h"
#include "cuguest/objects/host_span.h"
#include "kernels/images.h"
#include "kernels/linked.h"
#include "kernels/vector_add.h"

namespace module_test {

using cuguest::CodeImage;
using Bytes = std::vector<unsigned char>;

struct Sample {
  std::string name;
  Bytes bytes;
  CodeImage::Kind kind;
  bool lto_ir;
};

inline const std::vector<Sample>& Samples() {
#define SAMPLE(array, kind, lto_ir) \
  { #array, Bytes(array, array + array##_size), CodeImage::Kind::kind, lto_ir }
  using namespace cuguest_kernels;
  static const auto& samples = *new std::vector<Sample>{
      SAMPLE(images_ptx, kPtx, false),
      SAMPLE(images_cubin, kCubin, false),
      SAMPLE(images_relocatable_cubin, kRelocatableCubin, false),
      SAMPLE(images_fatbin, kFatbin, false),
      SAMPLE(images_compressed_fatbin, kFatbin, false),
      SAMPLE(images_fast_fatbin, kFatbin, false),
      SAMPLE(images_lto_fatbin, kFatbin, true),
      SAMPLE(images_object, kObject, false),
      SAMPLE(images_archive, kArchive, false),
      SAMPLE(images_lto_ir, kLtoIr, true),
      SAMPLE(linked_relocatable_ptx, kPtx, false),
      SAMPLE(vector_add_ptx, kPtx, false),
      SAMPLE(vector_add_fatbin, kFatbin, false),
  };
#undef SAMPLE
  return samples;
}

inline const Sample& SampleOf(const std::string& name) {
  for (const Sample& sample : Samples()) {
    if (sample.name == name) return sample;
  }
  std::abort();
}

// Bytes with nothing behind them: who reads on, crashes.
class AtTheEndOfMemory {
 public:
  explicit AtTheEndOfMemory(const Bytes& bytes) : size_(bytes.size()) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t room = (size_ + page - 1) / page * page;
    length_ = room + page;
    memory_ = static_cast<unsigned char*>(
        mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_ + room, page, PROT_NONE) != 0) std::abort();
    begin_ = memory_ + room - size_;
    if (size_ > 0) std::memcpy(begin_, bytes.data(), size_);
  }
  AtTheEndOfMemory(const AtTheEndOfMemory&) = delete;
  AtTheEndOfMemory& operator=(const AtTheEndOfMemory&) = delete;
  ~AtTheEndOfMemory() { munmap(memory_, length_); }

  cuguest::HostSpan<const unsigned char> span() const { return {begin_, size_}; }

 private:
  std::size_t size_;
  std::size_t length_ = 0;
  unsigned char* memory_ = nullptr;
  unsigned char* begin_ = nullptr;
};

}  // namespace module_test

#endif  // CUGUEST_TEST_OBJECTS_CODE_IMAGES_H_
