// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/occupancy.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/status.h"
#include "lib/objects/launch/launch_check.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::KernelCall;
using internal::KernelInContext;
using internal::KernelText;

constexpr char kAskingOccupancy[] = "ask for the occupancy of";
constexpr auto kAsTheyAre = KernelCall::Captures::kAsTheyAre;

// What the driver is asked with: it looks at 32 bits (cudasim/test/occupancy_facts_test.cc), and no
// block has as much.
std::size_t AskedWith(std::size_t shared_bytes) {
  return std::min(shared_bytes, std::size_t{std::numeric_limits<int>::max()});
}

absl::Status CheckBlock(const KernelInContext& asked, unsigned block) {
  const int most = asked.function.max_threads_per_block;
  if (block > 0 && block <= static_cast<unsigned>(most)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(KernelText(kAskingOccupancy, asked.kernel),
                                                 ": a block of ", block,
                                                 " threads; the kernel allows from 1 to ", most));
}

}  // namespace

absl::StatusOr<int> MaxActiveBlocks(const Kernel& kernel, const ContextRef& context, unsigned block,
                                    std::size_t shared_bytes) {
  const KernelCall call(kAskingOccupancy, kernel, context, kAsTheyAre);
  CUGUEST_RETURN_IF_ERROR(call.status());
  const KernelInContext asked = call.here();
  CUGUEST_RETURN_IF_ERROR(CheckBlock(asked, block));
  int blocks = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR(
      asked.driver.OccupancyMaxActiveBlocksPerMultiprocessor(
          &blocks, asked.function.function, static_cast<int>(block), AskedWith(shared_bytes)),
      KernelText(kAskingOccupancy, asked.kernel), absl::StrCat("blocks of ", block, " threads"));
  return blocks;
}

absl::StatusOr<LaunchShape> SuggestShape(const Kernel& kernel, const ContextRef& context,
                                         std::size_t shared_bytes, unsigned max_block) {
  const KernelCall call(kAskingOccupancy, kernel, context, kAsTheyAre);
  CUGUEST_RETURN_IF_ERROR(call.status());
  const KernelInContext asked = call.here();
  const auto most = static_cast<unsigned>(asked.function.max_threads_per_block);
  int grid = 0;
  int block = 0;
  const std::string object = absl::StrCat(shared_bytes, " bytes of dynamic shared memory");
  CUGUEST_RETURN_IF_CUDA_ERROR(
      asked.driver.OccupancyMaxPotentialBlockSize(&grid, &block, asked.function.function, nullptr,
                                                  AskedWith(shared_bytes),
                                                  static_cast<int>(std::min(max_block, most))),
      KernelText(kAskingOccupancy, asked.kernel), object);
  if (block <= 0 || grid <= 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat(KernelText(kAskingOccupancy, asked.kernel),
                     ": not one block fits on a multiprocessor, with ", object));
  }
  return LaunchShape(static_cast<unsigned>(grid), static_cast<unsigned>(block), shared_bytes);
}

absl::StatusOr<int> MaxActiveClusters(const Kernel& kernel, const ContextRef& context,
                                      const LaunchShape& shape) {
  const KernelCall call(kAskingOccupancy, kernel, context, kAsTheyAre);
  CUGUEST_RETURN_IF_ERROR(call.status());
  const KernelInContext asked = call.here();
  if (!shape.cluster.has_value()) {
    return absl::InvalidArgumentError(KernelText(kAskingOccupancy, asked.kernel) +
                                      ": the shape has no cluster");
  }
  CUGUEST_RETURN_IF_ERROR(internal::CheckAttributes(asked, shape));
  if (!internal::FitsLimits(shape, asked.function)) {
    CUGUEST_RETURN_IF_ERROR(internal::RefuseShape(asked, shape));
  }
  const internal::LaunchConfig config(shape, nullptr);
  return internal::CountClusters(asked, shape, *config.get());
}

absl::StatusOr<std::size_t> AvailableDynamicShared(const Kernel& kernel, const ContextRef& context,
                                                   int blocks, unsigned block) {
  const KernelCall call(kAskingOccupancy, kernel, context, kAsTheyAre);
  CUGUEST_RETURN_IF_ERROR(call.status());
  const KernelInContext asked = call.here();
  CUGUEST_ASSIGN_OR_RETURN(
      const auto ask, asked.driver.Require(&ObjectDriver::OccupancyAvailableDynamicSMemPerBlock));
  CUGUEST_RETURN_IF_ERROR(CheckBlock(asked, block));
  if (blocks < 1) {
    return absl::InvalidArgumentError(absl::StrCat(KernelText(kAskingOccupancy, asked.kernel), ": ",
                                                   blocks, " blocks of ", block,
                                                   " threads on one multiprocessor"));
  }
  std::size_t bytes = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR(
      ask(&bytes, asked.function.function, blocks, static_cast<int>(block)),
      KernelText(kAskingOccupancy, asked.kernel),
      absl::StrCat(blocks, " blocks of ", block, " threads"));
  return bytes;
}

CUGUEST_END_NAMESPACE
