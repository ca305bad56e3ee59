// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The handles of graphs, nodes and executable graphs.

#ifndef CUDASIM_DRIVER_GRAPH_GRAPH_HANDLE_H_
#define CUDASIM_DRIVER_GRAPH_GRAPH_HANDLE_H_

#include <cuda.h>

#include "driver/handle_table.h"
#include "driver/panic.h"

namespace cudasim::driver {

// Null and what was destroyed are told; any other value is read as a pointer
// (measured on an H100, driver 580.159.04).
template <typename Handle, typename Value>
CUresult FindIn(HandleTable<Handle, Value>& table, Handle handle, Value* value) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Handled found = table.Find(handle, value);
  if (found == Handled::kNever) {
    PanicHandle(handle,
                "this never was a graph, node or executable graph; a real driver reads the memory "
                "it points at");
  }
  return found == Handled::kAlive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_GRAPH_GRAPH_HANDLE_H_
