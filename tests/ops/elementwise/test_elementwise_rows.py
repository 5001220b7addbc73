"""The tables of ops on elements: every formula, derived gradient and reference against the others and against PyTorch and JAX."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import NUMPY_NAMES, rounded
from baracuda_kernels.formula.derive import expanded, gradients
from baracuda_kernels.formula.evaluate import evaluate
from baracuda_kernels.formula.expression import Expr, in_order, input_of, parameter_of, register
from baracuda_kernels.formula.operations import OPERATIONS, convert
from baracuda_kernels.ops.elementwise import activation_rows, binary_rows, gated_rows, ternary_rows, unary_rows
from baracuda_kernels.ops.elementwise.program import computed_in
from baracuda_kernels.ops.elementwise.reference import value
from baracuda_kernels.ops.elementwise.reference_gradients import GRADIENTS
from baracuda_kernels.ops.elementwise.reference_values import REFERENCES
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

TABLES = ((unary_rows.ROWS, 1), (activation_rows.ROWS, 1), (binary_rows.ROWS, 2), (ternary_rows.ROWS, 3), (gated_rows.ROWS, 2))
ROWS = [row for table, _ in TABLES for row in table]
DIFFERENTIABLE = [row for row in ROWS if row.differentiable]
F32, F64, F16, BF16, BOOL = (ElementKind(name) for name in ("f32", "f64", "f16", "bf16", "bool"))

# The primitives of tiers 1 and 2 in these categories, by the names of the inventory.
INVENTORY = {
    "unary": """
        neg abs sign reciprocal square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh
        tanh asinh acosh atanh floor ceil round trunc erf isnan isinf isfinite nan_to_num logical_not bitwise_not cast
        relu gelu silu sigmoid softplus leaky_relu elu hardswish hardsigmoid hardtanh relu6 selu mish logsigmoid positive
        sgn cbrt integer_pow frac modf frexp sinc deg2rad rad2deg erfc erfinv lgamma digamma polygamma logit ndtr ndtri
        log_ndtr i0 i0e i1 i1e signbit isneginf isposinf isreal iscomplex angle conj real imag population_count clz
        bitcast reduce_precision celu softsign tanhshrink softshrink hardshrink threshold squareplus log1mexp erfcx entr
        gamma
    """,
    "binary": """
        add sub mul div floor_divide remainder fmod pow atan2 maximum minimum eq ne gt ge lt le logical_and logical_or
        logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift prelu rsub float_power
        divmod hypot copysign nextafter ldexp fmax fmin shift_right_logical gcd lcm logaddexp logaddexp2 xlogy xlog1py
        heaviside isclose complex polar igamma igammac zeta beta betaln rel_entr mulhi
    """,
    "ternary": "clamp where lerp addcmul addcdiv fma affine betainc",
    "gated": "glu swiglu geglu reglu",
}
ANOTHER_PLAN = "it has an element of its own to read or to write"
NOT_ROWS = {
    "cast": ANOTHER_PLAN,
    "bitcast": ANOTHER_PLAN,
    "where": ANOTHER_PLAN,
    "modf": "two results",
    "frexp": "two results",
    "divmod": "two results",
    "complex": "complex numbers",
    "polar": "complex numbers",
}

# A second choice of parameters for every row that has some. Integers see them as integers.
OTHER_PARAMETERS = {
    "add": (3.0,), "addcdiv": (0.5,), "addcmul": (2.0,), "celu": (0.5,), "elu": (0.5,), "hardshrink": (1.0,),
    "hardtanh": (-2.0, 3.0), "integer_pow": (-3.0,), "isclose": (0.1, 0.5, 1.0), "leaky_relu": (0.3,), "logit": (0.1,),
    "nan_to_num": (1.0, 2.0, -3.0), "polygamma": (2.0,), "reduce_precision": (4.0, 3.0), "round_decimals": (-1.0,), "rsub": (3.0,),
    "softplus": (2.0, 3.0), "softshrink": (1.0,), "squareplus": (1.0,), "sub": (3.0,), "threshold": (1.0, 7.0),
}  # fmt: skip

SPECIAL = numpy.array([
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 0.1, 0.9, -7.25, 1e-30, -1e-30, 1000.0, -1000.0, 1e30, -1e30,
    numpy.inf, -numpy.inf, numpy.nan,
])  # fmt: skip

KINKS = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 6.0)


def named(rows: Sequence[ElementwiseRow]) -> Any:
    return pytest.mark.parametrize("row", rows, ids=[row.name for row in rows])


def arity(row: ElementwiseRow) -> int:
    """How many operands the op has, by its table."""
    return next(operands for table, operands in TABLES if row in table)


def choices(row: ElementwiseRow, element: ElementKind) -> list[tuple[float, ...]]:
    """The parameters to try."""
    own = tuple(parameter.default for parameter in row.parameters)
    other = OTHER_PARAMETERS.get(row.name, ())
    return [own] if not own or (element is ElementKind.U8 and min(other) < 0) else [own, other]


def traced(row: ElementwiseRow, element: ElementKind) -> tuple[list[Expr], list[Expr], Expr]:
    """The operands, the parameters and the result."""
    computing = computed_in(row, element)
    operands = [convert(input_of(place, element), computing) for place in range(arity(row))]
    parameters = [convert(parameter_of(place), computing) for place in range(len(row.parameters))]
    return operands, parameters, row.formula_for(element)(*operands, *parameters)


def computed(results: Sequence[Expr], inputs: Sequence[Any], element: ElementKind, parameters: Sequence[float]) -> list[Any]:
    name = NUMPY_NAMES[register(element)]
    with numpy.errstate(all="ignore"):
        return evaluate(expanded(results), [values.astype(name) for values in inputs], parameters)


def stored(values: Any, element: ElementKind) -> Any:
    with numpy.errstate(all="ignore"):
        return rounded(values, element)


def ordinary(row: ElementwiseRow, element: ElementKind, count: int = 250) -> list[Any]:
    """Operands from the domain, of integers half of them from anywhere."""
    rng = numpy.random.default_rng([*row.name.encode(), *element.value.encode()])
    found = []
    for place in range(arity(row)):
        low, high = row.domain[min(place, len(row.domain) - 1)]
        values = rng.uniform(low, high, count)
        if not element.is_float:
            values = values.round().astype(numpy.int64)
            limits = (0, 1) if element is BOOL else (numpy.iinfo(NUMPY_NAMES[element]).min, numpy.iinfo(NUMPY_NAMES[element]).max)
            values[::2] = rng.integers(*limits, values[::2].size, dtype=numpy.int64, endpoint=True)
        found.append(stored(values, element))
    return found


def extreme(row: ElementwiseRow, element: ElementKind) -> list[Any]:
    """Every combination of special operands."""
    if element.is_float:
        chosen = SPECIAL if arity(row) < 3 else SPECIAL[[0, 2, 3, 4, 9, -3, -2, -1]]
    elif element is BOOL:
        chosen = numpy.array([0, 1])
    else:
        limits = numpy.iinfo(NUMPY_NAMES[element])
        chosen = numpy.array([0, 1, 2, 3, 7, 8, 31, 63, limits.max, limits.min, *((-1, -2, -6) if limits.min else ())])
    return [stored(numpy.array(values), element) for values in zip(*itertools.product(chosen, repeat=arity(row)), strict=True)]


def kinks(row: ElementwiseRow) -> list[Any]:
    """Every combination of where derivatives may jump, within the domain."""
    domain = [row.domain[min(place, len(row.domain) - 1)] for place in range(arity(row))]
    inside = [[kink for kink in KINKS if low <= kink <= high] for low, high in domain]
    return list(numpy.array(list(itertools.product(*inside)), dtype=float).reshape(-1, arity(row)).T)


def units(values: Any, element: ElementKind) -> Any:
    """The distance between numbers of the element around these."""
    if element is BF16:
        return numpy.spacing(numpy.abs(values).astype(numpy.float32)).astype(numpy.float64) * 2.0**16
    return numpy.spacing(numpy.abs(values).astype(NUMPY_NAMES[element])).astype(numpy.float64)


def apart(found: Any, expected: Any, element: ElementKind, least: Any = 0.0) -> Any:
    """How many units in the last place lie between them, those of the least number or a larger one. If only one is infinite or NaN,
    it is infinitely many."""
    if not element.is_float:
        return numpy.abs(found - expected)
    with numpy.errstate(all="ignore"):
        same = (found == expected) | (numpy.isnan(found) & numpy.isnan(expected))
        distance = numpy.abs(found - expected) / units(numpy.maximum(numpy.abs(expected), least), element)
    return numpy.where(same, 0.0, numpy.where(numpy.isnan(distance), numpy.inf, distance))


def shown(row: ElementwiseRow, element: ElementKind, operands: Sequence[Any], found: Any, expected: Any, error: Any) -> str:
    worst = int(numpy.argmax(error))
    given = [float(each[worst]) for each in operands]
    return f"{row.name} {element} of {given}: {found[worst]}, not {expected[worst]} ({error[worst]})"


# How many units in the last place a row may be off. The references for f64 are in f64 themselves, and lose more digits in tails.
ALLOWED = {F32: 4.0, F64: 100.0, F16: 1.0, BF16: 1.0}
# Whose poles, and what lies beyond them, are the concern of the tests of these functions.
WITH_POLES = ("beta", "betainc", "betaln", "igamma", "igammac", "polygamma", "zeta")


def is_clear(row: ElementwiseRow, *operands: Any) -> Any:
    """Infinity times what is almost 0 may be anything."""
    return ~(numpy.isinf(operands[0]) & (operands[1] < -80)) if row.name == "glu" else numpy.full(operands[0].shape, True)


def test_every_name_of_the_inventory_has_a_row_or_a_reason() -> None:
    names = {name for text in INVENTORY.values() for name in text.split()}
    served = [row.name for row in ROWS]
    assert len(served) == len(set(served))
    assert names - set(served) == set(NOT_ROWS)
    # The inventory has one name for gelu, frexp, round and div.
    assert set(served) - names == {"gelu_tanh", "mantissa", "round_decimals", "trunc_divide"}


def test_everything_about_a_row_is_there() -> None:
    assert set(REFERENCES) == {row.name for row in ROWS}
    assert set(GRADIENTS) == {row.name for row in DIFFERENTIABLE}
    assert set(OTHER_PARAMETERS) == {row.name for row in ROWS if row.parameters}
    for row in ROWS:
        assert row.says.endswith(".") and "\n" not in row.says, row.name


@named(ROWS)
def test_formula_is_of_operations_and_gives_its_element(row: ElementwiseRow) -> None:
    for element in row.elements:
        result = expanded((traced(row, element)[2],))[0]
        assert result.element is (computed_in(row, element) if row.result is None else row.result)
        assert {each.operation for each in in_order((result,))} <= {*OPERATIONS, "input", "parameter", "constant"}


@named(ROWS)
def test_formula_is_its_reference(row: ElementwiseRow) -> None:
    for element in row.elements:
        operands, target = ordinary(row, element), element if row.result is None else row.result
        result = traced(row, element)[2]
        for parameters in choices(row, element):
            found = stored(computed([result], operands, element, parameters)[0], target)
            expected = stored(value(row.name, element, operands, parameters, row.result), target)
            error = apart(found, expected, target)
            assert (error <= ALLOWED.get(target, 0)).all(), shown(row, element, operands, found, expected, error)


@named([row for row in ROWS if row.name not in WITH_POLES])
def test_formula_is_its_reference_where_numbers_are_special(row: ElementwiseRow) -> None:
    for element in row.elements:
        operands, target = extreme(row, element), element if row.result is None else row.result
        operands = [operand[is_clear(row, *operands)] for operand in operands]
        result = traced(row, element)[2]
        for parameters in choices(row, element):
            found = stored(computed([result], operands, element, parameters)[0], target)
            expected = stored(value(row.name, element, operands, parameters, row.result), target)
            error = apart(found, expected, target)
            assert (error <= ALLOWED.get(target, 0)).all(), shown(row, element, operands, found, expected, error)


def derived(row: ElementwiseRow, element: ElementKind) -> list[Expr]:
    operands, parameters, result = traced(row, element)
    upstream = convert(input_of(len(operands), element), computed_in(row, element))
    if row.gradient is None:
        return gradients(result, operands, upstream)
    found = row.gradient(upstream, *operands, *parameters)
    return list(found) if isinstance(found, tuple) else [found]


def reference_gradients(row: ElementwiseRow, d: Any, operands: Sequence[Any], parameters: Sequence[float]) -> tuple[Any, ...]:
    with numpy.errstate(all="ignore"):
        return GRADIENTS[row.name](d, *operands, *parameters)


@named(DIFFERENTIABLE)
def test_gradient_is_its_reference(row: ElementwiseRow) -> None:
    for element in (F32, F64, F16, BF16):
        operands = [stored(numpy.concatenate(both), element) for both in zip(ordinary(row, element), kinks(row), strict=True)]
        d = stored(numpy.random.default_rng(3).uniform(0.5, 2.0, operands[0].shape), element)
        for parameters in choices(row, element):
            every = computed(derived(row, element), [*operands, d], element, parameters)
            for wide, reference in zip(every, reference_gradients(row, d, operands, parameters), strict=True):
                found, expected = stored(wide, element), stored(reference, element)
                # Around its zeros a gradient is right by the scale of the result's.
                error = apart(found, expected, element, least=d)
                assert (error <= 2 * ALLOWED[element]).all(), shown(row, element, operands, found, expected, error)


# What PyTorch calls differently, or takes in another form. The others have the row's name in torch or one of its modules.
IN_TORCH: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, alpha: torch.add(x, y, alpha=alpha if x.is_floating_point() else int(alpha)),
    "sub": lambda x, y, alpha: torch.sub(x, y, alpha=alpha if x.is_floating_point() else int(alpha)),
    "rsub": lambda x, y, alpha: torch.rsub(x, y, alpha=alpha if x.is_floating_point() else int(alpha)),
    "addcmul": lambda x, a, b, v: torch.addcmul(x, a, b, value=v if x.is_floating_point() else int(v)),
    "addcdiv": lambda x, a, b, v: torch.addcdiv(x, a, b, value=v),
    "floor_divide": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "affine": lambda x, scale, shift: x * scale + shift,
    "fma": lambda a, b, c: a * b + c,
    "geglu": lambda a, b: F.gelu(a) * b,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "glu": lambda a, b: F.glu(torch.stack((a, b)), 0)[0],
    "isclose": lambda x, y, rtol, atol, equal_nan: torch.isclose(x, y, rtol, atol, bool(equal_nan)),
    "mantissa": lambda x: torch.frexp(x)[0],
    "logit": lambda x, eps: torch.logit(x, None if numpy.isnan(eps) else eps),
    "nan_to_num": lambda x, *numbers: torch.nan_to_num(x, *(None if numpy.isnan(number) else number for number in numbers)),
    "polygamma": lambda x, n: torch.polygamma(int(n), x),
    "prelu": lambda x, weight: F.prelu(x[None], weight)[0],
    "reglu": lambda a, b: F.relu(a) * b,
    "round_decimals": lambda x, decimals: torch.round(x, decimals=int(decimals)),
    "swiglu": lambda a, b: F.silu(a) * b,
}
# What PyTorch has not, but JAX has: where in it, and for what elements.
IN_JAX = {
    "beta": "scipy.special", "betainc": "lax", "betaln": "scipy.special", "cbrt": "lax", "clz": "lax", "gamma": "scipy.special",
    "imag": "numpy", "integer_pow": "lax", "iscomplex": "numpy", "log1mexp": "nn", "mulhi": "lax", "population_count": "lax",
    "reduce_precision": "lax", "rel_entr": "scipy.special", "shift_right_logical": "lax", "squareplus": "nn",
}  # fmt: skip
# Elements that rows have and PyTorch has not.
REFUSED_BY_TORCH = {("positive", BOOL)}
OTHERWISE_IN_TORCH = {  # where numbers are special
    "sign": "NaN is 0", "sgn": "NaN is 0", "gelu": "minus infinity is NaN", "geglu": "minus infinity is NaN", "igamma": "NaN is a number",
    "igammac": "NaN is a number", "i0": "infinity is NaN", "i1": "infinity is NaN",
    "polygamma": "poles are large", "zeta": "infinity is NaN", "trunc_divide": "a quotient is rounded before it is cut off",
}  # fmt: skip
ROUNDED_IN_TORCH = {"hardsigmoid": 1e-7, "polygamma": 1e-9, "digamma": 1e-9, "sinc": 1e-9}  # a constant in f32, a short series
DIVISIONS = ("floor_divide", "trunc_divide", "remainder", "fmod", "gcd", "lcm")


def in_torch(row: ElementwiseRow) -> Callable[..., Any]:
    found = (getattr(module, row.name, None) for module in (torch, F, torch.special))
    return IN_TORCH.get(row.name) or next(each for each in found if each is not None)


def divides(row: ElementwiseRow, element: ElementKind, x: Any, y: Any) -> Any:
    """By 0 PyTorch raises; the least integer by -1 does not fit, and would end the process; what does not fit is anything."""
    limits = numpy.iinfo(NUMPY_NAMES[element])
    if row.name in ("gcd", "lcm"):
        return (x != limits.min) & (y != limits.min) & ((row.name == "gcd") | (numpy.abs(x * 1.0 * y) < limits.max))
    return (y != 0) & (x != limits.min)


def agrees(row: ElementwiseRow, found: Any, expected: Any) -> Any:
    return numpy.isclose(found, expected, rtol=ROUNDED_IN_TORCH.get(row.name, 1e-11), atol=1e-14, equal_nan=True)


@named([row for row in ROWS if row.name not in IN_JAX])
def test_reference_is_pytorch(row: ElementwiseRow) -> None:
    for element in row.elements:
        if element in (F32, F16, BF16) or (row.name, element) in REFUSED_BY_TORCH:
            continue
        operands = ordinary(row, element)
        if row.name not in OTHERWISE_IN_TORCH:
            operands = [numpy.concatenate(both) for both in zip(operands, extreme(row, element), strict=True)]
        if row.name in DIVISIONS and not element.is_float:
            operands = [operand[divides(row, element, *operands)] for operand in operands]
        tensors = [torch.from_numpy(operand.astype(NUMPY_NAMES[element])) for operand in operands]
        for parameters in choices(row, element):
            found = in_torch(row)(*tensors, *parameters).numpy()
            expected = value(row.name, element, operands, parameters, row.result)
            error = ~agrees(row, found, expected)
            assert not error.any(), shown(row, element, operands, found, expected, error)


@named([row for row in DIFFERENTIABLE if row.name not in IN_JAX])
def test_reference_gradient_is_pytorch(row: ElementwiseRow) -> None:
    operands = [numpy.concatenate(both) for both in zip(ordinary(row, F64), kinks(row), strict=True)]
    for parameters in choices(row, F64):
        tensors = [torch.from_numpy(operand).requires_grad_() for operand in operands]
        result = in_torch(row)(*tensors, *parameters)
        d = torch.linspace(0.5, 2.0, result.numel(), dtype=torch.float64)
        try:
            every = torch.autograd.grad(result, tensors, d, materialize_grads=True)
        except NotImplementedError as absent:  # PyTorch 2.11 has none for nextafter
            pytest.skip(str(absent))
        for gradient, reference in zip(every, reference_gradients(row, d.numpy(), operands, parameters), strict=True):
            found, expected = (gradient + 0).numpy(), numpy.broadcast_to(reference, d.shape)
            error = ~agrees(row, found, expected)
            assert not error.any(), shown(row, F64, operands, found, expected, error)


OTHERWISE_IN_JAX = {"rel_entr": "NaN is infinite", "squareplus": "large numbers overflow"}


@named([row for row in ROWS if row.name in IN_JAX])
def test_reference_is_jax(row: ElementwiseRow) -> None:
    module = pytest.importorskip("jax")
    module = importlib.import_module(f"jax.{IN_JAX[row.name]}")
    for element in {F32, ElementKind.I32, ElementKind.U8} & set(row.elements):
        operands = ordinary(row, element)
        if row.name not in (*WITH_POLES, *OTHERWISE_IN_JAX):
            operands = [numpy.concatenate(both) for both in zip(operands, extreme(row, element), strict=True)]
        for parameters in choices(row, element):
            if row.name == "integer_pow" and not element.is_float and parameters[0] < 0:
                continue  # JAX raises
            given = parameters if row.name == "squareplus" else map(int, parameters)
            arrays = [operand.astype(NUMPY_NAMES[element]) for operand in operands]
            found = numpy.asarray(getattr(module, row.name)(*arrays, *given))
            expected = stored(value(row.name, element, operands, parameters, row.result), row.result or element)
            near = 2e-5 if element.is_float else 0.0
            error = ~numpy.isclose(found, expected, rtol=near, atol=near, equal_nan=True)
            assert not error.any(), shown(row, element, operands, found, expected, error)


@named([row for row in DIFFERENTIABLE if row.name in IN_JAX and row.name != "reduce_precision"])
def test_reference_gradient_is_the_slope(row: ElementwiseRow) -> None:
    operands, parameters = ordinary(row, F64), choices(row, F64)[-1]
    for place, gradient in enumerate(reference_gradients(row, numpy.ones_like(operands[0]), operands, parameters)):
        step = numpy.zeros((len(operands), 1))
        step[place] = 1e-6
        above, below = (value(row.name, F64, list(operands + sign * step), parameters) for sign in (1, -1))
        no_formula = row.name == "betainc" and place < 2
        assert numpy.isnan(gradient).all() if no_formula else numpy.allclose((above - below) / 2e-6, gradient, rtol=1e-6, atol=1e-8)
