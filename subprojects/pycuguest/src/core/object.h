// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the types of the extension share: numbers of handles, errors, memory.

#ifndef PYCUGUEST_CORE_OBJECT_H_
#define PYCUGUEST_CORE_OBJECT_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>
//
#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "cuguest/error.h"

namespace pycuguest {

using Number = unsigned long long;

inline Number NumberOf(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

template <typename Handle>
Handle HandleOf(Number number) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number));
}

// cuguest._python, and an attribute of it, as new references. When the interpreter ends it may be
// gone: then the first is null, without an exception.
PyObject* PythonModule();
PyObject* FromPython(const char* name);

// Sets cuguest.Error, and returns null. The last one is of a function of c.h, with what a scope
// that was refused can add.
PyObject* Raise(int code, const char* doing, const char* advice);
PyObject* Raise(const cuguest::Error& error);
PyObject* Raise(int code, const char* doing, CUcontext context = nullptr);

// The functions of a heap type know nothing of the module, so a type of ours is known by a slot.
bool HasSlot(PyObject* object, int slot, void* function);

template <typename Function>
void* AsSlot(Function* function) {
  return reinterpret_cast<void*>(function);
}

template <typename Type>
Type* New(PyTypeObject* type) {
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  return reinterpret_cast<Type*>(allocate(type, 0));
}
// Of a type of ours, once what is in it is gone.
void Free(PyObject* self);

// A method that returns its object.
PyObject* Itself(PyObject* self, PyObject*);

// Makes `call`; where it may block, other threads run Python code meanwhile.
template <typename Call>
void Unlocked(bool may_block, Call call) {
  PyThreadState* const state = may_block ? PyEval_SaveThread() : nullptr;
  call();
  if (state != nullptr) PyEval_RestoreThread(state);
}

// Whether the driver is loaded, or one was refused for good.
extern std::atomic<bool> driver_is_loaded;
void LoadDriver();

// What may be the first call of the driver loads it: other threads run Python code meanwhile, as
// constructors of libraries, which run in the loader's lock, may wait for them.
inline void NeedDriver() {
  if (__builtin_expect(!driver_is_loaded.load(std::memory_order_acquire), false)) LoadDriver();
}

}  // namespace pycuguest

#endif  // PYCUGUEST_CORE_OBJECT_H_
