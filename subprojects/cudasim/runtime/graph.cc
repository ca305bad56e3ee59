// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Captures and graphs. The enumerations have the driver's numbers, and the edges its
// layout.

#include <cuda.h>

#include "runtime/api.h"
#include "runtime/arguments.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/stream.h"

namespace cudasim::runtime {

static_assert(sizeof(CUgraphEdgeData) == sizeof(cudaGraphEdgeData));

cudaError_t ThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr) PanicNull("cudaThreadExchangeStreamCaptureMode");
  auto exchanged = static_cast<CUstreamCaptureMode>(*mode);
  const CUresult code = Driver().cuThreadExchangeStreamCaptureMode(&exchanged);
  if (code == CUDA_SUCCESS) *mode = static_cast<cudaStreamCaptureMode>(exchanged);
  return ToError(code);
}

cudaError_t StreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (status == nullptr) return cudaErrorInvalidValue;
  const cudaError_t code = BindContext();
  if (code != cudaSuccess) return code;
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = Driver().cuStreamIsCapturing(ToDriver(stream), &found);
  if (asked == CUDA_SUCCESS) *status = static_cast<cudaStreamCaptureStatus>(found);
  return ToError(asked);
}

cudaError_t StreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return ToError(
      Driver().cuStreamBeginCapture(ToDriver(stream), static_cast<CUstreamCaptureMode>(mode)));
}

cudaError_t StreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return ToError(Driver().cuStreamEndCapture(ToDriver(stream), graph));
}

cudaError_t StreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                 unsigned long long* id, cudaGraph_t* graph,
                                 const cudaGraphNode_t** dependencies,
                                 const cudaGraphEdgeData** edges, size_t* count) {
  if (status == nullptr) return cudaErrorInvalidValue;
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t found_id = 0;
  const CUgraphEdgeData* found_edges = nullptr;
  const CUresult code =
      Driver().cuStreamGetCaptureInfo(ToDriver(stream), &found, &found_id, graph, dependencies,
                                      edges != nullptr ? &found_edges : nullptr, count);
  if (code != CUDA_SUCCESS) return ToError(code);
  *status = static_cast<cudaStreamCaptureStatus>(found);
  if (id != nullptr) *id = found_id;
  if (edges != nullptr) *edges = reinterpret_cast<const cudaGraphEdgeData*>(found_edges);
  return cudaSuccess;
}

cudaError_t GraphCreate(cudaGraph_t* graph, unsigned flags) {
  return ToError(Driver().cuGraphCreate(graph, flags));
}

cudaError_t GraphDestroy(cudaGraph_t graph) { return ToError(Driver().cuGraphDestroy(graph)); }

cudaError_t GraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return ToError(Driver().cuGraphGetNodes(graph, nodes, count));
}

cudaError_t GraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  if (type == nullptr) return cudaErrorInvalidValue;
  CUgraphNodeType found = CU_GRAPH_NODE_TYPE_EMPTY;
  const CUresult code = Driver().cuGraphNodeGetType(node, &found);
  if (code == CUDA_SUCCESS) *type = static_cast<cudaGraphNodeType>(found);
  return ToError(code);
}

cudaError_t GraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return ToError(Driver().cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t GraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return ToError(Driver().cuGraphLaunch(exec, ToDriver(stream)));
}

// The results have the driver's numbers.
cudaError_t GraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                            cudaGraphExecUpdateResultInfo* info) {
  if (info == nullptr) return cudaErrorInvalidValue;
  CUgraphExecUpdateResultInfo found = {};
  const CUresult code = Driver().cuGraphExecUpdate(exec, graph, &found);
  *info = {static_cast<cudaGraphExecUpdateResult>(found.result), found.errorNode,
           found.errorFromNode};
  return ToError(code);
}

cudaError_t GraphExecDestroy(cudaGraphExec_t exec) {
  return ToError(Driver().cuGraphExecDestroy(exec));
}

}  // namespace cudasim::runtime
