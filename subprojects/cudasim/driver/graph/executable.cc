// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/graph/executable.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "driver/api.h"
#include "driver/context/stack.h"
#include "driver/graph/graph_handle.h"
#include "driver/graph/graph_memory.h"
#include "driver/graph/replacement.h"
#include "driver/launch/launch.h"
#include "driver/memory/copy.h"
#include "driver/memory/memory.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

HandleTable<CUgraphExec, Executable>& Executables() {
  static auto& table = *new HandleTable<CUgraphExec, Executable>(7);
  return table;
}

void PanicIfContextIsGone(const void* handle, const std::vector<ExecutableNode>& nodes) {
  for (const ExecutableNode& node : nodes) {
    const Incarnation& incarnation = node.work.incarnation;
    if (incarnation.context == nullptr || incarnation.IsAlive()) continue;
    PanicHandle(handle,
                "a node is of a context that was destroyed; a real driver crashes here (measured "
                "on an H100, driver 580.159.04)");
  }
}

bool AreInstantiateFlags(unsigned long long flags) {
  constexpr unsigned long long kFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                        CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  return (flags & ~kFlags) == 0;
}

void Collect(const Graph& graph, std::vector<ExecutableNode>* nodes) {
  for (const NodePointer& node : InOrder(graph)) {
    if (node->work.run != nullptr) nodes->push_back({node, node->work, true});
    if (node->work.child != nullptr) Collect(*node->work.child, nodes);
  }
}

// Whether what a launch allocates is not there yet, unless that is freed first, and what else it
// frees is.
bool HasItsMemory(const std::vector<ExecutableNode>& nodes, bool frees_on_launch) {
  std::set<const GraphMemory*> allocated;
  for (const ExecutableNode& node : nodes) {
    if (node.work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) allocated.insert(node.work.memory.get());
  }
  return std::none_of(nodes.begin(), nodes.end(), [&](const ExecutableNode& node) {
    const std::shared_ptr<GraphMemory>& memory = node.work.memory;
    if (memory == nullptr) return false;
    if (allocated.count(memory.get()) != 0) return memory->is_owned() && !frees_on_launch;
    return !memory->is_owned();
  });
}

// Where a kernel does the work, if one does: also fills of managed memory or of several rows, and
// copies within the device. Not measured: copies from memory of no context.
Incarnation PlaceOfKernel(const Work& work) {
  CUgraphNodeParams params = {};
  switch (work.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return work.incarnation;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      work.describe(&params);
      Allocation filled;
      const bool is_managed = Memory::Find(params.memset.dst, &filled) && filled.IsManaged();
      return is_managed || params.memset.height > 1 ? work.incarnation : Incarnation{};
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      work.describe(&params);
      const CUDA_MEMCPY3D& copy = params.memcpy.copyParams;
      Allocation from;
      Allocation to;
      const bool is_within = LocationOf(copy.dstDevice) == Location::kDevice &&
                             LocationOf(copy.srcDevice) == Location::kDevice &&
                             Memory::Find(copy.srcDevice, &from) &&
                             Memory::Find(copy.dstDevice, &to) && from.device == to.device;
      if (!is_within) return {};
      return from.incarnation.context != nullptr ? from.incarnation : work.incarnation;
    }
    default:
      return {};
  }
}

// A context of kernels that were instantiated keeps its local memory, and says so by its flags.
// Source: test/graph_node_context_facts_test.cc.
void KeepLocalMemory(const Work& work) {
  const Incarnation place = PlaceOfKernel(work);
  if (place.context == nullptr) return;
  OwnerOf(place).context->flags.fetch_or(CU_CTX_LMEM_RESIZE_TO_MAX);
}

void CollectUserObjects(const Graph& graph, UserObjects* objects) {
  for (const NodePointer& node : graph.nodes) {
    if (node->work.child != nullptr) CollectUserObjects(*node->work.child, objects);
  }
  objects->push_back(std::make_shared<UserReferences>(graph.user_objects));
}

// Puts the launch into the stream. Its nodes run one after another: branches are not followed.
TaskPointer SubmitNodes(const Executable& executable, CUstream handle, const Stream& stream) {
  TaskPointer last = executable.last;
  for (const ExecutableNode& node : executable.nodes) {
    if (!node.is_enabled) continue;
    const std::shared_ptr<GraphMemory>& memory = node.work.memory;
    if (memory != nullptr) memory->Own(node.work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    last = SubmitUncaptured(handle, stream, node.work, last);
  }
  if (last == nullptr) return nullptr;
  Job end;  // until when the launch keeps the user objects
  end.incarnation = stream.incarnation;
  end.run = [objects = executable.user_objects] {};
  return Schedule::Submit(stream, end, {last});
}

}  // namespace

Shape ShapeOf(const Graph& graph) {
  Shape shape;
  const std::vector<NodePointer> nodes = InOrder(graph);
  std::map<NodePointer, size_t> places;
  for (const NodePointer& node : nodes) places.emplace(node, places.size());
  for (const NodePointer& node : nodes) {
    Shape::Node entry = {node->work.type, node->work.run != nullptr, {}, nullptr};
    for (const NodePointer& dependency : node->dependencies) {
      entry.dependencies.push_back(places.at(dependency));
    }
    if (node->work.child != nullptr) {
      entry.child = std::make_shared<Shape>(ShapeOf(*node->work.child));
    }
    shape.nodes.push_back(entry);
  }
  return shape;
}

UserObjects UserObjectsOf(const Graph& graph) {
  UserObjects objects;
  CollectUserObjects(graph, &objects);
  return objects;
}

CUresult FindExecutable(CUgraphExec handle, Executable* executable) {
  return FindIn(Executables(), handle, executable);
}

void SetExecutable(CUgraphExec handle, const Executable& executable) {
  Executables().Set(handle, executable);
}

size_t CountExecutables() { return Executables().CountAlive(); }

namespace {

// `offender`: a node of a cycle, if it is refused for that.
CUresult Instantiate(CUgraphExec* handle, CUgraph graph_handle, unsigned long long flags,
                     CUgraphNode* offender) {
  if (!AreInstantiateFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphPointer graph;
  code = FindGraph(graph_handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  Executable executable;
  bool has_memory = false;
  {
    const auto lock = Captures::Lock();
    if (const NodePointer node = FindCycle(*graph)) {
      *offender = node->handle;
      return CUDA_ERROR_INVALID_VALUE;
    }
    executable.shape = ShapeOf(*graph);
    executable.user_objects = UserObjectsOf(*graph);
    Collect(*graph, &executable.nodes);
    has_memory = HasMemory(*graph);
  }
  PanicIfContextIsGone(graph_handle, executable.nodes);
  for (const ExecutableNode& node : executable.nodes) {
    const bool is_possible =
        node.work.is_valid() && CanWorkOn(incarnation.context->device(), node.work);
    if (!is_possible) return CUDA_ERROR_INVALID_VALUE;
  }
  // One at a time.
  if (has_memory) {
    if (!graph->instance.expired()) return CUDA_ERROR_NOT_SUPPORTED;
    executable.instance = std::make_shared<int>();
    graph->instance = executable.instance;
  }
  executable.flags = flags;
  for (const ExecutableNode& node : executable.nodes) KeepLocalMemory(node.work);
  return Executables().Add(executable, handle);
}

}  // namespace

CUresult GraphInstantiateWithFlags(CUgraphExec* handle, CUgraph graph, unsigned long long flags) {
  CUgraphNode offender = nullptr;
  return Instantiate(handle, graph, flags, &offender);
}

CUresult GraphInstantiate(CUgraphExec* handle, CUgraph graph, CUgraphNode* error_node, char* log,
                          size_t log_size) {
  CUgraphNode offender = nullptr;
  const CUresult code = Instantiate(handle, graph, 0, &offender);
  if (error_node != nullptr) *error_node = offender;
  if (log != nullptr && log_size > 0) *log = '\0';
  return code;
}

// There is nothing for a device to launch. Not measured.
CUresult GraphInstantiateWithParams(CUgraphExec* handle, CUgraph graph,
                                    CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool uploads = (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  params->hErrNode_out = nullptr;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  Stream stream;
  CUresult code = uploads ? FindReadyStream(params->hUploadStream, &stream) : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS) {
    code = Instantiate(handle, graph,
                       params->flags & ~static_cast<cuuint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD),
                       &params->hErrNode_out);
  }
  if (params->hErrNode_out != nullptr) {
    params->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  }
  if (code == CUDA_SUCCESS) params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return code;
}

// Of what a launch allocates the device has its part from here on. Nothing else is uploaded.
CUresult GraphUpload(CUgraphExec handle, CUstream stream_handle) {
  Stream stream;
  CUresult code = FindReadyStream(stream_handle, &stream);
  Executable executable;
  if (code == CUDA_SUCCESS) code = FindExecutable(handle, &executable);
  if (code != CUDA_SUCCESS) return code;
  for (const ExecutableNode& node : executable.nodes) {
    if (node.work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) node.work.memory->Prepare();
  }
  return CUDA_SUCCESS;
}

CUresult GraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  Executable executable;
  const CUresult code = FindExecutable(handle, &executable);
  if (code != CUDA_SUCCESS) return code;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  return CUDA_SUCCESS;
}

// In any stream: each node works in the context it was captured in.
CUresult GraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  Stream stream;
  CUresult code = FindReadyStream(stream_handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  Executable executable;
  code = FindExecutable(handle, &executable);
  if (code != CUDA_SUCCESS) return code;
  PanicIfContextIsGone(handle, executable.nodes);
  for (const ExecutableNode& node : executable.nodes) {
    if (node.is_enabled && !node.work.is_modelled) return NotModelled();
  }
  const bool frees_on_launch =
      (executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  if (!HasItsMemory(executable.nodes, frees_on_launch)) return CUDA_ERROR_INVALID_VALUE;
  for (const ExecutableNode& node : executable.nodes) {
    const bool allocates = node.work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    if (allocates && node.work.memory->is_owned()) node.work.memory->UnmapIn(stream);
  }
  executable.last = SubmitNodes(executable, stream_handle, stream);
  if (executable.last != nullptr) Executables().Set(handle, executable);
  return CUDA_SUCCESS;
}

CUresult GraphExecDestroy(CUgraphExec handle) {
  CUresult code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  Executable executable;
  code = FindExecutable(handle, &executable);
  if (code != CUDA_SUCCESS) return code;
  PanicIfContextIsGone(handle, executable.nodes);
  Executables().Remove(handle);
  return CUDA_SUCCESS;
}

namespace {

// What was instantiated of a node that is still there; `place` is in `executable`.
CUresult FindInExecutable(CUgraphExec handle, CUgraphNode node_handle, Executable* executable,
                          ExecutableNode** place) {
  CUresult code = FindExecutable(handle, executable);
  NodePointer node;
  if (code == CUDA_SUCCESS) code = FindNode(node_handle, &node);
  if (code != CUDA_SUCCESS) return code;
  const auto found =
      std::find_if(executable->nodes.begin(), executable->nodes.end(),
                   [&](const ExecutableNode& candidate) { return candidate.node == node; });
  if (found == executable->nodes.end()) return CUDA_ERROR_INVALID_VALUE;
  *place = &*found;
  return CUDA_SUCCESS;
}

// The same of one that can be enabled and disabled.
CUresult FindSwitchable(CUgraphExec handle, CUgraphNode node, Executable* executable,
                        ExecutableNode** place) {
  const CUresult code = FindInExecutable(handle, node, executable, place);
  if (code != CUDA_SUCCESS) return code;
  const CUgraphNodeType type = (*place)->work.type;
  const bool is_switchable = type == CU_GRAPH_NODE_TYPE_KERNEL ||
                             type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
  return is_switchable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

// Source: test/graph_enabled_facts_test.cc.

CUresult GraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node, unsigned* is_enabled) {
  Executable executable;
  ExecutableNode* place = nullptr;
  const CUresult code = FindSwitchable(handle, node, &executable, &place);
  if (code != CUDA_SUCCESS) return code;
  if (is_enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *is_enabled = place->is_enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult GraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned is_enabled) {
  Executable executable;
  ExecutableNode* place = nullptr;
  const CUresult code = FindSwitchable(handle, node, &executable, &place);
  if (code != CUDA_SUCCESS) return code;
  place->is_enabled = is_enabled != 0;
  SetExecutable(handle, executable);
  return CUDA_SUCCESS;
}

CUresult RemakeInExecutable(CUgraphExec handle, CUgraphNode node, CUgraphNodeType type,
                            const Remake& remake) {
  Executable executable;
  ExecutableNode* place = nullptr;
  CUresult code = FindInExecutable(handle, node, &executable, &place);
  if (code != CUDA_SUCCESS) return code;
  if (place->work.type != type) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  code = remake(place->work, &work);
  if (code != CUDA_SUCCESS) return code;
  if (Replace(&place->work, work) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  SetExecutable(handle, executable);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
