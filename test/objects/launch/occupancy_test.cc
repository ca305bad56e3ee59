// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/occupancy.h"

#include "test/objects/launch/launches.h"

BOOST_AUTO_TEST_SUITE(occupancy)

namespace {

using namespace cuguest_launches;
using cuguest::AvailableDynamicShared;
using cuguest::MaxActiveBlocks;
using cuguest::MaxActiveClusters;
using cuguest::SuggestShape;

struct Loaded {
  Kernel Get(const char* name) const { return module.GetKernel(name).value(); }

  Owner owner;
  ContextRef ref = owner.ref();
  Module module = LoadLaunchKernels(ref);
  Kernel count_up = Get("count_up");
  Kernel small_blocks = Get("small_blocks");
};

}  // namespace

BOOST_AUTO_TEST_CASE(blocks_on_a_multiprocessor) {
  const Loaded loaded;
  const Undisturbed undisturbed;
  const int small = MaxActiveBlocks(loaded.count_up, loaded.ref, 32).value();
  const int large = MaxActiveBlocks(loaded.count_up, loaded.ref, 1024).value();
  BOOST_TEST(large >= 1);
  BOOST_TEST(small > large);
  const int with_shared = MaxActiveBlocks(loaded.count_up, loaded.ref, 32, 40 << 10).value();
  BOOST_TEST(with_shared >= 1);
  BOOST_TEST(with_shared < small);
  BOOST_TEST(MaxActiveBlocks(loaded.count_up, loaded.ref, 32, 1 << 30).value() == 0);
}

BOOST_AUTO_TEST_CASE(bad_blocks) {
  const Loaded loaded;
  REFUSES(MaxActiveBlocks(loaded.count_up, loaded.ref, 0).status(), kInvalidArgument,
          "\"count_up\"", "a block of 0 threads", "from 1 to 1024");
  REFUSES(MaxActiveBlocks(loaded.count_up, loaded.ref, 1025).status(), kInvalidArgument,
          "a block of 1025 threads");
  REFUSES(MaxActiveBlocks(loaded.small_blocks, loaded.ref, 129).status(), kInvalidArgument,
          "from 1 to 128");
  REFUSES(AvailableDynamicShared(loaded.count_up, loaded.ref, 1, 0).status(), kInvalidArgument,
          "a block of 0 threads");
}

BOOST_AUTO_TEST_CASE(a_shape_that_fills_the_device) {
  const Loaded loaded;
  const Undisturbed undisturbed;
  const LaunchShape best = SuggestShape(loaded.count_up, loaded.ref).value();
  BOOST_TEST(best.block.x >= 32u);
  BOOST_TEST(best.block.x <= 1024u);
  BOOST_TEST(best.grid.x >= 1u);
  BOOST_TEST(MaxActiveBlocks(loaded.count_up, loaded.ref, best.block.x).value() >= 1);
  BOOST_TEST(SuggestShape(loaded.count_up, loaded.ref, 0, 64).value().block.x == 64u);
  BOOST_TEST(SuggestShape(loaded.small_blocks, loaded.ref).value().block.x <= 128u);
  BOOST_TEST(SuggestShape(loaded.small_blocks, loaded.ref, 0, 4096).value().block.x <= 128u);
  REFUSES(SuggestShape(loaded.count_up, loaded.ref, 1 << 30).status(), kResourceExhausted,
          "not one block", "1073741824 bytes");
}

// The driver looks at 32 bits.
BOOST_AUTO_TEST_CASE(shared_memory_beyond_32_bits) {
  const Loaded loaded;
  constexpr std::size_t kUnseen = std::size_t{1} << 32;
  for (const std::size_t bytes :
       {kUnseen, kUnseen + 16, kUnseen << 8, kUnseen - 1, ~std::size_t{0}}) {
    BOOST_TEST(MaxActiveBlocks(loaded.count_up, loaded.ref, 32, bytes).value() == 0);
    REFUSES(SuggestShape(loaded.count_up, loaded.ref, bytes).status(), kResourceExhausted,
            "not one block", std::to_string(bytes) + " bytes");
  }
}

BOOST_AUTO_TEST_CASE(shared_memory_that_is_left) {
  const Loaded loaded;
  const Undisturbed undisturbed;
  const std::size_t alone = AvailableDynamicShared(loaded.count_up, loaded.ref, 1, 32).value();
  const std::size_t shared = AvailableDynamicShared(loaded.count_up, loaded.ref, 16, 32).value();
  BOOST_TEST(alone == 48u << 10, "what the kernel may have");
  BOOST_TEST(shared < alone);
  for (const int blocks : {0, -1, 1 << 20}) {
    REFUSES(AvailableDynamicShared(loaded.count_up, loaded.ref, blocks, 32).status(),
            kInvalidArgument, std::to_string(blocks) + " blocks of 32 threads");
  }
}

BOOST_AUTO_TEST_CASE(
    clusters,
    *NeedsDriver(11080, "clusters (cuLaunchKernelEx, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)")) {
  const Loaded loaded;
  const Undisturbed undisturbed;
  LaunchShape shape{4, 32};
  REFUSES(MaxActiveClusters(loaded.count_up, loaded.ref, shape).status(), kInvalidArgument,
          "no cluster");
  shape.cluster = LaunchShape::Dim3{2};
  const int most = MaxActiveClusters(loaded.count_up, loaded.ref, shape).value();
  BOOST_TEST(most >= 1);
  shape.cluster = LaunchShape::Dim3{0};
  REFUSES(MaxActiveClusters(loaded.count_up, loaded.ref, shape).status(), kInvalidArgument,
          "cluster.x is 0");
  shape.cluster = LaunchShape::Dim3{3};
  REFUSES(MaxActiveClusters(loaded.count_up, loaded.ref, shape).status(), kInvalidArgument,
          "grid.x is 4", "multiple");
  shape.cluster = LaunchShape::Dim3{2};
  shape.block = 1025;
  REFUSES(MaxActiveClusters(loaded.count_up, loaded.ref, shape).status(), kInvalidArgument,
          "block.x is 1025");
  shape.block = 32;
  shape.shared_bytes = (std::size_t{1} << 32) + 1;
  REFUSES(MaxActiveClusters(loaded.count_up, loaded.ref, shape).status(), kInvalidArgument,
          "4294967297 bytes");
  shape.shared_bytes = 0;
  shape.attributes = cuguest::HostSpan<const CUlaunchAttribute>(nullptr, 1);
  REFUSES(MaxActiveClusters(loaded.count_up, loaded.ref, shape).status(), kInvalidArgument,
          "1 attributes at null");
}

BOOST_AUTO_TEST_CASE(nowhere_and_of_nothing) {
  const Loaded loaded;
  const Undisturbed undisturbed;
  REFUSES(MaxActiveBlocks(Kernel(), loaded.ref, 32).status(), kFailedPrecondition, "empty kernel");
  REFUSES(MaxActiveBlocks(loaded.count_up, ContextRef(), 32).status(), kFailedPrecondition,
          "context");
  REFUSES(SuggestShape(Kernel(), loaded.ref).status(), kFailedPrecondition, "empty kernel");
  REFUSES(AvailableDynamicShared(Kernel(), loaded.ref, 1, 32).status(), kFailedPrecondition,
          "empty kernel");
}

BOOST_AUTO_TEST_CASE(no_capture_is_invalidated) {
  const Loaded loaded;
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(loaded.owner.stream(), mode);
    SUCCEEDS(MaxActiveBlocks(loaded.count_up, loaded.ref, 32).status());
    SUCCEEDS(SuggestShape(loaded.count_up, loaded.ref).status());
    SUCCEEDS(AvailableDynamicShared(loaded.count_up, loaded.ref, 1, 32).status());
  }
}

BOOST_AUTO_TEST_CASE(any_call_may_fail, *OnlySim()) {
  const Loaded loaded;
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuOccupancyMaxActiveBlocksPerMultiprocessor"},
               [&] { return MaxActiveBlocks(loaded.count_up, loaded.ref, 32); });
  FailEachCall({"cuOccupancyMaxPotentialBlockSize"},
               [&] { return SuggestShape(loaded.count_up, loaded.ref); });
  FailEachCall({"cuOccupancyAvailableDynamicSMemPerBlock"},
               [&] { return AvailableDynamicShared(loaded.count_up, loaded.ref, 1, 32); });
  if (!HasDriver(11080)) return;  // no clusters
  LaunchShape shape{4, 32};
  shape.cluster = LaunchShape::Dim3{2};
  FailEachCall({"cuOccupancyMaxActiveClusters"},
               [&] { return MaxActiveClusters(loaded.count_up, loaded.ref, shape); });
}

BOOST_AUTO_TEST_SUITE_END()
