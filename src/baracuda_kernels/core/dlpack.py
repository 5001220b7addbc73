"""Reading a DLPack capsule, so that an array of any framework can be seen without importing the framework."""

from __future__ import annotations

import ctypes
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind

_UNCONSUMED = (b"dltensor", b"dltensor_versioned")
_MAJOR = 1  # of the versioned structures below
_READ_ONLY = 1  # bit of the flags of a versioned capsule
_CPU_LIKE = (1, 3)  # kDLCPU, kDLCUDAHost
_CUDA_LIKE = (2, 13)  # kDLCUDA, kDLCUDAManaged
_ELEMENTS = {
    (0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64", (1, 8): "u8", (6, 8): "bool",
    (2, 16): "f16", (2, 32): "f32", (2, 64): "f64", (4, 16): "bf16", (5, 64): "c64", (5, 128): "c128",
}  # fmt: skip


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    )


_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _tensor_of(capsule: Any) -> tuple[_DLTensor, bool]:
    """The tensor in an unconsumed capsule, and whether its memory is read-only."""
    if type(capsule).__name__ != "PyCapsule":
        raise ValueError(f"__dlpack__ gave a {type(capsule).__name__} and no capsule")
    name = _name(capsule)
    if name not in _UNCONSUMED:  # whoever consumed it has renamed it, and may have freed what it points to
        raise ValueError(f"__dlpack__ gave a capsule named {name!r}, which is consumed already or no tensor")
    address = _pointer(capsule, name)
    assert address is not None
    if name == b"dltensor":
        return _DLTensor.from_address(address), False
    versioned = _Versioned.from_address(address)
    if versioned.major != _MAJOR:
        raise ValueError(f"DLPack {versioned.major}.{versioned.minor} is not known here, only {_MAJOR}.x")
    return versioned.tensor, bool(versioned.flags & _READ_ONLY)


class CapsuleView:
    """The contents of a capsule, which is kept unconsumed: its own destructor releases the memory when the view is dropped."""

    __slots__ = ("address", "capsule", "device", "element", "read_only", "shape", "stride")

    def __init__(self, array: Any) -> None:
        try:
            self.capsule = array.__dlpack__(max_version=(1, 0))
        except TypeError:  # a producer from before versioned capsules
            self.capsule = array.__dlpack__()
        tensor, self.read_only = _tensor_of(self.capsule)
        short = _ELEMENTS.get((tensor.code, tensor.bits))
        if short is None or tensor.lanes != 1:
            raise ValueError(
                f"DLPack type code {tensor.code} of {tensor.bits} bits and {tensor.lanes} lanes is not an element known here"
            )
        self.element = ElementKind(short)
        if tensor.device_type in _CPU_LIKE:
            self.device = Device.cpu()
        elif tensor.device_type in _CUDA_LIKE:
            self.device = Device.cuda(tensor.device_id)
        else:
            raise ValueError(f"DLPack device type {tensor.device_type} is not served")
        self.shape = tuple(tensor.shape[: tensor.ndim])
        self.stride = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
        self.address = (tensor.data or 0) + tensor.byte_offset
