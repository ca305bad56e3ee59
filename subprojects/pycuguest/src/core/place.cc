// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "place.h"

#define PY_SSIZE_T_CLEAN
#include <Python.h>
//
#include <cstdint>
#include <cstring>

namespace pycuguest {
namespace {

// Scopes keep the names of files, so these are never freed. Names are told apart by the address of
// their string, which is kept for that.
const char* KeptName(PyObject* name) {
  constexpr unsigned kNames = 1024;
  static struct {
    PyObject* key;
    const char* text;
  } names[kNames];
  const std::uintptr_t hash = reinterpret_cast<std::uintptr_t>(name) >> 4;
  for (unsigned i = 0; i < 8; ++i) {
    auto& entry = names[(hash + i) % kNames];
    if (entry.key == name) return entry.text;
    if (entry.key != nullptr) continue;
    PyObject* const bytes = PyUnicode_AsEncodedString(name, "utf-8", "surrogatepass");
    const char* const text = bytes != nullptr ? strdup(PyBytes_AsString(bytes)) : nullptr;
    Py_XDECREF(bytes);
    if (text == nullptr) break;
    Py_INCREF(name);
    entry = {name, text};
    return text;
  }
  PyErr_Clear();
  return "(too many files)";
}

// As PyObject_GetAttrString, which makes a string each time; `kept` is nobody else's.
PyObject* Attribute(PyObject* object, const char* name, PyObject** kept) {
  if (*kept == nullptr) *kept = PyUnicode_InternFromString(name);
  return *kept != nullptr && object != nullptr ? PyObject_GetAttr(object, *kept) : nullptr;
}

}  // namespace

// By attributes: what C has for it is in the stable ABI from 3.10 on.
Place CallersPlace() {
  Place place;
  PyObject* const frame = reinterpret_cast<PyObject*>(PyEval_GetFrame());
  if (frame == nullptr) return place;
  static PyObject *line_name, *code_name, *file_name;
  PyObject* const line = Attribute(frame, "f_lineno", &line_name);
  PyObject* const code = Attribute(frame, "f_code", &code_name);
  PyObject* const name = Attribute(code, "co_filename", &file_name);
  if (line != nullptr && PyLong_Check(line)) place.line = static_cast<int>(PyLong_AsLong(line));
  if (name != nullptr && PyUnicode_Check(name)) place.file = KeptName(name);
  Py_XDECREF(name);
  Py_XDECREF(code);
  Py_XDECREF(line);
  PyErr_Clear();
  return place;
}

}  // namespace pycuguest
