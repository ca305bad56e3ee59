// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What scopes report, for Python.

#ifndef PYCUGUEST_CORE_INCIDENTS_H_
#define PYCUGUEST_CORE_INCIDENTS_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace pycuguest {

// Begins to listen, once for the process; whether it does.
bool Listen();

// Gives what waits to cuguest._python.report(). False with an exception set: a warning became one,
// or, where `raises`, a caller's stack could not be restored.
bool Report(bool raises);

}  // namespace pycuguest

#endif  // PYCUGUEST_CORE_INCIDENTS_H_
