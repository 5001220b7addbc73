"""How the arrays of each framework are seen: an address, a layout, and whether they may be written. Nothing is copied.

Each kind of array has one function, found by the array's type. PyTorch and NumPy are read directly, since that is quicker
than a capsule and NumPy's capsules know no bfloat16; everything else goes through DLPack.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import addressof, c_char
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.dlpack import CapsuleView
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Layout, row_major

# address, layout, writable, and what must live as long as the view
Seen = tuple[int, Layout, bool, Any]
Seer = Callable[[Any], Seen]

_MOST_REMEMBERED = 1 << 14
_layouts: dict[Any, Layout] = {}
_seers: dict[type, Seer] = {}


def see(array: Any) -> Seen:
    """Raises `ValueError` or `TypeError`, with a sentence, for what cannot be seen as an array of a known dtype."""
    return seer_of(array)(array)


def seer_of(array: Any) -> Seer:
    """The function for arrays of this one's type."""
    seer = _seers.get(type(array))
    if seer is None:
        seer = _seers[type(array)] = _seer_for(array)
    return seer


def glance(array: Any) -> Seen | None:
    """A fast `see` for kinds of array seen before; None if there is anything to explain."""
    seer = _seers.get(type(array))
    if seer is None:
        return None
    try:
        return seer(array)
    except (RuntimeError, TypeError, ValueError, AttributeError, BufferError):  # `see` raises it again for whoever asks why
        return None


def _seer_for(array: Any) -> Seer:
    # A framework that is not imported cannot have made the array, so none is imported here.
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(array, torch.Tensor):
        _refuse_more_than_memory(type(array), torch.Tensor, _TORCH_MEANING, "torch.Tensor")
        return _see_torch
    if numpy is not None and isinstance(array, numpy.ndarray):
        base = numpy.memmap if isinstance(array, numpy.memmap) else numpy.ndarray
        _refuse_more_than_memory(type(array), base, _NUMPY_MEANING, "numpy.ndarray")
        return _see_numpy
    if hasattr(array, "__dlpack__"):
        return _see_dlpack
    if isinstance(array, bytearray | memoryview):
        return _see_buffer
    raise TypeError(f"{type(array).__module__}.{type(array).__qualname__} is no array: it does not speak DLPack")


# What a subclass overrides whose values are not just those in its memory: masked arrays, quantities with units, wrappers.
_NUMPY_MEANING = ("__array_ufunc__", "__array_function__", "__array_wrap__")
_TORCH_MEANING = ("__torch_dispatch__",)


def _refuse_more_than_memory(kind: type, base: type, meaning: tuple[str, ...], plain: str) -> None:
    own = [name for name in meaning if getattr(kind, name, None) is not getattr(base, name, None)]
    if own:
        raise TypeError(
            f"its {own[0]} says that it means more than the numbers in its memory: pass a plain {plain} of what is meant"
        )


def _remember(key: Any, layout: Layout) -> Layout:
    if len(_layouts) >= _MOST_REMEMBERED:
        _layouts.clear()
    _layouts[key] = layout
    return layout


def _misaligned(address: int, layout: Layout) -> Layout:
    return Layout.of(layout.element, layout.shape, layout.stride, layout.device, address % layout.element.size)


def torch_seer(forward_ad: Any = None) -> Seer:
    """Makes `see` for PyTorch. Tensors that are being differentiated are refused, since results would not be."""

    def see(tensor: Any) -> Seen:
        if tensor.is_neg() or tensor.is_conj():
            which, how = ("negative", "resolve_neg") if tensor.is_neg() else ("conjugate", "resolve_conj")
            raise ValueError(f"a PyTorch tensor with its {which} bit set holds other numbers than it shows; call {how}() first")
        if forward_ad is not None:
            if tensor.requires_grad and sys.modules["torch"].is_grad_enabled():
                raise ValueError("a PyTorch tensor that requires a gradient")
            if forward_ad._current_level >= 0:
                raise ValueError("a PyTorch tensor that may have a tangent")
        address = tensor.data_ptr()
        layout = _layouts.get((tensor.dtype, tensor.shape, tensor.stride(), tensor.device))
        if layout is None:
            layout = _torch_layout(tensor)
        if not address and layout.count:
            raise ValueError(f"a {type(tensor).__name__} without memory")
        return address, _misaligned(address, layout) if address & layout.mask else layout, True, tensor

    return see


def _torch_layout(tensor: Any) -> Layout:
    device = tensor.device
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device {device} is not served")
    where = Device.cpu() if device.type == "cpu" else Device.cuda(device.index)
    layout = Layout.of(ElementKind.of(tensor.dtype), tensor.shape, tensor.stride(), where)
    return _remember((tensor.dtype, tensor.shape, tensor.stride(), device), layout)


_see_torch = torch_seer()


def _see_numpy(array: Any) -> Seen:
    key = (array.dtype, array.shape, array.strides)
    layout = _layouts.get(key)
    if layout is None:
        if not array.dtype.isnative:
            raise ValueError(f"{array.dtype!r} is not in this machine's byte order")
        element = ElementKind.of(array.dtype)
        if any(step % element.size for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1):
            raise ValueError(f"strides of {array.strides} bytes are no whole number of {element} elements")
        stride = tuple(step // element.size for step in array.strides)
        layout = _remember(key, Layout.of(element, array.shape, stride, Device.cpu()))
    flags = array.flags
    writable = flags.writeable
    if writable and flags.c_contiguous and array.size and layout.element is not ElementKind.BF16:  # of which there are no buffers
        address = addressof(c_char.from_buffer(array))  # a fifth of the time that asking NumPy takes
    else:
        address = array.__array_interface__["data"][0]
    return address, _misaligned(address, layout) if address & layout.mask else layout, writable, array


def _see_dlpack(array: Any) -> Seen:
    view = CapsuleView(array)
    stride = row_major(view.shape) if view.stride is None else view.stride
    layout = Layout.of(view.element, view.shape, stride, view.device)
    # JAX arrays are immutable; their capsules do not always say so.
    writable = not view.read_only and not type(array).__module__.startswith("jax")
    return view.address, _misaligned(view.address, layout) if view.address & layout.mask else layout, writable, (array, view)


def _see_buffer(buffer: Any) -> Seen:
    import numpy

    return _see_numpy(numpy.asarray(memoryview(buffer)))
