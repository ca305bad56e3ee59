// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What nodes were made with, and other things for them to do.
//
// Source: test/graph_node_facts_test.cc and test/graph_node_context_facts_test.cc.

#include "driver/graph/node_parameters.h"

#include <functional>
#include <utility>

#include "driver/api.h"
#include "driver/context/stack.h"
#include "driver/graph/executable.h"
#include "driver/launch/launch.h"
#include "driver/memory/copy.h"
#include "driver/stream/capture.h"
#include "driver/stream/event.h"
#include "driver/stream/host_function.h"

namespace cudasim::driver {
namespace {

// What the node was made with, in a type's form.
template <typename Params>
CUresult GetParams(CUgraphNode handle, CUgraphNodeType type, Params* params,
                   Params (*of)(const CUgraphNodeParams&)) {
  NodePointer node;
  const CUresult code = FindNode(handle, &node);
  if (code != CUDA_SUCCESS) return code;
  const auto lock = Captures::Lock();
  if (params == nullptr || node->work.type != type || !node->work.describe) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUgraphNodeParams any = {};
  node->work.describe(&any);
  *params = of(any);
  return CUDA_SUCCESS;
}

CUresult SetParams(CUgraphNode handle, CUgraphNodeType type, const Remake& remake) {
  NodePointer node;
  CUresult code = FindNode(handle, &node);
  if (code != CUDA_SUCCESS) return code;
  if (node->work.type != type) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  code = remake(node->work, &work);
  const auto lock = Captures::Lock();
  if (code == CUDA_SUCCESS) std::swap(node->work, work);
  return code;
}

Remake RemakeKernel(const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return [=](const Work& old, Work* work) {
    return params != nullptr ? MakeKernelWork(*params, old.attributes, work)
                             : CUDA_ERROR_INVALID_VALUE;
  };
}

// What is named, or the current context: what a fill and a copy name that are changed.
Incarnation NamedOrCurrent(CUcontext named) {
  Context* const context = named != nullptr ? Context::FindOrPanic(named) : Stack::Top();
  return context != nullptr ? IncarnationOf(context) : Incarnation{};
}

Remake RemakeCopy(const CUDA_MEMCPY3D* copy, const Incarnation& named) {
  return [=](const Work&, Work* work) {
    return copy != nullptr ? MakeCopyWork(*copy, named, work) : CUDA_ERROR_INVALID_VALUE;
  };
}

// Of an executable graph: it names a context, or one is current, which is not the same.
Remake RemakeCopyIn(const CUDA_MEMCPY3D* copy, CUcontext named) {
  return [=](const Work&, Work* work) {
    const Incarnation incarnation =
        named != nullptr ? IncarnationOf(Context::FindOrPanic(named)) : Incarnation{};
    const bool has_context = named != nullptr || Stack::Top() != nullptr;
    if (copy == nullptr || !has_context) return CUDA_ERROR_INVALID_VALUE;
    return MakeCopyWork(*copy, NamedOrGreen(incarnation), work);
  };
}

Remake RemakeFill(const CUDA_MEMSET_NODE_PARAMS* fill, const Incarnation& named) {
  return [=](const Work&, Work* work) {
    return fill != nullptr ? MakeFillWork(*fill, named, work) : CUDA_ERROR_INVALID_VALUE;
  };
}

// Of an executable graph: there must be such a context, even if the memory has one.
Remake RemakeFillIn(const CUDA_MEMSET_NODE_PARAMS* fill, const Incarnation& named) {
  return [=](const Work& old, Work* work) {
    return named.context != nullptr ? RemakeFill(fill, named)(old, work) : CUDA_ERROR_INVALID_VALUE;
  };
}

Remake RemakeHost(const CUDA_HOST_NODE_PARAMS* params) {
  return [=](const Work& old, Work* work) {
    return params != nullptr ? MakeHostWork(*params, old.incarnation, work)
                             : CUDA_ERROR_INVALID_VALUE;
  };
}

Remake RemakeRecord(CUevent event) {
  return [=](const Work& old, Work* work) { return MakeRecordWork(event, old.incarnation, work); };
}

Remake RemakeWait(CUevent event) {
  return [=](const Work& old, Work* work) { return MakeWaitWork(event, old.incarnation, work); };
}

// `set` is called with what makes the work of the parameters. Nodes of other types are not
// modelled; those that allocate or free memory cannot be changed.
template <typename Set>
CUresult WithRemake(const CUgraphNodeParams* params, const Set& set) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v2 kernel = ToKernelParams(params->kernel);
      return set(RemakeKernel(&kernel));
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return set(RemakeCopyIn(&params->memcpy.copyParams, params->memcpy.copyCtx));
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS fill = ToFillParams(params->memset);
      return set(RemakeFillIn(&fill, NamedOrCurrent(params->memset.ctx)));
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host = ToHostParams(params->host);
      return set(RemakeHost(&host));
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return set(RemakeRecord(params->eventRecord.event));
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return set(RemakeWait(params->eventWait.event));
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return NotModelled();
  }
}

CUDA_MEMCPY3D CopyOf(const CUgraphNodeParams& any) { return any.memcpy.copyParams; }
CUDA_MEMSET_NODE_PARAMS FillOf(const CUgraphNodeParams& any) { return ToFillParams(any.memset); }
CUDA_HOST_NODE_PARAMS HostOf(const CUgraphNodeParams& any) { return ToHostParams(any.host); }
CUevent RecordedOf(const CUgraphNodeParams& any) { return any.eventRecord.event; }
CUevent AwaitedOf(const CUgraphNodeParams& any) { return any.eventWait.event; }
CUDA_MEM_ALLOC_NODE_PARAMS AllocationOf(const CUgraphNodeParams& any) {
  return ToAllocationParams(any.alloc);
}
CUdeviceptr FreedOf(const CUgraphNodeParams& any) { return any.free.dptr; }
CUDA_KERNEL_NODE_PARAMS_v2 KernelOf(const CUgraphNodeParams& any) {
  return ToKernelParams(any.kernel);
}
CUDA_KERNEL_NODE_PARAMS_v1 FirstKernelOf(const CUgraphNodeParams& any) {
  const CUDA_KERNEL_NODE_PARAMS_v3& of = any.kernel;
  return {of.func,      of.gridDimX,  of.gridDimY,       of.gridDimZ,     of.blockDimX,
          of.blockDimY, of.blockDimZ, of.sharedMemBytes, of.kernelParams, of.extra};
}

}  // namespace

CUDA_KERNEL_NODE_PARAMS_v2 ToKernelParams(const CUDA_KERNEL_NODE_PARAMS_v1& first) {
  return {first.func,         first.gridDimX,  first.gridDimY,  first.gridDimZ,
          first.blockDimX,    first.blockDimY, first.blockDimZ, first.sharedMemBytes,
          first.kernelParams, first.extra,     nullptr,         nullptr};
}

CUDA_KERNEL_NODE_PARAMS_v2 ToKernelParams(const CUDA_KERNEL_NODE_PARAMS_v3& any) {
  return {any.func,         any.gridDimX,  any.gridDimY,  any.gridDimZ,
          any.blockDimX,    any.blockDimY, any.blockDimZ, any.sharedMemBytes,
          any.kernelParams, any.extra,     any.kern,      any.ctx};
}

CUDA_MEMSET_NODE_PARAMS ToFillParams(const CUDA_MEMSET_NODE_PARAMS_v2& any) {
  return {any.dst, any.pitch, any.value, any.elementSize, any.width, any.height};
}

CUDA_HOST_NODE_PARAMS ToHostParams(const CUDA_HOST_NODE_PARAMS_v2& any) {
  return {any.fn, any.userData};
}

CUDA_MEM_ALLOC_NODE_PARAMS ToAllocationParams(const CUDA_MEM_ALLOC_NODE_PARAMS_v2& any) {
  return {any.poolProps, any.accessDescs, any.accessDescCount, any.bytesize, any.dptr};
}

CUresult GraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return GetParams(node, CU_GRAPH_NODE_TYPE_KERNEL, params, KernelOf);
}

CUresult GraphKernelNodeGetParamsFirst(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return GetParams(node, CU_GRAPH_NODE_TYPE_KERNEL, params, FirstKernelOf);
}

CUresult GraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  return GetParams(node, CU_GRAPH_NODE_TYPE_MEMCPY, params, CopyOf);
}

CUresult GraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  return GetParams(node, CU_GRAPH_NODE_TYPE_MEMSET, params, FillOf);
}

CUresult GraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
  return GetParams(node, CU_GRAPH_NODE_TYPE_HOST, params, HostOf);
}

CUresult GraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return GetParams(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, RecordedOf);
}

CUresult GraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return GetParams(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, AwaitedOf);
}

CUresult GraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return GetParams(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params, AllocationOf);
}

CUresult GraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return GetParams(node, CU_GRAPH_NODE_TYPE_MEM_FREE, address, FreedOf);
}

CUresult GraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return SetParams(node, CU_GRAPH_NODE_TYPE_KERNEL, RemakeKernel(params));
}

CUresult GraphKernelNodeSetParamsFirst(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* first) {
  if (first == nullptr) return GraphKernelNodeSetParams(node, nullptr);
  const CUDA_KERNEL_NODE_PARAMS_v2 params = ToKernelParams(*first);
  return GraphKernelNodeSetParams(node, &params);
}

CUresult GraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  return SetParams(node, CU_GRAPH_NODE_TYPE_MEMCPY, RemakeCopy(copy, NamedOrCurrent(nullptr)));
}

CUresult GraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* fill) {
  return SetParams(node, CU_GRAPH_NODE_TYPE_MEMSET, RemakeFill(fill, NamedOrCurrent(nullptr)));
}

CUresult GraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return SetParams(node, CU_GRAPH_NODE_TYPE_HOST, RemakeHost(params));
}

CUresult GraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return SetParams(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, RemakeRecord(event));
}

CUresult GraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return SetParams(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, RemakeWait(event));
}

CUresult GraphExecEventRecordNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return RemakeInExecutable(executable, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, RemakeRecord(event));
}

CUresult GraphExecEventWaitNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return RemakeInExecutable(executable, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, RemakeWait(event));
}

CUresult GraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                    const CUDA_HOST_NODE_PARAMS* params) {
  return RemakeInExecutable(executable, node, CU_GRAPH_NODE_TYPE_HOST, RemakeHost(params));
}

CUresult GraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                      const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return RemakeInExecutable(executable, node, CU_GRAPH_NODE_TYPE_KERNEL, RemakeKernel(params));
}

CUresult GraphExecKernelNodeSetParamsFirst(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v1* first) {
  if (first == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 params = ToKernelParams(*first);
  return GraphExecKernelNodeSetParams(executable, node, &params);
}

CUresult GraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                      const CUDA_MEMCPY3D* copy, CUcontext context) {
  return RemakeInExecutable(executable, node, CU_GRAPH_NODE_TYPE_MEMCPY,
                            RemakeCopyIn(copy, context));
}

CUresult GraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                      const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  return RemakeInExecutable(executable, node, CU_GRAPH_NODE_TYPE_MEMSET,
                            RemakeFillIn(fill, NamedOrCurrent(context)));
}

CUresult GraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return WithRemake(params,
                    [=](const Remake& remake) { return SetParams(node, params->type, remake); });
}

CUresult GraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                CUgraphNodeParams* params) {
  return WithRemake(params, [=](const Remake& remake) {
    return RemakeInExecutable(executable, node, params->type, remake);
  });
}

}  // namespace cudasim::driver
