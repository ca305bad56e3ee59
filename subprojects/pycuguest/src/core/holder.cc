// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "holder.h"

#include <utility>

#include "context_ref.h"
#include "cuguest/acquire.h"
#include "cuguest/device.h"
#include "cuguest/shared_context.h"
#include "incidents.h"

namespace pycuguest {
namespace {

using cuguest::Acquired;
using cuguest::Device;
using cuguest::Error;
using cuguest::SharedContext;

template <typename Held>
Holder<Held>* HolderOf(PyObject* self) {
  return reinterpret_cast<Holder<Held>*>(self);
}

// The last reference to a context waits for its work, of which Python code may be a part.
template <typename Held>
void HolderDealloc(PyObject* self) {
  const ReportsAtEnd reports;
  Held& held = HolderOf<Held>(self)->held;
  Unlocked(held.ok(), [&] { held.~Held(); });
  Py_XDECREF(HolderOf<Held>(self)->ref);
  Free(self);
}

PyObject* RaiseReleased(const char* doing) {
  return Raise(CUDA_ERROR_ILLEGAL_STATE, doing, "hold it for as long as its context is needed");
}

// Held by this call alone while the interpreter's lock is open.
template <typename Held>
Error GiveBack(PyObject* self) {
  const ReportsAtEnd reports;
  Held held = std::move(HolderOf<Held>(self)->held);
  Error error;
  if (!held.ok()) return error;
  Unlocked(true, [&] { error = held.Release(); });
  if (held.ok()) HolderOf<Held>(self)->held = std::move(held);
  return error;
}
template <typename Held>
PyObject* HolderRelease(PyObject* self, PyObject*) {
  const Error error = GiveBack<Held>(self);
  if (!error.ok()) return Raise(error);
  Py_RETURN_NONE;
}
// In a forked child there is nothing to give back, as for a guard and for what is dropped.
template <typename Held>
PyObject* HolderExit(PyObject* self, PyObject*) {
  const Error error = GiveBack<Held>(self);
  if (!error.ok() && error.code != CUDA_ERROR_NOT_INITIALIZED) return Raise(error);
  Py_RETURN_NONE;
}

// They are made here alone: storage of zeros holds nothing that could be asked.
PyObject* HolderNew(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "cuguest: acquire(), retain_primary() and shared() make what holds a context");
  return nullptr;
}

template <typename Held>
PyObject* HolderContext(PyObject* self, void*) {
  return Itself(HolderOf<Held>(self)->ref, nullptr);
}

PyObject* AcquiredSource(PyObject* self, void*) {
  static const char* const names[] = {"stream", "pointer", "current", "primary", "created"};
  return PyUnicode_FromString(names[static_cast<int>(HolderOf<Acquired>(self)->held.source())]);
}

// A copy is held, so that the object is as it was meanwhile.
PyObject* AcquiredHold(PyObject* self, PyObject*) {
  const ReportsAtEnd reports;
  Acquired& held = HolderOf<Acquired>(self)->held;
  if (!held.ok()) return RaiseReleased("hold what was released");
  if (held.holds()) Py_RETURN_NONE;
  Acquired more = held;
  Error error;
  Unlocked(true, [&] { error = more.Hold(); });
  if (!error.ok()) return Raise(error);
  // Where another thread has held it, or released it, that stays.
  if (held.ok() && !held.holds()) held = std::move(more);
  Unlocked(more.holds(), [&] { more = Acquired(); });
  Py_RETURN_NONE;
}

PyObject* AcquiredHolds(PyObject* self, void*) {
  return PyBool_FromLong(HolderOf<Acquired>(self)->held.holds());
}

PyObject* AcquiredDevice(PyObject* self, void*) {
  const Acquired& held = HolderOf<Acquired>(self)->held;
  if (!held.ok()) return RaiseReleased("ask for the device of what was released");
  Device device = Device::Borrow(0);
  const CUcontext context = held.get();
  CUresult code = CUDA_SUCCESS;
  if (held.holds()) {
    code = held.GetDevice(&device);  // which it knows
  } else {
    const Acquired asked = held;  // another thread may release the object meanwhile
    Unlocked(true, [&] { code = asked.GetDevice(&device); });
  }
  if (code != CUDA_SUCCESS) return Raise(code, "ask for the device of context", context);
  return PyLong_FromLong(device.get());
}

PyObject* SharedUseCount(PyObject* self, void*) {
  const SharedContext& held = HolderOf<SharedContext>(self)->held;
  return PyLong_FromUnsignedLongLong(held.ok() ? held.use_count() : 0);
}

template <typename Held>
constexpr PyMethodDef kReleaseMethod = {
    "release", HolderRelease<Held>, METH_NOARGS,
    "Releases the reference now. Once it is released, nothing."};
constexpr PyMethodDef kEnterMethod = {"__enter__", Itself, METH_NOARGS, nullptr};
template <typename Held>
constexpr PyMethodDef kExitMethod = {"__exit__", HolderExit<Held>, METH_VARARGS, nullptr};

PyMethodDef acquired_methods[] = {
    {"hold", AcquiredHold, METH_NOARGS,
     "hold($self, /)\n--\n\nTakes a reference to the primary context where there is none yet: for "
     "what works with the context later, or on another thread. cuguest.Error "
     "(CUDA_ERROR_NOT_SUPPORTED) of a context that somebody has created."},
    kReleaseMethod<Acquired>,
    kEnterMethod,
    kExitMethod<Acquired>,
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef shared_methods[] = {
    kReleaseMethod<SharedContext>,
    kEnterMethod,
    kExitMethod<SharedContext>,
    {nullptr, nullptr, 0, nullptr},
};
constexpr PyGetSetDef kContextAttribute = {"context", nullptr, nullptr,
                                           "The ContextRef of what is held.", nullptr};
PyGetSetDef acquired_attributes[] = {
    {"context", HolderContext<Acquired>, nullptr, kContextAttribute.doc, nullptr},
    {"source", AcquiredSource, nullptr,
     "Where it was found: 'stream', 'pointer', 'current', 'primary', or 'created', if the primary "
     "context was not active before.",
     nullptr},
    {"holds", AcquiredHolds, nullptr,
     "Whether there is a reference that keeps the context alive: always where the source is "
     "'primary' or 'created', and after hold().",
     nullptr},
    {"device", AcquiredDevice, nullptr, "The number of the context's device.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyGetSetDef shared_attributes[] = {
    {"context", HolderContext<SharedContext>, nullptr, kContextAttribute.doc, nullptr},
    {"use_count", SharedUseCount, nullptr,
     "How many references the process has; 0 once this one is released.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot acquired_slots[] = {
    {Py_tp_doc, const_cast<char*>("A context to work in, and the reference that keeps it alive, if "
                                  "it is a primary one.")},
    {Py_tp_new, AsSlot(HolderNew)},
    {Py_tp_dealloc, AsSlot(HolderDealloc<Acquired>)},
    {Py_tp_getset, acquired_attributes},
    {Py_tp_methods, acquired_methods},
    {0, nullptr},
};
PyType_Slot shared_slots[] = {
    {Py_tp_doc, const_cast<char*>("One reference to a context, counted for the whole process: the "
                                  "last holder destroys a context that shared() made.")},
    {Py_tp_new, AsSlot(HolderNew)},
    {Py_tp_dealloc, AsSlot(HolderDealloc<SharedContext>)},
    {Py_tp_getset, shared_attributes},
    {Py_tp_methods, shared_methods},
    {0, nullptr},
};

template <typename Held>
PyObject* RefOfHolder(PyObject* object, bool* is_one) {
  if (!HasSlot(object, Py_tp_dealloc, AsSlot(HolderDealloc<Held>))) return nullptr;
  *is_one = true;
  if (HolderOf<Held>(object)->held.ok()) return HolderOf<Held>(object)->ref;
  return RaiseReleased("enter what was released");
}

}  // namespace

PyType_Spec acquired_spec = {"cuguest.Acquired", sizeof(Holder<Acquired>), 0, Py_TPFLAGS_DEFAULT,
                             acquired_slots};
PyType_Spec shared_spec = {"cuguest.SharedContext", sizeof(Holder<SharedContext>), 0,
                           Py_TPFLAGS_DEFAULT, shared_slots};

PyObject* RefFor(PyObject* object, bool* is_one) {
  *is_one = true;
  if (IsRef(object)) return object;
  *is_one = false;
  PyObject* const ref = RefOfHolder<Acquired>(object, is_one);
  return ref != nullptr || *is_one ? ref : RefOfHolder<SharedContext>(object, is_one);
}

}  // namespace pycuguest
