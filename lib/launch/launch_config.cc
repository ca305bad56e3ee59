// SPDX-License-Identifier: Apache-2.0

#include "lib/launch/launch_config.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/error.h"
#include "lib/core/status_macros.h"
#include "lib/launch/launch_check.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

std::string ClusterText(const Dim3& cluster) {
  return absl::StrCat("a cluster of ", cluster.x, " x ", cluster.y, " x ", cluster.z, " blocks");
}

// More than every device with clusters has must be allowed for the kernel.
constexpr std::uint64_t kPortableCluster = 8;
absl::Status CheckPortable(const Driver& driver, const KernelState& kernel, const Dim3& cluster,
                           const FunctionInContext& function) {
  if (ThreadsOf(cluster) <= kPortableCluster) return absl::OkStatus();
  int allowed = 0;
  const CUresult code = driver.FuncGetAttribute(
      &allowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, function.function);
  if (code != CUDA_SUCCESS) return ToStatus(code, LaunchText(kernel), ClusterText(cluster));
  if (allowed != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      LaunchText(kernel), ": ", ClusterText(cluster), " is more than the ", kPortableCluster,
      " that every device with clusters has; allow it by cuFuncSetAttribute, "
      "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED"));
}

// A cluster that no device could have for this grid.
absl::Status CheckCluster(const KernelState& kernel, const Dim3& cluster, const Dim3& grid) {
  const unsigned counts[] = {cluster.x, cluster.y, cluster.z};
  const unsigned blocks[] = {grid.x, grid.y, grid.z};
  for (int i = 0; i < 3; ++i) {
    const std::string dimension(1, "xyz"[i]);
    if (counts[i] == 0) {
      return absl::InvalidArgumentError(absl::StrCat(LaunchText(kernel), ": cluster.", dimension,
                                                     " is 0, and must be at least 1"));
    }
    if (blocks[i] % counts[i] != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(LaunchText(kernel), ": grid.", dimension, " is ", blocks[i],
                       ", and must be a multiple of the cluster's ", counts[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCooperative(const Driver& driver, const KernelState& kernel,
                              const LaunchShape& shape, const FunctionInContext& function) {
  if (function.device->cooperative_launch == 0) {
    return absl::UnimplementedError(
        absl::StrCat(LaunchText(kernel), ": the device has no cooperative launch"));
  }
  int blocks = 0;
  const CUresult code = driver.OccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, function.function, static_cast<int>(ThreadsOf(shape.block)), shape.shared_bytes);
  if (code != CUDA_SUCCESS) {
    return ToStatus(code, LaunchText(kernel), "how many of its blocks run at once");
  }
  const std::uint64_t most = static_cast<std::uint64_t>(blocks) *
                             static_cast<std::uint64_t>(function.device->multiprocessors);
  if (ThreadsOf(shape.grid) <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(LaunchText(kernel), ": a cooperative grid of ", ThreadsOf(shape.grid),
                   " blocks is asked for, and ", most, " run at once: ", blocks, " on each of ",
                   function.device->multiprocessors, " multiprocessors"));
}

}  // namespace

LaunchConfig::LaunchConfig(const LaunchShape& shape, CUstream stream)
    : attributes_(shape.attributes.data(), shape.attributes.data() + shape.attributes.size()) {
  if (shape.cluster.has_value()) {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = shape.cluster->x;
    attribute.value.clusterDim.y = shape.cluster->y;
    attribute.value.clusterDim.z = shape.cluster->z;
    attributes_.push_back(attribute);
  }
  if (shape.cooperative) {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    attributes_.push_back(attribute);
  }
  config_.gridDimX = shape.grid.x;
  config_.gridDimY = shape.grid.y;
  config_.gridDimZ = shape.grid.z;
  config_.blockDimX = shape.block.x;
  config_.blockDimY = shape.block.y;
  config_.blockDimZ = shape.block.z;
  config_.sharedMemBytes = static_cast<unsigned>(shape.shared_bytes);
  config_.hStream = stream;
  config_.attrs = attributes_.data();
  config_.numAttrs = static_cast<unsigned>(attributes_.size());
}

absl::Status CheckAttributes(const KernelState& kernel, const LaunchShape& shape) {
  if (shape.attributes.data() != nullptr || shape.attributes.size() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(LaunchText(kernel), ": ", shape.attributes.size(), " attributes at null"));
}

absl::StatusOr<int> CountClusters(const Driver& driver, const KernelState& kernel,
                                  const LaunchShape& shape, const FunctionInContext& function,
                                  const CUlaunchConfig& config) {
  const absl::Status status = CheckCluster(kernel, *shape.cluster, shape.grid);
  if (!status.ok()) return status;
  if (function.device->cluster_launch == 0) {
    return absl::UnimplementedError(absl::StrCat(
        LaunchText(kernel), ": the device has no clusters; compute capability 9.0 has"));
  }
  CUGUEST_RETURN_IF_ERROR(CheckPortable(driver, kernel, *shape.cluster, function));
  const auto ask = driver.Require(&Driver::OccupancyMaxActiveClusters);
  if (!ask.ok()) return ask.status();
  int clusters = 0;
  const CUresult code = (*ask)(&clusters, function.function, &config);
  if (code == CUDA_SUCCESS) return clusters;
  return ToStatus(code, LaunchText(kernel), ClusterText(*shape.cluster));
}

absl::Status CheckConfig(const Driver& driver, const KernelState& kernel, const LaunchShape& shape,
                         const StreamRef& stream, const FunctionInContext& function,
                         const CUlaunchConfig& config) {
  if (!shape.cluster.has_value() && !shape.cooperative) return absl::OkStatus();
  const ContextGuard guard(stream.context());
  if (!guard.ok()) return ToStatus(guard);
  if (shape.cluster.has_value()) {
    CUGUEST_ASSIGN_OR_RETURN(const int clusters,
                             CountClusters(driver, kernel, shape, function, config));
    if (clusters == 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat(LaunchText(kernel), ": not one cluster of ", ThreadsOf(*shape.cluster),
                       " blocks of ", ThreadsOf(shape.block), " threads and ", shape.shared_bytes,
                       " bytes of dynamic shared memory fits on the device"));
    }
  }
  return shape.cooperative ? CheckCooperative(driver, kernel, shape, function) : absl::OkStatus();
}

}  // namespace internal
CUGUEST_END_NAMESPACE
