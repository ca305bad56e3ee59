// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every exported call of the simulated runtime does first and last, and the table
// of all of them.

#ifndef CUDASIM_RUNTIME_ENTRY_H_
#define CUDASIM_RUNTIME_ENTRY_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace cudasim::runtime {

// What an entry needs before it begins, as a real runtime was measured to establish it
// (test/runtime_context_facts_test.cc).
enum class Floor {
  kLastError,  // the driver, but no failure of it; its result is no new last error
  kNothing,
  kDriver,     // the driver, initialised; no context, though it may use the current one
  kContext,    // a living current context: see context.h
  kExecution,  // as kDriver, and a runtime of 13.1, which is the first with execution contexts
};

// One exported symbol.
struct Entry {
  const char* name;    // "cudaMemcpyAsync": what SimRuntime calls it
  const char* symbol;  // "cudaMemcpyAsync_ptsz"
  Floor floor;
  bool per_thread;    // stream 0 means cudaStreamPerThread
  size_t name_index;  // counters and faults: the first row with the same name
};

// All of them; rows of one name stand together.
struct EntryTable {
  const Entry* begin_row;
  size_t count;
  const Entry* begin() const { return begin_row; }
  const Entry* end() const { return begin_row + count; }
};
const EntryTable& Entries();

// Call counters and injected faults, per name, and the hook of all calls. `name_index` is
// Entry::name_index.
void CountCall(size_t name_index);

// The code to return instead of doing the call, or cudaSuccess.
cudaError_t TakeFault(size_t name_index);

// By name; an unknown name is a mistake in the test and panics.
void FailCall(const char* name, unsigned nth, cudaError_t code, bool from_any_thread);
void ClearFaults();
// `hook` runs at the beginning of every call that is not made by it; nullptr removes it.
void OnEveryCall(void (*hook)(const char* name));
std::uint64_t Calls(const char* name);
std::uint64_t TotalCalls();
void ResetCalls();

// Whether stream 0 of the call that this thread is in is the per-thread stream.
bool IsPerThread();

// EntryScope
//
// The prologue counts the call, takes an injected fault and establishes the floor; the
// epilogue notes the last error. The entry does its work unless `refusal()` is an error:
//
//   return scope.Leave(scope.refusal() != cudaSuccess ? scope.refusal() : Work());
class EntryScope {
 public:
  explicit EntryScope(const Entry& entry);
  ~EntryScope();
  EntryScope(const EntryScope&) = delete;
  EntryScope& operator=(const EntryScope&) = delete;

  cudaError_t refusal() const { return refusal_; }
  cudaError_t Leave(cudaError_t code) const;

 private:
  const Entry& entry_;
  const bool outer_per_thread_;  // a callback may call back into the runtime
  cudaError_t refusal_ = cudaSuccess;
};

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_ENTRY_H_
