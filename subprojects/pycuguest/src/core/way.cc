// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "way.h"

#include <climits>
#include <utility>

#include "context_ref.h"
#include "cuguest/device.h"
#include "cuguest/primary_context.h"
#include "cuguest/primary_keeper.h"
#include "holder.h"

namespace pycuguest {
namespace {

using cuguest::Acquired;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Error;
using cuguest::IfInactive;
using cuguest::PrimaryContext;

// What IfInactive::kCreateAndKeep asks for, also of Way::kPrimary, which the core's own does not
// know. For the process, and not destroyed: at its end the driver may be gone.
union Kept {
  constexpr Kept() : keeper() {}
  ~Kept() {}
  cuguest::PrimaryKeeper keeper;
} kept;

Acquired AcquirePrimary(Device device, bool create) {
  PrimaryContext primary = PrimaryContext::RetainIfActive(device);
  if (primary.ok() || !create) return Acquired(std::move(primary), Acquired::Source::kPrimary);
  return Acquired(PrimaryContext::Retain(device), Acquired::Source::kCreated);
}

Acquired AcquireOfHandle(CUcontext context) {
  const ContextRef ref = ContextRef::Borrow(context);
  if (ref.ok()) return Acquired(ref, Acquired::Source::kCurrent, Device::Borrow(-1));
  Error error;
  error.code = ref.result();
  error.doing = ref.doing();
  error.subject = Error::Subject::kContext;
  error.handle = NumberOf(context);
  return Acquired(error);
}

Acquired Find(const Way& way, IfInactive if_inactive) {
  const Device device = Device::Borrow(way.device);
  switch (way.kind) {
    case Way::kStream: {
      const CUstream stream = HandleOf<CUstream>(way.number);
      return way.device < 0 ? cuguest::AcquireFromStream(stream)
                            : cuguest::AcquireFromStream(stream, device, if_inactive);
    }
    case Way::kPointer:
      return cuguest::AcquireFromPointer(CUdeviceptr{way.number}, if_inactive);
    case Way::kDevice:
      return cuguest::AcquireOn(device, if_inactive);
    case Way::kPrimary:
      return AcquirePrimary(device, if_inactive != IfInactive::kRefuse);
    case Way::kHandle:
      return AcquireOfHandle(HandleOf<CUcontext>(way.number));
    case Way::kRef:
      return Acquired(way.ref, Acquired::Source::kCurrent, Device::Borrow(-1));
    case Way::kNothing:
      break;
  }
  return {};
}

// What cuguest._python.find() says of it.
PyObject* Ask(PyObject* what) {
  PyObject* const find = FromPython("find");
  PyObject* const found =
      find != nullptr ? PyObject_CallFunctionObjArgs(find, what, nullptr) : nullptr;
  Py_XDECREF(find);
  return found;
}

ContextRef CopyOf(PyObject* ref) { return ContextRef::Of(RefOf(ref).context, RefOf(ref).id); }

bool IsHandle(PyObject* what) { return PyLong_Check(what) && !PyBool_Check(what); }

}  // namespace

bool WayTo(PyObject* what, int device, Way* way) {
  way->device = device;
  if (what == nullptr) {
    way->kind = device < 0 ? Way::kNothing : Way::kDevice;
    return true;
  }
  if (IsHandle(what)) {
    CUcontext context;
    if (!ContextOf(what, &context)) return false;
    way->kind = Way::kHandle;
    way->number = NumberOf(context);
    return true;
  }
  bool is_one;
  PyObject* ref = RefFor(what, &is_one);
  PyObject* const found = is_one ? Itself(what, nullptr) : Ask(what);
  if (found == nullptr) return false;
  if (!is_one) ref = RefFor(found, &is_one);
  bool ok = !is_one || ref != nullptr;
  if (ok && is_one) {
    way->kind = Way::kRef;
    way->ref = CopyOf(ref);
  } else if (ok) {
    ok = WayOf(found, way);
  }
  Py_DECREF(found);
  return ok;
}

bool WayOf(PyObject* tuple, Way* way) {
  if (!PyTuple_Check(tuple)) {
    PyErr_Format(PyExc_TypeError, "cuguest: %R is no way to a context", tuple);
    return false;
  }
  int kind, if_inactive;
  PyObject *number, *seen;
  if (!PyArg_ParseTuple(tuple, "iO!iiO", &kind, &PyLong_Type, &number, &way->device, &if_inactive,
                        &seen)) {
    return false;
  }
  // "K" of PyArg_ParseTuple takes any number, and cuts it.
  way->number = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) return false;
  const bool is_kind = kind >= Way::kStream && kind <= Way::kPrimary;
  const bool is_what = if_inactive >= 0 && if_inactive <= CUGUEST_CREATE_AND_KEEP;
  if (!is_kind || !is_what) {
    PyErr_Format(PyExc_ValueError, "cuguest: %R is no way to a context", tuple);
    return false;
  }
  way->kind = static_cast<Way::Kind>(kind);
  way->if_inactive = static_cast<IfInactive>(if_inactive);
  if (way->kind == Way::kStream && way->number > 2 && !IsAddress(way->number)) {
    PyErr_Format(PyExc_ValueError, "cuguest: %R is no CUstream", number);
    return false;
  }
  if (IsRef(seen)) way->ref = CopyOf(seen);
  return true;
}

bool DeviceOf(PyObject* number, int* device) {
  PyObject* const check = FromPython("device_number");
  PyObject* const checked =
      check != nullptr ? PyObject_CallFunctionObjArgs(check, number, nullptr) : nullptr;
  Py_XDECREF(check);
  if (checked == nullptr) return false;
  const long value = PyLong_AsLong(checked);
  Py_DECREF(checked);
  if (PyErr_Occurred()) return false;
  *device = static_cast<int>(value);
  return true;
}

Acquired Acquire(const Way& way) {
  const bool keeps = way.if_inactive == IfInactive::kCreateAndKeep;
  Acquired acquired = Find(way, keeps ? IfInactive::kCreate : way.if_inactive);
  if (!keeps || !acquired.ok() || acquired.source() != Acquired::Source::kCreated) return acquired;
  const Error error = kept.keeper.Keep(acquired);
  return error.ok() ? std::move(acquired) : Acquired(error);
}

Error ReleaseKept(int device) {
  return device < 0 ? kept.keeper.ReleaseAll() : kept.keeper.Release(Device::Borrow(device));
}

bool NoteStream(PyObject* what, const Way& way, const ContextRef& context) {
  // A special stream is one of no context.
  const bool is_one = way.kind == Way::kStream && way.number > 2;
  if (!is_one || way.ref == context) return true;
  PyObject* const ref = MakeRef(context);
  PyObject* const note = ref != nullptr ? FromPython("note_stream") : nullptr;
  PyObject* const noted =
      note != nullptr ? PyObject_CallFunction(note, "OKO", what, way.number, ref) : nullptr;
  Py_XDECREF(note);
  Py_XDECREF(ref);
  Py_XDECREF(noted);
  return noted != nullptr;
}

}  // namespace pycuguest
