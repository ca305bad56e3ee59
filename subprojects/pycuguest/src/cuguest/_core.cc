// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the package in C++, for the limited API of CPython 3.9. Scopes are those of
// cuguest/c.h, in the storage of a Python object: no signal's handler runs between entering and
// being noted, and one that is dropped is left. What holds a context is the core's C++, whose
// errors name the object.
//
// What is called back, on slow paths alone, is the module cuguest._python, of which each
// interpreter has its own.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
//
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "cuguest/acquire.h"
#include "cuguest/c.h"
#include "cuguest/error.h"
#include "cuguest/free_memory.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"

namespace {

using cuguest::Acquired;
using cuguest::Device;
using cuguest::Error;
using cuguest::IfInactive;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using Number = unsigned long long;

Number NumberOf(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

template <typename Handle>
Handle HandleOf(Number number) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number));
}

// An attribute of cuguest._python, as a new reference. When the interpreter ends it may be gone.
PyObject* FromPython(const char* name) {
  PyObject* const module_name = PyUnicode_FromString("cuguest._python");
  PyObject* const module = module_name != nullptr ? PyImport_GetModule(module_name) : nullptr;
  PyObject* const found = module != nullptr ? PyObject_GetAttrString(module, name) : nullptr;
  Py_XDECREF(module);
  Py_XDECREF(module_name);
  if (found == nullptr && !PyErr_Occurred()) {
    PyErr_SetString(PyExc_RuntimeError, "cuguest: the interpreter is ending");
  }
  return found;
}

// Sets cuguest.Error, and returns null.
PyObject* Raise(int code, const char* doing, const char* advice) {
  PyObject* const type = FromPython("Error");
  PyObject* const error =
      type != nullptr ? PyObject_CallFunction(type, "iss", code, doing, advice) : nullptr;
  if (error != nullptr) PyErr_SetObject(type, error);
  Py_XDECREF(error);
  Py_XDECREF(type);
  return nullptr;
}

PyObject* Raise(const Error& error) {
  char text[600];
  error.Write(text, sizeof(text));
  char* const colon = std::strstr(text, ": ");
  if (colon != nullptr) *colon = '\0';
  return Raise(static_cast<int>(error.code), text,
               colon != nullptr ? colon + 2 : cuguest_error_text(static_cast<int>(error.code)));
}

// Of a function of c.h, with what a scope that was refused can add.
PyObject* Raise(int code, const char* doing, CUcontext context = nullptr) {
  char what[120];
  char advice[600];
  const char* const more = cuguest_error_advice(code);
  std::snprintf(what, sizeof(what), context != nullptr ? "%s 0x%llx" : "%s", doing,
                NumberOf(context));
  std::snprintf(advice, sizeof(advice), "%s%s%s", cuguest_error_text(code),
                *more != '\0' ? "; " : "", more);
  return Raise(code, what, advice);
}

// The functions of a heap type know nothing of the module, so a type of ours is known by a slot.
bool HasSlot(PyObject* object, int slot, void* function) {
  PyTypeObject* const type = Py_TYPE(object);
  return (PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE) != 0 &&
         PyType_GetSlot(type, slot) == function;
}

template <typename Function>
void* AsSlot(Function* function) {
  return reinterpret_cast<void*>(function);
}

void Free(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

template <typename Type>
Type* New(PyTypeObject* type) {
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  return reinterpret_cast<Type*>(allocate(type, 0));
}

// ---- Incidents

// Scopes report on the calling thread, in the middle of a repair, where no Python code may run:
// what they say waits here for the end of the call.
constexpr int kRoom = 16;
thread_local cuguest_incident pending[kRoom];
thread_local int pending_count = 0;
cuguest_incident_listener listener = CUGUEST_INIT(cuguest_incident_listener);

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

// Gives what waits to cuguest._python.report(). False with an exception set: a warning became one,
// or, where `raises`, a caller's stack could not be restored.
bool Report(bool raises) {
  if (__builtin_expect(pending_count == 0, true)) return true;
  cuguest_incident incidents[kRoom];
  const int count = std::exchange(pending_count, 0);
  std::memcpy(incidents, pending, sizeof(pending));
  PyObject* const list = PyList_New(0);
  bool ok = list != nullptr;
  for (int i = 0; ok && i < count; ++i) {
    PyObject* const one = AsTuple(incidents[i]);
    ok = one != nullptr && PyList_Append(list, one) == 0;
    Py_XDECREF(one);
  }
  PyObject* const report = ok ? FromPython("report") : nullptr;
  PyObject* const result =
      report != nullptr ? PyObject_CallFunction(report, "Oi", list, raises ? 1 : 0) : nullptr;
  Py_XDECREF(result);
  Py_XDECREF(report);
  Py_XDECREF(list);
  return result != nullptr;
}

// ---- The place of a guard

struct Place {
  const char* file = "(no Python code)";
  int line = 0;
};

// Scopes keep the names of files, so these are never freed. Names are told apart by the address of
// their string, which is kept for that.
const char* KeptName(PyObject* name) {
  constexpr unsigned kNames = 1024;
  static struct {
    PyObject* key;
    const char* text;
  } names[kNames];
  const std::uintptr_t hash = reinterpret_cast<std::uintptr_t>(name) >> 4;
  for (unsigned i = 0; i < 8; ++i) {
    auto& entry = names[(hash + i) % kNames];
    if (entry.key == name) return entry.text;
    if (entry.key != nullptr) continue;
    PyObject* const bytes = PyUnicode_AsEncodedString(name, "utf-8", "surrogatepass");
    const char* const text = bytes != nullptr ? strdup(PyBytes_AsString(bytes)) : nullptr;
    Py_XDECREF(bytes);
    if (text == nullptr) break;
    Py_INCREF(name);
    entry = {name, text};
    return text;
  }
  PyErr_Clear();
  return "(too many files)";
}

// As PyObject_GetAttrString, which makes a string each time; `kept` is nobody else's.
PyObject* Attribute(PyObject* object, const char* name, PyObject** kept) {
  if (*kept == nullptr) *kept = PyUnicode_InternFromString(name);
  return *kept != nullptr && object != nullptr ? PyObject_GetAttr(object, *kept) : nullptr;
}

// By attributes: what C has for it is in the stable ABI from 3.10 on.
Place CallersPlace() {
  Place place;
  PyObject* const frame = reinterpret_cast<PyObject*>(PyEval_GetFrame());
  if (frame == nullptr) return place;
  static PyObject *line_name, *code_name, *file_name;
  PyObject* const line = Attribute(frame, "f_lineno", &line_name);
  PyObject* const code = Attribute(frame, "f_code", &code_name);
  PyObject* const name = Attribute(code, "co_filename", &file_name);
  if (line != nullptr && PyLong_Check(line)) place.line = static_cast<int>(PyLong_AsLong(line));
  if (name != nullptr && PyUnicode_Check(name)) place.file = KeptName(name);
  Py_XDECREF(name);
  Py_XDECREF(code);
  Py_XDECREF(line);
  PyErr_Clear();
  return place;
}

// ---- ContextRef

struct Ref {
  PyObject_HEAD cuguest_ref ref;
};

cuguest_ref& RefOf(PyObject* self) { return reinterpret_cast<Ref*>(self)->ref; }

// What cannot be a context's address, so that a number of another kind crashes nothing.
bool IsAddress(Number number) { return number >= 4096 && number % 8 == 0; }

// False with an exception set.
bool ContextOf(PyObject* number, CUcontext* context) {
  const Number value = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
    PyErr_Clear();
  } else if (IsAddress(value)) {
    *context = HandleOf<CUcontext>(value);
    return true;
  }
  PyErr_Format(PyExc_ValueError,
               "cuguest: %R is no CUcontext: a handle is an address, and a device is named by "
               "cuguest.Primary",
               number);
  return false;
}

PyObject* RefNew(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static const char* const names[] = {"handle", nullptr};
  PyObject* number;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!:ContextRef", const_cast<char**>(names),
                                   &PyLong_Type, &number)) {
    return nullptr;
  }
  CUcontext context;
  cuguest_ref ref = CUGUEST_REF_INIT;
  if (!ContextOf(number, &context)) return nullptr;
  const int code = cuguest_ref_borrow(&ref, context);
  if (code != 0) return Raise(code, "identify context", context);
  Ref* const self = New<Ref>(type);
  if (self != nullptr) self->ref = ref;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* RefRepr(PyObject* self) {
  char text[80];
  std::snprintf(text, sizeof(text), "<cuguest.ContextRef 0x%llx, id %llu>",
                NumberOf(RefOf(self).context), RefOf(self).id);
  return PyUnicode_FromString(text);
}

bool IsRef(PyObject* object) { return HasSlot(object, Py_tp_repr, AsSlot(RefRepr)); }

PyObject* RefCompare(PyObject* a, PyObject* b, int how) {
  if (!IsRef(b) || (how != Py_EQ && how != Py_NE)) {
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
  }
  const bool same = RefOf(a).context == RefOf(b).context && RefOf(a).id == RefOf(b).id;
  return PyBool_FromLong(same == (how == Py_EQ));
}

Py_hash_t RefHash(PyObject* self) {
  const Number mixed = (NumberOf(RefOf(self).context) >> 4) ^ (RefOf(self).id << 40);
  return static_cast<Py_hash_t>(mixed >> 1);
}

PyObject* RefHandle(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(NumberOf(RefOf(self).context));
}
PyObject* RefId(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(RefOf(self).id); }
PyObject* RefIsAlive(PyObject* self, PyObject*) {
  return PyBool_FromLong(cuguest_ref_check(&RefOf(self)) == 0);
}

PyGetSetDef ref_attributes[] = {
    {"handle", RefHandle, nullptr, "The CUcontext, as a number.", nullptr},
    {"id", RefId, nullptr, "The driver's id, which is never used again; 0 below CUDA 12.0.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef ref_methods[] = {
    {"is_alive", RefIsAlive, METH_NOARGS,
     "Whether this incarnation is alive: exact for a primary context that was reset, best effort "
     "for a destroyed one."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot ref_slots[] = {
    {Py_tp_doc, const_cast<char*>("ContextRef(handle)\n--\n\nOne incarnation of a context: a value "
                                  "that owns nothing and keeps nothing alive.")},
    {Py_tp_new, AsSlot(RefNew)},
    {Py_tp_dealloc, AsSlot(Free)},
    {Py_tp_repr, AsSlot(RefRepr)},
    {Py_tp_hash, AsSlot(RefHash)},
    {Py_tp_richcompare, AsSlot(RefCompare)},
    {Py_tp_getset, ref_attributes},
    {Py_tp_methods, ref_methods},
    {0, nullptr},
};
PyType_Spec ref_spec = {"cuguest.ContextRef", sizeof(Ref), 0, Py_TPFLAGS_DEFAULT, ref_slots};

// ---- What holds a context: Acquired, SharedContext

template <typename Held>
struct Holder {
  PyObject_HEAD PyObject* ref;
  Held held;
};

template <typename Held>
Holder<Held>* HolderOf(PyObject* self) {
  return reinterpret_cast<Holder<Held>*>(self);
}

template <typename Held>
void HolderDealloc(PyObject* self) {
  HolderOf<Held>(self)->held.~Held();
  Py_XDECREF(HolderOf<Held>(self)->ref);
  Free(self);
}

// Held by this call alone while the interpreter's lock is open.
template <typename Held>
PyObject* HolderRelease(PyObject* self, PyObject*) {
  Held held = std::move(HolderOf<Held>(self)->held);
  if (held.ok()) {
    Error error;
    Py_BEGIN_ALLOW_THREADS error = held.Release();
    Py_END_ALLOW_THREADS if (held.ok()) HolderOf<Held>(self)->held = std::move(held);
    if (!error.ok()) return Raise(error);
  }
  Py_RETURN_NONE;
}

// They are made here alone: storage of zeros holds nothing that could be asked.
PyObject* HolderNew(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "cuguest: acquire(), retain_primary() and shared() make what holds a context");
  return nullptr;
}

PyObject* Itself(PyObject* self, PyObject*) {
  Py_INCREF(self);
  return self;
}

template <typename Held>
PyObject* HolderContext(PyObject* self, void*) {
  return Itself(HolderOf<Held>(self)->ref, nullptr);
}

PyObject* AcquiredSource(PyObject* self, void*) {
  static const char* const names[] = {"stream", "pointer", "current", "primary", "created"};
  return PyUnicode_FromString(names[static_cast<int>(HolderOf<Acquired>(self)->held.source())]);
}

PyObject* SharedUseCount(PyObject* self, void*) {
  const SharedContext& held = HolderOf<SharedContext>(self)->held;
  return PyLong_FromUnsignedLongLong(held.ok() ? held.use_count() : 0);
}

template <typename Held>
constexpr PyMethodDef kHolderMethods[] = {
    {"release", HolderRelease<Held>, METH_NOARGS,
     "Releases the reference now. Once it is released, nothing."},
    {"__enter__", Itself, METH_NOARGS, nullptr},
    {"__exit__", HolderRelease<Held>, METH_VARARGS, nullptr},
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
    {Py_tp_methods, const_cast<PyMethodDef*>(kHolderMethods<Acquired>)},
    {0, nullptr},
};
PyType_Slot shared_slots[] = {
    {Py_tp_doc, const_cast<char*>("One reference to a context, counted for the whole process: the "
                                  "last holder destroys a context that shared() made.")},
    {Py_tp_new, AsSlot(HolderNew)},
    {Py_tp_dealloc, AsSlot(HolderDealloc<SharedContext>)},
    {Py_tp_getset, shared_attributes},
    {Py_tp_methods, const_cast<PyMethodDef*>(kHolderMethods<SharedContext>)},
    {0, nullptr},
};
PyType_Spec acquired_spec = {"cuguest.Acquired", sizeof(Holder<Acquired>), 0, Py_TPFLAGS_DEFAULT,
                             acquired_slots};
PyType_Spec shared_spec = {"cuguest.SharedContext", sizeof(Holder<SharedContext>), 0,
                           Py_TPFLAGS_DEFAULT, shared_slots};

// The ref to enter for `object`, borrowed: a ContextRef, or what something of ours holds. Null,
// with an exception if that was released, where it is neither.
template <typename Held>
PyObject* RefOfHolder(PyObject* object, bool* is_one) {
  if (!HasSlot(object, Py_tp_dealloc, AsSlot(HolderDealloc<Held>))) return nullptr;
  *is_one = true;
  if (HolderOf<Held>(object)->held.ok()) return HolderOf<Held>(object)->ref;
  return Raise(CUDA_ERROR_ILLEGAL_STATE, "enter what was released",
               "hold it for as long as its context is needed");
}

PyObject* RefFor(PyObject* object, bool* is_one) {
  *is_one = true;
  if (IsRef(object)) return object;
  *is_one = false;
  PyObject* const ref = RefOfHolder<Acquired>(object, is_one);
  return ref != nullptr || *is_one ? ref : RefOfHolder<SharedContext>(object, is_one);
}

// ---- Scopes: guard, host_scope

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
PyType_Spec guard_spec = {"cuguest.guard", sizeof(Guard), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, guard_slots};
PyType_Spec host_scope_spec = {"cuguest.host_scope", sizeof(HostScope), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, host_scope_slots};

// ---- The module

struct State {
  PyObject* ref_type;
  PyObject* acquired_type;
  PyObject* shared_type;
};

State* StateOf(PyObject* module) { return static_cast<State*>(PyModule_GetState(module)); }

PyObject* MakeRef(PyObject* module, CUcontext context, unsigned long long id) {
  Ref* const made = New<Ref>(reinterpret_cast<PyTypeObject*>(StateOf(module)->ref_type));
  if (made != nullptr) made->ref = {sizeof(cuguest_ref), context, id};
  return reinterpret_cast<PyObject*>(made);
}

// An object of `type` that holds what `held` does, or the error of that.
template <typename Held>
PyObject* Hold(PyObject* module, PyObject* type, Held held) {
  if (!held.ok()) return Raise(held.error());
  PyObject* const ref = MakeRef(module, held.get(), held.context().id());
  if (ref == nullptr) return nullptr;
  auto* const made = New<Holder<Held>>(reinterpret_cast<PyTypeObject*>(type));
  if (made == nullptr) {
    Py_DECREF(ref);
    return nullptr;
  }
  made->ref = ref;
  ::new (&made->held) Held(std::move(held));
  return reinterpret_cast<PyObject*>(made);
}

// What `acquire` gives, which is called while other threads may run Python code.
template <typename Acquire>
PyObject* HoldAcquired(PyObject* module, Acquire acquire) {
  Acquired acquired;
  Py_BEGIN_ALLOW_THREADS acquired = acquire();
  Py_END_ALLOW_THREADS return Hold(module, StateOf(module)->acquired_type, std::move(acquired));
}

IfInactive WhatIf(int create) { return create != 0 ? IfInactive::kCreate : IfInactive::kRefuse; }

PyObject* AcquireOnDevice(PyObject* module, PyObject* args) {
  int device, create;
  if (!PyArg_ParseTuple(args, "ip", &device, &create)) return nullptr;
  return HoldAcquired(module,
                      [=] { return cuguest::AcquireOn(Device::Borrow(device), WhatIf(create)); });
}

// "K" of PyArg_ParseTuple takes any number, and cuts it.
bool ParseAddress(PyObject* number, Number* address) {
  *address = PyLong_AsUnsignedLongLong(number);
  return !PyErr_Occurred();
}

PyObject* AcquireOfPointer(PyObject* module, PyObject* args) {
  PyObject* number;
  Number pointer;
  int create;
  if (!PyArg_ParseTuple(args, "O!p", &PyLong_Type, &number, &create) ||
      !ParseAddress(number, &pointer)) {
    return nullptr;
  }
  return HoldAcquired(
      module, [=] { return cuguest::AcquireFromPointer(CUdeviceptr{pointer}, WhatIf(create)); });
}

PyObject* AcquireOfStream(PyObject* module, PyObject* args) {
  PyObject* number;
  Number stream;
  int device, create;
  if (!PyArg_ParseTuple(args, "O!ip", &PyLong_Type, &number, &device, &create) ||
      !ParseAddress(number, &stream)) {
    return nullptr;
  }
  if (stream > 2 && !IsAddress(stream)) {
    PyErr_Format(PyExc_ValueError, "cuguest: %R is no CUstream", number);
    return nullptr;
  }
  return HoldAcquired(module, [=] {
    const CUstream handle = HandleOf<CUstream>(stream);
    return device == CUGUEST_NO_DEVICE
               ? cuguest::AcquireFromStream(handle)
               : cuguest::AcquireFromStream(handle, Device::Borrow(device), WhatIf(create));
  });
}

PyObject* RetainPrimary(PyObject* module, PyObject* args) {
  int device, create;
  if (!PyArg_ParseTuple(args, "ip", &device, &create)) return nullptr;
  return HoldAcquired(module, [=] {
    const Device of = Device::Borrow(device);
    PrimaryContext primary = PrimaryContext::RetainIfActive(of);
    if (primary.ok()) return Acquired(std::move(primary), Acquired::Source::kPrimary);
    if (create == 0) return Acquired(primary.error());
    primary = PrimaryContext::Retain(of);
    if (!primary.ok()) return Acquired(primary.error());
    return Acquired(std::move(primary), Acquired::Source::kCreated);
  });
}

PyObject* CreateShared(PyObject* module, PyObject* args) {
  int device;
  unsigned flags;
  if (!PyArg_ParseTuple(args, "iI", &device, &flags)) return nullptr;
  SharedContext shared;
  Py_BEGIN_ALLOW_THREADS shared = SharedContext::Create(Device::Borrow(device), flags);
  Py_END_ALLOW_THREADS return Hold(module, StateOf(module)->shared_type, std::move(shared));
}

PyObject* AttachShared(PyObject* module, PyObject* number) {
  CUcontext context;
  if (!ContextOf(number, &context)) return nullptr;
  SharedContext shared;
  Py_BEGIN_ALLOW_THREADS shared = SharedContext::Attach(context);
  Py_END_ALLOW_THREADS return Hold(module, StateOf(module)->shared_type, std::move(shared));
}

PyObject* Current(PyObject* module, PyObject*) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  const int code = cuguest_ref_current(&ref);
  // Where CUDA is not initialised, or in a forked child, nothing can be.
  if (code == CUDA_ERROR_INVALID_CONTEXT || code == CUDA_ERROR_NOT_INITIALIZED) Py_RETURN_NONE;
  if (code != 0) return Raise(code, "identify the current context");
  return MakeRef(module, ref.context, ref.id);
}

PyObject* IsInitialized(PyObject*, PyObject*) { return PyBool_FromLong(cuguest_is_initialized()); }

PyObject* FreeMemory(PyObject*, PyObject* args) {
  int device, create;
  if (!PyArg_ParseTuple(args, "ip", &device, &create)) return nullptr;
  std::size_t free = 0, total = 0;
  Error error;
  Py_BEGIN_ALLOW_THREADS error =
      cuguest::GetFreeMemory(Device::Borrow(device), &free, &total, WhatIf(create));
  Py_END_ALLOW_THREADS if (!error.ok()) return Raise(error);
  return Py_BuildValue("(KK)", static_cast<Number>(free), static_cast<Number>(total));
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

PyMethodDef functions[] = {
    {"acquire_on", AcquireOnDevice, METH_VARARGS, nullptr},
    {"acquire_pointer", AcquireOfPointer, METH_VARARGS, nullptr},
    {"acquire_stream", AcquireOfStream, METH_VARARGS, nullptr},
    {"retain_primary", RetainPrimary, METH_VARARGS, nullptr},
    {"create_shared", CreateShared, METH_VARARGS, nullptr},
    {"attach_shared", AttachShared, METH_O, nullptr},
    {"current", Current, METH_NOARGS,
     "current()\n--\n\nThe calling thread's current context; None if there is none."},
    {"is_initialized", IsInitialized, METH_NOARGS,
     "is_initialized()\n--\n\nWhether CUDA is initialised in this process, by whomever. Loads and "
     "initialises nothing."},
    {"free_memory", FreeMemory, METH_VARARGS, nullptr},
    {"error_name", NameOf<cuguest_error_name>, METH_O, nullptr},
    {"incident_name", NameOf<cuguest_incident_name>, METH_O, nullptr},
    {"repair_name", NameOf<cuguest_repair_name>, METH_O, nullptr},
    {"dlpack_pointer", DlpackPointer, METH_O, nullptr},
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

int Execute(PyObject* module) {
  static bool listens = false;
  State* const state = StateOf(module);
  if (!listens && cuguest_incident_listener_register(&listener, Keep, nullptr) != 0) {
    PyErr_SetString(PyExc_ImportError, "cuguest: incidents cannot be listened to");
    return -1;
  }
  listens = true;
  const bool ok = AddType(module, "ContextRef", &ref_spec, &state->ref_type) &&
                  AddType(module, "Acquired", &acquired_spec, &state->acquired_type) &&
                  AddType(module, "SharedContext", &shared_spec, &state->shared_type) &&
                  AddType(module, "guard", &guard_spec, nullptr) &&
                  AddType(module, "host_scope", &host_scope_spec, nullptr);
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

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&definition); }
