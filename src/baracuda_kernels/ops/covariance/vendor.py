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

    def compute(room: Any, input: Any, fweights: Any, aweights: Any, result: Any) -> None:
        norm = _centre(problem, room, input, fweights, aweights)
        _multiply(problem, room)
        if problem.kind is CovKind.COV:
            room.product.div_(norm)
        else:
            lengths = _lengths(room)
            room.product.div_(lengths[:, None]).div_(lengths).clamp_(-1.0, 1.0)
        _matrix(result).copy_(room.product)

    return _bound(problem, forward_pieces(problem), compute)


def backward(problem: CovBackwardDescriptor) -> Bind:
    """The kernel for a backward problem."""

    def compute(room: Any, d_result: Any, input: Any, fweights: Any, aweights: Any, d_input: Any) -> None:
        norm = _centre(problem, room, input, fweights, aweights)
        room.product.copy_(_matrix(d_result))
        torch.add(room.product, room.product.t(), out=room.slopes)
        if problem.kind is CovKind.COV:
            room.slopes.div_(norm)
        else:
            _through_lengths(problem, room)
        torch.mm(room.slopes, room.rows, out=room.scaled)
        if problem.is_weighted:
            room.scaled.mul_(room.weights)
        _matrix(d_input).copy_(room.scaled)

    return _bound(problem, backward_pieces(problem), compute)


def _centre(problem: CovDescriptor, room: Any, input: Any, fweights: Any, aweights: Any) -> Any:
    """Lays down the variables less their means, and the weights. Returns what sums are divided by: a number, or a tensor that has it."""
    rows, columns = problem.variables, problem.observations
    means, input = room.sums[:rows, None], _matrix(input)
    if columns:  # counted from the first observation on, so that what is always the same becomes zeros
        means.copy_(input[:, :1])
        # PyTorch would copy what it has to convert.
        torch.sub(room.rows.copy_(input) if input.dtype != means.dtype else input, means, out=room.rows)
    beside = _weigh(problem, room, fweights, aweights)
    torch.mv(room.table, room.weights, out=room.sums)
    means.div_(beside[0] if problem.is_weighted else columns)
    room.rows.sub_(means)
    if not problem.is_weighted:
        return max(columns - problem.correction, 0)
    total = beside[0]
    if not problem.has_aweights:
        return total.sub_(problem.correction).clamp_(min=0)
    return total.sub_(beside[1].div_(total), alpha=problem.correction).clamp_(min=0)


def _weigh(problem: CovDescriptor, room: Any, fweights: Any, aweights: Any) -> Any:
    """Lays down the weights, and below the variables what is summed with them. Returns where those sums will be."""
    lines = room.table[problem.variables :]
    if not problem.is_weighted:
        room.weights.fill_(1)
        return ()
    lines[0].fill_(1)
    room.weights.copy_(aweights if fweights is None else fweights)
    if aweights is not None:
        lines[1].copy_(aweights)
        if fweights is not None:
            room.weights.mul_(lines[1])
    return room.sums[problem.variables :]


def _multiply(problem: CovDescriptor, room: Any) -> None:
    scaled = torch.mul(room.rows, room.weights, out=room.scaled) if problem.is_weighted else room.rows
    torch.mm(scaled, room.rows.t(), out=room.product)


def _lengths(room: Any) -> Any:
    """The roots of the sums of squares."""
    return torch.sqrt(room.product.diagonal(), out=room.lengths)


def _through_lengths(problem: CovBackwardDescriptor, room: Any) -> None:
    """Slopes of correlations become those of products. A longer row has smaller correlations, and that of a row with itself stays 1."""
    _multiply(problem, room)
    slopes, lengths = room.slopes, _lengths(room)
    slopes.diagonal().zero_()
    slopes.div_(lengths[:, None]).div_(lengths)
    torch.mv(room.product.mul_(slopes), room.ones.fill_(1), out=room.sums[: problem.variables])
    slopes.diagonal().copy_(room.sums[: problem.variables].div_(lengths).div_(lengths).neg_())


def _matrix(tensor: Any) -> Any:
    """One variable is a matrix of one row."""
    return tensor[(None,) * (2 - tensor.dim())]


def _bound(problem: CovDescriptor, pieces: Pieces, compute: Callable[..., None]) -> Bind:
    """Binds a function of the operands and the pieces of the workspace, as tensors by name."""
    starts, size = places(problem, pieces)
    dtype, width = DTYPES[problem.element.accumulator], problem.element.accumulator.size

    @functools.lru_cache(maxsize=16)  # memory is often lent again
    def room(address: int, device: Device) -> Any:
        with torch.inference_mode(False):  # which would not let them be used outside of it
            whole = bytes_at(address + -address % LINE, size, device).view(dtype)
            tensors = {name: whole[starts[name] // width :][: math.prod(shape)].view(shape) for name, shape in pieces.items()}
            return SimpleNamespace(**tensors, rows=tensors["table"][: problem.variables])

    def bind(layouts: Any) -> Launch:
        def launch(addresses: tuple[int, ...], workspace: int, stream: Stream) -> None:
            with exactly_on(stream):
                compute(room(workspace, stream.device), *as_torch(addresses, layouts))

        return launch

    return bind
