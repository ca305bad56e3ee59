// SPDX-License-Identifier: Apache-2.0
//
// Call counters, injected faults and hidden entries, per base name.
//
// Threads: any. An entry that is not armed costs two relaxed atomics.

#ifndef CUDASIM_DRIVER_FAULT_H_
#define CUDASIM_DRIVER_FAULT_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace cudasim::driver {

// `base_index` is Entry::base_index.
void CountCall(size_t base_index);

// The code to return instead of doing the call, or CUDA_SUCCESS.
CUresult TakeFault(size_t base_index);

// By base name; an unknown name is a mistake in the test and panics.
void FailCall(const char* base, unsigned nth, CUresult code, bool from_any_thread);
void ClearFaults();
// How many of an entry's faults were not taken yet.
unsigned PendingFaults(const char* base);

// `hook` runs at the beginning of every call that is not made by it; nullptr removes it.
void OnEveryCall(void (*hook)(const char* base));
void RunHook(const char* base);

std::uint64_t Calls(const char* base);
std::uint64_t TotalCalls();
void ResetCalls();

// nullptr shows all again.
void HideEntry(const char* base);
bool IsHidden(size_t base_index);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_FAULT_H_
