// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "scope.h"

#include <utility>

#include "context_ref.h"
#include "cuguest/c.h"
#include "holder.h"
#include "incidents.h"
#include "object.h"
#include "place.h"

namespace pycuguest {
namespace {

template <typename Storage>
struct Scope {
  PyObject_HEAD Storage storage;
  Place place;
  bool is_entered;
  PyObject* what;  // of a guard
  PyObject* held;  // what was found for `what`
};
using Guard = Scope<cuguest_guard>;
using HostScope = Scope<cuguest_host_scope>;

void CleanUp(cuguest_guard* storage) { cuguest_guard_cleanup(storage); }
void CleanUp(cuguest_host_scope* storage) { cuguest_host_scope_cleanup(storage); }

template <typename Type>
Type* ScopeOf(PyObject* self) {
  return reinterpret_cast<Type*>(self);
}

template <typename Type>
PyObject* ScopeNew(PyTypeObject* type, PyObject* what) {
  Type* const self = New<Type>(type);
  if (self == nullptr) return nullptr;
  cuguest_init(&self->storage, sizeof(self->storage));
  self->place = CallersPlace();
  Py_XINCREF(what);
  self->what = what;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* GuardNew(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  PyObject* what;
  if (keywords != nullptr && PyDict_Size(keywords) != 0) {
    PyErr_SetString(PyExc_TypeError, "guard() takes no keyword arguments");
    return nullptr;
  }
  if (!PyArg_ParseTuple(args, "O:guard", &what)) return nullptr;
  return ScopeNew<Guard>(type, what);
}

PyObject* HostScopeNew(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  if (!PyArg_ParseTuple(args, ":host_scope")) return nullptr;
  if (keywords != nullptr && PyDict_Size(keywords) != 0) {
    PyErr_SetString(PyExc_TypeError, "host_scope() takes no arguments");
    return nullptr;
  }
  return ScopeNew<HostScope>(type, nullptr);
}

// -1 with an exception set, or the code of entering.
int EnterGuard(Guard* self, CUcontext* context) {
  const Place& place = self->place;
  if (PyLong_Check(self->what) && !PyBool_Check(self->what)) {
    if (!ContextOf(self->what, context)) return -1;
    return cuguest_guard_enter(&self->storage, *context, CUGUEST_ELIDE, place.file, place.line);
  }
  bool is_one;
  PyObject* ref = RefFor(self->what, &is_one);
  if (!is_one) {
    PyObject* const find = FromPython("find");
    PyObject* const found =
        find != nullptr ? PyObject_CallFunction(find, "O", self->what) : nullptr;
    Py_XDECREF(find);
    if (found == nullptr) return -1;
    if (self->is_entered) {  // by what `find` called
      Py_DECREF(found);
      return CUDA_ERROR_ILLEGAL_STATE;
    }
    Py_XDECREF(std::exchange(self->held, found));
    ref = RefFor(found, &is_one);
  }
  if (ref == nullptr) return -1;
  *context = RefOf(ref).context;
  return cuguest_guard_enter_ref(&self->storage, &RefOf(ref), CUGUEST_ELIDE, place.file,
                                 place.line);
}

int Enter(Guard* self, CUcontext* context) {
  const int code = EnterGuard(self, context);
  if (code != 0 && !self->is_entered) Py_CLEAR(self->held);
  return code;
}
int Enter(HostScope* self, CUcontext*) {
  return cuguest_host_scope_enter(&self->storage, self->place.file, self->place.line);
}

const char* DoingOf(Guard*) { return "enter context"; }
const char* DoingOf(HostScope*) { return "leave the guards of this thread for a callback"; }

template <typename Type>
PyObject* ScopeEnter(PyObject* object, PyObject*) {
  Type* const self = ScopeOf<Type>(object);
  if (self->is_entered) {
    return Raise(CUDA_ERROR_ILLEGAL_STATE, "enter a scope that is entered",
                 "make one for each block");
  }
  CUcontext context = nullptr;
  const int code = Enter(self, &context);
  if (code > 0) return Raise(code, DoingOf(self), context);
  if (code < 0) return nullptr;
  self->is_entered = true;
  // Of scopes that another thread has ended, and of callees before a host scope.
  if (__builtin_expect(!Report(false), false)) {
    self->is_entered = false;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    CleanUp(&self->storage);
    Py_CLEAR(self->held);
    PyErr_Restore(type, value, trace);
    return nullptr;
  }
  return Itself(object, nullptr);
}

template <typename Type>
bool Leave(Type* self, bool raises) {
  self->is_entered = false;
  CleanUp(&self->storage);
  PyObject* const held = std::exchange(self->held, nullptr);
  const bool ok = Report(raises);
  if (held != nullptr) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Py_DECREF(held);
    PyErr_Restore(type, value, trace);
  }
  return ok;
}

template <typename Type>
PyObject* ScopeExit(PyObject* object, PyObject* args) {
  Type* const self = ScopeOf<Type>(object);
  if (!self->is_entered) {
    return Raise(CUDA_ERROR_ILLEGAL_STATE, "leave a scope that is not entered",
                 "it was left already, or never entered");
  }
  const bool raises = PyTuple_Size(args) < 1 || PyTuple_GetItem(args, 0) == Py_None;
  if (!Leave(self, raises)) return nullptr;
  Py_RETURN_NONE;
}

template <typename Type>
int ScopeTraverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(ScopeOf<Type>(object)->what);
  Py_VISIT(ScopeOf<Type>(object)->held);
  return 0;
}

template <typename Type>
void ScopeDealloc(PyObject* object) {
  Type* const self = ScopeOf<Type>(object);
  PyObject_GC_UnTrack(object);
  if (self->is_entered) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (!Leave(self, false)) PyErr_WriteUnraisable(nullptr);
    PyErr_Restore(type, value, trace);
  }
  Py_CLEAR(self->held);
  Py_CLEAR(self->what);
  Free(object);
}

template <typename Type>
constexpr PyMethodDef kScopeMethods[] = {
    {"__enter__", ScopeEnter<Type>, METH_NOARGS, nullptr},
    {"__exit__", ScopeExit<Type>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot guard_slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "guard(x, /)\n--\n\nA context manager: the context of x is current inside the block, and "
         "the "
         "thread's stack of contexts is afterwards as it was before, whatever the block did.\n\n"
         "x is a CUcontext as a number, a ContextRef, a Primary, what acquire(), retain_primary() "
         "or shared() gave, or an object with a stream, memory or a context: see find().")},
    {Py_tp_new, AsSlot(GuardNew)},
    {Py_tp_dealloc, AsSlot(ScopeDealloc<Guard>)},
    {Py_tp_traverse, AsSlot(ScopeTraverse<Guard>)},
    {Py_tp_methods, const_cast<PyMethodDef*>(kScopeMethods<Guard>)},
    {0, nullptr},
};
PyType_Slot host_scope_slots[] = {
    {Py_tp_doc,
     const_cast<char*>("host_scope()\n--\n\nA context manager for a callback into the host: leaves "
                       "the guards of the thread, and enters them again at its end.")},
    {Py_tp_new, AsSlot(HostScopeNew)},
    {Py_tp_dealloc, AsSlot(ScopeDealloc<HostScope>)},
    {Py_tp_traverse, AsSlot(ScopeTraverse<HostScope>)},
    {Py_tp_methods, const_cast<PyMethodDef*>(kScopeMethods<HostScope>)},
    {0, nullptr},
};

}  // namespace

PyType_Spec guard_spec = {"cuguest.guard", sizeof(Guard), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, guard_slots};
PyType_Spec host_scope_spec = {"cuguest.host_scope", sizeof(HostScope), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, host_scope_slots};

}  // namespace pycuguest
