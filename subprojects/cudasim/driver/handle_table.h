// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects that are named by an opaque handle, most of which live in a context.

#ifndef CUDASIM_DRIVER_HANDLE_TABLE_H_
#define CUDASIM_DRIVER_HANDLE_TABLE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "driver/handle_number.h"

namespace cudasim::driver {

// What a handle names now.
enum class Handled {
  kAlive,
  kOrphan,  // its context died before it was destroyed
  kGone,    // destroyed
  kNever,   // not a handle of this table
};

// The incarnation of what no context takes along.
struct Eternal {
  bool IsAlive() const { return true; }
};

// HandleTable
//
// A handle is a HandleNumber. A `Value` is copied out, so that nothing refers to an
// object that another thread destroys; it has a member `Incarnation incarnation`. An orphan
// stays, to be told from what was destroyed, but where counting does not come by it again.
//
// Threads: any; one mutex per table.
template <typename Handle, typename Value>
class HandleTable {
 public:
  explicit HandleTable(unsigned kind) : number_(kind) {}

  // CONTEXT_IS_DESTROYED when the context died in the meantime.
  CUresult Add(const Value& value, Handle* handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!value.incarnation.IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *handle = ToHandle(next_);
    values_.emplace(next_++, value);
    return CUDA_SUCCESS;
  }

  // Copies the object, alive or orphan, to `value`.
  Handled Find(Handle handle, Value* value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto number = ToNumber(handle);
    if (number == 0 || number >= next_) return Handled::kNever;
    const Value* const found = Get(number);
    if (found == nullptr) return Handled::kGone;
    *value = *found;
    return value->incarnation.IsAlive() ? Handled::kAlive : Handled::kOrphan;
  }

  // Both do nothing if another thread removed the object in the meantime.
  void Set(Handle handle, const Value& value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Value* const found = Get(ToNumber(handle))) *found = value;
  }
  void Remove(Handle handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Values* values : {&values_, &orphans_}) values->erase(ToNumber(handle));
  }

  // Calls `change` with each object of that incarnation.
  template <typename Change>
  void ForEachOf(std::uint64_t context_id, const Change& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Values* values : {&values_, &orphans_}) {
      for (auto& [number, value] : *values) {
        if (value.incarnation.id == context_id) change(&value);
      }
    }
  }

  size_t CountAlive() {
    return CountIf([](const Value&) { return true; });
  }

  // Of those that are alive.
  template <typename Predicate>
  size_t CountIf(const Predicate& predicate) {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t count = 0;
    for (auto next = values_.begin(); next != values_.end();) {
      const auto each = next++;
      if (!each->second.incarnation.IsAlive()) {
        orphans_.insert(values_.extract(each));
      } else if (predicate(each->second)) {
        ++count;
      }
    }
    return count;
  }

 private:
  using Values = std::map<std::uint64_t, Value>;

  Value* Get(std::uint64_t number) {
    for (Values* values : {&values_, &orphans_}) {
      const auto found = values->find(number);
      if (found != values->end()) return &found->second;
    }
    return nullptr;
  }
  Handle ToHandle(std::uint64_t number) const {
    return reinterpret_cast<Handle>(number_.ToHandle(number));
  }
  // 0 for a value that is no handle of this table.
  std::uint64_t ToNumber(Handle handle) const {
    return number_.ToNumber(reinterpret_cast<std::uintptr_t>(handle));
  }

  const HandleNumber number_;
  std::mutex mutex_;
  std::uint64_t next_ = 1;
  Values values_;
  Values orphans_;  // of those, what counting has found
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_HANDLE_TABLE_H_
