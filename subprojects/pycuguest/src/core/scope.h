// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What guard, home and host_scope have in common: an object of Python with a scope of the core's in
// it.

#ifndef PYCUGUEST_CORE_SCOPE_H_
#define PYCUGUEST_CORE_SCOPE_H_

#include <new>

#include "incidents.h"
#include "object.h"
#include "place.h"
#include "way.h"

namespace pycuguest {

extern PyType_Spec guard_spec, home_spec, host_scope_spec;

enum class State : unsigned char {
  kOutside,
  kBusy,  // a call is under way, in which other threads may run Python code
  kInside,
};

// `Entry` begins and ends: Enter(what, way, place) sets an exception where it is false, and nothing
// has begun then; End() does nothing where nothing has.
template <typename Entry>
struct Scope {
  PyObject_HEAD Entry entry;
  Place place;
  State state;
  int device;      // -1: none
  PyObject* what;  // null: none
};

template <typename Entry>
Scope<Entry>* ScopeOf(PyObject* self) {
  return reinterpret_cast<Scope<Entry>*>(self);
}

template <typename Entry, typename... Arguments>
PyObject* ScopeNew(PyTypeObject* type, PyObject* what, int device, Arguments... arguments) {
  auto* const self = New<Scope<Entry>>(type);
  if (self == nullptr) return nullptr;
  ::new (&self->entry) Entry(arguments...);
  self->place = CallersPlace();
  self->device = device;
  Py_XINCREF(what);
  self->what = what;
  return reinterpret_cast<PyObject*>(self);
}

// The arguments `x` and `device`, one of which there is: null, or what was given. False with an
// exception set.
bool ParseSubject(const char* function, PyObject** what, PyObject* device_given, int* device);

PyObject* RaiseInside();
PyObject* RaiseOutside();

template <typename Entry>
void End(Scope<Entry>* self) {
  self->state = State::kBusy;
  self->entry.End();
  self->state = State::kOutside;
}

// Ends it behind an exception, which goes on, or where nobody would get one.
template <typename Entry>
void LeaveAside(Scope<Entry>* self) {
  End(self);
  ReportAside();
}

template <typename Entry>
PyObject* ScopeEnter(PyObject* object, PyObject*) {
  auto* const self = ScopeOf<Entry>(object);
  if (self->state != State::kOutside) return RaiseInside();
  Way way;
  if (!WayTo(self->what, self->device, &way)) return nullptr;
  if (self->state != State::kOutside) return RaiseInside();  // by what was asked
  NeedDriver();
  self->state = State::kBusy;
  const bool ok = self->entry.Enter(self->what, way, self->place);
  self->state = ok ? State::kInside : State::kOutside;
  if (!ok) {
    ReportAside();
    return nullptr;
  }
  // Of scopes that another thread has ended, and of callees before a host scope.
  if (__builtin_expect(!Report(false), false)) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    End(self);
    PyErr_Restore(type, value, trace);
    return nullptr;
  }
  return Itself(object, nullptr);
}

template <typename Entry>
PyObject* ScopeExit(PyObject* object, PyObject* args) {
  auto* const self = ScopeOf<Entry>(object);
  if (self->state != State::kInside) return RaiseOutside();
  const bool is_alone = PyTuple_Size(args) < 1 || PyTuple_GetItem(args, 0) == Py_None;
  if (is_alone) {
    End(self);
    if (!Report(true)) return nullptr;
  } else {
    LeaveAside(self);
  }
  Py_RETURN_NONE;
}

template <typename Entry>
int ScopeTraverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(ScopeOf<Entry>(object)->what);
  return 0;
}

template <typename Entry>
void ScopeDealloc(PyObject* object) {
  auto* const self = ScopeOf<Entry>(object);
  PyObject_GC_UnTrack(object);
  if (self->state == State::kInside) LeaveAside(self);
  self->entry.~Entry();
  Py_CLEAR(self->what);
  Free(object);
}

template <typename Entry>
constexpr PyMethodDef kEnterMethod = {"__enter__", ScopeEnter<Entry>, METH_NOARGS, nullptr};

}  // namespace pycuguest

#endif  // PYCUGUEST_CORE_SCOPE_H_
