// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Occupancy, launches and graphs.

#include "test/current_context/calls.h"

namespace cudasim_facts {
namespace current_context {
namespace {

CUlaunchConfig ConfigOf(const Trial& t) {
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = t.o.stream;
  return config;
}

}  // namespace

const std::vector<DriverCall> kLaunchCalls = {
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor",
     [](Trial& t) {
       int blocks = 0;
       return t.Do([&] {
         return RAW(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, t.o.nothing, 32, 0);
       });
     }},
    {"cuOccupancyMaxPotentialBlockSize",
     [](Trial& t) {
       int grid = 0;
       int block = 0;
       return t.Do([&] {
         return RAW(cuOccupancyMaxPotentialBlockSize)(&grid, &block, t.o.nothing, nullptr, 0, 0);
       });
     }},
    {"cuOccupancyAvailableDynamicSMemPerBlock",
     [](Trial& t) {
       size_t bytes = 0;
       return t.Do([&] {
         return RAW(cuOccupancyAvailableDynamicSMemPerBlock)(&bytes, t.o.nothing, 1, 32);
       });
     }},
    {"cuOccupancyMaxActiveClusters",
     [](Trial& t) {
       int clusters = 0;
       const CUlaunchConfig config = ConfigOf(t);
       return t.Do(
           [&] { return RAW(cuOccupancyMaxActiveClusters)(&clusters, t.o.nothing, &config); });
     }},
    {"cuLaunchKernel",
     [](Trial& t) {
       unsigned value = kNew;
       void* arguments[] = {&t.o.p, &value};
       return Write(t, [&] {
         return RAW(cuLaunchKernel)(t.o.store, 1, 1, 1, 1, 1, 1, 0, t.o.stream, arguments, nullptr);
       });
     }},
    {"cuLaunchKernelEx",
     [](Trial& t) {
       unsigned value = kNew;
       void* arguments[] = {&t.o.p, &value};
       const CUlaunchConfig config = ConfigOf(t);
       return Write(t,
                    [&] { return RAW(cuLaunchKernelEx)(&config, t.o.store, arguments, nullptr); });
     }},

    {"cuGraphCreate",
     [](Trial& t) {
       CUgraph made = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuGraphCreate)(&made, 0); });
       if (code == CUDA_SUCCESS) OK(RAW(cuGraphDestroy)(made));
       return code;
     }},
    {"cuGraphDestroy",
     [](Trial& t) {
       OneNode one(t);
       return one.Ends(t, &OneNode::graph, RAW(cuGraphDestroy));
     }},
    {"cuGraphAddKernelNode",
     [](Trial& t) {
       const OneNode one(t);
       const CUDA_KERNEL_NODE_PARAMS parameters = NodeOf(t);
       CUgraphNode node = nullptr;
       const CUresult code = t.Do(
           [&] { return RAW(cuGraphAddKernelNode)(&node, one.graph, nullptr, 0, &parameters); });
       if (code != CUDA_SUCCESS) return code;
       CUDA_KERNEL_NODE_PARAMS added = {};
       t.InA([&] { OK(RAW(cuGraphKernelNodeGetParams)(node, &added)); });
       t.Saw(added.ctx);
       return code;
     }},
    {"cuGraphKernelNodeSetAttribute",
     [](Trial& t) {
       const OneNode one(t);
       CUkernelNodeAttrValue value = {};
       value.cooperative = 0;
       return t.Do([&] {
         return RAW(cuGraphKernelNodeSetAttribute)(one.node, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE,
                                                   &value);
       });
     }},
    {"cuGraphDestroyNode",
     [](Trial& t) {
       OneNode one(t);
       return one.Ends(t, &OneNode::node, RAW(cuGraphDestroyNode));
     }},
    {"cuGraphInstantiateWithFlags",
     [](Trial& t) {
       const OneNode one(t);
       CUgraphExec made = nullptr;
       const CUresult code =
           t.Do([&] { return RAW(cuGraphInstantiateWithFlags)(&made, one.graph, 0); });
       if (code == CUDA_SUCCESS) OK(RAW(cuGraphExecDestroy)(made));
       return code;
     }},
    {"cuGraphExecKernelNodeSetParams",
     [](Trial& t) {
       const OneNode one(t);
       const CUDA_KERNEL_NODE_PARAMS parameters = NodeOf(t);
       return t.Do([&] {
         return RAW(cuGraphExecKernelNodeSetParams)(one.executable, one.node, &parameters);
       });
     }},
    {"cuGraphLaunch",
     [](Trial& t) {
       const OneNode one(t);
       const CUresult code = t.Do([&] { return RAW(cuGraphLaunch)(one.executable, t.o.stream); });
       OK(RAW(cuStreamSynchronize)(t.o.stream));
       return code;
     }},
    {"cuGraphExecDestroy",
     [](Trial& t) {
       OneNode one(t);
       return one.Ends(t, &OneNode::executable, RAW(cuGraphExecDestroy));
     }},
};

}  // namespace current_context
}  // namespace cudasim_facts
