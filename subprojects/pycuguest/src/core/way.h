// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an object means, and how its context is found.

#ifndef PYCUGUEST_CORE_WAY_H_
#define PYCUGUEST_CORE_WAY_H_

#include "cuguest/acquire.h"
#include "cuguest/context_ref.h"
#include "cuguest/error.h"
#include "object.h"

namespace pycuguest {

struct Way {
  // The first four are those of the tuples that cuguest._python makes.
  enum Kind { kStream, kPointer, kDevice, kPrimary, kHandle, kRef, kNothing };

  // Whether finding the context may take the driver's lock, or create one.
  bool MayBlock() const { return kind != kStream || number <= 2; }

  Kind kind = kNothing;
  Number number = 0;                                               // of kStream, kPointer, kHandle
  int device = -1;                                                 // of the others; -1: none
  cuguest::IfInactive if_inactive = cuguest::IfInactive::kRefuse;  // of the primary context
  cuguest::ContextRef ref;  // of kRef; of kStream where the object was seen before, if it was
};

// Of `what`, or of `device` where that is null; kNothing where there is neither. Asks the object:
// it may run any Python code. False with an exception set.
bool WayTo(PyObject* what, int device, Way* way);

// Of a tuple of cuguest._python. False with an exception set.
bool WayOf(PyObject* tuple, Way* way);

// A device's number that a caller gave. False with an exception set.
bool DeviceOf(PyObject* number, int* device);

// Finds the context. It may block: call it where other threads may run Python code.
cuguest::Acquired Acquire(const Way& way);

// Gives back what Acquire() has kept for the process: of `device`, or with -1 of all.
cuguest::Error ReleaseKept(int device);

// Has cuguest._python note that the stream of `what`, to which `way` led, is one of `context`.
// False with an exception set.
bool NoteStream(PyObject* what, const Way& way, const cuguest::ContextRef& context);

}  // namespace pycuguest

#endif  // PYCUGUEST_CORE_WAY_H_
