// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What holds a context: Acquired, SharedContext.

#ifndef PYCUGUEST_CORE_HOLDER_H_
#define PYCUGUEST_CORE_HOLDER_H_

#include "object.h"

namespace pycuguest {

template <typename Held>
struct Holder {
  PyObject_HEAD PyObject* ref;
  Held held;
};
extern PyType_Spec acquired_spec, shared_spec;

// The ref to enter for `object`, borrowed: a ContextRef, or what something of ours holds. Null,
// with an exception if that was released, where it is neither.
PyObject* RefFor(PyObject* object, bool* is_one);

}  // namespace pycuguest

#endif  // PYCUGUEST_CORE_HOLDER_H_
