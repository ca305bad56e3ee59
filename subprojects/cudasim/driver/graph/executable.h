// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs that were instantiated.

#ifndef CUDASIM_DRIVER_GRAPH_EXECUTABLE_H_
#define CUDASIM_DRIVER_GRAPH_EXECUTABLE_H_

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "driver/graph/graph.h"
#include "driver/graph/user_object.h"
#include "driver/handle_table.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {

// How a graph's nodes depend on each other, by their places in InOrder(graph).
struct Shape {
  struct Node {
    CUgraphNodeType type;
    bool does_work;
    std::vector<size_t> dependencies;
    std::shared_ptr<const Shape> child;
  };
  std::vector<Node> nodes;
};
Shape ShapeOf(const Graph& graph);

// Of the graph and its child graphs.
using UserObjects = std::vector<std::shared_ptr<const UserReferences>>;
UserObjects UserObjectsOf(const Graph& graph);

// A node as it was instantiated, or as it was changed since.
struct ExecutableNode {
  NodePointer node;
  Work work;
  bool is_enabled = true;
};
struct Executable {
  Eternal incarnation;
  Shape shape;
  std::vector<ExecutableNode> nodes;  // that do something; a child graph's are in its node's place
  unsigned long long flags = 0;
  UserObjects user_objects;
  std::shared_ptr<void> instance;  // see Graph
  TaskPointer last;                // of its last launch, which the next one waits for
};

// INVALID_VALUE for null and for what was destroyed. Panics for a value that never was one.
CUresult FindExecutable(CUgraphExec handle, Executable* executable);
void SetExecutable(CUgraphExec handle, const Executable& executable);

size_t CountExecutables();

// Changes the work of a node of that type in what was instantiated from its graph, which is still
// there: `remake` makes the new work from the old, in the same context.
using Remake = std::function<CUresult(const Work& old, Work* work)>;
CUresult RemakeInExecutable(CUgraphExec executable, CUgraphNode node, CUgraphNodeType type,
                            const Remake& remake);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_GRAPH_EXECUTABLE_H_
