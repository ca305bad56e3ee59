// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs that are made of fills, for *_facts_test.cc.

#ifndef CUDASIM_TEST_GRAPHS_H_
#define CUDASIM_TEST_GRAPHS_H_

#include <vector>

#include "test/capture.h"

namespace cudasim_facts {

using Nodes = std::vector<CUgraphNode>;

// A graph that fills the guest's memory, a byte each with its own number.
struct GraphGuest : Guest {
  GraphGuest() {
    OK(RAW(cuMemsetD8)(memory, 0, 16));
    OK(RAW(cuCtxSynchronize)());
    OK(RAW(cuGraphCreate)(&graph, 0));
  }
  ~GraphGuest() {
    if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
  }
  GraphGuest(const GraphGuest&) = delete;
  GraphGuest& operator=(const GraphGuest&) = delete;

  CUgraphNode AddFill(CUgraph to, size_t place, unsigned value, const Nodes& after = {}) const {
    CUDA_MEMSET_NODE_PARAMS fill = {};
    fill.dst = memory + place;
    fill.value = value;
    fill.elementSize = fill.width = fill.height = 1;
    CUgraphNode node = nullptr;
    OK(RAW(cuGraphAddMemsetNode)(&node, to, after.data(), after.size(), &fill, context.get()));
    return node;
  }
  CUgraphNode AddChild(CUgraph to, CUgraph child, const Nodes& after = {}) const {
    CUgraphNode node = nullptr;
    OK(RAW(cuGraphAddChildGraphNode)(&node, to, after.data(), after.size(), child));
    return node;
  }

  // What is in memory behind a launch.
  std::vector<int> Run(CUgraph of) const {
    CUgraphExec executable = nullptr;
    OK(RAW(cuGraphInstantiateWithFlags)(&executable, of, 0));
    const std::vector<int> bytes = Launch(executable);
    OK(RAW(cuGraphExecDestroy)(executable));
    return bytes;
  }
  std::vector<int> Launch(CUgraphExec executable) const {
    OK(RAW(cuGraphLaunch)(executable, stream));
    OK(RAW(cuStreamSynchronize)(stream));
    unsigned char bytes[4] = {};
    OK(RAW(cuMemcpyDtoH)(bytes, memory, sizeof(bytes)));
    return {bytes, bytes + 4};
  }

  CUgraph graph = nullptr;
};

inline bool Is(const std::vector<int>& bytes, const std::vector<int>& expected) {
  return bytes == expected;
}

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_GRAPHS_H_
