// SPDX-License-Identifier: Apache-2.0
//
// Call counters and injected faults, per name.

#ifndef CUDASIM_RUNTIME_FAULT_H_
#define CUDASIM_RUNTIME_FAULT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace cudasim::runtime {

// `name_index` is Entry::name_index.
void CountCall(size_t name_index);

// The code to return instead of doing the call, or cudaSuccess.
cudaError_t TakeFault(size_t name_index);

// By name; an unknown name is a mistake in the test and panics.
void FailCall(const char* name, unsigned nth, cudaError_t code, bool from_any_thread);
void ClearFaults();
std::uint64_t Calls(const char* name);
std::uint64_t TotalCalls();
void ResetCalls();

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_FAULT_H_
