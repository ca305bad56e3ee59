// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "context_ref.h"

#include <cstdio>

namespace pycuguest {
namespace {

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
  NeedDriver();
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

}  // namespace

PyType_Spec ref_spec = {"cuguest.ContextRef", sizeof(Ref), 0, Py_TPFLAGS_DEFAULT, ref_slots};

bool IsRef(PyObject* object) { return HasSlot(object, Py_tp_repr, AsSlot(RefRepr)); }

PyObject* NewRef(PyTypeObject* type, const cuguest::ContextRef& context) {
  Ref* const made = New<Ref>(type);
  if (made != nullptr) made->ref = {sizeof(cuguest_ref), context.get(), context.id()};
  return reinterpret_cast<PyObject*>(made);
}

PyObject* MakeRef(const cuguest::ContextRef& context) {
  PyObject* const type = FromPython("ContextRef");
  if (type == nullptr) return nullptr;
  PyObject* const made = NewRef(reinterpret_cast<PyTypeObject*>(type), context);
  Py_DECREF(type);
  return made;
}

bool ContextOf(PyObject* number, CUcontext* context) {
  const Number value = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
    PyErr_Clear();
  } else if (IsAddress(value)) {
    *context = HandleOf<CUcontext>(value);
    return true;
  }
  // Python writes no more than 4300 digits of base 10.
  PyObject* const text = PyNumber_ToBase(number, 16);
  if (text == nullptr) return false;
  PyErr_Format(PyExc_ValueError,
               "cuguest: %U is no CUcontext: a handle is an address, and a device is named by "
               "cuguest.Primary",
               text);
  Py_DECREF(text);
  return false;
}

}  // namespace pycuguest
