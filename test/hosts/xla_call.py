# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Python function as a custom call of XLA: the structures of xla/ffi/api/c_api.h, version 0."""

import ctypes

import jax

from handover import Memory

EXECUTE = 3
METADATA = 1
MAY_BE_CAPTURED = 1

Pointer = ctypes.c_void_p
Size = ctypes.c_size_t
Int = ctypes.c_int


def _structure(name, *fields, base=()):
    """One that starts, as nearly all of them, with its size and its extensions."""
    start = base or [("size", Size), ("extensions", Pointer)]
    return type(name, (ctypes.Structure,), {"_fields_": [*start, *fields]})


Version = _structure("Version", ("major", Int), ("minor", Int))
Api = _structure("Api", ("version", Version), ("internal", Pointer), ("error_create", Pointer),
                 ("error_details", Pointer), ("error_destroy", Pointer), ("register", Pointer),
                 ("stream_get", ctypes.CFUNCTYPE(Pointer, Pointer)))
Buffers = _structure("Buffers", ("count", ctypes.c_int64), ("types", Pointer), ("buffers", ctypes.POINTER(Pointer)))
Frame = _structure("Frame", ("api", ctypes.POINTER(Api)), ("context", Pointer), ("stage", Int),
                   ("arguments", Buffers), ("results", Buffers))
Buffer = _structure("Buffer", ("type", Int), ("data", Pointer), ("rank", ctypes.c_int64),
                    ("extents", ctypes.POINTER(ctypes.c_int64)))
StreamGet = _structure("StreamGet", ("context", Pointer), ("stream", Pointer))
Metadata = _structure("Metadata", ("version", Version), ("traits", ctypes.c_uint32), base=[("size", Size)])
Extension = _structure("Extension", ("type", Int), ("next", Pointer), ("metadata", ctypes.POINTER(Metadata)),
                       base=[("size", Size)])


def _memories(buffers):
    for i in range(buffers.count):
        buffer = Buffer.from_address(buffers.buffers[i])
        count = 1
        for axis in range(buffer.rank):
            count *= buffer.extents[axis]
        yield Memory(buffer.data, count)


def _stream_of(frame):
    asked = StreamGet(ctypes.sizeof(StreamGet), None, frame.context, None)
    if frame.api.contents.stream_get(ctypes.byref(asked)):
        raise RuntimeError("XLA has no stream for the call")
    return asked.stream


def _is_about_metadata(frame):
    """Whether that is all that XLA wants to know; it is told then."""
    if not frame.extensions:
        return False
    extension = Extension.from_address(frame.extensions)
    if extension.type != METADATA:
        return False
    metadata, version = extension.metadata.contents, frame.api.contents.version
    metadata.version.major, metadata.version.minor = version.major, version.minor
    metadata.traits = MAY_BE_CAPTURED
    return True


class XlaCall:
    """function(stream, *arguments, *results) as what jitted code can call, maybe while XLA captures it."""

    def __init__(self, name, function):
        self.raised = []

        @ctypes.CFUNCTYPE(Pointer, ctypes.POINTER(Frame))
        def handler(pointer):
            frame = pointer.contents
            try:
                if not _is_about_metadata(frame) and frame.stage == EXECUTE:
                    function(_stream_of(frame), *_memories(frame.arguments), *_memories(frame.results))
            except BaseException as error:  # whatever it is, it belongs to the test
                self.raised.append(error)

        self._handler = handler  # for as long as XLA may call it
        self._name = name
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="CUDA")

    def __call__(self, array):
        """An array as this one, which the function makes of it."""
        return jax.ffi.ffi_call(self._name, jax.ShapeDtypeStruct(array.shape, array.dtype))(array)
