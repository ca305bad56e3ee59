// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clusters, cooperative grids, and attributes.

#include "cuguest/objects/occupancy.h"
#include "test/objects/launch/launches.h"

BOOST_AUTO_TEST_SUITE(launch_extended)

namespace {

using namespace cuguest_launches;
using cuguest::MaxActiveBlocks;

LaunchShape WithCluster(unsigned grid, const LaunchShape::Dim3& cluster, unsigned block = 32) {
  LaunchShape shape{grid, block};
  shape.cluster = cluster;
  return shape;
}

LaunchShape Cooperative(unsigned grid, unsigned block) {
  LaunchShape shape{grid, block};
  shape.cooperative = true;
  return shape;
}

unsigned Multiprocessors() {
  int count = 0;
  OK(RAW(cuDeviceGetAttribute)(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  return static_cast<unsigned>(count);
}

}  // namespace

BOOST_AUTO_TEST_CASE(
    a_cluster,
    *NeedsDriver(11080, "clusters (cuLaunchKernelEx, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)")) {
  Counter counter;
  const Undisturbed undisturbed;
  SUCCEEDS(counter.CountUp(WithCluster(4, 2), counter.stream()));
  BOOST_TEST(counter.Took());
  LaunchShape all = WithCluster(4, {4, 1, 1});
  all.cooperative = true;
  SUCCEEDS(
      Launch(counter.kernel(), all, counter.stream(), Packed(kCount, kValue, counter.memory())));
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(
    a_cluster_arrives,
    *NeedsDriver(11080, "clusters (cuLaunchKernelEx, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)")) {
  Counter counter;
  LaunchShape shape{{4, 6, 2}, 32};
  shape.cluster = LaunchShape::Dim3{2, 3, 1};
  SUCCEEDS(Launch(counter.Get("get_shape"), shape, counter.stream(), counter.memory()));
  Counts seen = counter.Take();
  seen.resize(10);
  BOOST_TEST(seen == (Counts{4, 6, 2, 32, 1, 1, 2, 3, 1, 0}));
}

BOOST_AUTO_TEST_CASE(
    bad_clusters_invalidate_no_capture,
    *NeedsDriver(11080, "clusters (cuLaunchKernelEx, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)")) {
  Counter counter;
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(counter.stream().get(), mode);
    REFUSES(counter.CountUp(WithCluster(4, 0), counter.stream()), kInvalidArgument,
            "cluster.x is 0");
    REFUSES(counter.CountUp(WithCluster(4, {1, 0}), counter.stream()), kInvalidArgument,
            "cluster.y is 0");
    REFUSES(counter.CountUp(WithCluster(4, 3), counter.stream()), kInvalidArgument, "grid.x is 4",
            "a multiple of the cluster's 3");
    REFUSES(counter.CountUp(WithCluster(4, {1, 2}), counter.stream()), kInvalidArgument,
            "grid.y is 1");
    REFUSES(counter.CountUp(WithCluster(16, 16), counter.stream()), kInvalidArgument,
            "16 x 1 x 1 blocks", "more than the 8", "NON_PORTABLE");
    REFUSES(counter.CountUp(WithCluster(0, 2), counter.stream()), kInvalidArgument, "grid.x is 0");
  }
}

BOOST_AUTO_TEST_CASE(
    a_larger_cluster_that_was_allowed,
    *NeedsDriver(11080, "clusters (cuLaunchKernelEx, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)")) {
  Counter counter;
  const CUfunction function = counter.kernel().FunctionIn(counter.ref()).value();
  OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  SUCCEEDS(counter.CountUp(WithCluster(16, 16), counter.stream()));
  BOOST_TEST(counter.Took());
  const Capture capture(counter.stream().get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  BOOST_TEST(!counter.CountUp(WithCluster(32, 32), counter.stream()).ok());
}

BOOST_AUTO_TEST_CASE(
    clusters_required_by_others_invalidate_no_capture,
    *NeedsDriver(11080, "clusters (cuLaunchKernelEx, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)")) {
  Counter counter;
  SUCCEEDS(counter.CountUp({3, 32}, counter.stream()));
  const CUfunction function = counter.kernel().FunctionIn(counter.ref()).value();
  OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
  OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
  OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(counter.stream().get(), mode);
    REFUSES(counter.CountUp({3, 32}, counter.stream()), kInvalidArgument, "3 x 1 x 1",
            "2 x 1 x 1 blocks that the kernel requires");
  }
}

BOOST_AUTO_TEST_CASE(a_cooperative_grid, *NeedsDriver(11060, "cuLaunchKernelEx")) {
  Counter counter;
  const auto most =
      static_cast<unsigned>(MaxActiveBlocks(counter.kernel(), counter.ref(), 1024).value());
  const unsigned grid = most * Multiprocessors();
  const Undisturbed undisturbed;
  SUCCEEDS(counter.CountUp(Cooperative(grid, 1024), counter.stream()));
  BOOST_TEST(counter.Took());
  const std::string blocks = std::to_string(grid + 1) + " blocks is asked for";
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(counter.stream().get(), mode);
    REFUSES(counter.CountUp(Cooperative(grid + 1, 1024), counter.stream()), kResourceExhausted,
            "cooperative", blocks, std::to_string(grid) + " run at once");
    SUCCEEDS(counter.CountUp(Cooperative(grid, 1024), counter.stream()));
  }
}

BOOST_AUTO_TEST_CASE(on_streams_that_mean_the_current_context,
                     *NeedsDriver(11060, "cuLaunchKernelEx")) {
  Counter counter;
  const Undisturbed undisturbed;
  for (const CUstream special : {CUstream{}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    const StreamRef stream = StreamRef::Borrow(special, counter.ref());
    SUCCEEDS(counter.CountUp(Cooperative(4, 32), stream));
    const bool has_clusters = HasDriver(11080);
    if (has_clusters) SUCCEEDS(counter.CountUp(WithCluster(4, 2), stream));
    SUCCEEDS(stream.Synchronize());
    BOOST_TEST(counter.Took(has_clusters ? 2 : 1));
  }
}

BOOST_AUTO_TEST_CASE(further_attributes, *NeedsDriver(11060, "cuLaunchKernelEx")) {
  Counter counter;
  CUlaunchAttribute priority = {};
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  priority.value.priority = 0;
  LaunchShape shape = counter.shape();
  shape.attributes = HostSpan<const CUlaunchAttribute>(&priority, 1);
  SUCCEEDS(counter.CountUp(shape, counter.stream()));
  BOOST_TEST(counter.Took());
  CUlaunchAttribute streams_only = {};
  streams_only.id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
  shape.attributes = HostSpan<const CUlaunchAttribute>(&streams_only, 1);
  REFUSES(counter.CountUp(shape, counter.stream()), kInvalidArgument, "\"count_up\"",
          "CUDA_ERROR_INVALID_VALUE");
  shape.attributes = HostSpan<const CUlaunchAttribute>(nullptr, 2);
  REFUSES(counter.CountUp(shape, counter.stream()), kInvalidArgument, "2 attributes at null");
}

// What the header's `Cost:` of a launch says that these add to its two calls.
BOOST_AUTO_TEST_CASE(driver_calls,
                     *NeedsDriver(11080, "cuOccupancyMaxActiveClusters") * OnlySim()) {
  Counter counter;
  SUCCEEDS(counter.CountUp());
  for (const unsigned switched : {0u, 2u}) {
    SetStack(switched == 0 ? Stack{counter.ref().get()} : Stack{});
    for (const LaunchShape& shape : {WithCluster(4, 2), Cooperative(4, 32)}) {
      SUCCEEDS(counter.CountUp(shape, counter.stream()));
      cuguest_test::BeginCount();
      SUCCEEDS(counter.CountUp(shape, counter.stream()));
      BOOST_TEST(Sim::TotalCalls() == 3 + 4 + switched);
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(any_call_may_fail, *NeedsDriver(11060, "cuLaunchKernelEx") * OnlySim()) {
  Counter counter;
  SUCCEEDS(counter.CountUp());
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuCtxGetCurrent",
                "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuLaunchKernelEx"},
               [&] { return counter.CountUp(Cooperative(4, 32), counter.stream()); });
  if (!HasDriver(11080)) return;
  FailEachCall({"cuOccupancyMaxActiveClusters", "cuLaunchKernelEx"},
               [&] { return counter.CountUp(WithCluster(4, 2), counter.stream()); });
}

BOOST_AUTO_TEST_SUITE_END()
