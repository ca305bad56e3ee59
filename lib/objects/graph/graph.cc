// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/graph.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/core/settle_end.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/code/code.h"
#include "lib/objects/launch/launch_check.h"
#include "lib/objects/object_driver.h"
#include "lib/objects/stream/stream_call.h"
#include "lib/share/context_hold.h"
#include "lib/share/owed.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::ContextText;
using internal::KernelCall;
using internal::KernelInContext;
using internal::KernelText;
using internal::LaunchParams;
using Contexts = std::vector<ContextRef>;

template <typename Handle>
std::string GraphText(Handle graph) {
  return absl::StrCat("graph 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(graph)));
}

absl::Status EmptyGraph(const char* doing) {
  return absl::InvalidArgumentError(
      absl::StrCat(doing, ": the object is empty: moved from, released or never made"));
}

// Whether it is one, and alive: a graph with one that is over is not destroyed any more.
absl::Status CheckContext(const char* doing, const ContextRef& context) {
  if (context.get() == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(doing, ": the ContextRef is empty"));
  }
  return ToStatus(context.Check(), doing, ContextText(context.get()));
}

// Whether all but `known` are alive.
absl::Status CheckLives(const char* doing, const Contexts& contexts, const ContextRef& known) {
  for (const ContextRef& context : contexts) {
    if (context == known) continue;
    CUGUEST_RETURN_IF_CUDA_ERROR(
        context.Check(), doing,
        absl::StrCat(ContextText(context.get()), ", which nodes of the graph run in"));
  }
  return absl::OkStatus();
}

// WhileAlive() of all of them.
template <typename End>
CUresult WhileAllAlive(const Contexts& contexts, const End& end, std::size_t first = 0) noexcept {
  if (first == contexts.size()) return end();
  return internal::WhileAlive(contexts[first],
                              [&] { return WhileAllAlive(contexts, end, first + 1); });
}

absl::Status ReleaseStatus(CUresult code, const char* doing, const std::string& text) {
  const bool is_gone = code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return ToStatus(
      code, doing,
      is_gone ? text + ", which was let go: a context that nodes of it run in is over" : text);
}

// Calls add(kernel, attributes, node) where Launch() would take the launch; captures are relaxed,
// and `context` is current.
template <typename Add>
absl::Status WithNode(const Kernel& kernel, const LaunchShape& shape, const ContextRef& context,
                      const LaunchParams& params, const Add& add) {
  const KernelCall call("launch", kernel, context, KernelCall::Captures::kRelaxed);
  CUGUEST_RETURN_IF_ERROR(call.status());
  const KernelInContext launched = call.here();
  if (!FitsLimits(shape, launched.function)) CUGUEST_RETURN_IF_ERROR(RefuseShape(launched, shape));
  if (!TakesParams(launched.kernel, params)) {
    CUGUEST_RETURN_IF_ERROR(CheckParams(launched, params));
  }
  if (params.devices != nullptr) CUGUEST_RETURN_IF_ERROR(CheckDevices(launched, params));
  CUGUEST_RETURN_IF_ERROR(CheckAttributes(launched, shape));
  const internal::LaunchConfig config(shape, nullptr);
  CUGUEST_RETURN_IF_ERROR(
      CheckConfig(launched, shape, StreamRef::Borrow(nullptr, context), *config.get()));
  CUDA_KERNEL_NODE_PARAMS_v2 node = {};
  // A function is of one context; of a green one's primary. A kernel runs in the one that is given.
  node.kern = launched.kernel.kernel;
  node.func = node.kern == nullptr ? launched.function.function : nullptr;
  node.ctx = context.get();
  node.gridDimX = shape.grid.x;
  node.gridDimY = shape.grid.y;
  node.gridDimZ = shape.grid.z;
  node.blockDimX = shape.block.x;
  node.blockDimY = shape.block.y;
  node.blockDimZ = shape.block.z;
  node.sharedMemBytes = static_cast<unsigned>(shape.shared_bytes);
  node.kernelParams = params.each;
  return add(launched, *config.get(), node);
}

absl::Status SetAttributes(const KernelInContext& launched, const CUlaunchConfig& config,
                           CUgraphNode node) {
  if (config.numAttrs == 0) return absl::OkStatus();
  CUGUEST_ASSIGN_OR_RETURN(const auto set,
                           launched.driver.Require(&ObjectDriver::GraphKernelNodeSetAttribute));
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    CUGUEST_RETURN_IF_CUDA_ERROR(
        set(node, attribute.id, &attribute.value), KernelText("launch", launched.kernel),
        absl::StrCat("attribute ", static_cast<int>(attribute.id), " of its node in a graph"));
  }
  return absl::OkStatus();
}

// A node whose attributes are not set yet.
class NewNode {
 public:
  NewNode(const ObjectDriver& driver, CUgraphNode node) noexcept : driver_(driver), node_(node) {}
  NewNode(const NewNode&) = delete;
  NewNode& operator=(const NewNode&) = delete;
  ~NewNode() {
    if (node_ != nullptr) static_cast<void>(driver_.GraphDestroyNode(node_));
  }
  void Keep() noexcept { node_ = nullptr; }

 private:
  const ObjectDriver& driver_;
  CUgraphNode node_;
};

}  // namespace

absl::StatusOr<Graph> Graph::Create(const ContextRef& context) {
  constexpr char kDoing[] = "create a graph";
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto create, driver->Require(&ObjectDriver::GraphCreate));
  CUGUEST_RETURN_IF_ERROR(CheckContext(kDoing, context));
  Graph owner(nullptr, context);  // before there is something to own
  CUgraph graph = nullptr;
  CUGUEST_RETURN_IF_CUDA_ERROR(create(&graph, 0), kDoing);
  owner.graph_ = graph;
  return owner;
}

absl::StatusOr<Graph> Graph::Adopt(CUgraph graph, const ContextRef& context) {
  if (graph == nullptr) return absl::InvalidArgumentError("adopt a graph: it is null");
  CUGUEST_RETURN_IF_ERROR(CheckContext("adopt a graph", context));
  return Graph(graph, context);
}

Graph::~Graph() { internal::EndOrOwe(*this, "a Graph", &Graph::Destroy, &Graph::Leak); }

absl::Status Graph::AddContext(const ContextRef& context) {
  if (graph_ == nullptr) return EmptyGraph("add a context to a graph");
  CUGUEST_RETURN_IF_ERROR(CheckContext("add a context to a graph", context));
  const bool has_it = std::find(contexts_.begin(), contexts_.end(), context) != contexts_.end();
  if (!has_it) contexts_.push_back(context);
  return absl::OkStatus();
}

absl::StatusOr<CUgraphNode> Graph::AddKernel(const Kernel& kernel, const LaunchShape& shape,
                                             const std::vector<CUgraphNode>& after,
                                             const ParamBuffer& params) {
  std::vector<void*> each;
  return AddNode(kernel, shape, after, internal::ParamsOneByOne(params, &each));
}

absl::StatusOr<CUgraphNode> Graph::AddNode(const Kernel& kernel, const LaunchShape& shape,
                                           const std::vector<CUgraphNode>& after,
                                           const LaunchParams& params) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  if (graph_ == nullptr) return EmptyGraph("add a kernel to a graph");
  CUGUEST_ASSIGN_OR_RETURN(const auto add, driver->Require(&ObjectDriver::GraphAddKernelNode));
  CUgraphNode made = nullptr;
  CUGUEST_RETURN_IF_ERROR(
      WithNode(kernel, shape, context(), params,
               [&](const KernelInContext& launched, const CUlaunchConfig& config,
                   const CUDA_KERNEL_NODE_PARAMS_v2& node) {
                 CUGUEST_RETURN_IF_CUDA_ERROR(
                     add(&made, graph_, after.data(), after.size(), &node),
                     KernelText("launch", launched.kernel),
                     absl::StrCat("as a node of ", GraphText(graph_), " after ", after.size(),
                                  " others, which must be of this graph and different"));
                 NewNode owner(*driver, made);
                 absl::Status set = SetAttributes(launched, config, made);
                 if (set.ok()) owner.Keep();
                 return set;
               }));
  return made;
}

absl::StatusOr<ExecutableGraph> Graph::Instantiate(unsigned long long flags) const {
  constexpr char kDoing[] = "instantiate a graph";
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  if (graph_ == nullptr) return EmptyGraph(kDoing);
  CUGUEST_ASSIGN_OR_RETURN(const auto make,
                           driver->Require(&ObjectDriver::GraphInstantiateWithFlags));
  CUGUEST_RETURN_IF_ERROR(CheckLives(kDoing, contexts_, context()));
  const ContextGuard guard(context());
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), kDoing, guard.advice());
  ExecutableGraph owner(nullptr, contexts_);  // before there is something to own
  const internal::RelaxedScope relaxed;
  CUgraphExec made = nullptr;
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) code = make(&made, graph_, flags);
  CUGUEST_RETURN_IF_CUDA_ERROR(
      code, kDoing,
      absl::StrCat(
          GraphText(graph_), ", flags 0x", absl::Hex(flags),
          code == CUDA_ERROR_INVALID_VALUE ? ": the flags, or memory that a node works on was freed"
          : code == CUDA_ERROR_NOT_SUPPORTED ? ": a graph that allocates memory has one "
                                               "ExecutableGraph at a time: release that, or "
                                               "capture the work again"
                                             : ""));
  owner.graph_ = made;
  return owner;
}

absl::Status Graph::Release() {
  const CUgraph graph = graph_;
  return ReleaseStatus(Destroy(), "destroy a graph", GraphText(graph));
}

CUresult Graph::Destroy() noexcept {
  if (graph_ == nullptr) return CUDA_SUCCESS;
  const CUresult code = WhileAllAlive(
      contexts_, [this] { return internal::ResolvedObjectDriver().GraphDestroy(graph_); });
  return internal::SettleEnd(code, [this] { static_cast<void>(Leak()); });
}

ExecutableGraph::~ExecutableGraph() {
  internal::EndOrOwe(*this, "an ExecutableGraph", &ExecutableGraph::Destroy,
                     &ExecutableGraph::Leak);
}

absl::Status ExecutableGraph::Launch(const StreamRef& stream) {
  constexpr char kDoing[] = "launch a graph";
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  if (graph_ == nullptr) return EmptyGraph(kDoing);
  CUGUEST_RETURN_IF_ERROR(CheckLives(kDoing, contexts_, stream.context()));
  const internal::StreamCall in(*driver, stream);
  CUresult code = in.refusal();
  if (code == CUDA_SUCCESS) code = driver->GraphLaunch(graph_, stream.get());
  if (code != CUDA_ERROR_INVALID_VALUE) return internal::StreamStatus(code, kDoing, stream);
  return ToStatus(code, kDoing,
                  absl::StrCat(GraphText(graph_), " in ", internal::StreamText(stream.get()),
                               ": memory that a node works on was freed, or memory that the graph "
                               "allocated was not: see CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_"
                               "LAUNCH"));
}

absl::Status ExecutableGraph::SetKernel(CUgraphNode node, const Kernel& kernel,
                                        const LaunchShape& shape, const ParamBuffer& params) {
  std::vector<void*> each;
  return SetNode(node, kernel, shape, internal::ParamsOneByOne(params, &each));
}

absl::Status ExecutableGraph::SetNode(CUgraphNode node, const Kernel& kernel,
                                      const LaunchShape& shape, const LaunchParams& params) {
  constexpr char kDoing[] = "set the kernel of a node";
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  if (graph_ == nullptr) return EmptyGraph(kDoing);
  CUGUEST_ASSIGN_OR_RETURN(const auto set,
                           driver->Require(&ObjectDriver::GraphExecKernelNodeSetParams));
  if (!internal::IsPlain(shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        kDoing, ": a cluster, a cooperative grid and attributes are as they were in the graph"));
  }
  CUGUEST_RETURN_IF_ERROR(CheckLives(kDoing, contexts_, contexts_.front()));
  return WithNode(kernel, shape, contexts_.front(), params,
                  [&](const KernelInContext& launched, const CUlaunchConfig&,
                      const CUDA_KERNEL_NODE_PARAMS_v2& values) {
                    CUGUEST_RETURN_IF_CUDA_ERROR(
                        set(graph_, node, &values), KernelText("launch", launched.kernel),
                        absl::StrCat("as a node of executable ", GraphText(graph_),
                                     ": it must be a kernel node of what that was made from"));
                    return absl::OkStatus();
                  });
}

absl::Status ExecutableGraph::Release() {
  const CUgraphExec graph = graph_;
  return ReleaseStatus(Destroy(), "destroy an executable graph", GraphText(graph));
}

CUresult ExecutableGraph::Destroy() noexcept {
  if (graph_ == nullptr) return CUDA_SUCCESS;
  const auto destroy = [this] {
    const internal::RelaxedScope relaxed;
    return relaxed.ok() ? internal::ResolvedObjectDriver().GraphExecDestroy(graph_)
                        : relaxed.result();
  };
  return internal::SettleEnd(WhileAllAlive(contexts_, destroy),
                             [this] { static_cast<void>(Leak()); });
}

CUGUEST_END_NAMESPACE
