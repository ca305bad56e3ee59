// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ContextRef.

#ifndef PYCUGUEST_CORE_CONTEXT_REF_H_
#define PYCUGUEST_CORE_CONTEXT_REF_H_

#include "cuguest/c.h"
#include "cuguest/context_ref.h"
#include "object.h"

namespace pycuguest {

struct Ref {
  PyObject_HEAD cuguest_ref ref;
};
extern PyType_Spec ref_spec;

inline cuguest_ref& RefOf(PyObject* self) { return reinterpret_cast<Ref*>(self)->ref; }

bool IsRef(PyObject* object);

// A ContextRef of Python's for `context`, of the type `type`; and where a caller has not got that.
PyObject* NewRef(PyTypeObject* type, const cuguest::ContextRef& context);
PyObject* MakeRef(const cuguest::ContextRef& context);

// What cannot be a context's address, so that a number of another kind crashes nothing.
inline bool IsAddress(Number number) { return number >= 4096 && number % 8 == 0; }

// The context that a number is. False with an exception set.
bool ContextOf(PyObject* number, CUcontext* context);

}  // namespace pycuguest

#endif  // PYCUGUEST_CORE_CONTEXT_REF_H_
