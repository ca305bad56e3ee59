// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the driver says of work in a capture before the graph is instantiated.          tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_TRIAL_GRAPH_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_TRIAL_GRAPH_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "cuguest/objects/driver.h"
#include "lib/guard/relaxed_scope.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// A graph of what `submit(stream)` submits, alone, in a stream of the current context, made to see
// whether it can be instantiated, and not launched.
class TrialGraph {
 public:
  explicit TrialGraph(const ObjectDriver& driver) noexcept : driver_(driver) {}
  TrialGraph(const TrialGraph&) = delete;
  TrialGraph& operator=(const TrialGraph&) = delete;
  ~TrialGraph() {
    if (executable_ != nullptr) static_cast<void>(driver_.GraphExecDestroy(executable_));
    if (graph_ != nullptr) static_cast<void>(driver_.GraphDestroy(graph_));
    if (stream_ != nullptr) static_cast<void>(driver_.StreamDestroy(stream_));
  }

  template <typename Submit>
  CUresult Instantiate(const Submit& submit) noexcept {
    CUresult code = relaxed_.result();
    if (code == CUDA_SUCCESS) code = driver_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    code = driver_.StreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (code != CUDA_SUCCESS) return code;
    code = submit(stream_);
    const CUresult ended = driver_.StreamEndCapture(stream_, &graph_);
    if (code == CUDA_SUCCESS) code = ended;
    if (code != CUDA_SUCCESS) return code;
    return driver_.GraphInstantiateWithFlags(&executable_, graph_, 0);
  }

 private:
  const ObjectDriver& driver_;
  const RelaxedScope relaxed_;  // ends after what is destroyed
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_TRIAL_GRAPH_H_
