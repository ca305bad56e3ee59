// SPDX-License-Identifier: Apache-2.0

#include "lib/module/image_access.h"

#include <utility>

CUGUEST_BEGIN_NAMESPACE
namespace internal {

std::optional<CodeImage> RequiredBlocks::Image() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return image_;
}

void RequiredBlocks::Keep(std::map<std::string, std::uint64_t> blocks) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (image_) blocks_ = std::move(blocks);
  image_.reset();
}

// The image is read where nothing is locked, and not freed before the end: `image` shares it.
std::uint64_t RequiredBlocks::Of(const std::string& kernel) {
  const std::optional<CodeImage> image = Image();
  if (image) Keep(ImageAccess::RequiredBlocks(*image));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(kernel);
  return found != blocks_.end() ? found->second : 0;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
