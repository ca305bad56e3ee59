// SPDX-License-Identifier: Apache-2.0
//
// What a Module asks of its image beyond what everybody may ask.                   tier: 3

#ifndef CUGUEST_LIB_MODULE_IMAGE_ACCESS_H_
#define CUGUEST_LIB_MODULE_IMAGE_ACCESS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "cuguest/code_image.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

struct ImageAccess {
  // Of the kernels that must be launched with one block, as PackSizes().
  static std::map<std::string, std::uint64_t> RequiredBlocks(const CodeImage& image);
};

// The same, read off the image at the first question; the image is let go then.
//
// Threads: any, at the same time.
class RequiredBlocks {
 public:
  explicit RequiredBlocks(const CodeImage& image) : image_(image) {}

  // 0 of a kernel that takes any block, or that the image does not tell.
  std::uint64_t Of(const std::string& kernel);

 private:
  std::optional<CodeImage> Image();
  void Keep(std::map<std::string, std::uint64_t> blocks);

  std::mutex mutex_;
  std::optional<CodeImage> image_;  // until it is read
  std::map<std::string, std::uint64_t> blocks_;
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_IMAGE_ACCESS_H_
