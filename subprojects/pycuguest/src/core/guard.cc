// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <optional>

#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/device.h"
#include "cuguest/no_context_guard.h"
#include "scope.h"

namespace pycuguest {
namespace {

using cuguest::AcquiredGuard;
using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::Error;
using cuguest::GuardMode;
using cuguest::IfInactive;
using cuguest::Location;
using cuguest::NoContextGuard;

// Of what the caller keeps alive, by a handle or a ref; of what it finds, and holds; or of nothing.
class Entry {
 public:
  bool Enter(PyObject* what, const Way& way, const Place& place) {
    const Location where = {place.file, place.line};
    if (way.kind == Way::kNothing) return EnterNothing(where);
    if (way.kind == Way::kHandle || way.kind == Way::kRef) return EnterGiven(way, where);
    Error error;
    Unlocked(way.MayBlock(), [&] {
      Find(way, where);
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
    none_.reset();
    given_.reset();
    if (!found_.has_value()) return;
    // The last reference to a context may be the guard's.
    Unlocked(found_->acquired().holds(), [this] { found_.reset(); });
  }

 private:
  bool EnterNothing(Location where) {
    none_.emplace(where);
    if (none_->ok()) return true;
    Raise(none_->result(), none_->doing(), none_->advice());
    none_.reset();
    return false;
  }

  bool EnterGiven(const Way& way, Location where) {
    const CUcontext context = HandleOf<CUcontext>(way.number);
    if (way.kind == Way::kHandle) {
      given_.emplace(context, GuardMode::kElide, where);
    } else {
      given_.emplace(way.ref, GuardMode::kElide, where);
    }
    if (given_->ok()) return true;
    const CUresult code = given_->result();
    given_.reset();
    Raise(code, "enter context", way.kind == Way::kHandle ? context : way.ref.get());
    return false;
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

  std::optional<NoContextGuard> none_;
  std::optional<ContextGuard> given_;
  std::optional<AcquiredGuard> found_;
};

PyObject* GuardNew(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static const char* const names[] = {"", "device", nullptr};
  PyObject *what = nullptr, *given = nullptr;
  int device;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O$O:guard", const_cast<char**>(names), &what,
                                   &given)) {
    return nullptr;
  }
  // As current() says where nothing is.
  const bool is_none = what == Py_None && (given == nullptr || given == Py_None);
  if (is_none) return ScopeNew<Entry>(type, nullptr, -1);
  if (!ParseSubject("guard", &what, given, &device)) return nullptr;
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
         "or shared() gave, or an object with a stream, memory or a context: see find(). None, as "
         "current() says it, is no context: the stack is empty inside. With a "
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
