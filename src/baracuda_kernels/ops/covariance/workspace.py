"""What a workspace holds: numbers of the element that sums are taken in, each piece from a cache line on."""

from __future__ import annotations

import math

from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.workspace import ALIGNMENT
from baracuda_kernels.ops.covariance.descriptor import CovBackwardDescriptor, CovDescriptor

LINE = 64  # bytes; what a product makes of its operands may depend on where in a line they begin

Pieces = dict[str, Shape]


def forward_pieces(problem: CovDescriptor) -> Pieces:
    rows, columns = problem.variables, problem.observations
    beside = len(totals(problem))
    return {
        "table": (rows + beside, columns),  # the variables, and what else is summed over the observations
        "weights": (columns,),
        "sums": (rows + beside,),
        "scaled": (rows if problem.is_weighted else 0, columns),
        "product": (rows, rows),
        "lengths": (rows,),
    }


def backward_pieces(problem: CovBackwardDescriptor) -> Pieces:
    rows, columns = problem.variables, problem.observations
    return forward_pieces(problem) | {"scaled": (rows, columns), "slopes": (rows, rows), "ones": (rows,)}


def totals(problem: CovDescriptor) -> tuple[str, ...]:
    """Sums over observations that only the device knows: of weights, and of their products with aweights."""
    return ("weights", "aweights")[: problem.is_weighted + problem.has_aweights]


def places(problem: CovDescriptor, pieces: Pieces) -> tuple[dict[str, int], int]:
    """Where each piece begins, in bytes from the first cache line on, and where the last one ends."""
    size, end, found = problem.element.accumulator.size, 0, {}
    for name, shape in pieces.items():
        found[name] = end
        end += -(-size * math.prod(shape) // LINE) * LINE
    return found, max(end, LINE)  # PyTorch sees no memory without bytes


def _bytes(problem: CovDescriptor, pieces: Pieces) -> int:
    return places(problem, pieces)[1] + LINE - ALIGNMENT


def forward_bytes(problem: CovDescriptor) -> int:
    """Centred rows, their products, and weighted rows."""
    return _bytes(problem, forward_pieces(problem))


def backward_bytes(problem: CovBackwardDescriptor) -> int:
    """Centred rows, their gradients, and two squares."""
    return _bytes(problem, backward_pieces(problem))
