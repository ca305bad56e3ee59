// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "scope.h"

namespace pycuguest {

bool ParseSubject(const char* function, PyObject** what, PyObject* device_given, int* device) {
  if (*what == Py_None) *what = nullptr;
  if (device_given == Py_None) device_given = nullptr;
  if ((*what == nullptr) == (device_given == nullptr)) {
    PyErr_Format(PyExc_TypeError, "cuguest: %s() takes an object or a device", function);
    return false;
  }
  *device = -1;
  return device_given == nullptr || DeviceOf(device_given, device);
}

PyObject* RaiseInside() {
  return Raise(CUDA_ERROR_ILLEGAL_STATE, "enter a scope that is entered",
               "make one for each block");
}
PyObject* RaiseOutside() {
  return Raise(CUDA_ERROR_ILLEGAL_STATE, "leave a scope that is not entered",
               "it was left already, or never entered");
}

}  // namespace pycuguest
