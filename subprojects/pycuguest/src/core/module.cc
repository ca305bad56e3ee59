// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the package in C++, for the limited API of CPython 3.9. Scopes are in the storage of
// a Python object: no signal's handler runs between entering and being noted, and one that is
// dropped is left. What finds or holds a context is the core's C++, whose errors name the object.
//
// What is called back, on slow paths alone, is the module cuguest._python, of which each
// interpreter has its own.

#include <cstdint>
#include <new>
#include <utility>

#include "context_ref.h"
#include "cuguest/acquire.h"
#include "cuguest/c.h"
#include "cuguest/free_memory.h"
#include "cuguest/shared_context.h"
#include "holder.h"
#include "incidents.h"
#include "object.h"
#include "scope.h"
#include "way.h"

namespace pycuguest {
namespace {

using cuguest::Acquired;
using cuguest::Device;
using cuguest::Error;
using cuguest::IfInactive;
using cuguest::SharedContext;

struct State {
  PyObject* ref_type;
  PyObject* acquired_type;
  PyObject* shared_type;
};

State* StateOf(PyObject* module) { return static_cast<State*>(PyModule_GetState(module)); }

PyObject* MakeRef(PyObject* module, const cuguest::ContextRef& context) {
  return NewRef(reinterpret_cast<PyTypeObject*>(StateOf(module)->ref_type), context);
}

// An object of `type` that holds what `acquire` gives, which is called while other threads may run
// Python code; or the error of that.
template <typename Held, typename Acquire>
PyObject* Hold(PyObject* module, PyObject* type, Acquire acquire) {
  const ReportsAtEnd reports;
  Held held;
  Unlocked(true, [&] { held = acquire(); });
  if (!held.ok()) return Raise(held.error());
  PyObject* const ref = MakeRef(module, held.context());
  auto* const made =
      ref != nullptr ? New<Holder<Held>>(reinterpret_cast<PyTypeObject*>(type)) : nullptr;
  if (made == nullptr) {
    Unlocked(true, [&] { held = Held(); });
    Py_XDECREF(ref);
    return nullptr;
  }
  made->ref = ref;
  ::new (&made->held) Held(std::move(held));
  return reinterpret_cast<PyObject*>(made);
}

template <typename Acquire>
PyObject* HoldAcquired(PyObject* module, Acquire acquire) {
  return Hold<Acquired>(module, StateOf(module)->acquired_type, acquire);
}
template <typename Share>
PyObject* HoldShared(PyObject* module, Share share) {
  return Hold<SharedContext>(module, StateOf(module)->shared_type, share);
}

PyObject* AcquireAny(PyObject* module, PyObject*) {
  return HoldAcquired(module, [] { return cuguest::AcquireAny(); });
}

PyObject* AcquireByWay(PyObject* module, PyObject* tuple) {
  Way way;
  if (!WayOf(tuple, &way)) return nullptr;
  return HoldAcquired(module, [&way] { return Acquire(way); });
}

PyObject* ReleaseKeptOn(PyObject*, PyObject* args) {
  int device;
  if (!PyArg_ParseTuple(args, "i", &device)) return nullptr;
  Error error;
  Unlocked(true, [&] { error = ReleaseKept(device); });
  if (!error.ok()) return Raise(error);
  Py_RETURN_NONE;
}

PyObject* CreateShared(PyObject* module, PyObject* args) {
  int device;
  unsigned flags;
  if (!PyArg_ParseTuple(args, "iI", &device, &flags)) return nullptr;
  return HoldShared(module, [=] { return SharedContext::Create(Device::Borrow(device), flags); });
}

PyObject* AttachShared(PyObject* module, PyObject* number) {
  CUcontext context;
  if (!ContextOf(number, &context)) return nullptr;
  return HoldShared(module, [context] { return SharedContext::Attach(context); });
}

PyObject* Current(PyObject* module, PyObject*) {
  NeedDriver();
  cuguest_ref ref = CUGUEST_REF_INIT;
  const int code = cuguest_ref_current(&ref);
  // Where CUDA is not initialised, or in a forked child, nothing can be.
  if (code == CUDA_ERROR_INVALID_CONTEXT || code == CUDA_ERROR_NOT_INITIALIZED) Py_RETURN_NONE;
  if (code != 0) return Raise(code, "identify the current context");
  return MakeRef(module, cuguest::ContextRef::Of(ref.context, ref.id));
}

// Asks the loader, which has a lock of its own.
PyObject* IsInitialized(PyObject*, PyObject*) {
  int is_initialized = 0;
  Unlocked(true, [&is_initialized] { is_initialized = cuguest_is_initialized(); });
  return PyBool_FromLong(is_initialized);
}

PyObject* GetFreeMemory(PyObject*, PyObject* args) {
  int device, create;
  if (!PyArg_ParseTuple(args, "ip", &device, &create)) return nullptr;
  const ReportsAtEnd reports;
  cuguest::ErrorOr<cuguest::FreeMemory> memory = Error();
  const IfInactive if_inactive = create != 0 ? IfInactive::kCreate : IfInactive::kRefuse;
  Unlocked(true, [&] { memory = cuguest::GetFreeMemory(Device::Borrow(device), if_inactive); });
  if (!memory.ok()) return Raise(memory.error());
  return Py_BuildValue("(KK)", static_cast<Number>(memory->free),
                       static_cast<Number>(memory->total));
}

template <const char* Name(int)>
PyObject* NameOf(PyObject*, PyObject* number) {
  const long value = PyLong_AsLong(number);
  if (value == -1 && PyErr_Occurred()) return nullptr;
  const bool fits = value >= 0 && value < 1 << 30;
  return PyUnicode_FromString(Name(fits ? static_cast<int>(value) : -1));
}

// DLPack: the beginning of a DLTensor, and where it is in what a capsule holds.
struct DlTensor {
  void* data;
  int device_type;
  int device_id;
};
struct DlVersioned {
  std::uint32_t version[2];
  void* context;
  void* deleter;
  std::uint64_t flags;
  DlTensor tensor;
};

PyObject* DlpackPointer(PyObject*, PyObject* capsule) {
  const DlTensor* tensor = nullptr;
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    tensor = static_cast<DlTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    const auto* const versioned =
        static_cast<DlVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    if (versioned != nullptr && versioned->version[0] == 1) tensor = &versioned->tensor;
  }
  if (tensor == nullptr) {
    PyErr_Format(PyExc_TypeError, "cuguest: __dlpack__() gave no DLPack capsule but %R", capsule);
    return nullptr;
  }
  return PyLong_FromUnsignedLongLong(NumberOf(tensor->data));
}

// ignore(exception, of): tells sys.unraisablehook of it, which from Python cannot be called with
// what it takes.
PyObject* Ignore(PyObject*, PyObject* args) {
  PyObject *exception, *of;
  if (!PyArg_ParseTuple(args, "OO:ignore", &exception, &of)) return nullptr;
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(exception));
  Py_INCREF(type);
  Py_INCREF(exception);
  PyErr_Restore(type, exception, PyException_GetTraceback(exception));
  PyErr_WriteUnraisable(of);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"acquire", AcquireByWay, METH_O, nullptr},
    {"acquire_any", AcquireAny, METH_NOARGS, nullptr},
    {"release_kept", ReleaseKeptOn, METH_VARARGS, nullptr},
    {"create_shared", CreateShared, METH_VARARGS, nullptr},
    {"attach_shared", AttachShared, METH_O, nullptr},
    {"current", Current, METH_NOARGS,
     "current()\n--\n\nThe calling thread's current context; None if there is none."},
    {"is_initialized", IsInitialized, METH_NOARGS,
     "is_initialized()\n--\n\nWhether CUDA is initialised in this process, by whomever. Loads and "
     "initialises nothing."},
    {"free_memory", GetFreeMemory, METH_VARARGS, nullptr},
    {"error_name", NameOf<cuguest_error_name>, METH_O, nullptr},
    {"incident_name", NameOf<cuguest_incident_name>, METH_O, nullptr},
    {"repair_name", NameOf<cuguest_repair_name>, METH_O, nullptr},
    {"dlpack_pointer", DlpackPointer, METH_O, nullptr},
    {"ignore", Ignore, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// Adds the type, and keeps it in `kept` if something is made of it here; then nobody else makes
// any.
bool AddType(PyObject* module, const char* name, PyType_Spec* spec, PyObject** kept) {
  PyObject* const type = PyType_FromSpec(spec);
  if (type == nullptr) return false;
  Py_INCREF(type);
  if (kept != nullptr) *kept = type;
  if (kept == nullptr) Py_DECREF(type);
  if (PyModule_AddObject(module, name, type) == 0) return true;
  Py_DECREF(type);
  return false;
}

// What ways consist of, and the kind of incident that is none of a stack.
bool AddNumbers(PyObject* module) {
  static const struct {
    const char* name;
    int value;
  } numbers[] = {
      {"STREAM", Way::kStream},
      {"POINTER", Way::kPointer},
      {"DEVICE", Way::kDevice},
      {"PRIMARY", Way::kPrimary},
      {"REFUSE", CUGUEST_REFUSE},
      {"CREATE", CUGUEST_CREATE},
      {"CREATE_AND_KEEP", CUGUEST_CREATE_AND_KEEP},
      {"NO_DEVICE", CUGUEST_NO_DEVICE},
      {"OWED", CUGUEST_OWED},
  };
  for (const auto& number : numbers) {
    if (PyModule_AddIntConstant(module, number.name, number.value) != 0) return false;
  }
  return true;
}

int Execute(PyObject* module) {
  State* const state = StateOf(module);
  if (!Listen()) {
    PyErr_SetString(PyExc_ImportError, "cuguest: incidents cannot be listened to");
    return -1;
  }
  const bool ok = AddType(module, "ContextRef", &ref_spec, &state->ref_type) &&
                  AddType(module, "Acquired", &acquired_spec, &state->acquired_type) &&
                  AddType(module, "SharedContext", &shared_spec, &state->shared_type) &&
                  AddType(module, "guard", &guard_spec, nullptr) &&
                  AddType(module, "home", &home_spec, nullptr) &&
                  AddType(module, "host_scope", &host_scope_spec, nullptr) && AddNumbers(module);
  return ok ? 0 : -1;
}

int Traverse(PyObject* module, visitproc visit, void* arg) {
  State* const state = StateOf(module);
  Py_VISIT(state->ref_type);
  Py_VISIT(state->acquired_type);
  Py_VISIT(state->shared_type);
  return 0;
}

int Clear(PyObject* module) {
  State* const state = StateOf(module);
  Py_CLEAR(state->ref_type);
  Py_CLEAR(state->acquired_type);
  Py_CLEAR(state->shared_type);
  return 0;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, AsSlot(Execute)}, {0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "cuguest._core",
    nullptr,
    sizeof(State),
    functions,
    slots,
    Traverse,
    Clear,
    nullptr,
};

}  // namespace
}  // namespace pycuguest

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&pycuguest::definition); }
