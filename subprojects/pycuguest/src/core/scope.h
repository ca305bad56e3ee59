// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scopes: guard, host_scope.

#ifndef PYCUGUEST_CORE_SCOPE_H_
#define PYCUGUEST_CORE_SCOPE_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace pycuguest {

extern PyType_Spec guard_spec, host_scope_spec;

}  // namespace pycuguest

#endif  // PYCUGUEST_CORE_SCOPE_H_
