// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <optional>

#include "cuguest/acquired_guard.h"
#include "cuguest/c.h"
#include "cuguest/device.h"
#include "scope.h"

namespace pycuguest {
namespace {

using cuguest::AcquiredGuard;
using cuguest::Device;
using cuguest::Error;
using cuguest::GuardMode;
using cuguest::IfInactive;
using cuguest::Location;

// By a handle or a ref, of what the caller keeps alive, a cuguest_guard; else what finds the
// context, holds it and is inside it in one.
class Entry {
 public:
  bool Enter(PyObject* what, const Way& way, const Place& place) {
    if (way.kind == Way::kHandle || way.kind == Way::kRef) return EnterGiven(way, place);
    Error error;
    Unlocked(way.MayBlock(), [&] {
      Find(way, {place.file, place.line});
      if (found_->ok()) return;
      error = found_->error();
      found_.reset();
    });
    if (!error.ok()) {
      Raise(error);
      return false;
    }
    if (NoteStream(what, way, found_->context())) return true;
    End();
    return false;
  }

  void End() {
    if (!found_.has_value()) return cuguest_guard_cleanup(&given_);
    // The last reference to a context may be the guard's.
    Unlocked(found_->acquired().holds(), [this] { found_.reset(); });
  }

 private:
  bool EnterGiven(const Way& way, const Place& place) {
    const bool is_handle = way.kind == Way::kHandle;
    const CUcontext context = is_handle ? HandleOf<CUcontext>(way.number) : way.ref.get();
    const cuguest_ref ref = {sizeof(cuguest_ref), context, way.ref.id()};
    const int code =
        is_handle ? cuguest_guard_enter(&given_, context, CUGUEST_ELIDE, place.file, place.line)
                  : cuguest_guard_enter_ref(&given_, &ref, CUGUEST_ELIDE, place.file, place.line);
    if (code != 0) Raise(code, "enter context", context);
    return code == 0;
  }

  void Find(const Way& way, Location where) {
    const Device device = Device::Borrow(way.device);
    const CUstream stream = HandleOf<CUstream>(way.number);
    if (way.kind == Way::kPrimary) {
      found_.emplace(Acquire(way), GuardMode::kElide, where);
    } else if (way.kind == Way::kDevice) {
      found_.emplace(device, way.if_inactive, GuardMode::kElide, where);
    } else if (way.kind == Way::kPointer) {
      found_.emplace(CUdeviceptr{way.number}, way.if_inactive, GuardMode::kElide, where);
    } else if (way.device < 0) {
      found_.emplace(stream, GuardMode::kElide, where);
    } else {
      found_.emplace(stream, device, way.if_inactive, GuardMode::kElide, where);
    }
  }

  cuguest_guard given_ = CUGUEST_INIT(cuguest_guard);
  std::optional<AcquiredGuard> found_;
};

PyObject* GuardNew(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static const char* const names[] = {"", "device", nullptr};
  PyObject *what = nullptr, *given = nullptr;
  int device;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O$O:guard", const_cast<char**>(names), &what,
                                   &given) ||
      !ParseSubject("guard", &what, given, &device)) {
    return nullptr;
  }
  return ScopeNew<Entry>(type, what, device);
}

PyMethodDef methods[] = {
    kEnterMethod<Entry>,
    {"__exit__", ScopeExit<Entry>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "guard(x=None, /, *, device=None)\n--\n\nA context manager: the context of x is current "
         "inside the block, and the thread's stack of contexts is afterwards as it was before, "
         "whatever the block did.\n\n"
         "x is a CUcontext as a number, a ContextRef, a Primary, what acquire(), retain_primary() "
         "or shared() gave, or an object with a stream, memory or a context: see find(). With a "
         "device instead, the context is the current one if it is on the device, else the device's "
         "primary one, which is not created.")},
    {Py_tp_new, AsSlot(GuardNew)},
    {Py_tp_dealloc, AsSlot(ScopeDealloc<Entry>)},
    {Py_tp_traverse, AsSlot(ScopeTraverse<Entry>)},
    {Py_tp_methods, methods},
    {0, nullptr},
};

}  // namespace

PyType_Spec guard_spec = {"cuguest.guard", sizeof(Scope<Entry>), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace pycuguest
