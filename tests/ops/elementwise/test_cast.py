"""Conversions between elements: every pair, where numbers do not fit, halves rounded once, bits, gradients."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core.encoding import NUMPY_NAMES, decode, encode, rounded
from baracuda_kernels.ops.elementwise.rows import ALL
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.verify.accuracy import every_half

from conftest import DEVICE, STREAM

E = bk.ElementKind
KERNELS = [
    name
    for name, backend in (("llvm.cast", "numba"), ("triton.cast", "triton"))
    if importlib.util.find_spec(backend) and (backend == "triton" or DEVICE.kind is bk.DeviceKind.CPU)
]
INTEGERS = [element for element in ALL if not element.is_float and element is not E.BOOL]


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    return str(request.param)


def ran(kernel: str, values: Any, source: E, target: E) -> Any:
    """The bytes that a kernel makes of a flat array of bytes."""
    count = len(values) // source.size
    plan = bk.CastPlan.force(kernel, STREAM, bk.CastDescriptor((count,), source, target))
    given = torch.from_numpy(values.copy()).to(str(DEVICE)).view(DTYPES[source])
    made = torch.empty(count, dtype=DTYPES[target], device=str(DEVICE))
    plan.run(STREAM, bk.Workspace.none(), bk.CastArgs(input=given, result=made))
    return made.cpu().view(torch.uint8).numpy()


def numbers(element: E) -> Any:
    """Numbers at which something happens, as bytes of the element."""
    if element is E.BOOL:
        return encode([False, True], element)
    if not element.is_float:
        limits = numpy.iinfo(NUMPY_NAMES[element])
        some = [0, 1, 2, 100, 127, 128, 200, 255, 256, 32767, 32768, 2**24 + 1, 2**31 - 1, 2**53 + 1, 2**62 + 2**40 + 1]
        inside = [each for number in some for each in (number, -number) if limits.min <= each <= limits.max]
        return numpy.array([*inside, limits.min, limits.max], NUMPY_NAMES[element]).view(numpy.uint8)
    some = [0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 127.5, 127.99, 128.0, 128.5, 200.0, 255.5, 256.0, 32768.0, 65504.0, 65519.0, 65520.0, 1e5,
            2.0**31, 2.0**31 - 1, 2.0**63, 1e30, 3.4e38, 1e300, 1e-7, 3e-8, 2.9e-8, 1e-40, 1e-310, numpy.inf]  # fmt: skip
    return encode([*some, *(-number for number in some), numpy.nan], element)


def expected(values: Any, source: E, target: E) -> Any:
    """As PyTorch, and beyond what fits as far as integers reach."""
    tensor = torch.from_numpy(values.copy()).view(DTYPES[source])
    if not source.is_float or target.is_float or target is E.BOOL:
        return tensor.to(DTYPES[target])
    limits = torch.iinfo(DTYPES[target])
    fits = (tensor.double() >= limits.min) & (tensor.double() < float(limits.max) + (1 if target is not E.I64 else 0))
    safe = torch.where(fits, tensor, 0).to(DTYPES[target])
    beyond = torch.where(tensor > 0, limits.max, torch.where(tensor < 0, limits.min, 0)).to(DTYPES[target])
    return torch.where(fits, safe, beyond)


def is_normal_bf16(values: Any) -> Any:
    """Which numbers bf16 holds as they are, but for subnormal ones."""
    with numpy.errstate(invalid="ignore", over="ignore"):
        held = rounded(values, E.BF16)
    return (values == 0) | numpy.isnan(values) | ((held == values) & (numpy.abs(held) >= 2.0**-126))


@pytest.mark.parametrize("target", ALL)
def test_every_pair(kernel: str, target: E) -> None:
    is_interpreted = kernel == "triton.cast" and DEVICE.kind is bk.DeviceKind.CPU
    for source in ALL:
        values = numbers(source)
        if is_interpreted and E.BF16 in (source, target):
            # The interpreter cuts off where a GPU rounds, and takes subnormal bf16 for 0.
            values = values.reshape(-1, source.size)[is_normal_bf16(decode(values, source))].reshape(-1)
        if source in (E.F64, E.I32, E.I64) and target in (E.F16, E.BF16):
            continue  # which PyTorch rounds twice
        found = torch.from_numpy(ran(kernel, values, source, target)).view(DTYPES[target])
        torch.testing.assert_close(found, expected(values, source, target), rtol=0, atol=0, equal_nan=True, msg=f"{source}")


def between_halves(element: E) -> tuple[Any, Any, Any]:
    """Of all positive halves but the last, the one after it, and the number in the middle, which only f64 holds."""
    values = numpy.sort(every_half(element))
    values = values[numpy.isfinite(values) & (values >= 0)][1:]
    return values[:-1], values[1:], (values[:-1] + values[1:]) / 2


@pytest.mark.parametrize("element", [E.F16, E.BF16])
def test_f64_is_rounded_once(element: E) -> None:
    """To the nearer half, however little it is nearer, and in the middle to the one whose last bit is 0."""
    below, above, middle = between_halves(element)
    near = numpy.concatenate([numpy.nextafter(middle, 0), numpy.nextafter(middle, numpy.inf), middle])
    is_even = encode(below, element).view(numpy.uint16) % 2 == 0
    nearest = numpy.concatenate([below, above, numpy.where(is_even, below, above)])
    for sign in (1.0, -1.0):
        found = decode(ran(KERNELS[0], encode(sign * near, E.F64), E.F64, element), element)
        numpy.testing.assert_array_equal(found, sign * nearest)


@pytest.mark.parametrize("element", [E.F16, E.BF16])
@pytest.mark.parametrize("source", [E.I32, E.I64])
def test_integers_are_rounded_once(element: E, source: E) -> None:
    below, above, middle = between_halves(element)
    largest = 2.0**30 if source is E.I32 else 2.0**62
    chosen = (middle == numpy.rint(middle)) & (middle < largest)
    below, above, middle = below[chosen], above[chosen], middle[chosen].astype(numpy.int64)
    near = numpy.concatenate([middle - 1, middle + 1])
    nearest = numpy.concatenate(
        [numpy.where(above - below > 2, below, middle - 1), numpy.where(above - below > 2, above, middle + 1)]
    )
    for sign in (1, -1):
        found = decode(ran(KERNELS[0], (sign * near).astype(NUMPY_NAMES[source]).view(numpy.uint8), source, element), element)
        numpy.testing.assert_array_equal(found, sign * nearest)


def test_twice_rounded_numbers_in_the_kernel(kernel: str) -> None:
    """These would be rounded to an even f32 first, and from there to the other side."""
    values = numpy.array([1 + 2.0**-11 + 2.0**-40, 1 + 3 * 2.0**-11 - 2.0**-40, 65520 - 2.0**-30, 2.0**-25 + 2.0**-70])
    found = decode(ran(kernel, values.view(numpy.uint8), E.F64, E.F16), E.F16)
    numpy.testing.assert_array_equal(found, [1 + 2.0**-10, 1 + 2.0**-10, 65504.0, 2.0**-24])


def test_bits() -> None:
    for source, target in ((torch.float16, torch.int16), (torch.bfloat16, torch.float16), (torch.float64, torch.int64)):
        x = torch.randn(5, 7, dtype=torch.float64).to(source)
        torch.testing.assert_close(bk.bitcast(x.T, target), x.T.contiguous().view(target), rtol=0, atol=0)
    assert bk.bitcast(numpy.array([True, False]), "u8").tolist() == [1, 0]
    with pytest.raises(bk.InvalidProblem, match=r"result_element.*4 bytes"):
        bk.bitcast(numpy.zeros(3, numpy.float32), "f64")
    with pytest.raises(bk.InvalidProblem, match="bool"):
        bk.bitcast(numpy.zeros(3, numpy.uint8), bool)


def test_what_is_no_element() -> None:
    x = numpy.zeros(3, numpy.float32)
    for nonsense in ("f7", numpy.uint32, 3, None):
        with pytest.raises(bk.InvalidProblem, match="dtype has the wrong type"):
            bk.cast(x, nonsense)
    with pytest.raises(bk.InvalidProblem, match=r"result_element.*c64"):
        bk.cast(x, numpy.complex64)
    assert bk.cast(x, float).dtype == numpy.float32 and bk.cast(x, dtype=bk.ElementKind.I8).dtype == numpy.int8


def test_its_gradient_is_cast_back() -> None:
    x = torch.linspace(-2, 2, 7, requires_grad=True)
    y = bt.cast(x, torch.float64)
    (y * y).sum().backward()
    assert x.grad is not None and x.grad.dtype is torch.float32
    torch.testing.assert_close(x.grad, 2 * x.detach())
    assert not bt.cast(x, torch.int32).requires_grad
    compiled = torch.compile(lambda x: bt.cast(x, torch.float16) * 2, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), x.half() * 2)


def test_its_gradient_in_jax() -> None:
    jax = pytest.importorskip("jax")
    with jax.default_device(jax.devices("cpu")[0]):
        x = jax.numpy.arange(-3.0, 4.0) / 3
        found = jax.grad(lambda x: (bk.cast(x, "f16").astype("float32") ** 2).sum())(x)
    assert found.dtype == x.dtype
    numpy.testing.assert_allclose(found, 2 * x, rtol=2e-3)
