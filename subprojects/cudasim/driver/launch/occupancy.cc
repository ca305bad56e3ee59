// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By the rules of the CUDA programming guide for 9.0, which give the numbers that were
// measured on an H100, driver 580.159.04. Registers are those of FunctionTraits. Clusters
// of more than 2 blocks are near those of that card, and no two cards need agree there.

#include "driver/launch/occupancy.h"

#include <algorithm>

#include "driver/api.h"
#include "driver/code/library.h"
#include "driver/context/device.h"
#include "driver/context/stack.h"
#include "driver/launch/launch.h"
#include "driver/launch/launch_config.h"
#include "driver/panic.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

constexpr unsigned kWarps = 64;
constexpr unsigned kBlocks = 32;
constexpr size_t kShared = size_t{228} << 10;
constexpr size_t kReservedInBlock = 1024;  // per block
constexpr size_t kSharedUnit = 128;
constexpr unsigned kPartitions = 4;
constexpr unsigned kRegisters = 16384;  // of a partition
constexpr unsigned kRegisterUnit = 256;

// Blocks of a cluster are in one of these groups of multiprocessors, and one multiprocessor
// holds no more of them.
constexpr unsigned kGroups[] = {18, 18, 18, 16, 16, 16, 16, 14};
constexpr unsigned kBlocksInClusters = 8;

unsigned RoundUp(unsigned value, unsigned unit) { return (value + unit - 1) / unit * unit; }

unsigned WarpsOf(unsigned threads) { return RoundUp(threads, kWarpSize) / kWarpSize; }

// 0 for a block that no multiprocessor can hold.
unsigned BlocksByWarps(const FunctionTraits& traits, unsigned threads) {
  if (threads > kMaxThreadsPerBlock) return 0;
  const unsigned warps = std::min(kWarps, WarpsByRegisters(traits.registers));
  return std::min(kBlocks, warps / WarpsOf(threads));
}

unsigned BlocksByShared(size_t bytes) {
  const size_t taken = AlignUp(bytes + kReservedInBlock, kSharedUnit);
  return static_cast<unsigned>(kShared / taken);
}

// The lower 32 bits of a number of bytes are all that the driver looks at.
size_t Seen(size_t shared_bytes) { return static_cast<unsigned>(shared_bytes); }

struct Potential {
  unsigned blocks = 0;  // on a multiprocessor
  unsigned threads = 0;
};

// The larger block where two keep as many threads busy.
Potential FindPotential(const Function& function, CUoccupancyB2DSize shared_of, size_t shared_bytes,
                        unsigned limit) {
  Potential best;
  for (unsigned warps = WarpsOf(limit); warps > 0; --warps) {
    const unsigned threads = std::min(limit, warps * kWarpSize);
    const size_t shared =
        shared_of != nullptr ? shared_of(static_cast<int>(threads)) : shared_bytes;
    const unsigned blocks = ActiveBlocksOf(function, threads, shared);
    if (blocks * threads > best.blocks * best.threads) best = {blocks, threads};
    if (best.blocks * best.threads == kWarps * kWarpSize) break;
  }
  return best;
}

// In whatever context is current: the function may be of another.
CUresult FindAnywhere(CUfunction handle, Function* function) {
  Incarnation incarnation;
  CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle != nullptr && IsKernel(handle)) {
    code = FunctionOfKernel(reinterpret_cast<CUkernel>(handle), incarnation, &handle);
  }
  return code != CUDA_SUCCESS ? code : FindFunction(handle, function);
}

// Which function is asked about: of the config's stream.
CUresult FindOnStream(CUfunction handle, const CUlaunchConfig* from, Function* function) {
  if (handle == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(from->hStream, &stream);
  return code != CUDA_SUCCESS ? code : FindInContextOf(stream, &handle, function);
}

// That nothing fits of the block or its shared memory is an answer, and no error.
CUresult ReadForClusters(const Function& function, const CUlaunchConfig& from, LaunchConfig* config,
                         Dimensions* cluster) {
  CUresult code = ReadLaunchConfig(from, config);
  if (code != CUDA_SUCCESS) return code;
  if (config->grid.AnyZero() || config->block.AnyZero()) return CUDA_ERROR_INVALID_VALUE;
  code = CheckCluster(function, *config);
  if (code == CUDA_SUCCESS) code = FindCluster(function, *config, cluster);
  if (code != CUDA_SUCCESS) return code;
  const bool bad = LacksCluster(function, *cluster) || cluster->Count() > kLargestCluster;
  return bad ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

unsigned BlocksOf(const Function& function, const LaunchConfig& config) {
  const auto threads = config.block.Count();
  return threads > kMaxThreadsPerBlock || threads > function.entry->traits.MaxThreads()
             ? 0
             : ActiveBlocksOf(function, static_cast<unsigned>(threads), config.shared_bytes);
}

unsigned Clusters(unsigned blocks, unsigned size) {
  unsigned clusters = 0;
  for (const unsigned group : kGroups) {
    clusters += group / size * std::min(blocks, kBlocksInClusters);
  }
  return clusters;
}

}  // namespace

unsigned WarpsByRegisters(unsigned registers) {
  const unsigned of_warp = RoundUp(std::max(1u, registers) * kWarpSize, kRegisterUnit);
  return kRegisters / of_warp * kPartitions;
}

size_t MaxDynamicSharedOf(const Function& function) {
  return static_cast<size_t>(function.settings->Of(
      function.entry->traits, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
}

bool AllowsAnyCluster(const Function& function) {
  return function.settings->Of(function.entry->traits,
                               CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) != 0;
}

unsigned ActiveBlocksOf(const Function& function, unsigned threads, size_t dynamic_shared) {
  if (dynamic_shared > MaxDynamicSharedOf(function)) return 0;
  const FunctionTraits& traits = function.entry->traits;
  return std::min(BlocksByWarps(traits, threads),
                  BlocksByShared(traits.static_shared + dynamic_shared));
}

CUresult OccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int threads,
                                                   size_t shared_bytes) {
  if (blocks == nullptr || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  Function function;
  const CUresult code = FindAnywhere(handle, &function);
  if (code != CUDA_SUCCESS) return code;
  *blocks = static_cast<int>(
      ActiveBlocksOf(function, static_cast<unsigned>(threads), Seen(shared_bytes)));
  return CUDA_SUCCESS;
}

CUresult OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                            int threads, size_t shared_bytes,
                                                            unsigned flags) {
  if ((flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return OccupancyMaxActiveBlocksPerMultiprocessor(blocks, handle, threads, shared_bytes);
}

// What cannot run at all has 0 blocks of 0 threads.
CUresult OccupancyMaxPotentialBlockSize(int* blocks, int* threads, CUfunction handle,
                                        CUoccupancyB2DSize shared_of, size_t shared_bytes,
                                        int limit) {
  if (blocks == nullptr || threads == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  Function function;
  const CUresult code = FindAnywhere(handle, &function);
  if (code != CUDA_SUCCESS) return code;
  const unsigned most = function.entry->traits.MaxThreads();
  const unsigned bound = limit == 0 ? most : std::min(most, static_cast<unsigned>(limit));
  const Potential best = FindPotential(function, shared_of, Seen(shared_bytes), bound);
  *blocks = static_cast<int>(best.blocks * kMultiprocessors);
  *threads = static_cast<int>(best.threads);
  return CUDA_SUCCESS;
}

CUresult OccupancyMaxPotentialBlockSizeWithFlags(int* blocks, int* threads, CUfunction handle,
                                                 CUoccupancyB2DSize shared_of, size_t shared_bytes,
                                                 int limit, unsigned flags) {
  if ((flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return OccupancyMaxPotentialBlockSize(blocks, threads, handle, shared_of, shared_bytes, limit);
}

// It forgets what is reserved for each block, so that fewer may fit than were asked for.
CUresult OccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks,
                                               int threads) {
  if (bytes == nullptr) PanicNull();
  Function function;
  const CUresult code = FindAnywhere(handle, &function);
  if (code != CUDA_SUCCESS) return code;
  if (blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  const FunctionTraits& traits = function.entry->traits;
  const auto count = static_cast<unsigned>(blocks);
  const size_t each = kShared / count / kSharedUnit * kSharedUnit;
  if (count > BlocksByWarps(traits, static_cast<unsigned>(threads)) ||
      each < traits.static_shared) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *bytes = std::min(each - traits.static_shared, MaxDynamicSharedOf(function));
  return CUDA_SUCCESS;
}

// No clusters of what has none.
CUresult OccupancyMaxActiveClusters(int* clusters, CUfunction handle, const CUlaunchConfig* from) {
  if (clusters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function function;
  LaunchConfig config;
  Dimensions cluster;
  CUresult code = FindOnStream(handle, from, &function);
  if (code == CUDA_SUCCESS) code = ReadForClusters(function, *from, &config, &cluster);
  if (code != CUDA_SUCCESS) return code;
  const auto size = static_cast<unsigned>(cluster.Count());
  *clusters = size != 0 ? static_cast<int>(Clusters(BlocksOf(function, config), size)) : 0;
  return CUDA_SUCCESS;
}

CUresult OccupancyMaxPotentialClusterSize(int* size, CUfunction handle,
                                          const CUlaunchConfig* from) {
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function function;
  LaunchConfig config;
  Dimensions cluster;
  CUresult code = FindOnStream(handle, from, &function);
  if (code == CUDA_SUCCESS) code = ReadForClusters(function, *from, &config, &cluster);
  if (code != CUDA_SUCCESS) return code;
  const unsigned largest = AllowsAnyCluster(function) ? kLargestCluster : kPortableCluster;
  *size = BlocksOf(function, config) != 0 ? static_cast<int>(largest) : 0;
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
