// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/call.h"

namespace conformance {
namespace {

const Param kInstantiate = Number({0, 0, 0, 8, 1, 64});

// With its nodes.
void Destroyed(Frame& frame) {
  frame.world.End(frame.value(0));
  for (Object* node : frame.world.All('N')) {
    if (node->owner == frame.value(0)) node->is_alive = false;
  }
}

// The number of nodes.
int CountNodes(Frame& frame) {
  size_t count = 0;
  const CUresult code =
      RAW(cuGraphGetNodes)(frame.As<CUgraph>(0), nullptr, frame.IsNull(1) ? nullptr : &count);
  if (code == CUDA_SUCCESS) frame.SayNumber(static_cast<long long>(count));
  return code;
}

// The first node, by its own name.
int FirstNode(Frame& frame) {
  CUgraphNode node = nullptr;
  size_t count = 1;
  const CUresult code = RAW(cuGraphGetNodes)(frame.As<CUgraph>(1), &node, &count);
  if (code == CUDA_SUCCESS) frame.SayOut(0, &node, sizeof(node), true);
  return code;
}
void OfGraph(Frame& frame) {
  if (Object* node = frame.ObjectOf(0)) node->owner = frame.value(1);
}

}  // namespace

Room GraphRoom() {
  return {
      "graphs",
      {
          {DRIVER(cuGraphCreate), 4, {Make("R"), Number({0, 0, 0, 1})}},
          {DRIVER(cuGraphDestroy), 3, {Use("R")}, Destroyed},
          {"cuGraphGetNodes", CountNodes, 3, {Use("R"), Out()}},
          // Of recordings only: see "cuGraphGetNodes.one".
          {"cuGraphGetNodes.first", FirstNode, 0, {Make("N", 0), Use("R")}, OfGraph},
          {DRIVER(cuGraphNodeGetType), 3, {Use("N"), Out()}},
          {DRIVER(cuGraphDestroyNode), 1, {Use("N")}, Ends(0)},
          {DRIVER(cuGraphInstantiate), 6, {Make("X"), Use("R"), kInstantiate}, CameFrom(1)},
          {DRIVER(cuGraphLaunch), 8, {Use("X"), UseStream()}},
          {DRIVER(cuGraphExecDestroy), 2, {Use("X")}, Ends(0)},
          {RUNTIME(cudaGraphDestroy), 1, {Use("R")}, Destroyed},
          {RUNTIME(cudaGraphCreate), 1, {Make("R"), Number({0, 0, 1})}},
          {RUNTIME(cudaGraphInstantiate), 2, {Make("X"), Use("R"), kInstantiate}, CameFrom(1)},
          {RUNTIME(cudaGraphLaunch), 2, {Use("X"), UseStream()}},
      },
  };
}

}  // namespace conformance
