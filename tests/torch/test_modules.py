"""The PyTorch modules: in place of PyTorch's and mamba_ssm's, and against the formulas they stand for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import baracuda_kernels as bk
import baracuda_kernels.torch as bt


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(3)


def gradients(module: nn.Module, x: Tensor) -> list[Tensor]:
    """The result, and the gradients of the input and of every parameter."""
    x = x.detach().requires_grad_()
    y = module(x)
    weights = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)
    return [y.detach(), *torch.autograd.grad(y, [x, *module.parameters()], weights)]


# --- RMSNorm ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "arguments", [{}, {"eps": 1e-3}, {"elementwise_affine": False}, {"normalized_shape": (3, 8), "eps": 0.5}], ids=str
)
def test_rms_norm_takes_the_place_of_pytorchs(arguments: dict[str, Any], dtype: torch.dtype) -> None:
    arguments = {"normalized_shape": 8, "dtype": dtype} | arguments
    theirs, ours = nn.RMSNorm(**arguments), bt.RMSNorm(**arguments)
    if theirs.weight is not None:
        nn.init.normal_(theirs.weight)
    ours.load_state_dict(theirs.state_dict())
    assert repr(ours) == repr(theirs) and isinstance(ours, nn.RMSNorm)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = torch.randn(5, 3, 8).mul(1e-3).to(dtype)  # small enough for eps to matter
    close = {"rtol": 1e-12, "atol": 1e-12} if dtype is torch.float64 else {}
    for got, wanted in zip(gradients(ours, x), gradients(theirs, x), strict=True):
        torch.testing.assert_close(got, wanted, **close)


@pytest.mark.filterwarnings("ignore:Mismatch dtype")  # PyTorch's, of its own fused kernel
@pytest.mark.parametrize(("of_input", "of_weight"), [(torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16)])
def test_a_weight_of_another_type_is_taken_as_pytorch_takes_it(of_input: torch.dtype, of_weight: torch.dtype) -> None:
    theirs, ours = nn.RMSNorm(8, dtype=of_weight), bt.RMSNorm(8, dtype=of_weight)
    x = torch.randn(4, 8).to(of_input)
    torch.testing.assert_close(ours(x), theirs(x))


def test_under_autocast_the_result_is_of_pytorchs_type() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        for dtype in (torch.bfloat16, torch.float32):
            assert bt.RMSNorm(8)(torch.ones(2, 8, dtype=dtype)).dtype == dtype
        assert bt.Mamba2(16, d_state=8, headdim=8)(torch.ones(1, 4, 16)).dtype == torch.bfloat16


@pytest.mark.parametrize("shape", [(4, 8, 3), (24,), (8,), ()])
def test_rms_norm_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(bk.InvalidProblem, match=r"x has the wrong shape: .*wanted \[\.\.\., 3, 8\]"):
        bt.RMSNorm((3, 8), elementwise_affine=False)(torch.zeros(shape))


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64], ids=str)
def test_rms_norm_refuses_what_is_no_real_number(dtype: torch.dtype) -> None:
    with pytest.raises(bk.Unsupported, match="does not support this dtype"):
        bt.RMSNorm(8)(torch.ones(2, 8, dtype=dtype))


# --- RotaryEmbedding ----------------------------------------------------------------------------------------------------------


def turned(x: Tensor, positions: Tensor, style: str, base: float, rotary_dim: int) -> Tensor:
    """The same rotation as a product of complex numbers."""
    part, rest = x.double().split((rotary_dim, x.shape[-1] - rotary_dim), -1)
    half = rotary_dim // 2
    first, second = (part[..., ::2], part[..., 1::2]) if style == "interleaved" else (part[..., :half], part[..., half:])
    angles = positions.double()[..., None] * base ** (-torch.arange(half).double() / half)
    product = torch.complex(first, second) * torch.polar(torch.ones_like(angles), angles)
    pairs = torch.stack((product.real, product.imag), -1)
    return torch.cat(((pairs if style == "interleaved" else pairs.mT).flatten(-2), rest), -1)


@pytest.mark.parametrize("style", ["interleaved", "half"])
@pytest.mark.parametrize("rotary_dim", [None, 4])
def test_rotary_embedding_turns_pairs(style: str, rotary_dim: int | None) -> None:
    module = bt.RotaryEmbedding(base=500.0, style=style, rotary_dim=rotary_dim)
    x = torch.randn(2, 3, 5, 8)
    shared, each = torch.arange(5), torch.randint(-9, 99, (2, 5))
    for given, positions in ((None, shared), (shared + 7, shared + 7), (each, each[:, None])):
        wanted = turned(x, positions, style, 500.0, rotary_dim or 8)
        torch.testing.assert_close(module(x, given).double(), wanted, rtol=0, atol=1e-6)
    result, gradient = gradients(module, x)
    weights = torch.linspace(-1, 1, x.numel()).view_as(x)
    assert not module.state_dict() and style in repr(module)
    torch.testing.assert_close((result * weights).sum(), (x * gradient).sum())  # a rotation back is the transpose of one forth


def test_rotary_embedding_refuses_other_styles() -> None:
    with pytest.raises(bk.InvalidProblem, match="style is out of range: got 'sideways'"):
        bt.RotaryEmbedding(style="sideways")


# --- Mamba2 -------------------------------------------------------------------------------------------------------------------


def step_by_step(mixer: bt.Mamba2, u: Tensor) -> Tensor:
    """The recurrence as it is defined, one step after the other."""
    heads, groups, state, inner = mixer.nheads, mixer.ngroups, mixer.d_state, mixer.d_inner
    gate, features, steps = mixer.in_proj(u).split((inner, inner + 2 * groups * state, heads), -1)
    dt, rates = F.softplus(steps + mixer.dt_bias), -torch.exp(mixer.A_log)
    taps, h, outputs = mixer.conv1d.weight[:, 0], u.new_zeros(len(u), heads, mixer.headdim, state), []
    for t in range(u.shape[1]):
        seen = [features[:, t - back] * taps[:, -1 - back] for back in range(mixer.d_conv) if t >= back]
        x, b, c = F.silu(sum(seen) + mixer.conv1d.bias).split((inner, groups * state, groups * state), -1)
        x = x.unflatten(-1, (heads, -1))
        b, c = (each.unflatten(-1, (groups, -1)).repeat_interleave(heads // groups, 1) for each in (b, c))
        h = torch.exp(dt[:, t] * rates)[..., None, None] * h + (dt[:, t, :, None] * x)[..., None] * b[:, :, None]
        outputs.append(((h @ c[..., None])[..., 0] + mixer.D[:, None] * x).flatten(1))
    gated = (torch.stack(outputs, 1) * F.silu(gate)).unflatten(-1, (groups, -1))
    normed = gated * torch.rsqrt(gated.square().mean(-1, keepdim=True) + mixer.norm.eps)
    return mixer.out_proj(normed.flatten(-2) * mixer.norm.weight)


class Stepwise(nn.Module):
    def __init__(self, mixer: bt.Mamba2) -> None:
        super().__init__()
        self.mixer = mixer

    def forward(self, u: Tensor) -> Tensor:
        return step_by_step(self.mixer, u)


@pytest.mark.parametrize("ngroups", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_mamba2_is_its_recurrence(ngroups: int, dtype: torch.dtype) -> None:
    mixer = bt.Mamba2(16, d_state=8, d_conv=3, headdim=4, ngroups=ngroups, chunk_size=5).to(dtype)
    for parameter in (mixer.D, mixer.norm.weight, mixer.conv1d.bias):
        nn.init.normal_(parameter)
    u = torch.randn(2, 13, 16, dtype=dtype)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-12}
    for got, wanted in zip(gradients(mixer, u), gradients(Stepwise(mixer), u), strict=True):
        torch.testing.assert_close(got, wanted, **tolerance)


def test_mamba2_has_the_parameters_of_mamba_ssm() -> None:
    shapes = {
        name: tuple(parameter.shape) for name, parameter in bt.Mamba2(128, d_state=32, ngroups=2, bias=True).state_dict().items()
    }
    assert shapes == {
        "dt_bias": (4,), "A_log": (4,), "D": (4,), "in_proj.weight": (644, 128), "in_proj.bias": (644,),
        "conv1d.weight": (384, 1, 4), "conv1d.bias": (384,), "norm.weight": (256,), "out_proj.weight": (128, 256), "out_proj.bias": (128,),
    }  # fmt: skip


def test_mamba2_starts_with_steps_and_rates_in_their_ranges() -> None:
    mixer = bt.Mamba2(512, headdim=4, dt_min=0.01, dt_max=0.02, A_init_range=(2, 3))
    steps, rates = F.softplus(mixer.dt_bias), torch.exp(mixer.A_log)
    assert 0.0099 < steps.min() < 0.0105 and 0.019 < steps.max() < 0.0201
    assert 2 <= rates.min() < 2.1 and 2.9 < rates.max() <= 3.0001


def test_mamba2_in_bf16_is_near_f32() -> None:
    mixer = bt.Mamba2(32, d_state=16, headdim=8)
    u = torch.randn(2, 40, 32)
    wanted = mixer(u)
    result = mixer.bfloat16()(u.bfloat16())
    assert result.dtype == torch.bfloat16
    assert (result.float() - wanted).norm() < 0.03 * wanted.norm()


def test_mamba2_sees_no_future() -> None:
    mixer, u = bt.Mamba2(16, d_state=8, headdim=8), torch.randn(1, 9, 16)
    before = mixer(u)
    u[:, 6:] = 1.0
    after = mixer(u)
    torch.testing.assert_close(after[:, :6], before[:, :6])
    assert not torch.allclose(after[:, 6:], before[:, 6:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"headdim": 5}, r"headdim does not fit the other fields: got 5, wanted a divisor of expand · d_model = 32"),
        ({"headdim": 8, "ngroups": 3}, "ngroups does not fit the other fields: got 3, wanted a divisor of the 4 heads"),
        ({"headdim": 8, "d_state": 0}, "d_state is out of range: got 0, wanted at least 1"),
        ({"headdim": 8, "chunk_size": 0}, "chunk_size is out of range: got 0, wanted at least 1"),
        ({"headdim": 8.0}, r"headdim has the wrong type: got 8\.0, wanted a whole number"),
        ({"headdim": "8"}, "headdim has the wrong type: got '8', wanted a whole number"),
        ({"expand": None}, "expand has the wrong type: got None, wanted a whole number"),
    ],
)
def test_mamba2_refuses_sizes_that_do_not_fit(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(bk.InvalidProblem, match=message):
        bt.Mamba2(16, **arguments)


# --- compiled -----------------------------------------------------------------------------------------------------------------

MODULES = {
    "RMSNorm": (lambda: bt.RMSNorm((3, 8)), (2, 3, 8)),
    "RotaryEmbedding": (lambda: bt.RotaryEmbedding(style="half"), (1, 2, 5, 8)),
    "Mamba2": (lambda: bt.Mamba2(16, d_state=8, headdim=8), (2, 9, 16)),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_compiled_as_one_graph_and_exported(name: str) -> None:
    make, shape = MODULES[name]
    module, x = make(), torch.randn(shape)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for got, wanted in zip(gradients(compiled, x), gradients(module, x), strict=True):
        torch.testing.assert_close(got, wanted)
    exported = torch.export.export(module, (x,)).module()
    torch.testing.assert_close(exported(x), module(x))
