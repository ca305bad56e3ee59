// SPDX-License-Identifier: Apache-2.0
//
// What the C API does with the storage of its callers (c.h, Note [Storage]): an object of C++ lives
// in it from its beginning to its end.

#ifndef CUGUEST_LIB_CAPI_C_STORAGE_H_
#define CUGUEST_LIB_CAPI_C_STORAGE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "cuguest/c.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/this_thread.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// An `Object` in what a caller gave: a struct of its size and `opaque` words, the first of which is
// a mark from the beginning to the end. What was not initialised hardly has it, and a copy never.
template <typename Object, typename Given>
class StorageOf {
 public:
  explicit StorageOf(Given* given) noexcept : given_(given) {
    static_assert(kNeeded <= sizeof(Given) && alignof(Object) <= alignof(Given));
  }

  // CUDA_SUCCESS, or why not. It cannot begin where the innermost of this thread is in it, but not
  // its mark: that one was never ended, and its place on the list leads to whatever is in it now.
  CUresult CanBegin() const noexcept {
    const CUresult code = Check(false);
    const bool is_abandoned = Holds(t_this_thread.innermost) || Holds(t_this_thread.host_view);
    return code == CUDA_SUCCESS && is_abandoned ? CUDA_ERROR_ILLEGAL_STATE : code;
  }
  CUresult HasBegun() const noexcept { return Check(true); }

  Object& operator*() const noexcept {
    return *std::launder(reinterpret_cast<Object*>(given_->opaque + 1));
  }
  Object* operator->() const noexcept { return &**this; }

  template <typename... Arguments>
  Object* Begin(Arguments&&... arguments) const noexcept {
    given_->opaque[0] = Mark();
    return new (given_->opaque + 1) Object(std::forward<Arguments>(arguments)...);
  }
  void End() const noexcept {
    (*this)->~Object();
    given_->opaque[0] = 0;
  }

 private:
  static constexpr std::size_t kNeeded =
      offsetof(Given, opaque) + sizeof(Given::opaque[0]) + sizeof(Object);

  unsigned long long Mark() const noexcept {
    return reinterpret_cast<std::uintptr_t>(given_) ^ 0x6375677565737443ULL;
  }
  CUresult Check(bool begun) const noexcept {
    if (given_ == nullptr || given_->size < kNeeded) return CUDA_ERROR_INVALID_VALUE;
    return (given_->opaque[0] == Mark()) == begun ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
  }

  bool Holds(const void* place) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(given_);
    return reinterpret_cast<std::uintptr_t>(place) - begin < sizeof(Given);
  }

  Given* given_;
};

// An object that is bound to the thread that made it.
template <typename Object>
struct Bound {
  template <typename... Arguments>
  explicit Bound(Arguments&&... arguments) : object(std::forward<Arguments>(arguments)...) {}

  BoundThread thread;
  Object object;
};

// Begins what has result(), and takes it back where that is a failure.
template <typename Object, typename Given, typename... Arguments>
CUresult BeginScope(Given* given, Arguments&&... arguments) noexcept {
  const StorageOf<Bound<Object>, Given> storage(given);
  CUresult code = storage.CanBegin();
  if (code != CUDA_SUCCESS) return code;
  code = storage.Begin(std::forward<Arguments>(arguments)...)->object.result();
  if (code != CUDA_SUCCESS) storage.End();
  return code;
}

// Leaves it, unless on another thread than its own, where `leave` reports that and does nothing.
template <typename Object, typename Given, typename Leave>
CUresult EndScope(Given* given, Leave leave) noexcept {
  const StorageOf<Bound<Object>, Given> storage(given);
  CUresult code = storage.HasBegun();
  if (code != CUDA_SUCCESS) return code;
  code = leave(&storage->object);
  if (storage->thread.IsThis()) storage.End();
  return code;
}

// Whether `ref` is one. An empty one is.
inline bool IsRef(const cuguest_ref* ref) noexcept {
  return ref != nullptr && ref->size >= offsetof(cuguest_ref, id) + sizeof(ref->id);
}

// Needs IsRef().
inline Incarnation NamedBy(const cuguest_ref& ref) noexcept { return {ref.context, ref.id}; }

// Writes `from` to `ref`, if that is one, and returns its result().
CUresult WriteRef(const ContextRef& from, cuguest_ref* ref) noexcept;

// Begins what `call`, which gives a CallOutcome, makes.
template <typename Object, typename Given, typename Call>
CUresult BeginObject(Given* given, Call call) noexcept {
  const StorageOf<Object, Given> storage(given);
  CUresult code = storage.CanBegin();
  Object object;
  if (code == CUDA_SUCCESS) code = call(&object).code;
  if (code == CUDA_SUCCESS) storage.Begin(object);
  return code;
}

template <typename Object, typename Given>
CUresult NameObject(const Given* given, cuguest_ref* ref) noexcept {
  const StorageOf<const Object, const Given> storage(given);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? WriteRef(storage->incarnation, ref) : code;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CAPI_C_STORAGE_H_
