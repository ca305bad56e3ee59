// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs: work that was recorded by a capture, and can be done again.

#ifndef CUDASIM_DRIVER_GRAPH_GRAPH_H_
#define CUDASIM_DRIVER_GRAPH_GRAPH_H_

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "driver/context/context.h"
#include "driver/graph/user_object.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {

class GraphMemory;
struct Graph;

// One piece of work in a stream, to be done now or by a graph.
struct Work {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Incarnation incarnation;  // of the stream it was submitted to; no context: that of a launch
  std::function<bool()> is_valid;     // whether its memory is there
  bool is_modelled = true;            // what a launch of a graph does with it
  std::function<void(CUstream)> run;  // in the stream it is given; null in an empty node
  std::function<void(CUgraphNodeParams*)> describe;  // what a node of it was made with; or null
  std::function<TaskPointer()> awaits;  // what else it waits for when it is submitted; or null
  std::function<void(const TaskPointer&)> submitted;  // told its task, null for one that is done
  std::shared_ptr<GraphMemory> memory;                // what it allocates or frees
  std::shared_ptr<Graph> child;                       // whose nodes a child graph node stands for
  // Of a copy: DevicesWithAccess() to its source and its destination when it was made.
  std::pair<std::uint32_t, std::uint32_t> access;
  // Of a kernel: the same with one attribute more.
  std::vector<CUlaunchAttribute> attributes;
  std::function<CUresult(const CUlaunchAttribute&, Work*)> with;
};

struct Node;
using NodePointer = std::shared_ptr<Node>;

struct Node {
  Work work;
  std::vector<NodePointer> dependencies;
  CUgraphNode handle = nullptr;
  CUgraph graph = nullptr;
  std::weak_ptr<Node> original;  // that it was cloned from
};

// Changed under the captures' lock.
struct Graph {
  std::vector<NodePointer> nodes;  // in the order in which they were added
  CUgraph handle = nullptr;
  bool is_capturing = false;
  bool is_embedded = false;      // the child graph of a node, which owns it
  std::weak_ptr<void> instance;  // the last one that is alive, if there is memory to allocate
  UserReferences user_objects;
};
using GraphPointer = std::shared_ptr<Graph>;

// A new graph with a handle. DropGraph ends the handle and those of its nodes and child graphs.
GraphPointer MakeGraph();
void DropGraph(const GraphPointer& graph);

// INVALID_VALUE for null and for what was destroyed. Panics for a value that never was a graph.
CUresult FindGraph(CUgraph handle, GraphPointer* graph);

// The same of a node, and of one of that graph: INVALID_VALUE for another's.
CUresult FindNode(CUgraphNode handle, NodePointer* node);
CUresult FindNodeOf(const Graph& graph, CUgraphNode handle, NodePointer* node);

// The nodes, each behind those it depends on, and otherwise as they were added. In a graph with a
// cycle some are not.
std::vector<NodePointer> InOrder(const Graph& graph);

// A node of a cycle in the graph or in a child graph; nullptr: there is none.
NodePointer FindCycle(const Graph& graph);

// Whether a node of it, or of a child graph, allocates or frees memory.
bool HasMemory(const Graph& graph);
bool HasMemoryNow(const Graph& graph);  // which takes the lock

// What the calls that list nodes tell: without `handles` only the number; places beyond the number
// become null.
CUresult ListNodes(const std::vector<NodePointer>& nodes, CUgraphNode* handles, size_t* count);

// Graphs that are no child graphs, and executable graphs.
size_t CountGraphs();

NodePointer AddNode(const GraphPointer& graph, const Work& work,
                    const std::vector<NodePointer>& dependencies);

// For the calls that add a node, whose work `make` makes once the other arguments are known to be
// right.
CUresult AddNodeOf(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                   size_t count, const std::function<CUresult(Work*)>& make);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_GRAPH_GRAPH_H_
