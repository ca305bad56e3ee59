// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "incidents.h"

#include <cstdio>
#include <cstring>
#include <utility>

#include "cuguest/c.h"
#include "object.h"

namespace pycuguest {
namespace {

// Incidents are reported on the calling thread, in the middle of a repair, where no Python code may
// run: they wait here for the end of the call, which each entry point that may have some tells.
constexpr int kRoom = 16;
thread_local cuguest_incident pending[kRoom];
thread_local int pending_count = 0;

void Keep(const cuguest_incident* incident, void*) {
  if (pending_count < kRoom) pending[pending_count++] = *incident;
}

PyObject* AsTuple(const cuguest_incident& incident) {
  const char* const file = incident.file != nullptr ? incident.file : "(unknown)";
  PyObject* const name =
      PyUnicode_DecodeUTF8(file, static_cast<Py_ssize_t>(std::strlen(file)), "surrogatepass");
  if (name == nullptr) return nullptr;
  return Py_BuildValue("(iiiNiKKKk)", incident.kind, incident.repair, incident.result, name,
                       incident.line, NumberOf(incident.expected), NumberOf(incident.found),
                       NumberOf(incident.current), incident.thread);
}

PyObject* AsList(const cuguest_incident* incidents, int count) {
  PyObject* const list = PyList_New(0);
  for (int i = 0; list != nullptr && i < count; ++i) {
    PyObject* const one = AsTuple(incidents[i]);
    const bool ok = one != nullptr && PyList_Append(list, one) == 0;
    Py_XDECREF(one);
    if (ok) continue;
    Py_DECREF(list);
    return nullptr;
  }
  return list;
}

// Where the interpreter is ending, and the package's Python is gone: the same text, by Python's own
// filters.
bool Warn(const cuguest_incident& incident) {
  char text[200];
  std::snprintf(text, sizeof(text), "cuguest: a callee %s; %s",
                cuguest_incident_name(incident.kind), cuguest_repair_name(incident.repair));
  const char* const file = incident.file != nullptr ? incident.file : "(unknown)";
  return PyErr_WarnExplicit(PyExc_RuntimeWarning, text, file, incident.line, nullptr, nullptr) == 0;
}

}  // namespace

bool Listen() {
  static cuguest_incident_listener listener = CUGUEST_INIT(cuguest_incident_listener);
  static bool listens = false;
  listens = listens || cuguest_incident_listener_register(&listener, Keep, nullptr) == 0;
  return listens;
}

bool Report(bool raises) {
  if (__builtin_expect(pending_count == 0, true)) return true;
  cuguest_incident incidents[kRoom];
  const int count = std::exchange(pending_count, 0);
  std::memcpy(incidents, pending, sizeof(pending));
  PyObject* const module = PythonModule();
  if (module == nullptr && !PyErr_Occurred()) {
    bool ok = true;
    for (int i = 0; ok && i < count; ++i) ok = Warn(incidents[i]);
    return ok;
  }
  PyObject* const list = module != nullptr ? AsList(incidents, count) : nullptr;
  PyObject* const result =
      list != nullptr ? PyObject_CallMethod(module, "report", "Oi", list, raises ? 1 : 0) : nullptr;
  Py_XDECREF(result);
  Py_XDECREF(list);
  Py_XDECREF(module);
  return result != nullptr;
}

void ReportAside() {
  if (__builtin_expect(pending_count == 0, true)) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (!Report(false)) PyErr_WriteUnraisable(nullptr);
  PyErr_Restore(type, value, trace);
}

}  // namespace pycuguest
