"""What the scan is compared with in the bench: the same chunked algorithm with torch.einsum, and the recurrence step by step, both in PyTorch; on CUDA
also the former through torch.compile, mamba_ssm's Triton kernels and, where every head has its own group, flash-linear-attention's.

In PyTorch 16-bit floats are widened to f32 first. Gradients are autograd's, and only the backward pass is timed. The recurrence takes
seconds, so only the first 16th of the sequence is timed, and its name says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from baracuda_kernels.core.peers import COMPILED, PeerCall, compiled_when_called, installed
from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanDescriptor

CHUNKED = "torch.einsum, chunked"
STEPWISE = "PyTorch, step by step, 1/16 of the steps"
MAMBA, FLA = "mamba_ssm", "fla simple GLA"
MAMBA_CHUNK = 256  # what its models use
LARGEST_MATRIX = 2 << 30  # bytes of all decays within chunks, past which torch.einsum is left out
INPUTS = ("x", "dt", "a", "b", "c", "initial_state")
PER_STEP = ("x", "dt", "b", "c", "dy")


def ssd_chunk_scan(descriptor: SsdChunkScanDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    for name, scan, problem, given in _contenders(descriptor, operands):
        yield name, _forward(problem, scan, given)
    yield from installed("mamba_ssm", operands["x"], lambda: _mamba(descriptor, operands), MAMBA)
    if descriptor.groups == descriptor.num_heads:
        yield from installed("fla", operands["x"], lambda: _forward(descriptor, fla, operands, widen=False), FLA)


def ssd_chunk_scan_backward(descriptor: SsdChunkScanDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    for name, scan, problem, given in _contenders(descriptor, operands):
        yield name, _gradient(problem, scan, given)
    yield from installed("mamba_ssm", operands["x"], lambda: _mamba_backward(descriptor, operands), MAMBA)
    if descriptor.groups == descriptor.num_heads:
        yield from installed("fla", operands["x"], lambda: _gradient(descriptor, fla, operands, widen=False), FLA)


def _contenders(descriptor: SsdChunkScanDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, Callable[..., Any], Any, Any]]:
    steps_squared = descriptor.batch_size * descriptor.num_heads * descriptor.seq_len * descriptor.chunk_size
    if descriptor.seq_len % descriptor.chunk_size == 0 and 4 * steps_squared <= LARGEST_MATRIX:
        yield CHUNKED, chunked, descriptor, operands
        if operands["x"].is_cuda:
            yield COMPILED, compiled_when_called(chunked), descriptor, operands
    steps = -(-descriptor.seq_len // 16)
    first = {name: tensor[:, :steps] if name in PER_STEP else tensor for name, tensor in operands.items()}
    yield STEPWISE, stepwise, replace(descriptor, seq_len=steps), first


def _mamba(descriptor: SsdChunkScanDescriptor, operands: dict[str, Any]) -> PeerCall:
    from mamba_ssm.ops.triton.ssd_combined import _mamba_chunk_scan_combined_fwd

    inputs = [operands[name] for name in ("x", "dt", "a", "b", "c")]
    return lambda: _mamba_chunk_scan_combined_fwd(*inputs, MAMBA_CHUNK, initial_states=operands.get("initial_state"))


def _mamba_backward(descriptor: SsdChunkScanDescriptor, operands: dict[str, Any]) -> PeerCall:
    from mamba_ssm.ops.triton.ssd_combined import _mamba_chunk_scan_combined_bwd

    inputs = [operands[name] for name in ("dy", "x", "dt", "a", "b", "c")]
    states = {"initial_states": operands.get("initial_state"), "dfinal_states": operands.get("d_final_state")}
    return lambda: _mamba_chunk_scan_combined_bwd(*inputs, operands["dy"], MAMBA_CHUNK, **states)


def fla(descriptor: SsdChunkScanDescriptor, x: Any, dt: Any, a: Any, b: Any, c: Any, initial_state: Any) -> tuple[Any, Any]:
    """The scan as linear attention with one gate per head: queries c, keys b, values x dt."""
    from fla.ops.simple_gla import chunk_simple_gla

    values, gates = x * dt[..., None].to(x.dtype), dt.float() * a
    return chunk_simple_gla(c, b, values, gates, scale=1.0, initial_state=initial_state, output_final_state=True)


def _forward(
    descriptor: SsdChunkScanDescriptor, scan: Callable[..., Any], operands: dict[str, Any], widen: bool = True
) -> PeerCall:
    import torch

    def call() -> object:
        with torch.no_grad():
            inputs = [operands.get(name) for name in INPUTS]
            y, state = scan(descriptor, *(_widened(inputs) if widen else inputs))
            return y.to(operands["x"].dtype), state

    return call


def _gradient(
    descriptor: SsdChunkScanDescriptor, scan: Callable[..., Any], operands: dict[str, Any], widen: bool = True
) -> PeerCall:
    import torch

    recorded: list[tuple[Any, ...]] = []

    def call() -> object:
        if not recorded:
            inputs = [None if operands.get(name) is None else operands[name].detach().requires_grad_() for name in INPUTS]
            y, state = scan(descriptor, *(_widened(inputs) if widen else inputs))
            pairs = [(y.to(operands["x"].dtype), operands["dy"]), (state, operands.get("d_final_state"))]
            outputs, gradients = zip(*(pair for pair in pairs if pair[1] is not None), strict=True)
            recorded.append(([given for given in inputs if given is not None], outputs, gradients))
        inputs, outputs, gradients = recorded[0]
        return torch.autograd.grad(outputs, inputs, gradients, retain_graph=True)

    return call


def _widened(tensors: Sequence[Any]) -> list[Any]:
    import torch

    return [None if tensor is None else tensor.to(torch.promote_types(tensor.dtype, torch.float32)) for tensor in tensors]


def _first_state(descriptor: SsdChunkScanDescriptor, x: Any, initial_state: Any) -> Any:
    return x.new_zeros(descriptor.state_shape) if initial_state is None else initial_state


def stepwise(descriptor: SsdChunkScanDescriptor, x: Any, dt: Any, a: Any, b: Any, c: Any, initial_state: Any) -> tuple[Any, Any]:
    import torch

    b, c = (group.repeat_interleave(descriptor.heads_per_group, 2) for group in (b, c))
    state, outputs = _first_state(descriptor, x, initial_state), []
    for t in range(descriptor.seq_len):
        decay = torch.exp(dt[:, t] * a)[..., None, None]
        state = decay * state + (dt[:, t, :, None] * x[:, t])[..., None] * b[:, t, :, None, :]
        outputs.append((state @ c[:, t, :, :, None])[..., 0])
    return torch.stack(outputs, 1), state


def chunked(descriptor: SsdChunkScanDescriptor, x: Any, dt: Any, a: Any, b: Any, c: Any, initial_state: Any) -> tuple[Any, Any]:
    """The algorithm of the Mamba-2 paper's minimal listing; the length is a multiple of the chunk."""
    import torch

    batch, heads, size = descriptor.batch_size, descriptor.num_heads, descriptor.chunk_size
    chunks, share = descriptor.seq_len // size, descriptor.heads_per_group
    x = (x * dt[..., None]).view(batch, chunks, size, heads, -1)
    b, c = (group.repeat_interleave(share, 2).view(batch, chunks, size, heads, -1) for group in (b, c))
    exponents = (dt * a).view(batch, chunks, size, heads).permute(0, 3, 1, 2)
    sums = exponents.cumsum(-1)
    decay = _decays(exponents)
    within = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, decay, x)
    inflow = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, torch.exp(sums[..., -1:] - sums), x)
    states = torch.cat([_first_state(descriptor, x, initial_state)[:, None], inflow], 1)
    passed = _decays(torch.nn.functional.pad(sums[..., -1], (1, 0)))
    states = torch.einsum("bhzc,bchpn->bzhpn", passed, states)
    across = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states[:, :-1], torch.exp(sums))
    return (within + across).reshape(descriptor.x_shape), states[:, -1]


def _decays(exponents: Any) -> Any:
    """exp of the sum of exponents after j up to i, zero above the diagonal; each sum taken by itself, for accuracy."""
    import torch

    size = exponents.shape[-1]
    ones = torch.ones(size, size, dtype=torch.bool, device=exponents.device)
    sums = exponents[..., None].expand(*exponents.shape, size).masked_fill(~ones.tril(-1), 0).cumsum(-2)
    return torch.exp(sums.masked_fill(~ones.tril(), float("-inf")))
