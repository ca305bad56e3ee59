// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of launches, functions' attributes and occupancy share: a module of
// kernels that differ in what bounds their launches.

#ifndef CUDASIM_TEST_LAUNCHES_H_
#define CUDASIM_TEST_LAUNCHES_H_

#include <cstring>
#include <initializer_list>
#include <vector>

#include "cudasim/sim.h"
#include "test/capture.h"

namespace cudasim_facts {

// `required` stores the width of its block, `with_...` use what they are named after.
inline constexpr char kLaunchPtx[] = R"(.version 8.0
.target sm_90
.address_size 64
.const .align 1 .b8 bytes[5] = {1, 2, 3, 4, 250};
.const .align 4 .f32 scale = 0f40200000;
.extern .shared .align 16 .b8 dynamic[];
.shared .align 4 .b8 of_module[2048];
.visible .entry nothing() { ret; }
.visible .entry store(.param .u64 to, .param .u32 value)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry bounded()
.maxntid 64, 2, 1
.minnctapersm 2
{ ret; }
.visible .entry required(.param .u64 to)
.reqntid 64, 2, 1
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [to];
  mov.u32 %r1, %ntid.x;
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry clustered()
.explicitcluster
.reqnctapercluster 2, 1, 1
{ ret; }
.visible .entry must_cluster()
.explicitcluster
{ ret; }
.visible .entry rank_of_4()
.maxclusterrank 4
{ ret; }
.visible .entry with_shared()
{
  .shared .align 4 .b8 own[40960];
  st.volatile.shared.u32 [own+4], 1;
  ret;
}
.visible .entry with_module_shared()
{
  st.volatile.shared.u32 [of_module+4], 1;
  ret;
}
.visible .entry with_dynamic()
{
  st.volatile.shared.u32 [dynamic], 1;
  ret;
}
)";

// A current context with that module in it.
struct Launcher {
  Launcher() {
    using cudasim::Sim;
    using cudasim::SimLaunch;
    for (const char* name : {"nothing", "bounded", "clustered", "must_cluster", "rank_of_4",
                             "with_shared", "with_module_shared", "with_dynamic"}) {
      Sim::RegisterKernel(name, [](const SimLaunch&) { return CUDA_SUCCESS; });
    }
    Sim::RegisterKernel("store", [](const SimLaunch& launch) {
      return Store(launch, *static_cast<const unsigned*>(launch.parameters[1]));
    });
    Sim::RegisterKernel("required",
                        [](const SimLaunch& launch) { return Store(launch, launch.block[0]); });
    SetStack({context.get()});
    OK(RAW(cuModuleLoadData)(&module, kLaunchPtx));
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuMemAlloc)(&result, sizeof(unsigned)));
  }
  ~Launcher() { SetStack({}); }

  static CUresult Store(const cudasim::SimLaunch& launch, unsigned value) {
    unsigned* to = nullptr;
    std::memcpy(&to, launch.parameters[0], sizeof(to));
    *to = value;
    return CUDA_SUCCESS;
  }

  CUfunction Function(const char* name) const {
    CUfunction function = nullptr;
    OK(RAW(cuModuleGetFunction)(&function, module, name));
    return function;
  }
  unsigned Result() const {
    unsigned value = 0;
    OK(RAW(cuMemcpyDtoH)(&value, result, sizeof(value)));
    return value;
  }

  OwnContext context;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr result = 0;
};

// What a launch is to be, for LaunchOn.
struct Shape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  std::vector<CUlaunchAttribute> attributes;
};

inline Shape Block(unsigned x, unsigned y = 1, unsigned z = 1) {
  Shape shape;
  shape.block[0] = x;
  shape.block[1] = y;
  shape.block[2] = z;
  return shape;
}
inline Shape Grid(unsigned x, unsigned y = 1, unsigned z = 1) {
  Shape shape;
  shape.grid[0] = x;
  shape.grid[1] = y;
  shape.grid[2] = z;
  return shape;
}
inline Shape Shared(unsigned bytes) {
  Shape shape;
  shape.shared_bytes = bytes;
  return shape;
}
inline Shape With(std::initializer_list<CUlaunchAttribute> attributes, unsigned grid = 1,
                  unsigned block = 1) {
  Shape shape = Grid(grid);
  shape.block[0] = block;
  shape.attributes = attributes;
  return shape;
}

inline CUlaunchAttribute Attribute(CUlaunchAttributeID id) {
  CUlaunchAttribute attribute = {};
  attribute.id = id;
  return attribute;
}
inline CUlaunchAttribute Cooperative(int value = 1) {
  CUlaunchAttribute attribute = Attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  attribute.value.cooperative = value;
  return attribute;
}
inline CUlaunchAttribute Cluster(unsigned x, unsigned y = 1, unsigned z = 1) {
  CUlaunchAttribute attribute = Attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  attribute.value.clusterDim.x = x;
  attribute.value.clusterDim.y = y;
  attribute.value.clusterDim.z = z;
  return attribute;
}

inline CUlaunchConfig ConfigOf(const Shape& shape, CUstream stream) {
  CUlaunchConfig config = {};
  config.gridDimX = shape.grid[0];
  config.gridDimY = shape.grid[1];
  config.gridDimZ = shape.grid[2];
  config.blockDimX = shape.block[0];
  config.blockDimY = shape.block[1];
  config.blockDimZ = shape.block[2];
  config.sharedMemBytes = shape.shared_bytes;
  config.hStream = stream;
  config.attrs = const_cast<CUlaunchAttribute*>(shape.attributes.data());
  config.numAttrs = static_cast<unsigned>(shape.attributes.size());
  return config;
}

inline CUresult LaunchOn(CUstream stream, CUfunction function, const Shape& shape = {},
                         void** each = nullptr, void** extra = nullptr) {
  const CUlaunchConfig config = ConfigOf(shape, stream);
  return RAW(cuLaunchKernelEx)(&config, function, each, extra);
}

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_LAUNCHES_H_
