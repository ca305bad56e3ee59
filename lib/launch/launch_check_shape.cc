// SPDX-License-Identifier: Apache-2.0

#include "lib/launch/launch_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/error.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

std::string SizesText(const Dim3& sizes) {
  return absl::StrCat(sizes.x, " x ", sizes.y, " x ", sizes.z);
}

// Empty if each dimension is within.
std::string Complaint(const char* what, const Dim3& size, const int (&most)[3]) {
  const unsigned counts[] = {size.x, size.y, size.z};
  for (int i = 0; i < 3; ++i) {
    const std::string given = absl::StrCat(what, ".", std::string(1, "xyz"[i]), " is ", counts[i]);
    if (counts[i] == 0) return absl::StrCat(given, ", and must be at least 1");
    if (counts[i] > static_cast<unsigned>(most[i])) {
      return absl::StrCat(given, ", and the device allows ", most[i]);
    }
  }
  return "";
}

std::string ThreadsComplaint(const Dim3& block, const FunctionInContext& function) {
  const int most = function.max_threads_per_block;
  if (ThreadsOf(block) <= static_cast<std::uint64_t>(most)) return "";
  const bool is_device = most >= function.device->max_threads_per_block;
  return absl::StrCat("a block of ", SizesText(block), " is ", ThreadsOf(block), " threads, and ",
                      is_device ? "the device allows " : "the kernel allows ", most,
                      is_device ? "" : ", by its launch bounds or for its registers");
}

std::string BlockComplaint(const Dim3& block, std::uint64_t required) {
  if (required == 0 || FitsBlock(block, required)) return "";
  const Dim3 fixed(SizeOf(required, 0), SizeOf(required, 1), SizeOf(required, 2));
  return absl::StrCat("a block of ", SizesText(block),
                      " threads is asked for, and the kernel is compiled for one of ",
                      SizesText(fixed), " (.reqntid)");
}

std::string SharedComplaint(std::size_t bytes, const FunctionInContext& function) {
  const std::size_t most =
      static_cast<std::size_t>(function.device->opt_in_shared_bytes - function.static_shared_bytes);
  const std::string given = absl::StrCat(
      bytes, " bytes of dynamic shared memory are asked for, and ",
      function.max_dynamic_shared_bytes.load(std::memory_order_relaxed), " are allowed");
  if (bytes <= most) return absl::StrCat(given, ": allow it by Kernel::SetMaxDynamicSharedBytes");
  return absl::StrCat(given, "; the device has ", function.device->opt_in_shared_bytes,
                      " for a block, of which the kernel's static memory takes ",
                      function.static_shared_bytes);
}

std::string ClusterComplaint(const LaunchShape& shape, std::uint64_t required) {
  if (required == 0 || FitsCluster(shape, required)) return "";
  const Dim3 fixed(SizeOf(required, 0), SizeOf(required, 1), SizeOf(required, 2));
  const Dim3 given = shape.cluster.value_or(fixed);
  const std::string wanted =
      absl::StrCat("the cluster of ", SizesText(fixed), " blocks that the kernel requires");
  if (given.x != fixed.x || given.y != fixed.y || given.z != fixed.z) {
    return absl::StrCat("a cluster of ", SizesText(given), " blocks is asked for, and not ",
                        wanted);
  }
  return absl::StrCat("a grid of ", SizesText(shape.grid), " blocks is no multiple of ", wanted);
}

std::string ShapeComplaint(const LaunchShape& shape, const FunctionInContext& function) {
  std::string complaint = Complaint("grid", shape.grid, function.device->max_grid);
  if (complaint.empty()) complaint = Complaint("block", shape.block, function.device->max_block);
  if (complaint.empty()) complaint = ThreadsComplaint(shape.block, function);
  if (complaint.empty()) complaint = BlockComplaint(shape.block, function.required_block);
  if (complaint.empty()) {
    complaint = ClusterComplaint(shape, function.required_cluster.load(std::memory_order_relaxed));
  }
  if (complaint.empty()) complaint = SharedComplaint(shape.shared_bytes, function);
  return complaint;
}

}  // namespace

absl::Status RefuseShape(const Driver& driver, const KernelState& kernel, const LaunchShape& shape,
                         FunctionInContext* function) {
  const CUresult code = AskChangingLimits(driver, function);
  if (code != CUDA_SUCCESS) {
    return ToStatus(code, LaunchText(kernel), "which shapes it allows");
  }
  if (FitsLimits(shape, *function)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(LaunchText(kernel), ": ", ShapeComplaint(shape, *function)));
}

}  // namespace internal

absl::StatusOr<LaunchShape> LaunchShape::ForElements(std::size_t count, unsigned block) {
  if (count == 0 || block == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape a launch for ", count, " elements in blocks of ", block,
        " threads: ", count == 0 ? "there is nothing to launch" : "a block has at least one"));
  }
  constexpr std::size_t kMost = 0x7fffffff;  // of every device since compute capability 3.0
  const std::size_t blocks = (count - 1) / block + 1;
  if (blocks > kMost) {
    return absl::OutOfRangeError(absl::StrCat(
        "shape a launch for ", count, " elements in blocks of ", block, " threads: that is ",
        blocks, " blocks, and a grid has at most ", kMost, "; let each thread do more than one"));
  }
  LaunchShape shape;
  shape.grid = static_cast<unsigned>(blocks);
  shape.block = block;
  return shape;
}

CUGUEST_END_NAMESPACE
