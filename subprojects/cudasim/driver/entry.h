// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every exported entry does first, the table of all entries, and of each its counter, its
// faults and whether it is hidden.

#ifndef CUDASIM_DRIVER_ENTRY_H_
#define CUDASIM_DRIVER_ENTRY_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace cudasim::driver {

// The state of the process that an entry needs.
enum class Floor {
  kAlways,       // also before cuInit and in a forked child; not after the end
  kOwn,          // the function decides itself
  kInitialized,  // needs cuInit
  kCallback,     // the same, and is permitted inside a stream callback
  kThread,       // the same, and works in a child forked after cuInit: thread state only
};

// One exported symbol.
struct Entry {
  const char* base;    // "cuCtxPushCurrent": what cuGetProcAddress and Sim call it
  const char* symbol;  // "cuCtxPushCurrent_v2"
  int version;         // 4000
  Floor floor;
  bool per_thread;     // stream 0 means CU_STREAM_PER_THREAD
  void* (*address)();  // of the exported function
  size_t base_index;   // counters and faults: the first row with the same base
};

// All of them, in the order of entry_list.h.
struct EntryTable {
  const Entry* begin_row;
  size_t count;
  const Entry* begin() const { return begin_row; }
  const Entry* end() const { return begin_row + count; }
};
const EntryTable& Entries();
inline size_t IndexOf(const Entry& entry) {
  return static_cast<size_t>(&entry - Entries().begin_row);
}

// Call counters, injected faults and hidden entries, per base name. `base_index` is
// Entry::base_index.
//
// Threads: any. An entry that is not armed costs two relaxed atomics.
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

// The call that this thread is in: for messages, and for what stream 0 means.
struct Call {
  const Entry* entry = nullptr;
  bool per_thread = false;
};
Call& ThisCall();

// The stream whose callback or host function this thread is in; null outside one.
const CUstream*& CallbackStream();

// EntryScope
//
// The prologue: counts the call, takes an injected fault, and refuses where the
// process is not in a state to be served. The entry returns `refusal()` unless it
// is CUDA_SUCCESS.
class EntryScope {
 public:
  explicit EntryScope(const Entry& entry);
  ~EntryScope() { ThisCall() = outer_; }
  EntryScope(const EntryScope&) = delete;
  EntryScope& operator=(const EntryScope&) = delete;

  CUresult refusal() const { return refusal_; }

 private:
  Call outer_;  // a callback may call back into the driver
  CUresult refusal_;
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_ENTRY_H_
