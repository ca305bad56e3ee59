// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `Graph` owns a CUDA graph: what a CaptureScope recorded (capture_scope.h), or kernels that are
/// added one by one. `ExecutableGraph` is a graph ready to run, in any stream, as often as wanted.
///
///   absl::StatusOr<Graph> graph = Graph::Create(context);
///   if (!graph.ok()) return graph.status();
///   absl::StatusOr<CUgraphNode> scaled = graph->AddKernel(scale, shape, {}, n, a, DevicePtr(x));
///   if (!scaled.ok()) return scaled.status();
///   absl::Status added = graph->AddKernel(sum, shape, {*scaled}, n, DevicePtr(x)).status();
///   if (!added.ok()) return added;
///   absl::StatusOr<ExecutableGraph> ready = graph->Instantiate();
///   if (!ready.ok()) return ready.status();
///   absl::Status status = ready->Launch(stream);  // in its order: the host's, say

#ifndef CUGUEST_OBJECTS_GRAPH_H_
#define CUGUEST_OBJECTS_GRAPH_H_

#include <cuda.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/param_buffer.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE

/// Requires: the owners of the memory and the code of its nodes keep those until it runs no more.
/// Stack:   left as it is.
/// Count:   none: it keeps alive neither a context nor what its nodes work on.
/// Threads: distinct; launches of one object need the locking too. Not in a stream callback, where
///          the destructor leaves the graph to the process; nor in a static or thread_local
///          destructor: see Note [No driver calls after main].
/// Errors:  those of ObjectDriver::Get(), what each function adds, and these; nothing has changed
/// then.
///          kInvalidArgument     an empty object, ContextRef or StreamRef; a null CUgraph
///          kFailedPrecondition  a context of the graph, or the stream's, was destroyed or reset
///          kPermissionDenied    from a stream callback
///          kDataLoss            an earlier sticky error
/// Source:  CUDA Driver API, "Graph Management"; docs/guarantees.md.
class CUGUEST_API ExecutableGraph {
 public:
  CUGUEST_HIDE ExecutableGraph() noexcept = default;  // empty
  CUGUEST_HIDE ExecutableGraph(ExecutableGraph&& other) noexcept
      : graph_(std::exchange(other.graph_, nullptr)), contexts_(std::move(other.contexts_)) {}
  CUGUEST_HIDE ExecutableGraph& operator=(ExecutableGraph other) noexcept {
    std::swap(graph_, other.graph_);
    contexts_.swap(other.contexts_);
    return *this;
  }

  /// As Release(), its result dropped.
  ~ExecutableGraph();

  [[nodiscard]] CUGUEST_HIDE CUgraphExec get() const noexcept { return graph_; }  // or nullptr

  /// Runs the graph in the order of `stream`, which may be of any context, and after its own
  /// earlier launches. Success means submitted, as for Launch() of a kernel.
  /// Errors: kFailedPrecondition  the stream captures, or is stream 0 while a blocking stream of
  ///                              its context captures: no capture is invalidated
  ///         kInvalidArgument     memory that a node works on was freed, or memory that the graph's
  ///                              last launch allocated was not
  /// Cost:   three driver calls, and one for each context of the graph other than the stream's; on
  ///         a special stream (see StreamRef) those of a ContextGuard instead of one.
  absl::Status Launch(const StreamRef& stream);

  /// Changes what a node that AddKernel() added does from the next launch on: here only, not in the
  /// Graph. Grid, block, dynamic shared memory and parameters are replaced; the rest of a shape
  /// stays as in the graph. The kernel is checked as by Graph::AddKernel().
  ///
  ///   absl::Status status = ready->SetKernel(*scaled, scale, shape, n, 2 * a, x);
  ///
  /// Requires: the Graph exists.
  /// Errors: those of Graph::AddKernel(), and kInvalidArgument: a cluster, a cooperative grid or
  ///         attributes; the node is no kernel node, or not of this graph.
  /// Cost:   that of Graph::AddKernel(), and one driver call for each further context of the graph.
  /// Needs:  CUDA 12.0.
  template <typename... Values>
  CUGUEST_HIDE absl::Status SetKernel(CUgraphNode node, const Kernel& kernel,
                                      const LaunchShape& shape, const Values&... values) {
    static_assert(internal::AreParams<Values...>());
    return internal::WithParams(
        [&](const internal::LaunchParams& params) { return SetNode(node, kernel, shape, params); },
        values...);
  }

  /// The same with the parameters in one piece.
  absl::Status SetKernel(CUgraphNode node, const Kernel& kernel, const LaunchShape& shape,
                         const ParamBuffer& params);

  /// Destroys it now, and reports errors. A launch that still runs completes first; this call does
  /// not wait for it. If a context of the graph was destroyed or reset, it is let go instead: that
  /// leaks host memory of the driver. Succeeds if empty, and at the end of the process. Invalidates
  /// no capture.
  /// Errors: kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED: it was let go; now empty
  ///         the driver's code    it is still owned
  /// Cost:   three driver calls, and one for each context of the graph.
  absl::Status Release();

  /// Gives up ownership without a driver call.
  CUGUEST_HIDE CUgraphExec Leak() noexcept {
    contexts_.clear();
    return std::exchange(graph_, nullptr);
  }

 private:
  friend class Graph;
  CUGUEST_HIDE ExecutableGraph(CUgraphExec graph, std::vector<ContextRef> contexts) noexcept
      : graph_(graph), contexts_(std::move(contexts)) {}
  absl::Status SetNode(CUgraphNode node, const Kernel& kernel, const LaunchShape& shape,
                       const internal::LaunchParams& params);
  CUresult Destroy() noexcept;

  CUgraphExec graph_ = nullptr;
  std::vector<ContextRef> contexts_;  // the graph's own first
};

/// Requires, stack, count, errors, source: as ExecutableGraph.
/// Threads: distinct; as ExecutableGraph.
/// Cost: two driver calls for Create(), one for Adopt() and for AddContext().
class CUGUEST_API Graph {
 public:
  /// An empty graph, for kernels that run in `context`. Invalidates no capture.
  /// Errors: kUnimplemented: a driver below CUDA 10.0.
  [[nodiscard]] static absl::StatusOr<Graph> Create(const ContextRef& context);

  /// Takes ownership of a graph with work of `context`; if it fails, the graph keeps its owner.
  [[nodiscard]] static absl::StatusOr<Graph> Adopt(CUgraph graph, const ContextRef& context);

  CUGUEST_HIDE Graph() noexcept = default;  // empty
  CUGUEST_HIDE Graph(Graph&& other) noexcept
      : graph_(std::exchange(other.graph_, nullptr)), contexts_(std::move(other.contexts_)) {}
  CUGUEST_HIDE Graph& operator=(Graph other) noexcept {
    std::swap(graph_, other.graph_);
    contexts_.swap(other.contexts_);
    return *this;
  }

  /// As Release(), its result dropped.
  ~Graph();

  [[nodiscard]] CUGUEST_HIDE CUgraph get() const noexcept { return graph_; }  // or nullptr

  /// The context in which added kernels run; empty if the graph is.
  [[nodiscard]] CUGUEST_HIDE ContextRef context() const noexcept {
    return contexts_.empty() ? ContextRef() : contexts_.front();
  }

  /// Declares that nodes run in `context`, too: see Note [The contexts of a graph]. Of one that the
  /// graph has already nothing changes.
  absl::Status AddContext(const ContextRef& context);

  /// Adds a node that launches `kernel` in context() once the nodes in `after`, of this graph, are
  /// done. Refuses what Launch() would refuse, with the same message (see Note [What is checked of
  /// parameters] and Note [What is checked of a shape]). The parameters are copied. Invalidates no
  /// capture. A function that was borrowed as a CUfunction runs in the context of its module, and
  /// so not in the green context that context() may be: capture a Launch() there.
  /// Errors: those of Kernel's functions and of Launch(), and
  ///         kInvalidArgument  `after` has a node twice, or one of another graph
  ///         kUnimplemented    a driver below CUDA 12.0: capture a Launch() instead
  /// Cost:   six driver calls if context() is current, else eight; more for the first use of the
  ///         kernel, and one for each attribute, cluster or cooperative grid and what Launch() asks
  ///         for those.
  template <typename... Values>
  [[nodiscard]] CUGUEST_HIDE absl::StatusOr<CUgraphNode> AddKernel(
      const Kernel& kernel, const LaunchShape& shape, const std::vector<CUgraphNode>& after,
      const Values&... values) {
    static_assert(internal::AreParams<Values...>());
    return internal::WithParams(
        [&](const internal::LaunchParams& params) { return AddNode(kernel, shape, after, params); },
        values...);
  }

  /// The same with the parameters in one piece.
  [[nodiscard]] absl::StatusOr<CUgraphNode> AddKernel(const Kernel& kernel,
                                                      const LaunchShape& shape,
                                                      const std::vector<CUgraphNode>& after,
                                                      const ParamBuffer& params);

  /// Makes it ready to run. The graph may be changed or destroyed afterwards: what was made of it
  /// stays. `flags` are those of cuGraphInstantiate. Invalidates no capture.
  /// Errors: kInvalidArgument  other flags; memory that a captured node works on was freed
  ///         kUnimplemented    a driver below CUDA 11.4; or, by the CUDA documentation, which does
  ///                           not name the code: the graph allocates memory, and an
  ///                           ExecutableGraph of it exists
  /// Cost:   six driver calls if context() is current, else eight, and one for each further
  ///         context.
  [[nodiscard]] absl::StatusOr<ExecutableGraph> Instantiate(unsigned long long flags = 0) const;

  /// Destroys it now, as ExecutableGraph::Release() does.
  /// Cost: one driver call, and one for each context of the graph.
  absl::Status Release();

  /// Gives up ownership without a driver call.
  CUGUEST_HIDE CUgraph Leak() noexcept {
    contexts_.clear();
    return std::exchange(graph_, nullptr);
  }

 private:
  friend class CaptureScope;
  CUGUEST_HIDE Graph(CUgraph graph, const ContextRef& context)
      : graph_(graph), contexts_{context} {}
  absl::StatusOr<CUgraphNode> AddNode(const Kernel& kernel, const LaunchShape& shape,
                                      const std::vector<CUgraphNode>& after,
                                      const internal::LaunchParams& params);
  CUresult Destroy() noexcept;

  CUgraph graph_ = nullptr;
  std::vector<ContextRef> contexts_;  // its own first
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_GRAPH_H_
