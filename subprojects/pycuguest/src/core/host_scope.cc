// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "scope.h"

namespace pycuguest {
namespace {

class Entry {
 public:
  bool Enter(PyObject*, const Way&, const Place& place) {
    const int code = cuguest_host_scope_enter(&scope_, place.file, place.line);
    if (code != 0) Raise(code, "leave the guards of this thread for a callback");
    return code == 0;
  }
  void End() { cuguest_host_scope_cleanup(&scope_); }

 private:
  cuguest_host_scope scope_ = CUGUEST_INIT(cuguest_host_scope);
};

PyObject* HostScopeNew(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  if (!PyArg_ParseTuple(args, ":host_scope")) return nullptr;
  if (keywords != nullptr && PyDict_Size(keywords) != 0) {
    PyErr_SetString(PyExc_TypeError, "host_scope() takes no arguments");
    return nullptr;
  }
  return ScopeNew<Entry>(type, nullptr, -1);
}

PyMethodDef methods[] = {
    kEnterMethod<Entry>,
    {"__exit__", ScopeExit<Entry>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>("host_scope()\n--\n\nA context manager for a callback into the host: leaves "
                       "the guards of the thread, and enters them again at its end.")},
    {Py_tp_new, AsSlot(HostScopeNew)},
    {Py_tp_dealloc, AsSlot(ScopeDealloc<Entry>)},
    {Py_tp_traverse, AsSlot(ScopeTraverse<Entry>)},
    {Py_tp_methods, methods},
    {0, nullptr},
};

}  // namespace

PyType_Spec host_scope_spec = {"cuguest.host_scope", sizeof(Scope<Entry>), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace pycuguest
