// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is alive, and what each thread has on its stack: as much of a model as is needed to call
// nothing that is undefined on a real driver. It is told what the driver answered, and predicts
// nothing.

#ifndef CUDASIM_CONFORMANCE_WORLD_H_
#define CUDASIM_CONFORMANCE_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/value.h"

namespace conformance {

inline constexpr int kThreads = 3;

// Sequences that make and end contexts take long on a real driver, so that most do not.
enum class Cost { kCheap, kExpensive };

struct Object {
  Value name;
  std::uintptr_t handle = 0;
  bool is_alive = true;
  size_t size = 0;         // of memory
  Value owner;             // the context that it goes with; a number: none
  Value place;             // of a stream: its context, which may be a green one; of memory: its
                           // pool; of graphs: what they were made from
  int attached = 1;        // of a user context: its reference count
  bool is_kept = false;    // a graph or a capture may use it
  bool is_shared = false;  // an event for other processes
  int type = -1;           // of a node, where it is known
};

class World {
 public:
  explicit World(Cost cost) : cost(cost) {}

  const Cost cost;
  // References to the primary context that were taken with the driver's calls and not released.
  int retains = 0;
  // Captures that have begun and may not have ended.
  int captures = 0;
  bool captures_per_thread = false;
  Value pool{'Q', 1};  // from which the device allocates
  int thread = 0;      // that calls now
  std::vector<Value> stacks[kThreads];

  Value NextName(char kind) { return {kind, next_[kind] + 1}; }
  Object& Add(const Value& name, std::uintptr_t handle);
  Object* Find(const Value& name);
  const Object* Find(const Value& name) const;
  // Null unless there is one that may be passed to a call.
  const Object* FindByHandle(const char* kinds, std::uintptr_t handle) const;
  // Those that may be passed to a call.
  std::vector<Value> Usable(const char* kinds) const;
  bool IsUsable(const Value& name) const;
  std::vector<Object*> All(char kind);

  // A destroyed context keeps its handle while it is on a stack.
  bool IsOnAStack(const Value& context) const;
  Value Top() const;
  bool IsAlive(const Value& context) const;
  // The context that what is made now belongs to.
  Value OwnerNow() const;
  void Push(const Value& context) { stacks[thread].push_back(context); }
  void Pop();
  // The call left `context` on the top.
  void SeeCurrent(const Value& context);

  void End(const Value& name);
  // With all that belongs to it. What a graph refers to cannot be told: all graphs end.
  void EndContext(const Value& context);

  // "none", "user", "dead user", ...: for coverage.
  std::string State() const;

 private:
  std::map<char, std::vector<Object>> objects_;
  std::map<char, long long> next_;
};

bool IsContext(const Value& name);

}  // namespace conformance

#endif  // CUDASIM_CONFORMANCE_WORLD_H_
