// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/objects/launch/launch_check.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/memory.h"
#include "cuguest/status.h"
#include "lib/objects/memory/how_to_reach.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

template <typename... Parts>
absl::Status Refused(const KernelInContext& launched, const Parts&... why) {
  return absl::InvalidArgumentError(
      absl::StrCat(KernelText("launch", launched.kernel), ": ", why...));
}

// "1 byte", "4 bytes".
std::string Counted(std::size_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// As a reader counts, from 1.
std::string ParameterText(std::size_t index, std::size_t count) {
  return absl::StrCat("parameter ", index + 1, " of ", count);
}

// Why a value may be of another size than the kernel's parameter.
const char* WhySize(const Kernel::Parameter& takes, const Kernel::Parameter& given) {
  constexpr std::size_t kLargestScalar = 8;
  if (takes.size != given.size && takes.size <= kLargestScalar && given.size <= kLargestScalar) {
    return "pass a value of the type that it has there (an int or a float, as 1.0F, has 4 bytes; a "
           "size_t, a double or a pointer has 8)";
  }
  return "it is of another type there, or a struct that is laid out differently on the device; "
         "declare its members as there (a float4 with alignas(16)), or say its alignment by "
         "ParamTraits";
}

std::string PlaceText(const Kernel::Parameter& place) {
  return absl::StrCat(Counted(place.size, "byte"), " at offset ", place.offset);
}

std::string SizesText(const LaunchShape::Dim3& sizes) {
  return absl::StrCat(sizes.x, " x ", sizes.y, " x ", sizes.z);
}

LaunchShape::Dim3 Unpacked(std::uint64_t packed) {
  return LaunchShape::Dim3(SizeOf(packed, 0), SizeOf(packed, 1), SizeOf(packed, 2));
}

// "grid.x is 7", and the number.
struct Dimension {
  Dimension(const char* what, const LaunchShape::Dim3& sizes, int index)
      : size(index == 0   ? sizes.x
             : index == 1 ? sizes.y
                          : sizes.z),
        text(absl::StrCat(what, ".", std::string(1, "xyz"[index]), " is ", size)) {}
  unsigned size;
  std::string text;
};

constexpr char kIsZero[] = ", and must be at least 1";

absl::Status CheckDimensions(const KernelInContext& launched, const char* what,
                             const LaunchShape::Dim3& sizes, const int (&most)[3]) {
  for (int i = 0; i < 3; ++i) {
    const Dimension given(what, sizes, i);
    if (given.size == 0) return Refused(launched, given.text, kIsZero);
    if (given.size > static_cast<unsigned>(most[i])) {
      return Refused(launched, given.text, ", and the device allows ", most[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBlock(const KernelInContext& launched, const LaunchShape::Dim3& block) {
  const FunctionInContext& function = launched.function;
  const int most = function.max_threads_per_block;
  if (ThreadsOf(block) > static_cast<std::uint64_t>(most)) {
    const bool is_device = most >= function.device.max_threads_per_block;
    return Refused(launched, "a block of ", SizesText(block), " is ", ThreadsOf(block),
                   " threads, and the ", is_device ? "device" : "kernel", " allows ", most,
                   is_device ? "" : ", by its launch bounds or for its registers");
  }
  if (function.required_block == 0 || FitsBlock(block, function.required_block)) {
    return absl::OkStatus();
  }
  return Refused(launched, "a block of ", SizesText(block),
                 " threads is asked for, and the kernel is compiled for one of ",
                 SizesText(Unpacked(function.required_block)), " (.reqntid)");
}

absl::Status CheckRequiredCluster(const KernelInContext& launched, const LaunchShape& shape) {
  const std::uint64_t required = launched.function.required_cluster.load(std::memory_order_relaxed);
  if (required == 0 || FitsCluster(shape, required)) return absl::OkStatus();
  const std::string fixed = SizesText(Unpacked(required));
  const std::string given = SizesText(shape.cluster.value_or(Unpacked(required)));
  const std::string wanted =
      absl::StrCat("the cluster of ", fixed, " blocks that the kernel requires");
  if (given == fixed) {
    return Refused(launched, "a grid of ", SizesText(shape.grid), " blocks is no multiple of ",
                   wanted);
  }
  return Refused(launched, "a cluster of ", given, " blocks is asked for, and not ", wanted);
}

absl::Status RefuseSharedBytes(const KernelInContext& launched, std::size_t bytes) {
  const FunctionInContext& function = launched.function;
  const int opt_in = function.device.opt_in_shared_bytes;
  const std::string given = absl::StrCat(
      bytes, " bytes of dynamic shared memory are asked for, and ",
      function.max_dynamic_shared_bytes.load(std::memory_order_relaxed), " are allowed");
  if (bytes <= static_cast<std::size_t>(opt_in - function.static_shared_bytes)) {
    return Refused(launched, given,
                   " in this context: allow it by Kernel::SetMaxDynamicSharedBytes in each context "
                   "that launches it, and again after a reset");
  }
  return Refused(launched, given, "; the device has ", opt_in,
                 " for a block, of which the kernel's static memory takes ",
                 function.static_shared_bytes);
}

std::string ClusterText(const LaunchShape::Dim3& cluster) {
  return absl::StrCat("a cluster of ", SizesText(cluster), " blocks");
}

// A cluster that no device could have for this grid.
absl::Status CheckCluster(const KernelInContext& launched, const LaunchShape::Dim3& cluster,
                          const LaunchShape::Dim3& grid) {
  for (int i = 0; i < 3; ++i) {
    const Dimension count("cluster", cluster, i);
    const Dimension blocks("grid", grid, i);
    if (count.size == 0) return Refused(launched, count.text, kIsZero);
    if (blocks.size % count.size != 0) {
      return Refused(launched, blocks.text, ", and must be a multiple of the cluster's ",
                     count.size);
    }
  }
  return absl::OkStatus();
}

// More than every device with clusters has must be allowed for the kernel.
absl::Status CheckPortable(const KernelInContext& launched, const LaunchShape::Dim3& cluster) {
  constexpr std::uint64_t kPortableCluster = 8;
  if (ThreadsOf(cluster) <= kPortableCluster) return absl::OkStatus();
  int allowed = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR(launched.driver.FuncGetAttribute(
                                   &allowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                   launched.function.function),
                               KernelText("launch", launched.kernel), ClusterText(cluster));
  if (allowed != 0) return absl::OkStatus();
  return Refused(launched, ClusterText(cluster), " is more than the ", kPortableCluster,
                 " that every device with clusters has; allow it by cuFuncSetAttribute, "
                 "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED");
}

absl::Status CheckCooperative(const KernelInContext& launched, const LaunchShape& shape) {
  const DeviceLimits& device = launched.function.device;
  const std::string doing = KernelText("launch", launched.kernel);
  if (device.cooperative_launch == 0) {
    return absl::UnimplementedError(doing + ": the device has no cooperative launch");
  }
  int blocks = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR(launched.driver.OccupancyMaxActiveBlocksPerMultiprocessor(
                                   &blocks, launched.function.function,
                                   static_cast<int>(ThreadsOf(shape.block)), shape.shared_bytes),
                               doing, "how many of its blocks run at once");
  const std::uint64_t most =
      static_cast<std::uint64_t>(blocks) * static_cast<std::uint64_t>(device.multiprocessors);
  if (ThreadsOf(shape.grid) <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      doing, ": a cooperative grid of ", ThreadsOf(shape.grid), " blocks is asked for, and ", most,
      " run at once: ", blocks, " on each of ", device.multiprocessors, " multiprocessors"));
}

}  // namespace

absl::Status RefuseShape(const KernelInContext& launched, const LaunchShape& shape) {
  CUGUEST_RETURN_IF_CUDA_ERROR(AskChangingLimits(launched.driver, &launched.function),
                               KernelText("launch", launched.kernel), "which shapes it allows");
  const DeviceLimits& device = launched.function.device;
  if (FitsLimits(shape, launched.function)) return absl::OkStatus();
  CUGUEST_RETURN_IF_ERROR(CheckDimensions(launched, "grid", shape.grid, device.max_grid));
  CUGUEST_RETURN_IF_ERROR(CheckDimensions(launched, "block", shape.block, device.max_block));
  CUGUEST_RETURN_IF_ERROR(CheckBlock(launched, shape.block));
  CUGUEST_RETURN_IF_ERROR(CheckRequiredCluster(launched, shape));
  return RefuseSharedBytes(launched, shape.shared_bytes);
}

absl::Status CheckParams(const KernelInContext& launched, const LaunchParams& params) {
  const auto& [driver, kernel, function] = launched;
  if (driver.FuncGetParamInfo == nullptr) return absl::OkStatus();
  KernelParams::Places takes;
  // Before a launch is refused the driver is asked, not the image.
  const std::size_t count =
      function.parameters == params.count ? params.count : KernelInImage::kUnknown;
  CUGUEST_RETURN_IF_CUDA_ERROR(AskParams(driver, function.function, count, &takes),
                               KernelText("launch", kernel),
                               absl::StrCat("what its parameter ", takes.size() + 1, " is"));
  kernel.params.Keep(takes);
  if (takes.size() != params.count) {
    return Refused(launched, "the kernel takes ", Counted(takes.size(), "parameter"), ", and ",
                   params.count, params.count == 1 ? " is" : " are", " given");
  }
  const std::size_t wrong = FirstWrong(params, takes);
  if (wrong == params.count) return absl::OkStatus();
  return Refused(launched, ParameterText(wrong, params.count), " is ", PlaceText(takes[wrong]),
                 " in the kernel, and ", PlaceText(params.places[wrong]),
                 " is given: ", WhySize(takes[wrong], params.places[wrong]));
}

absl::Status CheckDevices(const KernelInContext& launched, const LaunchParams& params) {
  const CUdevice here = launched.function.device.device;
  for (std::size_t i = 0; i < params.count; ++i) {
    const CUdevice device = params.devices[i];
    if (device == kNoDeviceMemory || device == here) continue;
    // Round trip: LaunchParams has a device only for a parameter that holds an address.
    const CUdeviceptr pointer = *static_cast<const CUdeviceptr*>(params.each[i]);
    CUGUEST_ASSIGN_OR_RETURN(const MemoryDescription memory, Describe(pointer));
    if (memory.is_for_all_devices()) continue;
    return Refused(launched, ParameterText(i, params.count), " is ", Name(memory.kind),
                   " of device ", device, ", and the stream is of device ", here,
                   ": copy it there first; or pass a DevicePtr of it, if the stream's context was "
                   "given access with ",
                   HowToReach(memory.kind));
  }
  return absl::OkStatus();
}

LaunchParams ParamsOneByOne(const ParamBuffer& params, std::vector<void*>* each) {
  const HostSpan<const Kernel::Parameter> places = params.parameters();
  for (const Kernel::Parameter& place : places) {
    each->push_back(const_cast<unsigned char*>(params.data()) + place.offset);
  }
  each->push_back(nullptr);  // of none, too, it is an array
  return {each->data(), nullptr, places.data(), places.size(), nullptr};
}

LaunchConfig::LaunchConfig(const LaunchShape& shape, CUstream stream)
    : attributes_(shape.attributes.data(), shape.attributes.data() + shape.attributes.size()) {
  if (shape.cluster.has_value()) {
    CUlaunchAttribute& attribute = attributes_.emplace_back();
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = shape.cluster->x;
    attribute.value.clusterDim.y = shape.cluster->y;
    attribute.value.clusterDim.z = shape.cluster->z;
  }
  if (shape.cooperative) {
    CUlaunchAttribute& attribute = attributes_.emplace_back();
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
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

absl::Status CheckAttributes(const KernelInContext& launched, const LaunchShape& shape) {
  if (shape.attributes.data() != nullptr || shape.attributes.size() == 0) return absl::OkStatus();
  return Refused(launched, shape.attributes.size(), " attributes at null");
}

absl::StatusOr<int> CountClusters(const KernelInContext& launched, const LaunchShape& shape,
                                  const CUlaunchConfig& config) {
  const std::string doing = KernelText("launch", launched.kernel);
  CUGUEST_RETURN_IF_ERROR(CheckCluster(launched, *shape.cluster, shape.grid));
  if (launched.function.device.cluster_launch == 0) {
    return absl::UnimplementedError(doing +
                                    ": the device has no clusters; compute capability 9.0 has");
  }
  CUGUEST_RETURN_IF_ERROR(CheckPortable(launched, *shape.cluster));
  CUGUEST_ASSIGN_OR_RETURN(const auto ask,
                           launched.driver.Require(&ObjectDriver::OccupancyMaxActiveClusters));
  int clusters = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR(ask(&clusters, launched.function.function, &config), doing,
                               ClusterText(*shape.cluster));
  return clusters;
}

absl::Status CheckConfig(const KernelInContext& launched, const LaunchShape& shape,
                         const StreamRef& stream, const CUlaunchConfig& config) {
  if (!shape.cluster.has_value() && !shape.cooperative) return absl::OkStatus();
  const ContextGuard guard(stream.context());
  if (!guard.ok()) return ToStatus(guard);
  if (shape.cluster.has_value()) {
    CUGUEST_ASSIGN_OR_RETURN(const int clusters, CountClusters(launched, shape, config));
    if (clusters == 0) {
      return absl::ResourceExhaustedError(absl::StrCat(
          KernelText("launch", launched.kernel), ": not one cluster of ", ThreadsOf(*shape.cluster),
          " blocks of ", ThreadsOf(shape.block), " threads and ", shape.shared_bytes,
          " bytes of dynamic shared memory fits on the device"));
    }
  }
  return shape.cooperative ? CheckCooperative(launched, shape) : absl::OkStatus();
}

CUGUEST_END_INTERNAL_NAMESPACE
