"""What calls, plans and programs are kept under: two values that differ in type or in a bit are never one key."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core.identity import identity, remembered

DIFFERENT = (
    0, 1, -1, False, True, None, "", "0", b"0",
    0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324,
    0j, complex(0.0, -0.0), complex(-0.0, 0.0), complex(1.0, -0.0), complex(1.0, 0.0), complex(math.nan, 0.0),
    Fraction(0), Fraction(1), Decimal("0"), Decimal("-0"), Decimal(1),
    numpy.float32(0.0), numpy.float32(-0.0), numpy.float32(1.0), numpy.float64(0.0), numpy.float64(-0.0), numpy.float64(1.0),
    numpy.int64(0), numpy.int64(1), numpy.bool_(True), numpy.complex64(complex(1.0, -0.0)), numpy.complex64(1.0),
    ml_dtypes.bfloat16(0.0), ml_dtypes.bfloat16(-0.0),
    (), (0,), (1,), (True,), (1.0,), (0.0,), (-0.0,), (None,), ("1",), (1, 2), (1, (2,)), ((1, 2),),
    [], [1], [True], [0.0], [-0.0], [[0.0]], [[-0.0]], torch.Size([1]), torch.Size([]),
    bk.ElementKind.F32, torch.float32, numpy.dtype("float32"), bk.PlanPreference(), bk.PlanPreference(max_workspace_bytes=0),
)  # fmt: skip


def test_different_values_are_different_keys() -> None:
    keys = [identity(value) for value in DIFFERENT]
    for (one, a), (other, b) in itertools.combinations(zip(DIFFERENT, keys, strict=True), 2):
        assert a != b, (one, other)
    assert len({hash(key) for key in keys}) > len(keys) / 2


def test_the_same_values_are_the_same_key() -> None:
    again = (-0.0, float("nan"), complex(1.0, -0.0), numpy.float32(-0.0), numpy.float64("nan"), [1, [2.0]], (-0.0, (True,)))
    copies = (float("-0"), float("nan"), complex(1.0, -0.0), numpy.float32("-0"), numpy.float64("nan"), [1, [2.0]], (-0.0, (True,)))
    for one, other in zip(again, copies, strict=True):
        assert identity(one) == identity(other) and hash(identity(one)) == hash(identity(other))


def test_what_is_remembered_is_of_the_same_arguments() -> None:
    calls = []

    @remembered(8)
    def note(*values: Any) -> str:
        calls.append(values)
        return repr(values)

    for value in (0.0, -0.0, False, 0, (0.0,), (-0.0,), 0.0, -0.0):
        assert note(value) == repr((value,))
    assert len(calls) == 6
    assert note([{}]) == note([{}]) and len(calls) == 8  # what cannot be looked up is computed each time


def test_descriptors_tell_zeros_apart() -> None:
    one, other = (bk.BinaryDescriptor(bk.BinaryKind.DIV, (3,), bk.ElementKind.F32, other_value=zero) for zero in (0.0, -0.0))
    assert one != other and len({one, other}) == 2
    again = bk.BinaryDescriptor(bk.BinaryKind.DIV, (3,), bk.ElementKind.F32, other_value=-0.0)
    assert other == again and hash(other) == hash(again)
    assert one != (one,) and one != bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (3,), 0, bk.ElementKind.F32)


SIGNED = {
    "div": lambda of, x, zero: of.div(x, zero),
    "copysign": lambda of, x, zero: of.copysign(x, zero),
    "atan2": lambda of, x, zero: of.atan2(x - x, zero),
    "add": lambda of, x, zero: of.div(x, of.add(-(x - x), zero)),
    "mul": lambda of, x, zero: of.mul(x, zero),
    "where": lambda of, x, zero: of.where(x < 0, x, zero),
    "by name": lambda of, x, zero: of.div(x, other=zero),
}


@pytest.mark.parametrize("name", SIGNED)
@pytest.mark.parametrize("kind", [float, numpy.float32, numpy.float64])
def test_the_first_zero_does_not_decide_for_the_next(name: str, kind: Any) -> None:
    call = SIGNED[name]
    for sign in (1.0, -1.0, 1.0, -1.0):
        zero = kind(sign * 0.0)
        expected = call(torch, torch.ones(3), torch.tensor(float(zero)))
        for of, x in ((bk, numpy.ones(3, numpy.float32)), (bk, torch.ones(3)), (bt, torch.ones(3))):
            found = torch.as_tensor(call(of, x, zero))
            assert torch.equal(found, expected) and torch.equal(found.signbit(), expected.signbit()), (of.__name__, zero)


def test_the_first_zero_does_not_decide_under_jit() -> None:
    jax = pytest.importorskip("jax")
    for sign in (1.0, -1.0, 1.0, -1.0):
        assert jax.jit(lambda x, sign=sign: bk.div(x, sign * 0.0))(jax.numpy.ones(3)).tolist() == [sign * math.inf] * 3


def test_one_is_neither_true_nor_one_point_nought() -> None:
    x = numpy.ones((2, 3), numpy.float32)
    for axis in (1, (1,), [1]):
        assert bk.sum(x, axis).tolist() == bk.sum(x, axis).tolist() == [3.0, 3.0]
        for wrong in ((True,), (1.0,), [True], [1.0], True, 1.0):
            with pytest.raises(bk.InvalidProblem, match="is not an axis"):
                bk.sum(x, wrong)
    assert bk.cumsum(x, 1)[0].tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(bk.InvalidProblem):
        bk.cumsum(x, True)


def test_an_array_is_not_looked_up() -> None:
    class Traced:
        def __array__(self) -> numpy.ndarray:
            raise AssertionError("converted")

        def __hash__(self) -> int:
            raise AssertionError("hashed")

    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        hash(identity(Traced()))
    assert identity(numpy.int64(3)) == (numpy.int64, 3)
