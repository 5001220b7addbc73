"""Formulas as Triton kernels: every operation on every element, every way operands can lie, and the machine code they come to."""

from __future__ import annotations

import functools
import importlib.util
import json
import operator
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.formula import operations
from baracuda_kernels.formula.expression import Expr, Program, constant, in_order, input_of, make, parameter_of
from baracuda_kernels.formula.fast_path import usual
from baracuda_kernels.formula.operations import (
    BITS,
    F32_ONLY,
    FLOATS_ONLY,
    INTEGERS_ONLY,
    absolute,
    bitcast,
    convert,
    div_roughly,
    exp2_roughly,
    fma,
    log2_roughly,
    reciprocal,
    rsqrt_roughly,
    sqrt_roughly,
    where,
)
from baracuda_kernels.targets.cuda.formulas.elementwise_tiles import (
    ElementwiseTile,
    block_for,
    elements_per_thread,
    live_words,
    tile_for,
)

from conftest import DEVICE, STREAM

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")

E = bk.ElementKind
DTYPES = {E.F32: "f4", E.F64: "f8", E.F16: "f2", E.I8: "i1", E.I16: "i2", E.I32: "i4", E.I64: "i8", E.U8: "u1", E.BOOL: "?"}
FLOATS, INTEGERS = (E.F32, E.F64), (E.I8, E.I16, E.I32, E.I64, E.U8)
REGISTERS = (*FLOATS, *INTEGERS, E.BOOL)


@pytest.fixture(autouse=True)
def on_this_device(monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")


def run(program: Program, arrays: list[Any], parameters: tuple[float, ...] = ()) -> str | None:
    """Runs a program on arrays, the last of which are written, and says in which form."""
    from baracuda_kernels.targets.cuda.formulas.elementwise import calls, kernel

    elements = (*program.inputs, *program.outputs)
    shape, strides = arrays[0].shape, [tuple(step // array.itemsize for step in array.strides) for array in arrays]
    layouts = tuple(Layout.of(element, shape, stride, DEVICE) for element, stride in zip(elements, strides, strict=True))
    launch = kernel(program, shape, DEVICE, parameters)(layouts)
    roots = {id(_root(array)): _root(array) for array in arrays}
    memory = {name: torch.from_numpy(root.reshape(-1).view("u1")) for name, root in roots.items()}
    there = {name: bytes_.cuda() for name, bytes_ in memory.items()} if DEVICE.kind is bk.DeviceKind.CUDA else memory
    addresses = tuple(_address(array) - _address(_root(array)) + there[id(_root(array))].data_ptr() for array in arrays)
    launch(addresses, 0, STREAM)
    if there is not memory:
        for name, bytes_ in memory.items():
            bytes_.copy_(there[name])
    found = calls(program, shape, strides, parameters)
    return found[0].body.__name__ if found else None


def _root(array: Any) -> Any:
    while isinstance(array.base, numpy.ndarray):
        array = array.base
    return array


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


# --- operations ----------------------------------------------------------------------------------------------------------------


def edges(element: E) -> Any:
    """Numbers at which something happens."""
    if element is E.BOOL:
        return numpy.array([False, True])
    if not element.is_float:
        info = numpy.iinfo(DTYPES[element])
        some = {0, 1, 2, 3, 5, 7, 16, 77, 100, info.max // 3, info.max - 1, info.max, info.min, info.min + 1, -1, -2, -7, -77}
        return numpy.array(sorted(number for number in some if info.min <= number <= info.max), DTYPES[element])
    info = numpy.finfo(DTYPES[element])
    large = 2.0**info.nmant  # from where on there are no halves
    some = [
        0.0,
        0.3,
        0.5,
        1.0,
        1.5,
        2.5,
        1e-5,
        numpy.pi,
        77.7,
        large - 0.5,
        large / 2 + 0.5,
        large + 1,
        info.max,
        info.tiny,
        info.smallest_subnormal,
    ]
    return numpy.array([*some, numpy.inf, *(-number for number in some), -numpy.inf, numpy.nan], DTYPES[element])


def pairs(element: E) -> tuple[Any, Any]:
    a, b = numpy.meshgrid(edges(element), edges(element))
    return a.ravel(), b.ravel()


def towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def by_python(function: Callable[..., int]) -> Callable[..., Any]:
    """A function of Python's integers, wrapped around. The last argument is the number of bits."""

    def apply(*args: Any) -> Any:
        bits = 8 * args[0].itemsize
        results = [function(*map(int, numbers), bits) % (1 << bits) for numbers in zip(*args, strict=True)]
        return numpy.array(results, f"u{bits // 8}").view(args[0].dtype)

    return apply


WANTED: dict[str, Callable[..., Any]] = {
    "add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "neg": numpy.negative, "absolute": numpy.abs,
    "div": numpy.divide, "sqrt": numpy.sqrt, "floor": numpy.floor, "ceil": numpy.ceil, "trunc": numpy.trunc, "rint": numpy.rint,
    "lt": numpy.less, "le": numpy.less_equal, "eq": numpy.equal, "ne": numpy.not_equal,
    "bit_and": numpy.bitwise_and, "bit_or": numpy.bitwise_or, "bit_xor": numpy.bitwise_xor, "bit_not": numpy.invert,
    "shl": by_python(lambda a, b, bits: a << b % bits),
    "shr": by_python(lambda a, b, bits: a >> b % bits),
    "shr_logical": by_python(lambda a, b, bits: a % (1 << bits) >> b % bits),
    "quotient": by_python(lambda a, b, bits: towards_zero(a, b)),
    "remainder": by_python(lambda a, b, bits: a - b * towards_zero(a, b)),
    "mul_high": by_python(lambda a, b, bits: a * b >> bits),
    "popcount": by_python(lambda x, bits: (x % (1 << bits)).bit_count()),
    "clz": by_python(lambda x, bits: bits - (x % (1 << bits)).bit_length()),
}  # fmt: skip
SPECIAL = {"fma", "reciprocal", *F32_ONLY, "where", "rarely", "convert", "bitcast"}  # have tests of their own


def same(got: Any, wanted: Any) -> bool:
    """The same numbers, signs of zeros included; one NaN is as good as another."""
    if got.dtype.kind == "f" and not (numpy.signbit(got) == numpy.signbit(wanted))[~numpy.isnan(wanted)].all():
        return False
    return got.dtype == wanted.dtype and numpy.array_equal(got, wanted, equal_nan=got.dtype.kind == "f")


def test_triton_has_exactly_the_operations() -> None:
    from baracuda_kernels.targets.cuda.formulas.operations import OPERATIONS

    assert OPERATIONS.keys() == operations.OPERATIONS.keys() == WANTED.keys() | SPECIAL


@pytest.mark.parametrize("operation", WANTED)
def test_operation(operation: str) -> None:
    arity, _ = operations.OPERATIONS[operation]
    served = FLOATS if operation in FLOATS_ONLY else INTEGERS if operation in INTEGERS_ONLY else (*FLOATS, *INTEGERS)
    if operation in BITS:
        served = (*INTEGERS, E.BOOL)
    elif operation in ("eq", "ne"):
        served = REGISTERS
    for element in served:
        inputs = pairs(element) if arity == 2 else (edges(element),)
        if operation in ("quotient", "remainder"):  # by zero it is anything, but goes by quietly
            inputs = tuple(numpy.where(inputs[1] == 0, 3, each).astype(each.dtype) for each in inputs)
        result = operations.applied(operation, *(input_of(place, element) for place in range(arity)))
        with numpy.errstate(all="ignore"):
            wanted = WANTED[operation](*inputs)
        got = numpy.zeros(wanted.shape, DTYPES[result.element])
        run(Program((element,) * arity, (result.element,), (result,)), [*inputs, got])
        assert same(got, wanted), (element, inputs, got, wanted)


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_fma_rounds_once(element: E, rng: numpy.random.Generator) -> None:
    a, b, c = (input_of(place, element) for place in range(3))
    x, y = (rng.normal(size=999).astype(DTYPES[element]) for _ in range(2))
    z = numpy.concatenate([-(x * y)[:500], rng.normal(size=499).astype(x.dtype) * 10.0 ** rng.integers(-9, 9, 499)]).astype(x.dtype)
    x[-3:], y[-3:], z[-3:] = [numpy.inf, 1e-30, -0.0], [2.0, -1e-30, 1.0], [-numpy.inf, 1.0, -0.0]
    got = numpy.zeros_like(x)
    run(Program((element,) * 3, (element,), (fma(a, b, c),)), [x, y, z, got])
    assert numpy.isnan(got[-3]) and got[-2] == 1 and got[-1] == 0 and numpy.signbit(got[-1])
    exact = [Fraction(float(p)) * Fraction(float(q)) + Fraction(float(r)) for p, q, r in zip(x[:-3], y[:-3], z[:-3], strict=True)]
    for wanted, found in zip(exact, got[:-3], strict=True):
        beside = [float(numpy.nextafter(found, way)) for way in (x.dtype.type(-numpy.inf), x.dtype.type(numpy.inf))]
        assert all(abs(Fraction(float(found)) - wanted) <= abs(Fraction(other) - wanted) for other in beside)


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_reciprocal_is_near(element: E, rng: numpy.random.Generator) -> None:
    x = (rng.choice([-1.0, 1.0], 999) * numpy.exp2(rng.uniform(-125, 120, 999))).astype(DTYPES[element])
    got = numpy.zeros_like(x)
    run(Program((element,), (element,), (reciprocal(input_of(0, element)),)), [x, got])
    assert (numpy.abs(got - 1 / x.astype(numpy.float64)) <= 2 * numpy.spacing(numpy.abs(1 / x))).all()


def test_exp2_is_near(rng: numpy.random.Generator) -> None:
    x = numpy.concatenate([rng.uniform(-126, 127, 9999), [-127, -1e30, -numpy.inf, 128, 1e30, numpy.inf, numpy.nan]]).astype(
        "float32"
    )
    got = numpy.zeros_like(x)
    run(Program((E.F32,), (E.F32,), (exp2_roughly(input_of(0, E.F32)),)), [x, got])
    numpy.testing.assert_allclose(got[:-7], numpy.exp2(x[:-7].astype("float64")), rtol=2.0**-17)
    assert (got[-6:-4] == 0).all() and (got[-4:-1] == numpy.inf).all() and numpy.isnan(got[-1])


def test_log2_is_near(rng: numpy.random.Generator) -> None:
    near_1 = 1 + rng.uniform(-0.4, 0.9, 999) * numpy.exp2(rng.uniform(-23, 0, 999))
    ends = [0, -0.0, numpy.inf, -1, -numpy.inf, numpy.nan]
    x = numpy.concatenate([numpy.exp2(rng.uniform(-149, 128, 9999)), near_1, ends]).astype("float32")
    got = numpy.zeros_like(x)
    run(Program((E.F32,), (E.F32,), (log2_roughly(input_of(0, E.F32)),)), [x, got])
    numpy.testing.assert_allclose(got[:-6], numpy.log2(x[:-6].astype("float64")), rtol=2.0**-21, atol=2.0**-22)
    assert same(got[-6:], numpy.array([-numpy.inf, -numpy.inf, numpy.inf, numpy.nan, numpy.nan, numpy.nan], "float32"))


def test_rsqrt_is_near(rng: numpy.random.Generator) -> None:
    x = numpy.concatenate([numpy.exp2(rng.uniform(-126, 128, 9999)), [0, -0.0, numpy.inf, -1, numpy.nan]]).astype("float32")
    got = numpy.zeros_like(x)
    run(Program((E.F32,), (E.F32,), (rsqrt_roughly(input_of(0, E.F32)),)), [x, got])
    numpy.testing.assert_allclose(got[:-5], 1 / numpy.sqrt(x[:-5].astype("float64")), rtol=2.0**-21)
    assert same(got[-5:], numpy.array([numpy.inf, -numpy.inf, 0, numpy.nan, numpy.nan], "float32"))


def test_rough_divisions_and_roots_are_near_whatever_they_are_of(rng: numpy.random.Generator) -> None:
    """Subnormal numbers and the largest ones, as operands and as results."""
    ends = numpy.array([0, -0.0, 1, numpy.inf, -numpy.inf, numpy.nan, 2.0**-149, 3.4e38], "float32")
    a, b = (numpy.exp2(rng.uniform(-149, 128, 9999)) * rng.choice([-1.0, 1.0], 9999) for _ in range(2))
    a, b = (numpy.append(drawn.astype("float32"), at_end) for drawn, at_end in zip((a, b), numpy.meshgrid(ends, ends), strict=True))
    x, y = input_of(0, E.F32), input_of(1, E.F32)
    quotient, root = numpy.zeros_like(a), numpy.zeros_like(a)
    run(Program((E.F32, E.F32), (E.F32, E.F32), (div_roughly(x, y), sqrt_roughly(absolute(x)))), [a, b, quotient, root])
    with numpy.errstate(all="ignore"):
        for got, wanted, units in ((quotient, a / b, 3), (root, numpy.sqrt(numpy.abs(a)), 2)):
            usual = numpy.isfinite(wanted) & (numpy.abs(wanted) < 3e38)
            assert (numpy.abs(got - wanted) <= units * numpy.spacing(numpy.abs(wanted)))[usual].all()
            assert same(got[-(ends.size**2) :][~usual[-(ends.size**2) :]], wanted[-(ends.size**2) :][~usual[-(ends.size**2) :]])


@pytest.mark.parametrize("target", REGISTERS, ids=str)
def test_convert(target: E) -> None:
    for source in REGISTERS:
        if source is target:
            continue
        numbers = edges(source)
        if source.is_float and not target.is_float:  # what does not fit is anything
            numbers = numbers[numpy.abs(numbers) < (200 if target is E.U8 else 100)]
            numbers = numpy.abs(numbers) if target is E.U8 else numbers
        with numpy.errstate(all="ignore"):
            wanted = numbers.astype(DTYPES[target])
        got = numpy.zeros(numbers.shape, DTYPES[target])
        run(Program((source,), (target,), (convert(input_of(0, source), target),)), [numbers, got])
        assert same(got, wanted), (source, numbers, got, wanted)


@pytest.mark.parametrize(
    ("source", "target"),
    [(E.F32, E.I32), (E.I32, E.F32), (E.F64, E.I64), (E.I64, E.F64), (E.U8, E.I8), (E.BOOL, E.U8), (E.U8, E.BOOL)],
)
def test_bitcast(source: E, target: E) -> None:
    numbers = edges(source) if target is not E.BOOL else numpy.array([0, 1], "u1")
    got = numpy.zeros(numbers.shape, DTYPES[target])
    run(Program((source,), (target,), (bitcast(input_of(0, source), target),)), [numbers, got])
    assert same(got, numbers.view(DTYPES[target]))


@pytest.mark.parametrize("shape", [(5000,), (3, 40), ()])
@pytest.mark.parametrize("asked", [(), (7,), (0, 4999)])
def test_what_is_rare_is_computed_where_it_is_asked_for(asked: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """By programs in which nobody asks, in which one does, and in which a nested one does."""
    x, y = (numpy.arange(1.0, 1 + numpy.prod(shape, dtype=int), dtype="f4").reshape(shape) for _ in range(2))
    for place in asked:
        if place < x.size:
            x.reshape(-1)[place] *= -1.0
    inner = operations.rarely(Y > 4990.0, Y * 3.0, Y)
    program = Program((E.F32,) * 2, (E.F32,) * 2, (operations.rarely(X < 0.0, X - inner, X + inner), X * 2.0))
    without = usual(program)
    assert without is not None and not any(each.operation == "rarely" for each in in_order(without.results))
    first, second = numpy.zeros_like(x), numpy.zeros_like(x)
    run(program, [x, y, first, second])
    tripled = numpy.where(y > 4990.0, y * 3, y)
    assert same(first, numpy.where(x < 0, x - tripled, x + tripled)) and same(second, x * 2)


def test_where_nothing_is_rare_there_is_no_other_program() -> None:
    assert usual(Program((E.F32,) * 2, (E.F32,), (where(X < Y, X, Y),))) is None


@pytest.mark.parametrize("element", REGISTERS, ids=str)
def test_where_chooses_and_does_not_mix(element: E) -> None:
    a, b = pairs(element)
    chosen = numpy.arange(len(a)) % 3 == 0
    got = numpy.zeros_like(a)
    program = Program((E.BOOL, element, element), (element,), (where(*map(input_of, range(3), (E.BOOL, element, element))),))
    run(program, [chosen, a, b, got])
    assert same(got, numpy.where(chosen, a, b))


@pytest.mark.parametrize("element", REGISTERS, ids=str)
def test_constants_keep_every_bit(element: E) -> None:
    numbers = [*edges(element).tolist(), *([0.1, 1e300 if element is E.F64 else 1e38] if element.is_float else [])]
    outputs = [numpy.zeros(5, DTYPES[element]) for _ in numbers]
    run(Program((), (element,) * len(numbers), tuple(constant(number, element) for number in numbers)), outputs)
    for number, got in zip(numbers, outputs, strict=True):
        assert same(got, numpy.full(5, number, DTYPES[element]))


def test_parameters_keep_every_bit() -> None:
    numbers = (0.1, 0.0, -0.0, 5e-324, 1.7e308, -numpy.inf, numpy.nan)
    outputs = [numpy.zeros(3) for _ in numbers]
    program = Program((), (E.F64,) * len(numbers), tuple(map(parameter_of, range(len(numbers)))), len(numbers))
    for given in (numbers, numbers[::-1]):
        run(program, outputs, given)
        assert all(same(got, numpy.full(3, number)) for got, number in zip(outputs, given, strict=True))


@pytest.mark.parametrize("element", [E.F16, E.BF16], ids=str)
def test_halves_are_computed_in_f32(element: E) -> None:
    half = numpy.dtype("f2") if element is E.F16 else pytest.importorskip("ml_dtypes").bfloat16
    a, b = (numpy.array(numbers).astype(half) for numbers in ([1.0, 300.0, 0.5, -4.0], [2.0, 300.0, 0.25, -0.0]))
    got = numpy.zeros(4, half)
    x, y = input_of(0, element), input_of(1, element)
    run(Program((element, element), (element,), (x * y / 1024 + y,)), [a, b, got])
    wanted = a.astype("f4") * b.astype("f4") / 1024 + b.astype("f4")  # 90000 is too much for f16
    assert (numpy.abs(got.astype("f4") - wanted) <= numpy.abs(wanted) * (2**-11 if element is E.F16 else 2**-7)).all()


# --- layouts -------------------------------------------------------------------------------------------------------------------

X, Y = input_of(0, E.F32), input_of(1, E.F32)
PROGRAM = Program((E.F32, E.F32), (E.F32,), (X * 2 - Y,))


def ordered(*shape: int, start: float = 1) -> Any:
    return numpy.arange(start, start + numpy.prod(shape, dtype=int), dtype="f4").reshape(shape)


def permuted(*shape: int, axes: tuple[int, ...]) -> Any:
    """An array of that shape whose axes lie in memory in another order."""
    return ordered(*(shape[axis] for axis in axes)).transpose(numpy.argsort(axes))


def broadcast(shape: tuple[int, ...], *kept: int) -> Any:
    """An array of that shape which has numbers of its own along some axes only."""
    return numpy.broadcast_to(ordered(*(extent if axis in kept else 1 for axis, extent in enumerate(shape))), shape)


LAYOUTS: dict[str, tuple[str | None, Any, Any, Any]] = {
    "contiguous": ("flat", ordered(30, 40), ordered(30, 40), ordered(30, 40)),
    "odd count": ("flat", ordered(5, 411), ordered(5, 411), ordered(5, 411)),
    "all transposed": ("flat", ordered(30, 40).T, ordered(30, 40).T, ordered(30, 40).T),
    "one number": ("flat", ordered(30, 40), broadcast((30, 40)), ordered(30, 40)),
    "misaligned": ("flat", ordered(1201)[1:], ordered(1200), ordered(1200)),
    "rank 0": ("flat", ordered(1).reshape(()), ordered(1).reshape(()), ordered(1).reshape(())),
    "one element": ("flat", broadcast((1, 1)), ordered(1, 1), ordered(2, 2)[1:, 1:]),
    "transposed": ("tiled", ordered(40, 48).T, ordered(48, 40), ordered(48, 40)),
    "transposed, odd": ("tiled", ordered(67, 35).T, ordered(35, 67), ordered(35, 67)),
    "transposed result": ("tiled", ordered(67, 35), ordered(67, 35), ordered(35, 67).T),
    "few channels last": ("tiled", permuted(2, 3, 900, axes=(0, 2, 1)), ordered(2, 3, 900), ordered(2, 3, 900)),
    "few channels first": ("tiled", ordered(2, 3, 900), ordered(2, 3, 900), permuted(2, 3, 900, axes=(0, 2, 1))),
    "a row": ("tiled", ordered(30, 40), broadcast((30, 40), 1), ordered(30, 40)),
    "a column": ("tiled", ordered(30, 40), broadcast((30, 40), 0), ordered(30, 40)),
    "row and column": ("tiled", broadcast((7, 300), 1), broadcast((7, 300), 0), ordered(7, 300)),
    "a middle axis": ("tiled", ordered(5, 20, 33), broadcast((5, 20, 33), 1), ordered(5, 20, 33)),
    "gaps": ("tiled", ordered(30, 60)[:, 4:44], ordered(30, 40), ordered(30, 48)[:, :40]),
    "rows backwards": ("tiled", ordered(30, 40)[::-1], ordered(30, 40), ordered(30, 40)),
    "transposed and backwards": ("tiled", ordered(40, 48)[:, ::-1].T, ordered(48, 40), ordered(48, 40)),
    "columns backwards": ("tiled", ordered(30, 40)[:, ::-1], ordered(40, 30).T, ordered(30, 40)),
    "every third": ("tiled", ordered(30, 120)[:, ::3], ordered(60, 40)[::2], ordered(30, 40)),
    "windows": ("tiled", numpy.ndarray((60, 40), "f4", ordered(99), 0, (4, 4)), ordered(60, 40), ordered(60, 40)),
    "outer axes": (
        "tiled", permuted(2, 3, 4, 20, 24, axes=(1, 0, 2, 4, 3)), ordered(2, 3, 4, 20, 24), permuted(2, 3, 4, 20, 24, axes=(2, 1, 0, 3, 4))
    ),
    "backwards": ("scattered", ordered(1200)[::-1], ordered(1200), ordered(1200)),
    "every second": ("scattered", ordered(2400)[::2], ordered(1200), ordered(1200)),
    "short axes": ("scattered", permuted(9, 5, 7, 3, axes=(3, 0, 2, 1)), ordered(9, 5, 7, 3), ordered(9, 5, 7, 3)),
    "rank 8": ("scattered", ordered(*(2,) * 8).T, ordered(*(2,) * 8), permuted(*(2,) * 8, axes=(3, 1, 4, 0, 5, 2, 7, 6))),
    "rank 8, in tiles": (
        "tiled", permuted(2, 1, 2, 3, 1, 2, 20, 30, axes=(5, 0, 3, 2, 7, 6, 1, 4)), broadcast((2, 1, 2, 3, 1, 2, 20, 30), 3, 7),
        ordered(2, 1, 2, 3, 1, 2, 20, 30),
    ),
    "empty": (None, ordered(3, 0), ordered(3, 0), ordered(3, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str) -> None:
    form, x, y, result = LAYOUTS[name]
    wanted, before = x * 2 - y, _root(result).copy()
    assert run(PROGRAM, [x, y, result]) == form
    assert same(result, wanted)
    result -= wanted  # nothing else was written
    assert numpy.count_nonzero(_root(result) != before) <= result.size


@pytest.mark.parametrize("name", ["contiguous", "misaligned", "transposed", "transposed result", "every second", "outer axes"])
def test_in_place(name: str) -> None:
    """Each gradient of a product over a factor that the other one needs."""
    _, x, y, _ = LAYOUTS[name]
    x, y = (_copied(each) for each in (x, y))
    up = y + 1
    wanted = (up * y, up * x)
    d, a, b = (input_of(place, E.F32) for place in range(3))
    run(Program((E.F32,) * 3, (E.F32,) * 2, (d * b, d * a)), [up, x, y, x, y])
    assert same(x, wanted[0]) and same(y, wanted[1])


def _copied(view: Any) -> Any:
    """The same numbers, which lie the same way in memory of their own."""
    root = _root(view).copy()
    offset = _address(view) - _address(_root(view))
    return numpy.ndarray(view.shape, view.dtype, root, offset, view.strides)


def test_elements_of_all_sizes_in_one_program() -> None:
    elements = (E.U8, E.I16, E.F32, E.F64, E.BOOL)
    inputs = [numpy.arange(900).reshape(30, 30).astype(DTYPES[element]) for element in elements]
    terms = [
        where(input_of(4, E.BOOL), convert(input_of(place, element), E.F64), 0.5) for place, element in enumerate(elements[:4])
    ]
    total = terms[0] + terms[1] + terms[2] + terms[3]
    results = (convert(total, E.I64), convert(total, E.F32), total < 2000)
    program = Program(elements, (E.I64, E.F16, E.BOOL), results)
    for turn in (False, True):
        given = [each.T if turn and place % 2 else each for place, each in enumerate(inputs)]
        outputs = [numpy.zeros((30, 30), DTYPES[element]) for element in program.outputs]
        assert run(program, [*given, *outputs]) == ("tiled" if turn else "flat")
        wanted = numpy.where(given[4], sum(each.astype("f8") for each in given[:4]), 2.0)
        assert same(outputs[0], wanted.astype("i8")) and same(outputs[1], wanted.astype("f2")) and same(outputs[2], wanted < 2000)


def test_inputs_that_do_not_matter_are_not_read() -> None:
    from baracuda_kernels.targets.cuda.formulas.elementwise import calls

    (call,) = calls(Program((E.F32, E.F32), (E.F32,), (Y + 1,)), (64,), [(3,), (1,), (1,)])
    assert call.body.__name__ == "flat" and call.arguments[0] == (call.arguments[0][0],) and call.arguments[0][0].operand == 1


# --- tiles ---------------------------------------------------------------------------------------------------------------------


def test_tiles_are_a_matter_of_reckoning() -> None:
    assert (live_words(PROGRAM), elements_per_thread(PROGRAM)) == (3, 32)
    assert block_for(PROGRAM, 1 << 24, 4) == (1024, 4, 4) and block_for(PROGRAM, 1000, 4) == (512, 4, 4)
    rare = Program((E.F32,), (E.F32,), (operations.rarely(X < 0.0, X / 3.0, X),))
    assert block_for(rare, 1 << 24, 4) == (512, 4, 1) and block_for(rare, 1 << 24, 8) == (1024, 8, 1)
    assert block_for(rare, 1 << 24, 2) == (512, 2, 4)
    of_three = Program((E.F32, E.F32), (E.F32,), (operations.rarely(X < 0.0, X / 3.0, X + Y),))
    assert block_for(of_three, 1 << 24, 4) == (256, 4, 1)  # the more operands, the fewer vectors of each
    several = functools.reduce(operator.mul, [X + Y + place for place in range(20)])
    usual = Program((E.F32, E.F32), (E.F32,) * 2, (operations.rarely(X < 0.0, X / 3.0, several), Y))
    many = [X + place for place in range(20)]
    crowded = Program((E.F32, E.F32), (E.F32,) * 20, tuple(operations.rarely(Y < 0.0, X / 3.0, each) for each in many))
    assert (block_for(usual, 1 << 24, 8).size, block_for(crowded, 1 << 24, 8).size) == (512, 256)
    assert tile_for(PROGRAM, 4096, 4096, 1, 4, turned=True) == ElementwiseTile(64, 64, 8)
    assert tile_for(PROGRAM, 256, 256, 1, 4, turned=True) == ElementwiseTile(32, 32, 4)
    assert tile_for(PROGRAM, 3, 1 << 20, 1, 4, turned=True) == ElementwiseTile(4, 1024, 8)
    assert tile_for(PROGRAM, 1 << 20, 3, 1, 4, turned=True) == ElementwiseTile(1024, 4, 8)
    assert tile_for(PROGRAM, 4096, 4096, 1, 4, turned=False) == ElementwiseTile(2, 512, 4)
    assert tile_for(PROGRAM, 4096, 1100, 1, 4, turned=False) == ElementwiseTile(2, 128, 1)
    assert tile_for(PROGRAM, 4096, 10, 1, 4, turned=False) == ElementwiseTile(64, 16, 4)
    numbers = [convert(X + place, E.F64) for place in range(40)]
    one_by_one = Program((E.F32,), (E.F64,), (functools.reduce(operator.mul, numbers),))
    all_at_once = Program((E.F32,), (E.F64,) * 40, tuple(numbers))
    assert elements_per_thread(one_by_one) == 16 and elements_per_thread(all_at_once) == 1
    assert block_for(all_at_once, 1 << 24, 4) == (128, 1, 4)
    assert tile_for(all_at_once, 4096, 4096, 1, 4, turned=False) == ElementwiseTile(1, 128, 4)
    assert tile_for(all_at_once, 4096, 4096, 1, 4, turned=True) == ElementwiseTile(32, 32, 16)


def test_extents_beyond_32_bits() -> None:
    from baracuda_kernels.targets.cuda.formulas.elementwise import calls

    huge = 3 << 30
    for strides, body in (([(1,)] * 3, "flat"), ([(2,), (1,), (1,)], "scattered")):
        (call,) = calls(PROGRAM, (huge,), strides)
        assert call.body.__name__ == body and call.constants["WIDE"] and call.blocks * call.constants["BLOCK"] >= huge
        assert call.signature()["count"] == "i64"
    (call,) = calls(PROGRAM, (huge, 4), [(1, huge), (4, 1), (4, 1)])
    assert call.constants["WIDE"] and call.signature()["rows"] == "i64" and call.signature()["cols"] == "i32"


# --- machine code --------------------------------------------------------------------------------------------------------------

COMPILE = """
import json, re, sys
from baracuda_kernels.verify.aot import PROFILES, _resources
from baracuda_kernels.formula.expression import Program
from baracuda_kernels.targets.cuda.formulas.elementwise import calls
from baracuda_kernels.targets.cuda.runtime.compile import compiled
for line in sys.stdin:
    arch, text, shape, strides = json.loads(line)
    (call,) = calls(Program.read(text), tuple(shape), strides, (1.5,) * 9)
    vectors = max(call.forms())
    binary = compiled(call.forms()[vectors], PROFILES[arch].capability, vectors)
    kinds = re.findall(r"^\\s*(?:@\\S+ )?([a-z][\\w.]+)", binary.ptx, re.MULTILINE)
    print(json.dumps([call.body.__name__, vectors, binary.shared, *_resources(binary), sorted(set(kinds))]), flush=True)
"""
SQUARE = (512, 512)
PLAIN = [(512, 1)] * 3


def compile_all(problems: list[tuple[str, Program, Any, Any]]) -> list[Any]:
    """Of each problem, the form it takes, whether with vectors, shared memory, registers, spilled bytes, and instructions. In a process
    of its own: this one interprets."""
    lines = [json.dumps((arch, program.text(), shape, strides)) for arch, program, shape, strides in problems]
    done = subprocess.run([sys.executable, "-c", COMPILE], input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    doubled = Program((E.F64,) * 2, (E.F64,), (input_of(0, E.F64) * input_of(1, E.F64) + parameter_of(0),), 1)
    halves = Program((E.BF16,) * 2, (E.BF16,), (input_of(0, E.BF16) * input_of(1, E.BF16) + 1,))
    less = Program((E.F32,) * 2, (E.BOOL,), (X < Y,))
    turned = [(512, 1), (1, 512), (512, 1)]
    problems = [
        (arch, *problem)
        for arch in ("sm_80", "sm_90", "sm_100")
        for problem in (
            (PROGRAM, SQUARE, PLAIN), (PROGRAM, (511, 511), [(511, 1)] * 3), (halves, SQUARE, PLAIN), (doubled, SQUARE, PLAIN),
            (less, SQUARE, PLAIN), (PROGRAM, SQUARE, turned), (PROGRAM, SQUARE, [(512, 1), (0, 1), (512, 1)]),
            (PROGRAM, (9, 5, 7, 3), [(1, 9, 45, 315), (105, 21, 3, 1), (105, 21, 3, 1)]),
        )
    ]  # fmt: skip
    wide, wide_doubles = {"ld.global.v4.b32", "st.global.v4.b32"}, {"ld.global.v2.b64", "st.global.v2.b64"}
    forms = [
        ("flat", True, wide), ("flat", True, wide), ("flat", True, wide), ("flat", True, wide_doubles),
        ("flat", True, {"ld.global.v4.b32", "st.global.b32"}), ("tiled", True, wide | {"bar.sync"}), ("tiled", True, wide),
        ("scattered", False, {"ld.global.b32", "st.global.b32"}),
    ]  # fmt: skip
    for found, (form, has_vectors, instructions) in zip(compile_all(problems), forms * 3, strict=True):
        name, vectors, shared, _, spilled, kinds = found
        assert (name, vectors, spilled) == (form, has_vectors, 0) and shared <= 48 * 1024
        assert instructions <= set(kinds)
        assert not any(kind.startswith("fma") or ".ftz" in kind for kind in kinds)  # every result is rounded as it says


def test_a_tile_of_many_warps_has_registers_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    numbers = [operations.sqrt(fma(X, float(place), Y)) for place in range(70)]
    total = sum((a * b for a, b in zip(numbers, reversed(numbers), strict=True)), start=X)
    program = Program((E.F32,) * 2, (E.F32,), (total,))
    (found,) = compile_all([("sm_90", program, (512, 512), [(512, 1), (1, 512), (512, 1)])])
    warps = tile_for(program, 512, 512, 1, 4, turned=True).warps
    assert (found[0], warps) == ("tiled", 16) and found[3] * 32 * warps <= 1 << 16


def test_machine_code_of_every_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)

    def every(element: E) -> Program:
        results = [
            operations.applied(name, *(input_of(place, element) for place in range(arity)))
            for name, (arity, _) in operations.OPERATIONS.items()
            if name not in ("where", "rarely", "convert", "bitcast") and operations._allowed(name, element)
        ]
        results += [convert(input_of(0, element), other) for other in REGISTERS]
        return Program((element,) * 3, tuple(result.element for result in results), tuple(results))

    found = compile_all([("sm_90", every(element), (4096,), [(1,)] * 99) for element in REGISTERS])
    kinds = dict(zip(REGISTERS, (set(each[-1]) for each in found), strict=True))
    assert {"div.rn.f32", "sqrt.rn.f32", "fma.rn.f32", "cvt.rni.f32.f32", "cvt.rmi.f32.f32", "mul.rn.f32"} <= kinds[E.F32]
    assert {"div.rn.f64", "sqrt.rn.f64", "fma.rn.f64", "cvt.rni.f64.f64", "cvt.rmi.f64.f64", "mul.rn.f64"} <= kinds[E.F64]
    near = {kind for kind in kinds[E.F32] | kinds[E.F64] if ".ftz" in kind or ".approx" in kind or ".full" in kind}
    assert near == {
        "div.full.f32",
        "rcp.approx.ftz.f32",
        "sqrt.approx.f32",
        "ex2.approx.ftz.f32",
        "lg2.approx.f32",
        "rsqrt.approx.ftz.f32",
    }  # every other result is rounded as it says


def test_an_expression_of_no_operation_is_refused() -> None:
    from baracuda_kernels.targets.cuda.formulas.source import source_of

    unexpanded: Expr = make("gamma", E.F32, (X,))
    with pytest.raises(KeyError, match="gamma"):
        source_of(Program((E.F32,), (E.F32,), (unexpanded,)), "name", (0,))
