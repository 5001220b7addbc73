"""What kernel bodies are written in: vector functions to the ulp, conversions on every value."""

from __future__ import annotations

import os
import threading
from typing import Any

import ml_dtypes
import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core.layout import row_major
from baracuda_kernels.targets import geometry
from baracuda_kernels.targets.cpu.runtime.placement import Placement

from lanes import mapped, scaled


def _ulps(result: numpy.ndarray, exact: numpy.ndarray, dtype: Any) -> numpy.ndarray:
    """The distance in units of the last place of the rounded exact result."""
    with numpy.errstate(invalid="ignore", over="ignore"):
        rounded = exact.astype(dtype)
        spacing = numpy.spacing(numpy.abs(rounded)).astype(numpy.longdouble)
        return numpy.abs(result.astype(numpy.longdouble) - exact) / spacing


def _f32_inputs() -> numpy.ndarray:
    """Ten million: a random walk over all exponents, and dense where exp is neither 0, 1 nor infinite."""
    rng = numpy.random.default_rng(5)
    everywhere = rng.integers(0, 2**32, 4_000_000, dtype=numpy.uint32).view(numpy.float32)
    dense = rng.uniform(-104.0, 89.0, 6_000_000).astype(numpy.float32)
    return numpy.concatenate([everywhere, dense])


def test_exp_f32_within_two_ulp_everywhere() -> None:
    x = _f32_inputs()
    with numpy.errstate(over="ignore", invalid="ignore"):
        exact = numpy.exp(x.astype(numpy.float64))
        result = mapped("exp", x, "f32", "f32", numpy.float32)
        overflows = exact.astype(numpy.float32) == numpy.inf
    ordinary = numpy.isfinite(x) & ~overflows
    assert _ulps(result[ordinary], exact[ordinary].astype(numpy.longdouble), numpy.float32).max() <= 2.0
    assert numpy.isinf(result[overflows]).all()
    assert numpy.isnan(result[numpy.isnan(x)]).all()
    assert (result[x == -numpy.inf] == 0).all()


def test_exp_f64_within_two_ulp() -> None:
    mpmath = pytest.importorskip("mpmath")
    rng = numpy.random.default_rng(6)
    x = numpy.concatenate([rng.uniform(-745.0, 709.7, 4000), rng.uniform(-1.0, 1.0, 2000), [0.0, -0.0, -1e-300, 1e-20]])
    result = mapped("exp", x, "f64", "f64", numpy.float64)
    with mpmath.workprec(120):
        for got, argument in zip(result, x, strict=True):
            exact = mpmath.exp(mpmath.mpf(float(argument)))
            assert abs(mpmath.mpf(float(got)) - exact) <= 2 * float(numpy.spacing(float(exact)))
    edges = mapped("exp", numpy.array([numpy.inf, -numpy.inf, numpy.nan, 1000.0, -1000.0]), "f64", "f64", numpy.float64)
    assert edges[0] == numpy.inf
    assert edges[1] == 0
    assert numpy.isnan(edges[2])
    assert edges[3] == numpy.inf
    assert edges[4] == 0


@pytest.mark.parametrize(("name", "allowed"), [("exp_nonpositive", 2.0), ("exp_nonpositive_for_halves", 64.0)])
def test_exp_of_what_is_not_positive(name: str, allowed: float) -> None:
    x = -numpy.abs(_f32_inputs()[::3])
    result = mapped(name, x, "f32", "f32", numpy.float32)
    with numpy.errstate(invalid="ignore"):  # signalling NaN among the inputs
        exact = numpy.exp(x.astype(numpy.float64))
    normal = exact > 2e-38
    assert _ulps(result[normal], exact[normal].astype(numpy.longdouble), numpy.float32).max() <= allowed
    assert (result[exact < 1e-38] < 2e-38).all()
    assert (mapped(name, numpy.array([-numpy.inf], "f4"), "f32", "f32", numpy.float32) == 0).all()
    assert numpy.isnan(result[numpy.isnan(x)]).all()


@pytest.mark.parametrize("conversion", ["processor", "integer"])
def test_every_f16_to_f32_and_back(conversion: str) -> None:
    words = numpy.arange(65536, dtype=numpy.uint16)
    wide = mapped("copy", words, "f16", "f32", numpy.float32, conversion)
    expected = words.view(numpy.float16).astype(numpy.float32)
    assert numpy.array_equal(wide, expected, equal_nan=True)
    assert numpy.array_equal(numpy.signbit(wide), numpy.signbit(expected))
    back = mapped("copy", wide, "f32", "f16", numpy.uint16, conversion)
    ordinary = ~numpy.isnan(expected)
    assert numpy.array_equal(back[ordinary], words[ordinary])
    assert numpy.isnan(back.view(numpy.float16)[~ordinary]).all()


@pytest.mark.parametrize("conversion", ["processor", "integer"])
def test_f32_to_f16_rounds_to_nearest_even(conversion: str) -> None:
    x = _f32_inputs()[:4_000_000]
    halfway = (numpy.arange(65536, dtype=numpy.uint16).view(numpy.float16).astype(numpy.float32)).view(numpy.uint32)
    ties = (halfway[:, None] + numpy.array([0x0FFF, 0x1000, 0x1001, 0x3000], numpy.uint32)).reshape(-1).view(numpy.float32)
    for values in (x, ties):
        with numpy.errstate(over="ignore", invalid="ignore"):
            expected = values.astype(numpy.float16)
        got = mapped("copy", values, "f32", "f16", numpy.uint16, conversion).view(numpy.float16)
        assert numpy.array_equal(got, expected, equal_nan=True)


def test_every_bf16_and_rounding_to_it() -> None:
    words = numpy.arange(65536, dtype=numpy.uint16)
    wide = mapped("copy", words, "bf16", "f32", numpy.float32)
    assert numpy.array_equal(wide.view(numpy.uint32), words.astype(numpy.uint32) << 16)
    x = _f32_inputs()[:4_000_000]
    with numpy.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(ml_dtypes.bfloat16)
    got = mapped("copy", x, "f32", "bf16", numpy.uint16).view(ml_dtypes.bfloat16)
    nan = numpy.isnan(x)
    assert numpy.array_equal(got[~nan].view(numpy.uint16), expected[~nan].view(numpy.uint16))
    assert numpy.isnan(got[nan].astype(numpy.float32)).all()


@pytest.mark.parametrize("streamed", ["streamed", "plain"])
@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16"])
def test_pairs_of_vectors(element: str, streamed: str) -> None:
    """Every half, NaNs among them, times a number that makes each rounding matter."""
    dtype = numpy.dtype({"f32": "f4", "f64": "f8", "f16": "f2", "bf16": ml_dtypes.bfloat16}[element])
    words = numpy.arange(65536, dtype=numpy.uint16)
    x = words.view(dtype) if dtype.itemsize == 2 else words.astype(dtype)
    room = numpy.empty(x.nbytes + 64, numpy.uint8)
    start = -room.ctypes.data % 64
    y = room[start : start + x.nbytes].view(dtype)
    scaled(x, y, element, streamed)
    wide = numpy.float64 if element == "f64" else numpy.float32
    with numpy.errstate(over="ignore", invalid="ignore"):
        expected = (x.astype(wide) * wide(1.1)).astype(dtype)
    assert numpy.array_equal(y.astype(wide), expected.astype(wide), equal_nan=True)


def test_collapse_keeps_every_offset(chance: Any) -> None:
    """However dims are merged and ordered, the set of offsets of all operands together stays the same."""
    for _ in range(300):
        shape = tuple(chance.choice((1, 2, 3, 4)) for _ in range(chance.randint(0, 4)))
        strides = []
        for _ in range(chance.randint(1, 3)):
            order = list(range(len(shape)))
            chance.shuffle(order)
            packed = dict(zip(order, row_major([shape[axis] for axis in order]), strict=True))
            strides.append(tuple(packed[axis] * chance.choice((1, 1, 1, 2)) for axis in range(len(shape))))
        dims = geometry.collapse(shape, strides)

        def offsets(extents: Any, steps: Any) -> list[Any]:
            return sorted(
                tuple(sum(i * s for i, s in zip(index, step, strict=True)) for step in steps) for index in numpy.ndindex(*extents)
            )

        merged = [tuple(dim.steps[operand] for dim in dims) for operand in range(len(strides))]
        assert offsets([dim.extent for dim in dims], merged) == offsets(shape, strides)


def test_thread_count_is_checked(threads: Any) -> None:
    of_torch = torch.get_num_threads()
    threads(of_torch + 3)
    assert bk.get_num_threads() == of_torch + 3
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="at least 1"):
            bk.set_num_threads(wrong)  # type: ignore[arg-type]
    assert (bk.get_num_threads(), torch.get_num_threads()) == (of_torch + 3, of_torch)


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="one CPU, or nobody says which"
)
def test_helpers_run_anywhere_but_on_the_cpu_of_their_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    cpus = os.sched_getaffinity(0)
    first, second = sorted(cpus)[:2]
    over = threading.Event()
    helper = threading.Thread(target=over.wait)
    helper.start()
    assert helper.native_id is not None
    placement = Placement()
    placement.add(helper.native_id)
    try:
        for caller, avoided, wait in ((first, first, 0.0), (second, first, 60.0), (second, second, 0.0)):
            monkeypatch.setattr("baracuda_kernels.targets.cpu.runtime.placement.SELDOM", wait)
            monkeypatch.setattr(placement, "_cpu", lambda caller=caller: caller)
            placement.avoid_caller()
            assert os.sched_getaffinity(helper.native_id) == cpus - {avoided}
    finally:
        over.set()
        helper.join()
    placement.add(helper.native_id)
    placement.avoid_caller()  # a thread that has ended is no concern of the launch
