# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How hosts hand over their memory: the CUDA array interface, and DLPack."""

import collections
import ctypes

Memory = collections.namedtuple("Memory", "pointer count")  # of floats, contiguous

CUDA_DEVICE = 2


def _count(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def memory_of(array):
    """By the CUDA array interface; a Memory is itself."""
    if isinstance(array, Memory):
        return array
    interface = array.__cuda_array_interface__
    if interface["typestr"] != "<f4" or interface.get("strides"):
        raise TypeError(f"not contiguous floats: {interface}")
    return Memory(interface["data"][0], _count(interface["shape"]))


class _Tensor(ctypes.Structure):
    """The start of DLManagedTensor of dlpack.h, version 0."""
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def memory_of_dlpack(array, stream=None):
    """By DLPack, ordered before what comes on `stream`; the caller keeps `array`."""
    capsule = array.__dlpack__() if stream is None else array.__dlpack__(stream=stream)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(get(capsule, b"dltensor"))
    if (tensor.device_type, tensor.type_code, tensor.bits, tensor.lanes) != (CUDA_DEVICE, 2, 32, 1):
        raise TypeError("not floats of a CUDA device")
    return Memory(tensor.data + tensor.byte_offset, _count(tensor.shape[i] for i in range(tensor.rank)))
