// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What scopes, and what holds something, report, for Python.

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

// The same behind an exception, which goes on, or where nobody would get one: what comes of it is
// told as an exception that is ignored.
void ReportAside();

// In an entry point that may give something back: reports at the entry point's end.
struct ReportsAtEnd {
  ~ReportsAtEnd() { ReportAside(); }
};

}  // namespace pycuguest

#endif  // PYCUGUEST_CORE_INCIDENTS_H_
