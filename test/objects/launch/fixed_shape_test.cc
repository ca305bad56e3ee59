// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that are compiled for one block or one cluster: a launch with another shape is refused
// before the driver ends a capture for it.

#include "kernels/fixed.h"
#include "test/objects/launch/launches.h"

BOOST_AUTO_TEST_SUITE(fixed_shape)

namespace {

using namespace cuguest_launches;

constexpr char kKernels[] = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry any() { ret; }
.visible .entry block() .reqntid 64, 2 { ret; }
.visible .entry bounded() .maxntid 64, 1, 1 { ret; }
.visible .entry cluster() .reqnctapercluster 2, 2, 1 { ret; }
)";

LaunchShape WithCluster(const LaunchShape::Dim3& grid, const LaunchShape::Dim3& cluster) {
  LaunchShape shape{grid, 32};
  shape.cluster = cluster;
  return shape;
}

class Kernels {
 public:
  Kernels() {
    for (const char* name : {"any", "block", "bounded", "cluster"}) {
      Sim::RegisterKernel(name, [](const SimLaunch&) { return CUDA_SUCCESS; });
    }
    module_ = Module::LoadIn(ref(), image_).value();
  }
  ContextRef ref() const { return owner_.ref(); }
  StreamRef stream() const { return StreamRef::Borrow(owner_.stream(), ref()); }
  Kernel Get(const char* name) const { return module_.GetKernel(name).value(); }
  CUfunction Function(const char* name) const { return Get(name).FunctionIn(ref()).value(); }

 private:
  const CodeImage image_ = CodeImage::FromPtx(kKernels, "kernels").value();
  Owner owner_;
  Module module_;
};

// In captures of every mode, of which none is lost: `wrong` is refused with `words`, `right` is
// not.
void Check(const Kernels& kernels, const char* name, const LaunchShape& right,
           const LaunchShape& wrong, const char* words) {
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(kernels.stream().get(), mode);
    REFUSES(Launch(kernels.Get(name), wrong, kernels.stream()), kInvalidArgument, words);
    SUCCEEDS(Launch(kernels.Get(name), right, kernels.stream()));
  }
  REFUSES(Launch(kernels.Get(name), wrong, kernels.stream()), kInvalidArgument, words);
  SUCCEEDS(Launch(kernels.Get(name), right, kernels.stream()));
  SUCCEEDS(kernels.stream().Synchronize());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_block_is_the_kernels) {
  const Kernels kernels;
  const LaunchShape right{1, {64, 2}};
  Check(kernels, "block", right, {1, 64},
        "a block of 64 x 1 x 1 threads is asked for, and the kernel is compiled for one of "
        "64 x 2 x 1");
  Check(kernels, "block", right, {1, {2, 64}}, "a block of 2 x 64 x 1 threads");
  Check(kernels, "block", right, {1, {32, 2, 2}}, "a block of 32 x 2 x 2 threads");
  SUCCEEDS(Launch(kernels.Get("block"), {}, kernels.stream()));  // of one thread: as measured
  SUCCEEDS(Launch(kernels.Get("bounded"), {1, 32}, kernels.stream()));
  SUCCEEDS(Launch(kernels.Get("any"), {1, 32}, kernels.stream()));
  SUCCEEDS(kernels.stream().Synchronize());
}

// The same of machine code, in a container and not.
BOOST_AUTO_TEST_CASE(a_block_is_read_off_machine_code) {
  const Owner owner;
  const StreamRef stream = StreamRef::Borrow(owner.stream(), owner.ref());
  Sim::RegisterKernel("blocks_of_64", [](const SimLaunch&) { return CUDA_SUCCESS; });
  using namespace cuguest_kernels;
  const HostSpan<const unsigned char> images[] = {
      {fixed_cubin, fixed_cubin_size},
      {fixed_machine_code_fatbin, fixed_machine_code_fatbin_size},
  };
  for (const HostSpan<const unsigned char> bytes : images) {
    const CodeImage image = CodeImage::Borrow(bytes, "fixed").value();
    if (image.kernel_names().empty()) {
      BOOST_TEST_MESSAGE("compiled for an architecture without __block_size__");
      continue;
    }
    const Module module = Module::LoadIn(owner.ref(), image).value();
    const Kernel kernel = module.GetKernel("blocks_of_64").value();
    const Capture capture(owner.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    REFUSES(Launch(kernel, {1, 32}, stream), kInvalidArgument, "compiled for one of 64 x 1 x 1");
    SUCCEEDS(Launch(kernel, {1, 64}, stream));
  }
}

BOOST_AUTO_TEST_CASE(
    a_grid_is_a_multiple_of_the_kernels_cluster,
    *NeedsDriver(11080,
                 "kernels that require a cluster (CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)")) {
  const Kernels kernels;
  const LaunchShape right{{4, 2}, 32};
  Sim::ResetCalls();
  REFUSES(Launch(kernels.Get("cluster"), {{3, 2}, 32}, kernels.stream()), kInvalidArgument,
          "no multiple");
  if (Sim::IsActive()) BOOST_TEST(Sim::Calls("cuLaunchKernel") == 0U);
  Check(kernels, "cluster", right, {{3, 2}, 32},
        "a grid of 3 x 2 x 1 blocks is no multiple of the cluster of 2 x 2 x 1 blocks that the "
        "kernel requires");
  Check(kernels, "cluster", right, {4, 32}, "a grid of 4 x 1 x 1 blocks");
}

BOOST_AUTO_TEST_CASE(
    a_launch_asks_for_the_kernels_cluster_or_none,
    *NeedsDriver(11080,
                 "kernels that require a cluster (CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)")) {
  const Kernels kernels;
  Check(kernels, "cluster", WithCluster({4, 2}, {2, 2}), WithCluster({4, 2}, {4, 1}),
        "a cluster of 4 x 1 x 1 blocks is asked for, and not the cluster of 2 x 2 x 1 blocks");
}

// The limit is the driver's: what was changed there is asked for before a launch is refused, and
// known before the first one.
BOOST_AUTO_TEST_CASE(
    a_cluster_that_was_required_by_an_attribute,
    *NeedsDriver(11080,
                 "kernels that require a cluster (CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)")) {
  const Kernels kernels;
  const CUfunction function = kernels.Function("any");
  const auto require = [function](int width, int height, int depth) {
    OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, width));
    OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, height));
    OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, depth));
  };
  require(2, 1, 1);
  // As another module that holds the same code would see it for the first time.
  const Kernel later = Kernel::Borrow(function, kernels.ref()).value();
  const Capture capture(kernels.stream().get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  REFUSES(Launch(later, {3, 32}, kernels.stream()), kInvalidArgument, "2 x 1 x 1 blocks");
  SUCCEEDS(Launch(later, {4, 32}, kernels.stream()));
  require(2, 0, 0);  // half-way
  REFUSES(Launch(later, {3, 32}, kernels.stream()), kInvalidArgument, "2 x 0 x 0 blocks");
  require(0, 0, 0);
  SUCCEEDS(Launch(later, {3, 32}, kernels.stream()));
}

BOOST_AUTO_TEST_SUITE_END()
