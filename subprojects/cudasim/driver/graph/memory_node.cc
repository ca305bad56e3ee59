// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory on the host is not modelled, and every device reaches a graph's memory, whatever access is
// asked for. Source: test/graph_memory_node_facts_test.cc.

#include "driver/graph/memory_node.h"

#include <memory>
#include <vector>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/graph/graph_memory.h"
#include "driver/graph/node_parameters.h"
#include "driver/process.h"

namespace cudasim::driver {
namespace {

CUresult Check(const CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  const CUmemPoolProps& pool = params.poolProps;
  if (params.bytesize == 0 ||
      params.accessDescCount > static_cast<size_t>(Process::DeviceCount()) ||
      (params.accessDescCount != 0 && params.accessDescs == nullptr) ||
      pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Not modelled: nodes that allocate memory of the host.
  if (pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return NotModelled();
  return IsDevice(pool.location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The same for a node of any type.
CUDA_MEM_ALLOC_NODE_PARAMS_v2 ToAny(const CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  return {params.poolProps, params.accessDescs, params.accessDescCount, params.bytesize,
          params.dptr};
}

}  // namespace

CUresult MakeAllocationWork(CUgraph graph, const Incarnation& incarnation,
                            CUDA_MEM_ALLOC_NODE_PARAMS* params, Work* work) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult code = Check(*params);
  if (code != CUDA_SUCCESS) return code;
  work->type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  work->incarnation = incarnation;
  const CUdevice device = params->poolProps.location.id;
  code = GraphMemory::Reserve(graph, device, params->bytesize, &work->memory);
  if (code != CUDA_SUCCESS) return code;
  params->dptr = work->memory->address();
  work->is_valid = [] { return true; };
  work->run = [memory = work->memory](CUstream) { memory->Map(); };
  const auto access = std::make_shared<std::vector<CUmemAccessDesc>>(
      params->accessDescs, params->accessDescs + params->accessDescCount);
  work->describe = [of = *params, access](CUgraphNodeParams* any) {
    any->alloc = ToAny(of);
    any->alloc.accessDescs = access->data();
  };
  return CUDA_SUCCESS;
}

CUresult MakeFreeWork(CUgraph graph, const Incarnation& incarnation, CUdeviceptr address,
                      Work* work) {
  const std::shared_ptr<GraphMemory> memory = GraphMemory::At(address);
  const CUresult code = memory != nullptr ? memory->FreeIn(graph) : CUDA_ERROR_INVALID_VALUE;
  if (code != CUDA_SUCCESS) return code;
  work->type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  work->incarnation = incarnation;
  work->memory = memory;
  work->is_valid = [] { return true; };
  work->run = [memory](CUstream) { memory->Unmap(); };
  work->describe = [address](CUgraphNodeParams* any) { any->free.dptr = address; };
  return CUDA_SUCCESS;
}

CUresult GraphAddMemAllocNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return AddNodeOf(handle, graph, dependencies, count,
                   [=](Work* work) { return MakeAllocationWork(graph, {}, params, work); });
}

CUresult GraphAddMemFreeNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count, CUdeviceptr address) {
  return AddNodeOf(handle, graph, dependencies, count,
                   [=](Work* work) { return MakeFreeWork(graph, {}, address, work); });
}

CUresult AddAllocationOfAny(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, CUDA_MEM_ALLOC_NODE_PARAMS_v2* any) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = ToAllocationParams(*any);
  const CUresult code = GraphAddMemAllocNode(handle, graph, dependencies, count, &params);
  any->dptr = params.dptr;
  return code;
}

}  // namespace cudasim::driver
