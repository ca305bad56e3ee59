// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of a graph: what an allocation node allocates and a free node frees.

#ifndef CUDASIM_DRIVER_GRAPH_GRAPH_MEMORY_H_
#define CUDASIM_DRIVER_GRAPH_GRAPH_MEMORY_H_

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <set>

#include "driver/graph/footprint.h"
#include "driver/memory/memory.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {

// GraphMemory
//
// A range of addresses that stays as long as the graph and what was instantiated from it, with
// memory behind it from the execution of the allocation node to that of a free node, or to
// cuMemFree or cuMemFreeAsync outside of a capture. It is owned from the launch that is to allocate
// it to the call that is to free it. Source: test/graph_memory_facts_test.cc and
// test/graph_memory_node_facts_test.cc.
//
// Threads: any.
class GraphMemory : public std::enable_shared_from_this<GraphMemory> {
 public:
  // For a node of `graph`.
  static CUresult Reserve(CUgraph graph, CUdevice device, size_t bytes,
                          std::shared_ptr<GraphMemory>* memory);
  // What begins at that address; nullptr if that is no graph's.
  static std::shared_ptr<GraphMemory> At(CUdeviceptr address);

  GraphMemory(CUgraph graph, CUdevice device, void* base, size_t size)
      : graph_(graph), device_(device), base_(base), size_(size) {}
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory();

  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(base_); }
  bool is_there() const;
  bool is_owned() const;

  // Of a launch that is to allocate or free it.
  void Own(bool is_owned);

  // For a node of that graph that frees it: INVALID_VALUE the second time, and where the graph that
  // allocates it frees it and another would, too, or the other way round.
  CUresult FreeIn(CUgraph graph);
  // For a call that frees it, whose caller leaves it then: INVALID_VALUE where there is no memory,
  // or what was launched frees it.
  CUresult FreeOutside();

  // What an upload does.
  void Prepare();
  // What the two nodes do, and the calls that free it. Memory that is there is kept with nobody
  // else referring to it.
  void Map();
  void Unmap();
  void UnmapIn(const Stream& stream);

 private:
  const CUgraph graph_;
  const CUdevice device_;
  void* const base_;
  const size_t size_;
  bool is_there_ = false;
  bool is_owned_ = false;
  std::set<CUgraph> freed_by_;
};

// Of a graph's that no launch has: its pointers are not known.
bool IsIdleMemory(const Allocation& allocation);

// For work that is done at `address` now: a real driver's device would fail.
void PanicUnlessMapped(CUdeviceptr address);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_GRAPH_GRAPH_MEMORY_H_
