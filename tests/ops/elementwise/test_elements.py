"""Unsigned integers and floats of 8 bits: every byte, every rounding, the edges of integers, arrays of every framework."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.arrays.numpy_arrays import dtype_of
from baracuda_kernels.core.element import FLOATS8, UNSIGNED
from baracuda_kernels.core.encoding import NUMPY_NAMES, decode, encode
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.verify.accuracy import every_half, many_floats

from conftest import DEVICE, STREAM

ml_dtypes = pytest.importorskip("ml_dtypes")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns of what does not fit, and of NaN

E = bk.ElementKind
LATER = UNSIGNED[1:]  # u8 has been there before
BACKENDS = [
    name
    for name, package in (("llvm", "numba"), ("triton", "triton"))
    if importlib.util.find_spec(package) and (name == "triton" or DEVICE.kind is bk.DeviceKind.CPU)
]
EVERY_BYTE = numpy.arange(256, dtype=numpy.uint8)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    return str(request.param)


def ran(backend: str, plan_type: Any, descriptor: Any, *inputs: Any) -> Any:
    """What the backend's kernel makes of NumPy arrays."""
    plan = plan_type.force(plan_type.kernels[BACKENDS.index(backend) - len(BACKENDS)].name, STREAM, descriptor)
    operands = plan_type.args_type.OPERANDS
    given = iter(inputs)
    held: dict[str, Any] = {}
    for operand in operands:
        if operand.presence(descriptor) is False:
            continue
        element = operand.element(descriptor)
        made = numpy.zeros(descriptor.shape, dtype_of(element)) if operand.writes else next(given)
        held[operand.name] = (
            torch.from_numpy(made.reshape(-1).view(numpy.uint8)).to(str(DEVICE)).view(DTYPES[element]).view(made.shape)
        )
    plan.run(STREAM, bk.Workspace.none(), plan_type.args_type(**held))
    (result,) = (operand for operand in operands if operand.writes)
    found = held[result.name].cpu().contiguous().view(-1).view(torch.uint8).numpy()
    return found.view(dtype_of(result.element(descriptor))).reshape(descriptor.shape)


def cast(backend: str, values: Any, target: E, saturate: bool = False) -> Any:
    descriptor = bk.CastDescriptor(values.shape, E.of(values.dtype), target, saturate=saturate)
    return ran(backend, bk.CastPlan, descriptor, values)


def same(found: Any, expected: Any) -> None:
    """The same numbers with the same signs, and NaN in the same places, whatever its sign."""
    found, expected = (numpy.asarray(each).astype(numpy.float64) for each in (found, expected))
    numpy.testing.assert_array_equal(found, expected)
    number = ~numpy.isnan(expected)
    numpy.testing.assert_array_equal(numpy.signbit(found)[number], numpy.signbit(expected)[number])


# --- floats of 8 bits -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("element", FLOATS8)
def test_every_byte_is_widened_exactly(backend: str, element: E) -> None:
    values = EVERY_BYTE.view(dtype_of(element))
    same(cast(backend, values, E.F32), values.astype(numpy.float32))
    same(decode(EVERY_BYTE, element), values.astype(numpy.float64))
    same(torch.from_numpy(EVERY_BYTE).view(DTYPES[element]).float().numpy(), values.astype(numpy.float32))


def tried(element: E) -> Any:
    """All bf16, all f16, and f32 of any bits, the middles between numbers of the element and their neighbours among them."""
    known = numpy.sort(decode(EVERY_BYTE, element))
    known = known[numpy.isfinite(known)]
    above = [2 * known[-1] - known[-2], -(2 * known[-1] - known[-2])]  # what would be next, if there were one
    known = numpy.sort(numpy.append(known, above))
    middles = numpy.float32((known[1:] + known[:-1]) / 2)
    near = [numpy.nextafter(middles, numpy.float32(side)) for side in (numpy.inf, -numpy.inf)]
    halves = [every_half(E.F16).astype(numpy.float32), every_half(E.BF16).astype(numpy.float32)]
    return numpy.concatenate([*halves, many_floats(1 << 16).astype(numpy.float32), middles, *near, known.astype(numpy.float32)])


@pytest.mark.parametrize("element", FLOATS8)
def test_f32_is_rounded_as_ml_dtypes_rounds_it(backend: str, element: E) -> None:
    values = tried(element)
    same(cast(backend, values, element), values.astype(dtype_of(element)))
    largest = float(ml_dtypes.finfo(dtype_of(element)).max)
    same(cast(backend, values, element, saturate=True), numpy.clip(values, -largest, largest).astype(dtype_of(element)))


@pytest.mark.parametrize("element", FLOATS8)
def test_f32_is_rounded_as_pytorch_rounds_it(element: E) -> None:
    """PyTorch saturates to e4m3fn, which has no infinity, from 2.13 on; before that, and to the others, it does not."""
    values = torch.from_numpy(tried(element))
    saturates = element is E.F8E4M3FN and not torch.tensor(1e9).to(DTYPES[element]).isnan()
    found = bk.cast(values, DTYPES[element], saturate=saturates)
    assert found.dtype is DTYPES[element]
    same(found.float(), values.to(DTYPES[element]).float())
    same(bk.cast(found, torch.float32), found.float())


@pytest.mark.parametrize("element", FLOATS8)
@pytest.mark.parametrize("half", [E.F16, E.BF16])
def test_every_half_becomes_the_nearest(backend: str, half: E, element: E) -> None:
    values = every_half(half)
    if backend == "triton" and DEVICE.kind is bk.DeviceKind.CPU and half is E.BF16:
        values = values[(numpy.abs(values) >= 2.0**-126) | (values == 0)]  # Triton's interpreter takes subnormal bf16 for 0
    given = values.astype(dtype_of(half))
    same(cast(backend, given, element), given.astype(numpy.float32).astype(dtype_of(element)))


@pytest.mark.parametrize("element", FLOATS8)
def test_wide_numbers_are_rounded_once(element: E) -> None:
    """By way of f32 they would come to lie in the middle of two numbers."""
    known = decode(EVERY_BYTE, element)
    known = numpy.unique(numpy.abs(known[numpy.isfinite(known)]))
    middles = (known[1:] + known[:-1]) / 2
    for near, chosen in ((numpy.nextafter(middles, numpy.inf), known[1:]), (numpy.nextafter(middles, 0), known[:-1])):
        for sign in (1.0, -1.0):
            same(cast(BACKENDS[0], sign * near, element), decode(encode(sign * chosen, element), element))
    for source, shift in ((E.I32, 8), (E.U32, 8), (E.I64, 8), (E.U64, 8)):
        whole = middles[(middles == numpy.rint(middles)) & (middles >= 1 << shift)].astype(NUMPY_NAMES[source])
        expected = encode(whole.astype(numpy.float64) + 1, element).view(dtype_of(element))
        same(cast(BACKENDS[0], whole + whole.dtype.type(1), element), expected)


def test_integers_and_truths_become_floats_of_8_bits(backend: str) -> None:
    integers = numpy.array([0, 1, -1, 17, 240, 448, 464, 465, -70_000, 2**31 - 1], numpy.int32)
    for element in FLOATS8:
        same(cast(backend, integers, element), integers.astype(numpy.float32).astype(dtype_of(element)))
        same(cast(backend, numpy.array([False, True]), element), [0.0, 1.0])
        assert cast(backend, EVERY_BYTE.view(dtype_of(element)), E.BOOL).tolist() == (decode(EVERY_BYTE, element) != 0).tolist()
        assert cast(backend, encode([-2.5, 200.0, numpy.nan], element).view(dtype_of(element)), E.I8).tolist() == [-2, 127, 0]


@pytest.mark.parametrize("element", FLOATS8)
def test_bytes_that_are_only_moved_stay_what_they_are(backend: str, element: E) -> None:
    """Also those of NaN, which have several forms."""
    values, other = EVERY_BYTE.view(dtype_of(element)), EVERY_BYTE[::-1].copy().view(dtype_of(element))
    unary = bk.UnaryDescriptor(bk.UnaryKind.POSITIVE, values.shape, element)
    assert ran(backend, bk.UnaryPlan, unary, values).view(numpy.uint8).tolist() == EVERY_BYTE.tolist()
    condition = EVERY_BYTE % 3 == 0
    found = ran(backend, bk.WherePlan, bk.WhereDescriptor(values.shape, element), condition, values, other)
    assert found.view(numpy.uint8).tolist() == numpy.where(condition, EVERY_BYTE, EVERY_BYTE[::-1]).tolist()
    found = ran(backend, bk.WherePlan, bk.WhereDescriptor(values.shape, element, None, 0.3), condition, values)
    same(found, numpy.where(condition, decode(EVERY_BYTE, element), decode(encode(0.3, element), element)))
    assert bk.bitcast(values, "u8").tolist() == EVERY_BYTE.tolist() and bk.bitcast(EVERY_BYTE, element).dtype == values.dtype


@pytest.mark.parametrize("element", FLOATS8)
def test_every_pair_of_bytes_is_compared(element: E) -> None:
    first, second = (
        each.ravel().view(dtype_of(element)) for each in map(numpy.ascontiguousarray, numpy.meshgrid(EVERY_BYTE, EVERY_BYTE))
    )
    for name, compared in (("eq", numpy.equal), ("ne", numpy.not_equal), ("lt", numpy.less), ("ge", numpy.greater_equal)):
        numpy.testing.assert_array_equal(getattr(bk, name)(first, second), compared(first, second))
    values = EVERY_BYTE.view(dtype_of(element))
    for name in ("isnan", "isinf", "isfinite", "signbit"):
        expected = getattr(numpy, name)(values.astype(numpy.float32))
        kept = ~numpy.isnan(values.astype(numpy.float32)) | (name != "signbit")
        numpy.testing.assert_array_equal(getattr(bk, name)(values)[kept], expected[kept])
    same(bk.abs(values), numpy.abs(values.astype(numpy.float32)))
    # Zero has no sign where minus zero has no byte.
    same(bk.neg(values), (-values.astype(numpy.float32)).astype(dtype_of(element)))


def test_arithmetic_of_floats_of_8_bits_is_refused() -> None:
    x = EVERY_BYTE.view(dtype_of(E.F8E5M2))
    with pytest.raises(bk.Unsupported, match="f8e5m2"):
        bk.add(x, x)
    with pytest.raises(bk.Unsupported, match="f8e5m2"):
        bk.sum(x)
    with pytest.raises(bk.InvalidProblem, match="saturate"):
        bk.CastDescriptor((3,), E.F32, E.I32, bk.CastKind.BITCAST, saturate=True)


def test_gradients_pass_through_floats_of_8_bits() -> None:
    x = torch.linspace(-3, 3, 9, requires_grad=True)
    bt.cast(bt.cast(x, torch.float8_e5m2), torch.float32).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1.0] * 9


# --- what saturates ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [E.I8, E.I32, E.I64, *UNSIGNED])
@pytest.mark.parametrize("target", [E.I8, E.I64, *UNSIGNED, E.F16, E.F8E4M3FN])
def test_integers_saturate_where_asked(source: E, target: E) -> None:
    values = edges(source)
    low, high = (-65504, 65504) if target is E.F16 else (-448, 448)
    if not target.is_float:
        low, high = (int(each) for each in (numpy.iinfo(NUMPY_NAMES[target]).min, numpy.iinfo(NUMPY_NAMES[target]).max))
    within = [min(max(int(each), low), high) for each in values]
    expected = numpy.array(within, numpy.float64 if target.is_float else NUMPY_NAMES[target])
    expected = decode(encode(expected, target), target) if target.is_float else expected
    found = bk.cast(values, target, saturate=True)
    assert found.dtype == dtype_of(target)
    numpy.testing.assert_array_equal(found.astype(expected.dtype), expected)
    if not target.is_float:  # without, the upper bits are cut off
        numpy.testing.assert_array_equal(bk.cast(values, target), values.astype(NUMPY_NAMES[target]))


def test_floats_saturate_where_asked(backend: str) -> None:
    values = numpy.array([1e5, -1e5, 3.0, numpy.inf, -numpy.inf, numpy.nan], numpy.float64)
    same(cast(backend, values, E.F16, saturate=True), [65504.0, -65504.0, 3.0, 65504.0, -65504.0, numpy.nan])
    same(cast(backend, values, E.F16), [numpy.inf, -numpy.inf, 3.0, numpy.inf, -numpy.inf, numpy.nan])
    largest = float(numpy.finfo(numpy.float32).max)
    same(cast(backend, values * 1e300, E.F32, saturate=True), [largest, -largest, largest, largest, -largest, numpy.nan])
    assert (
        cast(backend, values, E.U16, saturate=True).tolist() == cast(backend, values, E.U16).tolist() == [65535, 0, 3, 65535, 0, 0]
    )


# --- unsigned integers ------------------------------------------------------------------------------------------------------------------


def edges(element: E) -> Any:
    """Integers at which something happens, of those that the element has."""
    limits = numpy.iinfo(NUMPY_NAMES[element])
    some = {
        0,
        1,
        2,
        3,
        7,
        15,
        16,
        31,
        32,
        63,
        64,
        100,
        127,
        128,
        200,
        255,
        256,
        448,
        449,
        65535,
        65536,
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**32,
    }
    some |= {
        2**53 - 1,
        2**53 + 1,
        2**63 - 1,
        2**63,
        2**63 + 1,
        int(limits.max),
        int(limits.max) - 1,
        int(limits.min),
        -1,
        -128,
        -129,
    }
    return numpy.array(sorted(each for each in some if limits.min <= each <= limits.max), NUMPY_NAMES[element])


def pairs(element: E) -> tuple[Any, Any]:
    one, other = numpy.meshgrid(edges(element), edges(element))
    return one.ravel().copy(), other.ravel().copy()


def by_zero(of_numbers: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: numpy.where(y == 0, y, of_numbers(x, numpy.where(y == 0, y.dtype.type(1), y)))


def shifted(of_numbers: Callable[..., Any]) -> Callable[..., Any]:
    """By the width or more, nothing is left."""
    return lambda x, y: numpy.where(y < 8 * x.itemsize, of_numbers(x, y % (8 * x.itemsize)), x.dtype.type(0))


def upper_half(x: Any, y: Any) -> Any:
    return (x.astype(object) * y.astype(object) >> 8 * x.itemsize).astype(x.dtype)


BINARY: dict[str, Callable[..., Any]] = {
    "add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "floor_divide": by_zero(numpy.floor_divide),
    "trunc_divide": by_zero(numpy.floor_divide), "remainder": by_zero(numpy.remainder), "fmod": by_zero(numpy.fmod), "gcd": numpy.gcd,
    "lcm": numpy.lcm, "maximum": numpy.maximum, "minimum": numpy.minimum, "pow": numpy.power, "mulhi": upper_half,
    "bitwise_and": numpy.bitwise_and, "bitwise_or": numpy.bitwise_or, "bitwise_xor": numpy.bitwise_xor,
    "bitwise_left_shift": shifted(numpy.left_shift), "bitwise_right_shift": shifted(numpy.right_shift),
    "shift_right_logical": shifted(numpy.right_shift),
    "eq": numpy.equal, "ne": numpy.not_equal, "lt": numpy.less, "le": numpy.less_equal, "gt": numpy.greater, "ge": numpy.greater_equal,
}  # fmt: skip
UNARY: dict[str, Callable[..., Any]] = {
    "neg": numpy.negative, "abs": numpy.abs, "sign": numpy.sign, "square": numpy.square, "bitwise_not": numpy.invert,
    "population_count": numpy.bitwise_count, "logical_not": numpy.logical_not, "positive": numpy.positive,
    "clz": lambda x: numpy.array([8 * x.itemsize - int(each).bit_length() for each in x]),
}  # fmt: skip
# Where products and quotients of long integers are made of other instructions, or of none.
TELLING = (
    "floor_divide",
    "remainder",
    "mulhi",
    "bitwise_right_shift",
    "lt",
    "maximum",
    "mul",
    "neg",
    "bitwise_not",
    "clz",
    "population_count",
)


def in_turn(names: Any) -> list[Any]:
    """Every op in u64, which is the farthest from what has been there, and in one of the others."""
    return [(name, element) for number, name in enumerate(names) for element in (E.U64, LATER[number % 2])]


@pytest.mark.parametrize(("name", "element"), in_turn([*BINARY, *UNARY]))
def test_integers_are_numpys(name: str, element: E) -> None:
    operands = pairs(element) if name in BINARY else (edges(element),)
    expected = (BINARY | UNARY)[name](*operands)
    numpy.testing.assert_array_equal(getattr(bk, name)(*operands), expected)


@pytest.mark.parametrize(("name", "element"), in_turn(TELLING))
def test_integers_on_every_backend(backend: str, name: str, element: E) -> None:
    operands = pairs(element) if name in BINARY else (edges(element),)
    plan, kind = (bk.BinaryPlan, bk.BinaryKind) if name in BINARY else (bk.UnaryPlan, bk.UnaryKind)
    expected = (BINARY | UNARY)[name](*operands)
    found = ran(backend, plan, plan.descriptor_type(kind(name), operands[0].shape, element), *operands)
    numpy.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("element", LATER)
def test_integers_are_pytorchs_where_it_has_them(element: E) -> None:
    one, other = (torch.from_numpy(each) for each in pairs(element))
    for name in ("mul", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "ne"):
        found, expected = getattr(bk, name)(one, other), getattr(torch, name)(one, other)
        assert found.dtype is expected.dtype and torch.equal(found, expected), name
    for name in ("sum", "prod"):
        found, expected = getattr(bk, name)(one), getattr(torch, name)(one)
        assert found.dtype is expected.dtype and found.item() == expected.item(), name
    for name in ("cumsum", "cumprod"):
        found, expected = getattr(bk, name)(one, 0), getattr(torch, name)(one, 0)
        assert found.dtype is expected.dtype and torch.equal(found, expected), name


@pytest.mark.parametrize("element", LATER)
def test_reductions_and_scans(element: E) -> None:
    x = numpy.random.default_rng(5).permutation(numpy.tile(edges(element), 9)).reshape(9, -1)
    for name, expected in (
        ("amax", x.max(1)),
        ("amin", x.min(1)),
        ("argmax", x.argmax(1)),
        ("argmin", x.argmin(1)),
        ("any", x.any(1)),
    ):
        numpy.testing.assert_array_equal(getattr(bk, name)(x, dim=1), expected, err_msg=name)
    numpy.testing.assert_array_equal(bk.count_nonzero(x, dim=1), numpy.count_nonzero(x, 1))
    numpy.testing.assert_array_equal(bk.reduce_xor(x, dim=1), numpy.bitwise_xor.reduce(x, 1))
    for name, accumulated in (("cummax", numpy.maximum), ("cummin", numpy.minimum)):
        values, indices = getattr(bk, name)(x, 1)
        numpy.testing.assert_array_equal(values, accumulated.accumulate(x, 1))
        numpy.testing.assert_array_equal(numpy.take_along_axis(x, indices, 1), values)
    whole = bk.sum(x, dim=1, dtype="u64")
    numpy.testing.assert_array_equal(whole, x.sum(1, dtype=numpy.uint64))
    numpy.testing.assert_array_equal(bk.sum(x, dim=1), whole.view(numpy.int64))
    numpy.testing.assert_array_equal(bk.prod(x, dim=1, dtype="u64"), x.prod(1, dtype=numpy.uint64))


@pytest.mark.parametrize("element", LATER)
def test_numbers_beside_unsigned_integers(element: E) -> None:
    x, most = edges(element), int(numpy.iinfo(NUMPY_NAMES[element]).max)
    numpy.testing.assert_array_equal(bk.add(x, 200), x + x.dtype.type(200))
    numpy.testing.assert_array_equal(bk.where(x > 3, x, 7), numpy.where(x > 3, x, x.dtype.type(7)))
    numpy.testing.assert_array_equal(bk.clamp(x, min=2, max=100), x.clip(2, 100))
    numpy.testing.assert_array_equal(bk.clamp(x, min=2), x.clip(2, None))
    for beyond in (-1, most + 1, *([2**60] if element is E.U64 else [])):  # numbers are given in f64
        with pytest.raises(bk.InvalidProblem, match=f"{element}"):
            bk.add(x, beyond)


# --- frameworks -------------------------------------------------------------------------------------------------------------------------


class Capsule:
    """An array that is nothing but its capsule."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("element", [*LATER, *FLOATS8])
def test_arrays_of_every_framework(element: E) -> None:
    data = numpy.arange(1, 1 + 12 * element.size, dtype=numpy.uint8)
    array = data.view(dtype_of(element)).reshape(3, 4)
    tensor = torch.from_numpy(data).view(DTYPES[element]).reshape(3, 4)
    assert E.of(array.dtype) is element and E.of(tensor.dtype) is element and E.of(element.framework_name) is element
    for given in (array, array.T, array[::-1, ::2]):
        found = bk.positive(given)
        assert found.dtype == array.dtype and found.tobytes() == numpy.ascontiguousarray(given).tobytes()
    found = bk.positive(tensor.T)
    assert found.dtype is tensor.dtype and torch.equal(found.view(torch.uint8), tensor.T.contiguous().view(torch.uint8))
    assert bt.cast(tensor, torch.float32).dtype is torch.float32
    assert bk.TensorRef.of(Capsule(tensor)).element is element


@pytest.mark.parametrize("element", [*LATER, *FLOATS8])
def test_arrays_of_jax(element: E) -> None:
    jax = pytest.importorskip("jax")
    from baracuda_kernels.arrays.jax_arrays import wide_types

    data = numpy.arange(1, 1 + 12 * element.size, dtype=numpy.uint8).view(dtype_of(element))
    with wide_types(), jax.default_device(jax.devices("cpu")[0]):
        array = jax.numpy.asarray(data)
        found = bk.positive(array)
        assert type(found) is type(array) and found.dtype == array.dtype and numpy.asarray(found).tobytes() == data.tobytes()
        traced = jax.jit(lambda x: bk.eq(x, x))(array)
        assert traced.tolist() == (~numpy.isnan(data.astype(numpy.float64))).tolist()
        values = numpy.array([1e5, 3.3, -0.0, 3000.0], numpy.float32)
        same(bk.cast(jax.numpy.asarray(values), element), jax.numpy.asarray(values).astype(data.dtype))


def test_names() -> None:
    for kind, other in itertools.permutations(E, 2):
        assert kind.framework_name != other.framework_name and kind.value != other.value
    assert [E(name) for name in ("u16", "u32", "u64", "f8e4m3fn", "f8e5m2")] == [E.U16, E.U32, E.U64, E.F8E4M3FN, E.F8E5M2]
