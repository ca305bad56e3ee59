// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "object.h"

#include <cstdio>
#include <cstring>

#include "cuguest/c.h"

namespace pycuguest {

PyObject* PythonModule() {
  PyObject* const name = PyUnicode_FromString("cuguest._python");
  PyObject* const module = name != nullptr ? PyImport_GetModule(name) : nullptr;
  Py_XDECREF(name);
  return module;
}

PyObject* FromPython(const char* name) {
  PyObject* const module = PythonModule();
  PyObject* const found = module != nullptr ? PyObject_GetAttrString(module, name) : nullptr;
  Py_XDECREF(module);
  if (found == nullptr && !PyErr_Occurred()) {
    PyErr_SetString(PyExc_RuntimeError, "cuguest: the interpreter is ending");
  }
  return found;
}

PyObject* Raise(int code, const char* doing, const char* advice) {
  PyObject* const type = FromPython("Error");
  PyObject* const error =
      type != nullptr ? PyObject_CallFunction(type, "iss", code, doing, advice) : nullptr;
  if (error != nullptr) PyErr_SetObject(type, error);
  Py_XDECREF(error);
  Py_XDECREF(type);
  return nullptr;
}

PyObject* Raise(const cuguest::Error& error) {
  char text[600];
  error.Write(text, sizeof(text));
  char* const colon = std::strstr(text, ": ");
  if (colon != nullptr) *colon = '\0';
  return Raise(static_cast<int>(error.code), text,
               colon != nullptr ? colon + 2 : cuguest_error_text(static_cast<int>(error.code)));
}

PyObject* Raise(int code, const char* doing, CUcontext context) {
  char what[120];
  char advice[600];
  const char* const more = cuguest_error_advice(code);
  std::snprintf(what, sizeof(what), context != nullptr ? "%s 0x%llx" : "%s", doing,
                NumberOf(context));
  std::snprintf(advice, sizeof(advice), "%s%s%s", cuguest_error_text(code),
                *more != '\0' ? "; " : "", more);
  return Raise(code, what, advice);
}

bool HasSlot(PyObject* object, int slot, void* function) {
  PyTypeObject* const type = Py_TYPE(object);
  return (PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE) != 0 &&
         PyType_GetSlot(type, slot) == function;
}

void Free(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

std::atomic<bool> driver_is_loaded{false};

void LoadDriver() {
  int code = CUDA_SUCCESS;
  Unlocked(true, [&code] {
    cuguest_ref ref = CUGUEST_REF_INIT;
    code = cuguest_ref_current(&ref);
  });
  // The one that is not remembered: the next call looks again.
  if (code != CUDA_ERROR_SHARED_OBJECT_INIT_FAILED) {
    driver_is_loaded.store(true, std::memory_order_release);
  }
}

PyObject* Itself(PyObject* self, PyObject*) {
  Py_INCREF(self);
  return self;
}

}  // namespace pycuguest
