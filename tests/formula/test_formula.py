"""Formulas: tracing, writing down, derivatives, and their native kernels in every operation, element and layout."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from baracuda_kernels.core.element import ElementKind as E
from baracuda_kernels.formula.derive import expanded, expanded_gradients, gradients
from baracuda_kernels.formula.evaluate import evaluate
from baracuda_kernels.formula.expression import Expr, Program, constant, in_order, input_of, make, parameter_of, register
from baracuda_kernels.formula.operations import (
    F32_ONLY,
    OPERATIONS,
    applied,
    bitcast,
    convert,
    exp2_roughly,
    floor,
    fma,
    is_nan,
    log2_roughly,
    rsqrt_roughly,
    sqrt,
    where,
)
from baracuda_kernels.targets.cpu.llvm.elementwise_launch import kernel

DTYPES = {
    E.F32: "float32", E.F64: "float64", E.I8: "int8", E.I16: "int16", E.I32: "int32", E.I64: "int64", E.U8: "uint8", E.BOOL: "bool",
}  # fmt: skip
NUMBERS = (E.F32, E.F64, E.I8, E.I16, E.I32, E.I64, E.U8)
CASTS = ("where", "rarely", "convert", "bitcast")


def run(program: Program, *arrays: Any, parameters: Any = ()) -> list[Any]:
    """The native kernel on NumPy arrays of one shape, broadcast ones included."""
    shape = arrays[0].shape
    outputs = [numpy.zeros(shape, DTYPES[element]) for element in program.outputs]
    return into(program, arrays, outputs, parameters)


def into(program: Program, inputs: Any, outputs: Any, parameters: Any = ()) -> list[Any]:
    arrays = [*inputs, *outputs]
    layouts = [SimpleNamespace(stride=tuple(step // array.itemsize for step in array.strides)) for array in arrays]
    launch = kernel(program, outputs[0].shape, parameters)(layouts)
    launch(tuple(array.ctypes.data for array in arrays), 0, None)
    return list(outputs)


def edges(element: E, count: int, seed: int = 0) -> list[Any]:
    """Every pair or triple of telling numbers, and some others, by operand."""
    if element.is_float:
        info = numpy.finfo(DTYPES[element])
        telling = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e10, info.max, -info.max, info.tiny, info.smallest_subnormal, numpy.inf,
                   -numpy.inf, numpy.nan]  # fmt: skip
    elif element is E.BOOL:
        telling = [False, True]
    else:
        bounds = numpy.iinfo(DTYPES[element])
        telling = [0, 1, 2, 3, 7, 100, bounds.max, bounds.max - 1, bounds.min, bounds.min + 1] + (
            [] if element is E.U8 else [-1, -2, -7]
        )
    grid = numpy.meshgrid(*[numpy.array(telling, DTYPES[element])] * count, indexing="ij")
    rng = numpy.random.default_rng(seed)
    more = [(rng.standard_normal(500) * 50).astype(DTYPES[element]) for _ in range(count)]
    return [numpy.concatenate([each.ravel(), extra]) for each, extra in zip(grid, more, strict=True)]


def same(result: Any, expected: Any) -> None:
    numpy.testing.assert_array_equal(result, expected)
    if result.dtype.kind == "f":
        numbers = ~numpy.isnan(expected)
        numpy.testing.assert_array_equal(numpy.signbit(result[numbers]), numpy.signbit(expected[numbers]))


def _operations() -> list[Any]:
    found = []
    for name, (count, _) in OPERATIONS.items():
        for element in (*NUMBERS, E.BOOL):
            if name in (*CASTS, *F32_ONLY):  # which have tests of their own
                continue
            try:
                applied(name, *(input_of(place, element) for place in range(count)))
            except TypeError:
                continue
            found.append(pytest.param(name, element, count, id=f"{name}-{element}"))
    return found


@pytest.mark.parametrize(("name", "element", "count"), _operations())
def test_every_operation_of_every_element(name: str, element: E, count: int) -> None:
    result = applied(name, *(input_of(place, element) for place in range(count)))
    program = Program((element,) * count, (result.element,), (result,))
    operands = edges(element, count)
    if name in ("quotient", "remainder"):
        operands[1][operands[1] == 0] = 3
    if name == "fma" and element is E.F64:  # NumPy has none, and what stands in for it overflows before the sum does
        kept = numpy.all([~(numpy.isfinite(each) & (abs(each) > 1e150)) for each in operands], axis=0)
        operands = [each[kept] for each in operands]
    if name in ("shl", "shr", "shr_logical"):
        operands[1] = numpy.abs(operands[1].astype("int64") % (8 * element.size)).astype(DTYPES[element])
    same(run(program, *operands)[0], evaluate((result,), operands)[0])


def test_log2_is_near(rng: numpy.random.Generator) -> None:
    near_1 = 1 + rng.uniform(-0.4, 0.9, 999) * numpy.exp2(rng.uniform(-23, 0, 999))
    ends = [0, -0.0, numpy.inf, -1, -numpy.inf, numpy.nan]
    x = numpy.concatenate([numpy.exp2(rng.uniform(-149, 128, 9999)), near_1, ends]).astype("float32")
    (got,) = run(Program((E.F32,), (E.F32,), (log2_roughly(input_of(0, E.F32)),)), x)
    numpy.testing.assert_allclose(got[:-6], numpy.log2(x[:-6].astype("float64")), rtol=2.0**-21, atol=2.0**-22)
    same(got[-6:], numpy.array([-numpy.inf, -numpy.inf, numpy.inf, numpy.nan, numpy.nan, numpy.nan], "float32"))


def test_rsqrt_is_near(rng: numpy.random.Generator) -> None:
    x = numpy.concatenate([numpy.exp2(rng.uniform(-126, 128, 9999)), [0, -0.0, numpy.inf, -1, numpy.nan]]).astype("float32")
    (got,) = run(Program((E.F32,), (E.F32,), (rsqrt_roughly(input_of(0, E.F32)),)), x)
    numpy.testing.assert_allclose(got[:-5], 1 / numpy.sqrt(x[:-5].astype("float64")), rtol=2.0**-21)
    same(got[-5:], numpy.array([numpy.inf, -numpy.inf, 0, numpy.nan, numpy.nan], "float32"))


def test_exp2_is_near(rng: numpy.random.Generator) -> None:
    x = numpy.concatenate([rng.uniform(-126, 127, 9999), [-127, -1e30, -numpy.inf, 128, 1e30, numpy.inf, numpy.nan]]).astype(
        "float32"
    )
    (got,) = run(Program((E.F32,), (E.F32,), (exp2_roughly(input_of(0, E.F32)),)), x)
    numpy.testing.assert_allclose(got[:-7], numpy.exp2(x[:-7].astype("float64")), rtol=2.0**-17)
    assert (got[-7:-4] == 0).all() and (got[-4:-1] == numpy.inf).all() and numpy.isnan(got[-1])


@pytest.mark.parametrize("source", [*NUMBERS, E.BOOL])
@pytest.mark.parametrize("target", [*NUMBERS, E.BOOL])
def test_conversions(source: E, target: E) -> None:
    result = convert(input_of(0, source), target)
    (values,) = edges(source, 1)
    if source.is_float and not target.is_float and target is not E.BOOL:
        bounds = numpy.iinfo(DTYPES[target])
        with numpy.errstate(invalid="ignore"):
            values = values[(values > float(bounds.min) - 0.5) & (values < float(bounds.max) / 2)]
    same(run(Program((source,), (target,), (result,)), values)[0], evaluate((result,), [values])[0])


def test_bits_and_choices() -> None:
    x, y = input_of(0, E.F32), input_of(1, E.F32)
    result = where(is_nan(x) | (x < y), bitcast(bitcast(x, E.I32) & 0x7FFFFFFF, E.F32), y)
    operands = edges(E.F32, 2)
    same(run(Program((E.F32, E.F32), (E.F32,), (result,)), *operands)[0], evaluate((result,), operands)[0])


@pytest.mark.parametrize("element", [E.F16, E.BF16])
def test_halves_are_widened_and_rounded_once(element: E) -> None:
    every = numpy.arange(1 << 16, dtype=numpy.uint16)
    x = input_of(0, element)
    program = Program((element,), (element,), (x * 1.0,))
    shape, output = every.shape, numpy.zeros_like(every)
    launch = kernel(program, shape)([SimpleNamespace(stride=(1,))] * 2)
    launch((every.ctypes.data, output.ctypes.data), 0, None)
    exponent, mantissa = (0x7C00, 0x3FF) if element is E.F16 else (0x7F80, 0x7F)
    nan = ((every & exponent) == exponent) & ((every & mantissa) != 0)
    numpy.testing.assert_array_equal(output[~nan], every[~nan])
    assert (((output[nan] & exponent) == exponent) & ((output[nan] & mantissa) != 0)).all()


def formula() -> tuple[Program, Any]:
    x, y = input_of(0, E.F32), input_of(1, E.F32)
    result = where(x < y, fma(x, y, 1.0), sqrt(x * x))
    program = Program((E.F32, E.F32), (E.F32,), (result,))
    return program, lambda a, b: evaluate((result,), [a, b])[0]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (15,), (16, 17), (3, 0, 2), (2, 3, 5, 7), (70_001,), (2, 1, 3, 1, 2, 1, 5, 2)])
def test_shapes(shape: tuple[int, ...]) -> None:
    program, wanted = formula()
    rng = numpy.random.default_rng(1)
    a, b = (numpy.asarray(rng.standard_normal(shape), numpy.float32) for _ in range(2))
    same(run(program, a, b)[0], wanted(a, b))


def _layouts() -> dict[str, Any]:
    rng = numpy.random.default_rng(2)
    base = rng.standard_normal((67, 45)).astype(numpy.float32)
    return {
        "contiguous": base, "transposed": rng.standard_normal((45, 67)).astype(numpy.float32).T, "backwards": base[::-1, ::-1],
        "gaps": rng.standard_normal((67, 90)).astype(numpy.float32)[:, ::2], "row": numpy.broadcast_to(base[:1], base.shape),
        "column": numpy.broadcast_to(base[:, :1], base.shape), "one": numpy.broadcast_to(base[:1, :1], base.shape),
    }  # fmt: skip


@pytest.mark.parametrize("first", _layouts())
@pytest.mark.parametrize("second", _layouts())
def test_layouts(first: str, second: str) -> None:
    program, wanted = formula()
    a, b = _layouts()[first], _layouts()[second]
    for out in (
        numpy.zeros((67, 45), numpy.float32),
        numpy.zeros((45, 67), numpy.float32).T,
        numpy.zeros((134, 45), numpy.float32)[::2],
    ):
        same(into(program, [a, b], [out])[0], wanted(a, b))
    copy = a.copy(order="K")
    expected = wanted(copy.copy(), b)
    same(into(program, [copy, b], [copy])[0], expected)


def test_threads_change_nothing(threads: Any) -> None:
    program, wanted = formula()
    rng = numpy.random.default_rng(3)
    a, b = (rng.standard_normal((1500, 4099)).astype(numpy.float32) for _ in range(2))
    found = []
    for count in (1, 2, 3):
        threads(count)
        found.append(run(program, a, b)[0])
    same(found[0], wanted(a, b))
    assert all((each == found[0]).all() for each in found)


def test_results_that_go_past_the_caches() -> None:
    program, wanted = formula()
    rng = numpy.random.default_rng(4)
    a, b = (rng.standard_normal((4097, 1024)).astype(numpy.float32) for _ in range(2))
    room = numpy.zeros(a.size + 64, numpy.float32)
    for first in (-room.ctypes.data // 4 % 16, -room.ctypes.data // 4 % 16 + 1):  # aligned, and not
        out = room[first : first + a.size].reshape(a.shape)
        same(into(program, [a, b], [out])[0], wanted(a, b))


def test_parameters_come_with_the_launch() -> None:
    x = input_of(0, E.F32)
    result = convert(convert(x, E.F64) * parameter_of(0) + parameter_of(1), E.F32)
    program = Program((E.F32,), (E.F32,), (result,), 2)
    a = numpy.linspace(-3, 3, 100, dtype=numpy.float32)
    for numbers in ((0.1, -7.0), (math.pi, math.inf)):
        same(run(program, a, parameters=numbers)[0], evaluate((result,), [a], numbers)[0])


def test_several_results() -> None:
    x, y = input_of(0, E.F64), input_of(1, E.F64)
    program = Program((E.F64, E.F64), (E.F64, E.BOOL), (x * y, x < y))
    a, b = edges(E.F64, 2)
    product, less = run(program, a, b)
    with numpy.errstate(all="ignore"):
        same(product, a * b)
        same(less, a < b)


# --- formulas as data ------------------------------------------------------------------------------------------------------------


def test_a_program_is_read_back_from_its_text() -> None:
    x = input_of(0, E.BF16)
    result = where(x < -0.0, x * 0.1, convert(parameter_of(0), E.F32) + math.inf)
    program = Program((E.BF16,), (E.BF16,), (result,), 1)
    again = Program.read(program.text())
    assert again.results[0] is result and again.text() == program.text()
    assert (again.inputs, again.outputs, again.parameters) == (program.inputs, program.outputs, 1)


def test_equal_expressions_are_one() -> None:
    x = input_of(0, E.F32)
    assert x * 2.0 + 1.0 is input_of(0, E.F32) * 2.0 + 1.0
    assert constant(0.0, E.F32) is not constant(-0.0, E.F32)
    assert len(in_order(((x + 1.0) * (x + 1.0),))) == 4


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: bool(input_of(0, E.F32) < 1.0), "a formula has no branches"),
        (lambda: input_of(0, E.F32) + input_of(0, E.F64), "wanted one dtype"),
        (lambda: input_of(0, E.F32) & 1, "there is no such operation"),
        (lambda: input_of(0, E.I32) / 2, "there is no such operation"),
        (lambda: bitcast(input_of(0, E.F32), E.I64), "wanted dtypes of one size"),
        (lambda: where(input_of(0, E.F32), 1.0, 2.0), "wanted a condition"),
    ],
)
def test_nonsense_is_refused(wrong: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        wrong()


def test_what_halves_are_computed_in() -> None:
    assert [register(element) for element in (E.F16, E.BF16, E.F32, E.I8)] == [E.F32, E.F32, E.F32, E.I8]


# --- derivatives -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, y: x * y + x / y,
        lambda x, y: sqrt(x * x + y * y) - x,
        lambda x, y: where(x < y, x * x, -y * x),
        lambda x, y: fma(x, y, x) * x,
        lambda x, y: applied("absolute", x - y) * y,
        lambda x, y: convert(convert(x, E.F32), E.F64) * y,
    ],
)
def test_derivatives(formula: Any) -> None:
    x, y, d = (input_of(place, E.F64) for place in range(3))
    rng = numpy.random.default_rng(5)
    a, b, upstream = rng.uniform(0.5, 3.0, 200), rng.uniform(0.5, 3.0, 200), rng.standard_normal(200)
    a = a.astype(numpy.float32).astype(numpy.float64)
    found = evaluate(expanded(gradients(formula(x, y), [x, y], d)), [a, b, upstream])
    if "convert" in repr(formula(x, y)):  # whose steps are too coarse for differences
        numpy.testing.assert_allclose(found[0], upstream * b, rtol=1e-6)
        return
    step = 1e-6
    for place, gradient in enumerate(found):
        moved = [[a, b, upstream], [a, b, upstream]]
        for sign, operands in zip((1, -1), moved, strict=True):
            operands[place] = operands[place] + sign * step
        difference = [evaluate((formula(x, y),), operands)[0] for operands in moved]
        numpy.testing.assert_allclose(gradient, upstream * (difference[0] - difference[1]) / (2 * step), rtol=1e-6, atol=1e-7)


def test_what_does_not_matter_has_no_gradient() -> None:
    x, y, d = (input_of(place, E.F32) for place in range(3))
    assert gradients(x * 2.0, [x, y], d)[1] is constant(0.0, E.F32)


def test_gradients_of_halves_divide_roughly_where_nothing_jumps() -> None:
    x, y = input_of(0, E.F32), input_of(1, E.F32)

    def operations_of(result: Expr, rough: bool = True) -> set[str]:
        return {each.operation for each in in_order(expanded_gradients((result,), rough)) if each.args}

    assert operations_of(sqrt(x / y)) == {"div_roughly", "sqrt_roughly"}
    assert operations_of(sqrt(x / y), rough=False) == {"div", "sqrt"}
    assert operations_of(x / 6.0) == {"mul"} and operations_of(x / 1e38) == {"div_roughly"}
    assert operations_of(floor(x / y)) == {"div", "floor"}
    assert operations_of(where(x / y < 1.0, x, y)) == {"div", "lt", "where"}
    assert operations_of(convert(x / y, E.I32)) == {"div", "convert"}
    assert operations_of(convert(convert(x, E.F64) / 3.0, E.F32)) == {"div", "convert"}


def test_every_backend_has_every_operation() -> None:
    from baracuda_kernels.targets.cpu.llvm.operations import OPERATIONS as NATIVE

    assert set(NATIVE) == set(OPERATIONS)


def test_expressions_are_values() -> None:
    assert isinstance(make("constant", E.F32, value=1.0), Expr)
    assert repr(input_of(0, E.F32) + 1.0) == "add(input(0), constant(1.0))"
