// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <optional>

#include "context_ref.h"
#include "cuguest/thread_home.h"
#include "scope.h"

namespace pycuguest {
namespace {

using cuguest::ContextRef;
using cuguest::Error;
using cuguest::IfInactive;
using cuguest::Location;
using cuguest::ThreadHome;
using Keep = ThreadHome::Keep;
using IfOver = ThreadHome::IfOver;

class Entry {
 public:
  Entry(bool holds, bool reenters)
      : keep_(holds ? Keep::kReference : Keep::kNothing),
        if_over_(reenters ? IfOver::kReenter : IfOver::kRefuse) {}

  bool Enter(PyObject* what, const Way& way, const Place& place) {
    if (way.if_inactive != IfInactive::kRefuse) {
      PyErr_SetString(PyExc_ValueError,
                      "cuguest: home() creates no context: give it a Primary that is not created");
      return false;
    }
    Error error;
    Unlocked(true, [&] {
      home_.emplace(Acquire(way), keep_, if_over_, Location{place.file, place.line});
      error = home_->error();
      if (!error.ok()) home_.reset();
    });
    if (!error.ok()) {
      Raise(error);
      return false;
    }
    if (NoteStream(what, way, context())) return true;
    End();
    return false;
  }

  // Only what is over may have to be found anew, and held.
  Error Check() {
    Error error;
    Unlocked(if_over_ == IfOver::kReenter && !context().IsAlive(), [&] { error = home_->Check(); });
    return error;
  }

  void End() {
    Unlocked(keep_ == Keep::kReference, [this] { home_.reset(); });
  }

  const ContextRef& context() const { return home_->context(); }

 private:
  Keep keep_;
  IfOver if_over_;
  std::optional<ThreadHome> home_;
};
using Home = Scope<Entry>;

Home* HomeOf(PyObject* self) { return ScopeOf<Entry>(self); }

PyObject* HomeNew(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static const char* const names[] = {"", "device", "hold", "reenter", nullptr};
  PyObject *what = nullptr, *given = nullptr;
  int device, holds = 0, reenters = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O$Opp:home", const_cast<char**>(names), &what,
                                   &given, &holds, &reenters) ||
      !ParseSubject("home", &what, given, &device)) {
    return nullptr;
  }
  return ScopeNew<Entry>(type, what, device, holds != 0, reenters != 0);
}

PyObject* HomeCheck(PyObject* object, PyObject*) {
  Home* const self = HomeOf(object);
  if (self->state != State::kInside) {
    return Raise(CUDA_ERROR_ILLEGAL_STATE, "check a home that no thread is in",
                 "it was left already, or never entered");
  }
  self->state = State::kBusy;
  const Error error = self->entry.Check();
  self->state = State::kInside;
  if (!Report(false)) return nullptr;
  if (!error.ok()) return Raise(error);
  Py_RETURN_NONE;
}

// Also where release() has ended it.
PyObject* HomeExit(PyObject* object, PyObject* args) {
  if (HomeOf(object)->state == State::kOutside) Py_RETURN_NONE;
  return ScopeExit<Entry>(object, args);
}

PyObject* HomeRelease(PyObject* object, PyObject*) {
  PyObject* const none = PyTuple_New(0);
  PyObject* const result = none != nullptr ? HomeExit(object, none) : nullptr;
  Py_XDECREF(none);
  return result;
}

PyObject* HomeContext(PyObject* object, void*) {
  if (HomeOf(object)->state != State::kInside) Py_RETURN_NONE;
  return MakeRef(HomeOf(object)->entry.context());
}

PyMethodDef methods[] = {
    {"check", HomeCheck, METH_NOARGS,
     "check($self, /)\n--\n\nBetween two tasks: the context is alive and current when it returns; "
     "another one that a task has left is a CuguestWarning. Where the context was destroyed or "
     "reset, the thread has what it had before, and this raises cuguest.Error; with reenter=True "
     "only until the next primary context is active, which the thread is in then."},
    {"release", HomeRelease, METH_NOARGS,
     "release($self, /)\n--\n\nEnds it now: the thread's stack of contexts is as it was, and "
     "nothing is held. Once it is released, nothing."},
    kEnterMethod<Entry>,
    {"__exit__", HomeExit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef attributes[] = {
    {"context", HomeContext, nullptr, "The ContextRef of the thread's context; None outside.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "home(x=None, /, *, device=None, hold=False, reenter=False)\n--\n\nA context manager for "
         "the function of a thread of your own, or a task on a pool: the thread is in the context "
         "of x, or of a device, which are as those of guard(), until the end of the block.\n\n"
         "It creates no context. With hold=True it holds a reference to the primary context until "
         "its end, and refuses any other; with reenter=True, check() enters the next incarnation "
         "of a primary context that was reset.")},
    {Py_tp_new, AsSlot(HomeNew)},
    {Py_tp_dealloc, AsSlot(ScopeDealloc<Entry>)},
    {Py_tp_traverse, AsSlot(ScopeTraverse<Entry>)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, nullptr},
};

}  // namespace

PyType_Spec home_spec = {"cuguest.home", sizeof(Home), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                         slots};

}  // namespace pycuguest
