"""Covariances by the vendor's products, MKL's or cuBLAS's, through PyTorch. All between operands and results lies in the workspace."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.ops.covariance.descriptor import CovBackwardDescriptor, CovDescriptor, CovKind
from baracuda_kernels.ops.covariance.workspace import LINE, Pieces, backward_pieces, forward_pieces, places
from baracuda_kernels.targets.aten import DTYPES, as_torch, bytes_at, exactly_on

__all__ = ["backward", "forward"]


def forward(problem: CovDescriptor) -> Bind:
    """The kernel for a forward problem."""

    def compute(buffer: Any, input: Any, fweights: Any, aweights: Any, result: Any) -> None:
        norm = _centre(problem, buffer, input, fweights, aweights)
        _multiply(problem, buffer)
        if problem.kind is CovKind.COV:
            buffer.product.div_(norm)
        else:
            lengths = _lengths(buffer)
            buffer.product.div_(lengths[:, None]).div_(lengths).clamp_(-1.0, 1.0)
        _matrix(result).copy_(buffer.product)

    return _bound(problem, forward_pieces(problem), compute)


def backward(problem: CovBackwardDescriptor) -> Bind:
    """The kernel for a backward problem."""

    def compute(buffer: Any, d_result: Any, input: Any, fweights: Any, aweights: Any, d_input: Any) -> None:
        norm = _centre(problem, buffer, input, fweights, aweights)
        buffer.product.copy_(_matrix(d_result))
        torch.add(buffer.product, buffer.product.t(), out=buffer.slopes)
        if problem.kind is CovKind.COV:
            buffer.slopes.div_(norm)
        else:
            _through_lengths(problem, buffer)
        torch.mm(buffer.slopes, buffer.rows, out=buffer.scaled)
        if problem.is_weighted:
            buffer.scaled.mul_(buffer.weights)
        _matrix(d_input).copy_(buffer.scaled)

    return _bound(problem, backward_pieces(problem), compute)


def _centre(problem: CovDescriptor, buffer: Any, input: Any, fweights: Any, aweights: Any) -> Any:
    """Lays down the variables less their means, and the weights. Returns what sums are divided by: a number, or a tensor that has it."""
    rows, columns = problem.variables, problem.observations
    means, input = buffer.sums[:rows, None], _matrix(input)
    if columns:  # counted from the first observation on, so that what is always the same becomes zeros
        means.copy_(input[:, :1])
        # PyTorch would copy what it has to convert.
        torch.sub(buffer.rows.copy_(input) if input.dtype != means.dtype else input, means, out=buffer.rows)
    beside = _weigh(problem, buffer, fweights, aweights)
    torch.mv(buffer.table, buffer.weights, out=buffer.sums)
    means.div_(beside[0] if problem.is_weighted else columns)
    buffer.rows.sub_(means)
    if not problem.is_weighted:
        return max(columns - problem.correction, 0)
    total = beside[0]
    if not problem.has_aweights:
        return total.sub_(problem.correction).clamp_(min=0)
    return total.sub_(beside[1].div_(total), alpha=problem.correction).clamp_(min=0)


def _weigh(problem: CovDescriptor, buffer: Any, fweights: Any, aweights: Any) -> Any:
    """Lays down the weights, and below the variables what is summed with them. Returns where those sums will be."""
    lines = buffer.table[problem.variables :]
    if not problem.is_weighted:
        buffer.weights.fill_(1)
        return ()
    lines[0].fill_(1)
    buffer.weights.copy_(aweights if fweights is None else fweights)
    if aweights is not None:
        lines[1].copy_(aweights)
        if fweights is not None:
            buffer.weights.mul_(lines[1])
    return buffer.sums[problem.variables :]


def _multiply(problem: CovDescriptor, buffer: Any) -> None:
    scaled = torch.mul(buffer.rows, buffer.weights, out=buffer.scaled) if problem.is_weighted else buffer.rows
    torch.mm(scaled, buffer.rows.t(), out=buffer.product)


def _lengths(buffer: Any) -> Any:
    """The roots of the sums of squares."""
    return torch.sqrt(buffer.product.diagonal(), out=buffer.lengths)


def _through_lengths(problem: CovBackwardDescriptor, buffer: Any) -> None:
    """Slopes of correlations become those of products. A longer row has smaller correlations, and that of a row with itself stays 1."""
    _multiply(problem, buffer)
    slopes, lengths = buffer.slopes, _lengths(buffer)
    slopes.diagonal().zero_()
    slopes.div_(lengths[:, None]).div_(lengths)
    torch.mv(buffer.product.mul_(slopes), buffer.ones.fill_(1), out=buffer.sums[: problem.variables])
    slopes.diagonal().copy_(buffer.sums[: problem.variables].div_(lengths).div_(lengths).neg_())


def _matrix(tensor: Any) -> Any:
    """One variable is a matrix of one row."""
    return tensor[(None,) * (2 - tensor.dim())]


def _bound(problem: CovDescriptor, pieces: Pieces, compute: Callable[..., None]) -> Bind:
    """Binds a function of the operands and the pieces of the workspace, as tensors by name."""
    starts, size = places(problem, pieces)
    dtype, width = DTYPES[problem.element.accumulator], problem.element.accumulator.size

    @functools.lru_cache(maxsize=16)  # memory is often lent again
    def buffer(address: int, device: Device) -> Any:
        with torch.inference_mode(False):  # which would not let them be used outside of it
            whole = bytes_at(address + -address % LINE, size, device).view(dtype)
            tensors = {name: whole[starts[name] // width :][: math.prod(shape)].view(shape) for name, shape in pieces.items()}
            return SimpleNamespace(**tensors, rows=tensors["table"][: problem.variables])

    def bind(layouts: Any) -> Launch:
        def launch(addresses: tuple[int, ...], workspace: int, stream: Stream) -> None:
            with exactly_on(stream):
                compute(buffer(workspace, stream.device), *as_torch(addresses, layouts))

        return launch

    return bind
