// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread's native call chains, as channels have them.
//
// Note [A chain is the same while its return addresses are]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// To unwind a stack takes microseconds, and most calls are made from where a call was made before.
// So a chain is kept with the places on the stack where its return addresses are, under the place
// of the callback's frame. If all of them hold what they held, the chain is the same: the innermost
// one says which function called, whose frame has a fixed size, which says where the next one is.
// None can be left out: two callers of one function have frames of one size, and between two calls
// a thread may have returned from all of them. So a deep chain costs more: one comparison for each
// frame.
//
// What it cannot see is that a library was unloaded and another copy of it loaded at its address:
// the innermost frame's object is looked up each time.
//
// Functions of Python are among the frames behind the native one that runs them. Calls between them
// leave no return address, so that the interpreter's frames are compared as well.
//
// Threads: one.

#ifndef CUGUEST_AUDIT_COLLECT_CHAIN_CACHE_H_
#define CUGUEST_AUDIT_COLLECT_CHAIN_CACHE_H_

#include <cstddef>
#include <cstdint>

#include "audit/collect/object_table.h"
#include "audit/collect/python_stack.h"

namespace cuguest::audit {

// One chain. `frames` are innermost first and without the hidden ones at the beginning.
struct CachedChain {
  static constexpr std::uint32_t kSlotsAtOnce = 4;  // slot_count is a multiple: one loop less

  std::uintptr_t key = 0;        // the callback's frame
  std::uint16_t generation = 0;  // as the channel has it; 0: it could not be defined
  std::uint16_t defined = 0;     // the last generation that was used
  std::uint32_t frame_count = 0;
  std::uint32_t slot_count = 0;
  std::uint32_t capacity = 0;  // of frames, of slots, and of Python's
  FrameRecord* frames = nullptr;
  struct Slot {
    const std::uintptr_t* place;
    std::uintptr_t value;
  }* slots = nullptr;  // of all frames from the callback's on; the last one is repeated
  std::uint32_t python_count = 0;
  PythonStack::Place* python = nullptr;  // likewise, of the functions of Python
  // Frames whose caller is in another object: how many, and the address of the innermost.
  std::uint32_t boundary_count = 0;
  std::uint64_t first_boundary = 0;
  bool is_through_runtime = false;      // libcudart.so is among the frames that were left out
  bool is_in_exit = false;              // exit() is among the callers
  std::uintptr_t caller_stack = 0;      // where the stack of the innermost frame begins
  std::uintptr_t innermost = 0;         // an address in it
  const KnownObject* object = nullptr;  // its object
  // Number of the innermost object or function that does not only pass calls on; 0: there is none.
  std::uint32_t worker = 0;
};

class ChainCache {
 public:
  static constexpr std::size_t kSets = 32;
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kMaxFrames = 1024;  // outer ones are left out

  ChainCache() = default;
  ~ChainCache();
  ChainCache(const ChainCache&) = delete;
  ChainCache& operator=(const ChainCache&) = delete;

  // The chain that the calling function was called by, defined in the channel as one of `thread`.
  // `key` is the calling function's frame. Null without memory. Valid until the next call.
  const CachedChain* Capture(std::uintptr_t key, std::uint32_t thread, std::uint32_t epoch,
                             ObjectTable* objects, ChannelWriter* writer);

  // The number that the channel knows it by.
  std::uint16_t NumberOf(const CachedChain* chain) const {
    return static_cast<std::uint16_t>(chain - &chains_[0][0]);
  }

  // For a new channel, which knows none.
  void Forget();

 private:
  static bool IsSame(const CachedChain& chain, std::uintptr_t key);
  static bool Unwind(CachedChain* chain, std::uint32_t epoch, ObjectTable* objects,
                     ChannelWriter* writer);

  CachedChain chains_[kSets][kWays];
  std::uint8_t next_[kSets] = {};
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_CHAIN_CACHE_H_
