// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the C API does with the storage of its callers (c.h, Note [Storage]): an object of C++ lives
// in it from its beginning to its end.

#ifndef CUGUEST_LIB_CAPI_C_STORAGE_H_
#define CUGUEST_LIB_CAPI_C_STORAGE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "cuguest/c.h"
#include "cuguest/internal/compiler.h"
#include "cuguest/internal/incarnation.h"
#include "lib/share/ending.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// The mark of `given`, which nothing else has.
inline unsigned long long MarkOf(const void* given) noexcept {
  return reinterpret_cast<std::uintptr_t>(given) ^ 0x6375677565737443ULL;
}

// An `Object` in what a caller gave: a struct of its size and `opaque` words, the first of which is
// a mark from the beginning to the end. What was not initialised hardly has it, and a copy never.
template <typename Object, typename Given>
class StorageOf {
 public:
  explicit StorageOf(Given* given) noexcept : given_(given) {
    static_assert(kNeeded <= sizeof(Given) && alignof(Object) <= alignof(Given));
  }

  // CUDA_SUCCESS, or why not.
  CUresult CanBegin() const noexcept { return Check(false); }
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
  // What `make` gives. Its mark comes last: `make` may call the driver.
  template <typename Make>
  Object* BeginMade(Make make) const noexcept {
    Object* const made = new (given_->opaque + 1) Object(make());
    given_->opaque[0] = Mark();
    return made;
  }
  void End() const noexcept {
    (*this)->~Object();
    StoreRelease(given_->opaque, 0ULL);
  }
  // The same, and what was in it.
  Object Take() const noexcept {
    Object taken = std::move(**this);
    End();
    return taken;
  }
  // For what several threads may end at once: as HasBegun(), but true for one of them alone, which
  // calls End().
  CUresult Claim() const noexcept {
    const CUresult code = HasBegun();
    if (code != CUDA_SUCCESS) return code;
    return Replace(given_->opaque, Mark(), Ending()) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
  }

 private:
  static constexpr std::size_t kNeeded =
      offsetof(Given, opaque) + sizeof(Given::opaque[0]) + sizeof(Object);

  unsigned long long Mark() const noexcept { return MarkOf(given_); }
  unsigned long long Ending() const noexcept { return ~Mark(); }
  CUresult Check(bool begun) const noexcept {
    if (given_ == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Zeros alone: of the size that the struct has had since its first release.
    if (given_->size != 0 && given_->size < kNeeded) return CUDA_ERROR_INVALID_VALUE;
    const unsigned long long state = LoadAcquire(given_->opaque);
    const bool is_right = begun ? state == Mark() : state != Mark() && state != Ending();
    return is_right ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
  }

  Given* given_;
};

// Ends what is in `given`, as `end` does, and marks its storage as empty, unless stays(code), or a
// listener that `end` has called has done so.
template <typename Object, typename Given, typename End, typename Stays>
CUresult EndUnless(Given* given, End end, Stays stays) noexcept {
  const StorageOf<Object, Given> storage(given);
  CUresult code = storage.HasBegun();
  if (code != CUDA_SUCCESS) return code;
  code = end(&*storage);
  if (!stays(code) && storage.HasBegun() == CUDA_SUCCESS) storage.End();
  return code;
}

template <typename Object, typename Given, typename Leave>
CUresult EndScope(Given* given, Leave leave) noexcept {
  return EndUnless<Object>(given, leave, [](CUresult) { return false; });
}

template <typename Object, typename Given>
CUresult ReleaseObject(Given* given) noexcept {
  return EndUnless<Object>(
      given, [](Object* object) { return object->Release().code; }, &IsStillHeld);
}

// Destroys the object, out of its storage: a listener that is told what its end reports finds that
// empty, whatever it does with it.
template <typename Object, typename Given>
void CleanUpOwner(Given* given) noexcept {
  const StorageOf<Object, Given> storage(given);
  if (storage.HasBegun() == CUDA_SUCCESS) static_cast<void>(storage.Take());
}

// Destroys the object where it is.
template <typename Object, typename Given>
void CleanUpObject(Given* given) noexcept {
  static_cast<void>(EndScope<Object>(given, [](Object*) { return CUDA_SUCCESS; }));
}

// Whether `ref` is one. An empty one is, also of zeros alone.
inline bool IsRef(const cuguest_ref* ref) noexcept {
  constexpr std::size_t kNeeded = offsetof(cuguest_ref, id) + sizeof(cuguest_ref::id);
  return ref != nullptr && (ref->size == 0 || ref->size >= kNeeded);
}

// Needs IsRef(). One whose `context` its owner has cleared names none, whatever is left in it. The
// id that says that none is known is replaced by another one that the driver never gives.
inline Incarnation NamedBy(const cuguest_ref& ref) noexcept {
  if (ref.context == nullptr) return {nullptr, 0};
  return {ref.context, ref.id != Incarnation::kUnknownId ? ref.id : Incarnation::kUnknownId - 1};
}

// Writes `from` to `ref`, if that is one, and returns its result().
CUresult WriteRef(const ContextRef& from, cuguest_ref* ref) noexcept;

// Begins what `make` gives, if that is ok().
template <typename Given, typename Make>
CUresult BeginObject(Given* given, Make make) noexcept {
  using Object = decltype(make());
  const StorageOf<Object, Given> storage(given);
  const CUresult code = storage.CanBegin();
  if (code != CUDA_SUCCESS) return code;
  Object* const object = storage.BeginMade(make);
  if (object->ok()) return CUDA_SUCCESS;
  const CUresult why_not = object->error().code;
  storage.End();
  return why_not;
}

// Moves what has begun in `from` to `to`.
template <typename Object, typename Given>
CUresult MoveObject(Given* to, Given* from) noexcept {
  if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const StorageOf<Object, Given> source(from);
  const StorageOf<Object, Given> target(to);
  CUresult code = source.HasBegun();
  if (code == CUDA_SUCCESS) code = target.CanBegin();
  if (code != CUDA_SUCCESS) return code;
  target.Begin(std::move(*source));
  source.End();
  return code;
}

template <typename Object, typename Given>
CUresult NameObject(const Given* given, cuguest_ref* ref) noexcept {
  const StorageOf<const Object, const Given> storage(given);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? WriteRef(storage->context(), ref) : code;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CAPI_C_STORAGE_H_
