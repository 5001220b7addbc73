"""Under `torch.autocast` every function computes in the element that PyTorch's own computes in: on the CPU, and without values on CUDA."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.torch.autocast import COMPOSED, LISTS

from conftest import DEVICE
from torch_calls import FORWARD, call_of, differentiable, flat, objective, tensor, with_gradients
from torch_counterparts import FUNCTIONS, ON_INTEGERS, OPTIONS, WITHOUT, operands, steps

F64, F32, F16, BF16 = torch.float64, torch.float32, torch.float16, torch.bfloat16
HERE = DEVICE.kind.value
ON_FLOATS = [name for name in FUNCTIONS if name not in (*ON_INTEGERS, *WITHOUT, "complex")]
CASES = ((BF16, (BF16, F32)), (F16, (F32, BF16)), (BF16, (F16, F32)), (F16, (F32, F32)), (BF16, (BF16, BF16)), (BF16, (F64, F32)))
# What PyTorch refuses is promoted all the same: mixed elements, halves without a kernel, a half that is not autocast's.
REFUSED = (
    "addcdiv", "addcmul", "allclose", "atan2", "diff", "erfcx", "fma", "gradient", "heaviside", "isclose", "lerp", "log_ndtr",
    "nanpercentile", "nanquantile", "ndtri", "percentile", "polar", "prelu", "quantile", "sdpa", "zeta",
)  # fmt: skip
# Where PyTorch rounds to the elements of operands between steps that are one here.
ROUNDED_BETWEEN = (
    "average", "beta", "betaln", "cosine_similarity", "cov", "corrcoef", "cumulative_trapezoid", "geglu", "glu", "gradient", "ldexp",
    "logmeanexp", "rel_entr", "swiglu", "tanhshrink", "trapezoid",
)  # fmt: skip
WITHOUT_FAKES = ("allclose", "corrcoef", "cov", "equal", "prelu")  # that PyTorch does with values alone, or with CUDA
CLOSE = {BF16: 2.0**-6, F16: 2.0**-9, F32: 4e-6, F64: 1e-9}


@contextlib.contextmanager
def autocast(device: str, lower: torch.dtype) -> Iterator[None]:
    """As `torch.autocast` does it, also for CUDA where there is none."""
    before = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    torch.set_autocast_enabled(device, True)
    torch.set_autocast_dtype(device, lower)
    try:
        yield
    finally:
        torch.set_autocast_enabled(device, before[0])
        torch.set_autocast_dtype(device, before[1])


def ours(name: str, given: list[Any]) -> list[Any]:
    return flat(getattr(bt, name)(**dict(zip(FUNCTIONS[name].inputs, given, strict=False)), **OPTIONS.get(name, {})))


def theirs(name: str, given: list[Any]) -> list[Any]:
    results = steps(name)(*given)
    return [torch.as_tensor(each) for each in (results if isinstance(results, tuple) else (results,))]


def widest(given: list[Any]) -> torch.dtype:
    return functools.reduce(torch.promote_types, [each.dtype for each in given if each.is_floating_point()])


def by_pytorch(name: str, device: str, lower: torch.dtype, given: list[Any]) -> list[Any]:
    try:
        with autocast(device, lower):
            return theirs(name, given)
    except RuntimeError:
        assert name in REFUSED
    element = widest(given)
    wide = torch.promote_types(element, F32)
    found = theirs(name, [each.to(wide) if each.is_floating_point() else each for each in given])
    return [each.to(element) if each.is_floating_point() else each for each in found]


@pytest.mark.filterwarnings("ignore:Mismatch dtype")
@pytest.mark.parametrize("name", ON_FLOATS)
def test_results_are_those_of_pytorch(name: str) -> None:
    for lower, elements in CASES:
        given = operands(name, elements)
        expected = by_pytorch(name, HERE, lower, given)
        with autocast(HERE, lower):
            found = ours(name, given)
        for one, other in zip(found, expected, strict=True):
            of = [*(each.dtype for each in given if name in ROUNDED_BETWEEN and each.is_floating_point()), one.dtype]
            close = max(CLOSE.get(each, CLOSE[F32]) for each in of)
            torch.testing.assert_close(one, other.view_as(one), rtol=close, atol=close)


@pytest.mark.filterwarnings("ignore:ComplexHalf support", "ignore:Mismatch dtype")
@pytest.mark.parametrize("name", [name for name in ON_FLOATS if name not in WITHOUT_FAKES])
def test_elements_on_cuda_are_those_of_pytorch(name: str) -> None:
    for lower, elements in CASES:
        made = operands(name, elements)
        with FakeTensorMode():
            given = [torch.empty(each.shape, dtype=each.dtype, device="cuda") for each in made]
            expected = by_pytorch(name, "cuda", lower, given)
            with autocast("cuda", lower):
                found = ours(name, given)
        assert [each.dtype for each in found] == [each.dtype for each in expected], elements


def test_elements_on_cuda_of_what_pytorch_has_no_fakes_of() -> None:
    with FakeTensorMode(), autocast("cuda", F16):
        x, y = (torch.empty(4, 6, dtype=dtype, device="cuda") for dtype in (BF16, F32))
        assert [bt.prelu(x, y).dtype, bt.prelu(y, y).dtype, bt.cov(x).dtype, bt.corrcoef(y).dtype] == [F16] * 4
        assert bt.equal(x, y).dtype is bt.allclose(x, y).dtype is torch.bool


def test_numbers_are_not_lost_in_a_half() -> None:
    residual, branch = tensor(8, dtype=F32) + 1000.5, tensor(8, dtype=BF16)
    with torch.autocast(HERE, BF16):
        for one, other in ((branch, residual), (residual, branch)):
            for name in ("add", "sub", "mul", "maximum", "div"):
                assert torch.equal(getattr(bt, name)(one, other), getattr(torch, name)(one, other))
            assert torch.equal(bt.addcmul(one, one, other), torch.addcmul(one, one, other))
        observations = tensor(3, 64, dtype=F32) + 1000
        for name in ("cov", "corrcoef"):
            torch.testing.assert_close(getattr(bt, name)(observations), getattr(torch, name)(observations), rtol=2e-2, atol=2e-2)
        weights = tensor(64, dtype=F64).exp()
        assert bt.cov(observations, aweights=weights).dtype is torch.cov(observations, aweights=weights).dtype


def test_complex_numbers_of_mixed_parts() -> None:
    x = tensor(4, dtype=F32)
    with torch.autocast(HERE, BF16):
        assert torch.equal(bt.complex(x, x.bfloat16()), torch.complex(x, x.bfloat16().float()))
        assert bt.iscomplex(x.half()).dtype is torch.bool
        with pytest.raises(bk.Unsupported, match="got bf16"):
            bt.complex(x.bfloat16(), x.bfloat16())


@pytest.mark.parametrize("name", ON_INTEGERS)
def test_integers_are_left_alone(name: str) -> None:
    given = [torch.arange(1, 7, device=HERE), torch.arange(3, 9, device=HERE)][: len(FUNCTIONS[name].inputs)]
    with torch.autocast(HERE, BF16):
        found = getattr(bt, name)(*given)
    assert torch.equal(found, getattr(bt, name)(*given))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("name", "dtypes"),
    [("add", (BF16, F16, F32, F64, torch.int32, torch.int64)), ("atan2", (BF16, F32, F64)), ("addcmul", (BF16, F32, F64))],
)
def test_operands_without_axes_are_promoted_as_by_pytorch(name: str, dtypes: tuple[torch.dtype, ...], device: str) -> None:
    with FakeTensorMode(), autocast(device, BF16):
        kinds = [torch.empty(shape, dtype=dtype, device=device) for shape in ((3,), ()) for dtype in dtypes]
        for given in itertools.product(kinds, repeat=len(FUNCTIONS[name].inputs)):
            assert getattr(bt, name)(*given).dtype is getattr(torch, name)(*given).dtype, given


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "norm", "vector_norm", "l2_norm"])
def test_a_dtype_that_is_asked_for_is_kept(name: str) -> None:
    along: dict[str, Any] = {"dim": 0} if name.startswith("cum") else {}
    of_pytorch = torch.linalg.vector_norm if name.endswith("_norm") else getattr(torch, name)
    with FakeTensorMode(), autocast("cuda", BF16):
        for own, asked in itertools.product((BF16, F32), (None, BF16, F32, F64)):
            x = torch.empty(4, dtype=own, device="cuda")
            if name.endswith("norm") and own is F32 and asked is BF16:
                continue  # PyTorch's norms do not take a narrower one
            assert getattr(bt, name)(x, dtype=asked, **along).dtype is of_pytorch(x, dtype=asked, **along).dtype


@pytest.mark.parametrize("device", LISTS)
def test_the_lists_are_those_of_pytorch(device: str) -> None:
    registered = torch._C._dispatch_get_registrations_for_dispatch_key(f"Autocast{device.upper()}")
    theirs = {name.removeprefix("aten::").split(".")[0] for name in registered}
    used = {COMPOSED.get(name, name) for name in FUNCTIONS}
    assert {name for names in LISTS[device].values() for name in names} == theirs & used
    assert set(COMPOSED) <= set(FUNCTIONS)
    if device == "cuda":  # whose lists are in a header
        header = (Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text(encoding="utf-8")
        macros = dict(re.findall(r"#define AT_FORALL_(\w+)\(_\)((?:.*\\\n)*.*)", header))
        macros["FP32_SET_OPT_DTYPE"] += macros["DIFFERENT_REDISPATCH_SIGNATURE"]  # a norm's overload that names no dtype
        for rule, names in LISTS[device].items():
            assert set(names) <= set(re.findall(r"_\((?:ADD_NS\()?(\w+)", macros[rule.value.upper()]))


# --- what PyTorch has no function for ----------------------------------------------------------------------------------------


def test_other_functions_promote() -> None:
    given = [tensor(4, dtype=dtype).sigmoid() for dtype in (BF16, F32, F32)]
    wide = [each.float() for each in given]
    scaled = bt.fuse(lambda x, y: x * y + 1)
    with torch.autocast(HERE, BF16):
        assert torch.equal(bt.betainc(*given), bt.betainc(*wide))
        assert torch.equal(scaled(*given[:2]), scaled(*wide[:2]))
        assert bt.rope(tensor(1, 1, 3, 4, dtype=F16)).dtype is F16
        assert bt.reduce_precision(given[0], 5, 3).dtype is BF16
        assert bt.bitcast(given[0], torch.int16).dtype is torch.int16


def test_scans_are_products_of_matrices_and_states_are_wide() -> None:
    values = call_of("ssd_chunk_scan", 1, F32)
    values["x"], values["dt"] = values["x"].half(), values["dt"].bfloat16()
    converted = {name: values[name].bfloat16() for name in ("x", "b", "c")} | {"dt": values["dt"].float()}
    expected = bt.ssd_chunk_scan(**(values | converted))
    with torch.autocast(HERE, BF16):
        found = bt.ssd_chunk_scan(**values)
    assert [each.dtype for each in found] == [BF16, F32]
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("dtype", [torch.uint16, torch.float8_e4m3fn])
def test_unknown_elements_are_refused(dtype: torch.dtype) -> None:
    x = torch.ones(3, device=HERE)
    with torch.autocast(HERE, BF16), pytest.raises(bk.InvalidProblem, match="other cannot be seen as an array"):
        bt.add(x, x.to(dtype))


# --- gradients ---------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Mismatch dtype")
@pytest.mark.parametrize(
    "name",
    ["addcmul", "corrcoef", "cosine_similarity", "cov", "cumsum", "mul", "prelu", "prod", "quantile", "rms_norm", "sdpa", "swiglu"],
)
def test_gradients_are_those_of_pytorch(name: str) -> None:
    for elements in ((BF16, F32), (F32, BF16)):
        given = [each.requires_grad_(each.dim() < 4 or place < 3) for place, each in enumerate(operands(name, elements))]
        wanted = [each for each in given if each.requires_grad]
        totals = []
        for of in (theirs, ours):
            with torch.autocast(HERE, BF16):
                totals.append(objective(tuple(of(name, given))))
        expected, found = (torch.autograd.grad(total, wanted) for total in totals)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=4e-2, atol=4e-2 * float(other.abs().max()))


@pytest.mark.parametrize("name", FORWARD)
def test_a_backward_computes_in_the_elements_of_its_forward(name: str) -> None:
    values = with_gradients(name, call_of(name, 0, F32))
    first, *others = differentiable(name, values)
    values[first] = values[first].detach().bfloat16().requires_grad_()
    with torch.autocast(HERE, BF16):
        total = objective(getattr(bt, name)(**values))
    inputs = [values[each] for each in (first, *others)]
    outside = torch.autograd.grad(total, inputs, retain_graph=True)
    with torch.autocast(HERE, F16):
        within = torch.autograd.grad(total, inputs)
    assert [each.dtype for each in outside] == [each.dtype for each in inputs]
    assert all(torch.equal(one, other) for one, other in zip(outside, within, strict=True))


# --- transforms --------------------------------------------------------------------------------------------------------------


def test_under_vmap_elements_are_those_of_one_problem() -> None:
    x, y, numbers = tensor(3, 4, dtype=BF16), tensor(3, 4, dtype=F32), tensor(3, dtype=F32)
    with torch.autocast(HERE, BF16):
        for of in ("add", "mul"):
            for other in (y, numbers):
                assert torch.equal(torch.vmap(getattr(bt, of))(x, other), torch.vmap(getattr(torch, of))(x, other))
        assert torch.vmap(bt.cov)(tensor(3, 2, 5, dtype=F32)).dtype is BF16
        normed = torch.vmap(lambda row: bt.rms_norm(row, y[0]))(x)
        assert torch.equal(normed, bt.rms_norm(x, y[0]))


def test_compiled_elements_are_those_of_eager_calls() -> None:
    def several(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        with torch.autocast(HERE, BF16):
            return [bt.add(x, y), bt.prelu(y, y[0]), bt.cov(y), bt.rms_norm(x, y[0])]

    torch.compiler.reset()
    given = tensor(3, 4, dtype=BF16), tensor(3, 4, dtype=F32)
    found = torch.compile(several, fullgraph=True, backend="aot_eager")(*given)
    assert [each.dtype for each in found] == [F32, BF16, BF16, BF16 if HERE == "cpu" else F32]
    assert all(torch.equal(one, other) for one, other in zip(found, several(*given), strict=True))
    torch.compiler.reset()


def test_gradients_of_functions_under_autocast() -> None:
    x, weight = tensor(3, 4, dtype=F32), tensor(4, dtype=F32)
    with torch.autocast(HERE, BF16):
        found = torch.func.grad(lambda given: bt.prelu(given, weight).float().square().sum())(x)
        expected = torch.func.grad(lambda given: torch.prelu(given, weight).float().square().sum())(x)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
