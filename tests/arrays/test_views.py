"""Views over the arrays of every framework, and what they refuse."""

from __future__ import annotations

import datetime
import mmap
import pickle
import sys
import threading
from typing import Any

import ml_dtypes
import numpy
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import baracuda_kernels as bk
from baracuda_kernels.arrays import numpy_arrays
from baracuda_kernels.core import layout as layout_module
from baracuda_kernels.core.arrays import see
from baracuda_kernels.core.layout import Layout, may_share_memory, row_major

ELEMENTS = {
    "float32": bk.ElementKind.F32, "float64": bk.ElementKind.F64, "float16": bk.ElementKind.F16, "bfloat16": bk.ElementKind.BF16,
    "int8": bk.ElementKind.I8, "int16": bk.ElementKind.I16, "int32": bk.ElementKind.I32, "int64": bk.ElementKind.I64,
    "uint8": bk.ElementKind.U8, "bool": bk.ElementKind.BOOL, "complex64": bk.ElementKind.C64, "complex128": bk.ElementKind.C128,
}  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTS)
def test_torch(name: str) -> None:
    tensor = torch.zeros(4, 6, dtype=getattr(torch, name))[1:, ::2]
    view = bk.TensorMut.of(tensor)
    assert (view.shape, view.stride, view.element, view.device) == ((3, 3), (6, 2), ELEMENTS[name], bk.Device.cpu())
    assert view.address == tensor.data_ptr()
    assert view.data is tensor


@pytest.mark.parametrize("name", ELEMENTS)
def test_numpy(name: str) -> None:
    dtype = ml_dtypes.bfloat16 if name == "bfloat16" else getattr(numpy, name)
    array = numpy.zeros((4, 6), dtype)[::-1, 1:]
    view = bk.TensorMut.of(array)
    assert (view.shape, view.stride, view.element) == ((4, 5), (-6, 1), ELEMENTS[name])
    assert view.address == array.ctypes.data


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
def test_tensors_without_memory_are_refused() -> None:
    with FakeTensorMode() as fake:
        tensor = fake.from_tensor(torch.zeros(4))
    with pytest.raises(bk.InvalidProblem, match="cannot be seen as an array"):
        bk.TensorRef.of(tensor)
    assert bk.TensorRef.of(torch.zeros(0)).shape == (0,)


class OnlyDLPack:
    """An array of a framework nobody has heard of."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("name", [name for name in ELEMENTS if not name.startswith("complex")])
def test_any_dlpack_framework(name: str) -> None:
    tensor = torch.zeros(4, 6, dtype=getattr(torch, name)).t()
    view = bk.TensorMut.of(OnlyDLPack(tensor))
    assert (view.shape, view.stride, view.element, view.address) == ((6, 4), (1, 6), ELEMENTS[name], tensor.data_ptr())


class OldDLPack(OnlyDLPack):
    """A producer from before versioned capsules."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return self.array.__dlpack__()


def test_old_dlpack() -> None:
    array = numpy.arange(6, dtype=numpy.float32)
    assert bk.TensorRef.of(OldDLPack(array)).address == array.ctypes.data


def test_read_only_dlpack() -> None:
    array = numpy.arange(6, dtype=numpy.float32)
    array.flags.writeable = False
    assert bk.TensorRef.of(OnlyDLPack(array)).shape == (6,)
    with pytest.raises(bk.InvalidProblem, match="read-only"):
        bk.TensorMut.of(OnlyDLPack(array))


def test_jax() -> None:
    jax = pytest.importorskip("jax", reason="JAX is an extra")
    array = jax.numpy.ones((3, 4), jax.numpy.bfloat16)
    view = bk.TensorRef.of(array)
    assert (view.shape, view.stride, view.element) == ((3, 4), (4, 1), bk.ElementKind.BF16)
    with pytest.raises(bk.InvalidProblem, match="read-only"):
        bk.TensorMut.of(array)


def test_one_plan_takes_every_framework(rng: numpy.random.Generator) -> None:
    descriptor = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (3, 5), 1, bk.ElementKind.F32)
    plan = bk.SoftmaxPlan.select(bk.Stream.cpu(), descriptor)
    x = rng.standard_normal((3, 5)).astype(numpy.float32)
    results = []
    for wrap in (lambda a: a, torch.from_numpy, OnlyDLPack):
        y = numpy.full((3, 5), numpy.nan, numpy.float32)
        plan.run(bk.Stream.of(wrap(y)), bk.Workspace.none(), bk.SoftmaxArgs(x=wrap(x), y=wrap(y)))
        results.append(y.tobytes())
    assert len(set(results)) == 1
    assert not numpy.isnan(y).any()


def test_strided_view() -> None:
    buffer = numpy.arange(20, dtype=numpy.float32)
    view = bk.TensorRef.strided(buffer, (3, 4), (5, 1), offset=2)
    assert view.address == buffer.ctypes.data + 8
    assert view.stride == (5, 1)
    with pytest.raises(bk.BufferTooSmall) as caught:
        bk.TensorRef.strided(buffer, (3, 4), (8, 1), offset=2)
    assert (caught.value.needed, caught.value.got) == (2 + 16 + 3 + 1, 20)
    assert bk.TensorRef.strided(buffer, (0, 4), (800, 1), offset=2).shape == (0, 4)
    assert bk.TensorRef.strided(buffer, (4,), (-1,), offset=3).stride == (-1,)
    assert bk.TensorRef.strided(buffer, (1000, 4), (0, 1)).stride == (0, 1)


@pytest.mark.parametrize(
    ("shape", "stride", "offset", "match"),
    [
        ((4,), (-1,), 2, "before the start"),
        ((4,), (1,), -1, "before the start"),
        ((4,), (1, 1), 0, "wrong rank"),
        ((-4,), (1,), 0, "negative extent"),
        ((2.5,), (1,), 0, "whole numbers"),
        ((4,), (1,), "0", "whole numbers"),
    ],
)
def test_strided_view_refused(shape: Any, stride: Any, offset: Any, match: str) -> None:
    with pytest.raises(bk.InvalidProblem, match=match):
        bk.TensorRef.strided(numpy.zeros(20, numpy.float32), shape, stride, offset)


def test_strided_view_needs_a_flat_buffer() -> None:
    for buffer in (numpy.zeros((4, 5), numpy.float32), numpy.zeros(20, numpy.float32)[::2]):
        with pytest.raises(bk.InvalidProblem, match="one-dimensional"):
            bk.TensorRef.strided(buffer, (2,), (1,))
    with pytest.raises(bk.InvalidProblem, match="bytes"):
        bk.TensorRef.strided(numpy.zeros(20, numpy.float32), (2,), (1,), element=bk.ElementKind.BF16)


@pytest.mark.parametrize(
    ("shape", "stride", "overlaps"),
    [
        ((2, 3), (3, 1), False),
        ((2, 3), (2, 1), True),
        ((2, 3), (0, 1), True),
        ((1, 3), (0, 1), False),
        ((2, 3), (3, 2), False),  # 0 2 4 3 5 7: interleaved, but each element its own
        ((3, 3), (4, 2), True),
        ((0, 3), (0, 0), False),
        ((2, 2), (-2, 1), False),
        ((1 << 20, 1 << 20), (1 << 20, 1), False),
        ((1 << 20, 1 << 20), ((1 << 20) - 1, 1), True),
    ],
)
def test_self_overlap(shape: Any, stride: Any, overlaps: bool) -> None:
    assert Layout.of(bk.ElementKind.F32, shape, stride, bk.Device.cpu()).overlaps_itself is overlaps


def test_an_axis_whose_positions_share_a_slot() -> None:
    repeated = torch.zeros(2, 1, 3).expand(2, 4, 3)
    with pytest.raises(bk.InvalidProblem, match="overlaps itself"):
        bk.TensorMut.of(repeated)
    assert bk.TensorMut.of(repeated, shared_axes=(1,)).stride == (3, 0, 1)
    with pytest.raises(bk.InvalidProblem, match="overlaps itself"):
        bk.TensorMut.of(repeated, shared_axes=(0,))
    assert bk.TensorMut.strided(numpy.zeros(6, "f4"), (2, 4, 3), (3, 0, 1), shared_axes=(1,)).shape == (2, 4, 3)


def test_overlap_is_exact() -> None:
    """Interleaved slices of one buffer share no element, and so are no alias: packed gradients are written this way."""
    even = Layout.of(bk.ElementKind.F32, (8,), (2,), bk.Device.cpu())
    assert not may_share_memory(1000, even, 1004, even)
    assert may_share_memory(1000, even, 1008, even)
    descriptor = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 6), 1, bk.ElementKind.F32)
    plan = bk.SoftmaxPlan.select(bk.Stream.cpu(), descriptor)
    packed = torch.zeros(4, 12)
    assert plan.can_implement(bk.SoftmaxArgs(x=packed[:, :6], y=packed[:, 6:]))
    assert not plan.can_implement(bk.SoftmaxArgs(x=packed[:, :6], y=packed[:, 5:11]))


def test_contiguity_ignores_axes_of_extent_one() -> None:
    device = bk.Device.cpu()
    assert Layout.of(bk.ElementKind.F32, (3, 1, 4), (4, 999, 1), device).is_contiguous
    assert not Layout.of(bk.ElementKind.F32, (3, 2, 4), (4, 999, 1), device).is_contiguous
    assert Layout.of(bk.ElementKind.F32, (3, 0), (7, 7), device).is_contiguous
    assert Layout.of(bk.ElementKind.F32, (0, 7), (0, 0), device).is_contiguous


def test_layouts_are_interned_and_bounded(monkeypatch: Any) -> None:
    first = Layout.of(bk.ElementKind.F32, (3, 4), (4, 1), bk.Device.cpu())
    assert Layout.of(bk.ElementKind.F32, [3, 4], [4, 1], bk.Device.cpu()) is first
    assert pickle.loads(pickle.dumps(first)) is first
    monkeypatch.setattr(layout_module, "_MOST_INTERNED", 4)
    monkeypatch.setattr(layout_module, "_interned", {})
    for extent in range(20):
        Layout.of(bk.ElementKind.F32, (extent,), (1,), bk.Device.cpu())
    assert len(layout_module._interned) <= 4


def test_what_a_torch_tensor_hides() -> None:
    with pytest.raises(bk.InvalidProblem, match="negative bit"):
        bk.TensorRef.of(torch.tensor([1 + 2j]).conj().imag)
    with pytest.raises(bk.InvalidProblem, match="cannot be seen as an array"):
        bk.TensorRef.of(torch.eye(3).to_sparse())
    with pytest.raises(bk.InvalidProblem, match="meta"):
        bk.TensorRef.of(torch.zeros(3, device="meta"))
    assert bk.TensorRef.of(torch.nn.Parameter(torch.zeros(3))).shape == (3,)


def test_elements() -> None:
    assert bk.ElementKind.of(torch.bfloat16) is bk.ElementKind.BF16
    assert bk.ElementKind.of(numpy.float32) is bk.ElementKind.F32
    assert bk.ElementKind.of(numpy.dtype("int64")) is bk.ElementKind.I64
    assert bk.ElementKind.of("bf16") is bk.ElementKind.BF16
    with pytest.raises(ValueError, match="known are f32"):
        bk.ElementKind.of("float8")


MAP_NORESERVE = 0x4000


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("element", [bk.ElementKind.F32, bk.ElementKind.BF16])
def test_strides_past_two_to_the_31(axis: int, element: bk.ElementKind, rng: numpy.random.Generator) -> None:
    """Only the few pages that hold elements become real; an offset kept in 32 bits would land somewhere else."""
    from baracuda_kernels.core.encoding import decode, encode

    far = (1 << 31) + 5
    shape, stride = (2, 37), (far, 1)
    size = (far + 64) * element.size
    room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
    buffer = numpy.frombuffer(room, numpy.uint8)
    values = rng.standard_normal(shape)
    for row in range(2):
        start = row * far * element.size
        buffer[start : start + 37 * element.size] = encode(values[row], element)
    descriptor = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, shape, axis, element)
    plan = bk.SoftmaxPlan.select(bk.Stream.cpu(), descriptor)
    x = bk.TensorRef.strided(buffer, shape, stride, element=element)
    near = numpy.zeros(shape[0] * shape[1] * element.size, numpy.uint8)
    y = bk.TensorMut.strided(near, shape, row_major(shape), element=element)
    plan.run(bk.Stream.cpu(), bk.Workspace.none(), bk.SoftmaxArgs(x=x, y=y))
    plan.run(
        bk.Stream.cpu(), bk.Workspace.none(), bk.SoftmaxArgs(x=x, y=bk.TensorMut.strided(buffer, shape, stride, element=element))
    )
    wanted = plan.reference(descriptor, x=decode(encode(values, element), element).reshape(shape))
    result = decode(near, element).reshape(shape)
    assert numpy.allclose(result, wanted, rtol=1e-2 if element is bk.ElementKind.BF16 else 1e-5)
    for row in range(2):
        start = row * far * element.size
        assert numpy.array_equal(decode(buffer[start : start + 37 * element.size], element), result[row])


# --- arrays that mean more than their memory ----------------------------------------------------------------------------------------


class Metres(numpy.ndarray):
    """As quantities with units are made."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return NotImplemented


class Logged(torch.Tensor):
    """As wrappers with values of their own are made."""

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


def test_arrays_that_mean_more_than_their_memory_are_refused() -> None:
    values = numpy.ones(4, numpy.float32)
    y = numpy.zeros(4, numpy.float32)
    for array in (numpy.ma.masked_array(values, [0, 1, 0, 0]), values.view(Metres), torch.ones(4).as_subclass(Logged)):
        for call in (bk.TensorRef.of, bk.TensorMut.of, bk.sum, bk.exp, lambda x: bk.add(x, x), lambda x: bk.exp(y, out=x)):
            with pytest.raises(bk.InvalidProblem, match=r"means more than the numbers in its memory|belongs to another framework"):
                call(array)
    assert y.tolist() == [0.0] * 4


def test_arrays_that_are_just_laid_out_by_a_class_are_seen(tmp_path: Any) -> None:
    file = numpy.memmap(tmp_path / "values", numpy.float32, "w+", shape=(4,))
    file[:] = 2.0

    class Plain(numpy.ndarray):
        pass

    class PlainTensor(torch.Tensor):
        pass

    for array in (file, numpy.full(4, 2.0).view(Plain), torch.full((4,), 2.0).as_subclass(PlainTensor)):
        assert float(bk.sum(array)) == 8.0


# --- capsules ------------------------------------------------------------------------------------------------------------------------


class OneCapsule:
    """Gives the same capsule again and again, as no producer should."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule


def test_consumed_and_foreign_capsules_are_refused() -> None:
    array = numpy.arange(4.0)
    consumed = array.__dlpack__()
    torch.from_dlpack(consumed)
    for capsule in (consumed, datetime.datetime_CAPI, 5):
        with pytest.raises(bk.InvalidProblem, match="__dlpack__ gave a"):
            bk.TensorRef.of(OneCapsule(capsule))
    assert bk.TensorRef.of(OneCapsule(array.__dlpack__())).shape == (4,)


def test_layouts_are_whole_when_other_threads_see_them() -> None:
    """Threads that meet new layouts together get the same object, with every field set."""
    before, problems = sys.getswitchinterval(), []
    start = threading.Barrier(8)

    def meet() -> None:
        start.wait()
        for extent in range(3000):
            found = Layout.of(bk.ElementKind.F32, (extent, 7), (7, 1), bk.Device.cpu())
            try:
                assert (found.shape, found.high, found.mask, found.self_overlap) == ((extent, 7), 28 * extent, 3, False)
            except (AttributeError, AssertionError) as problem:
                problems.append(problem)

    sys.setswitchinterval(1e-6)
    try:
        layout_module._interned.clear()
        threads = [threading.Thread(target=meet) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not problems


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "?", "c8", "c16", ml_dtypes.bfloat16])
def test_addresses_are_those_that_numpy_names(dtype: Any) -> None:
    for shape in ((0, 3), (), (5,), (4, 6), (1, 1, 7)):
        array = numpy.zeros(shape, dtype)
        read_only = array.copy()
        read_only.flags.writeable = False
        views = [array, array.T, numpy.asfortranarray(array), read_only, *([array[::-1], array[1:]] if shape else [])]
        for view in views:
            address, _, writable, _ = see(view)
            assert (address, writable) == (view.__array_interface__["data"][0], view.flags.writeable)
        assert numpy_arrays.address(array) == array.__array_interface__["data"][0]
