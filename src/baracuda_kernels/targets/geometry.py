"""The geometry of a problem's operands, as the int64 words that a native body reads.

A `Dim` is an extent with one step per operand, in elements. `collapse` turns a shape into as few dims as the operands allow, in any order;
`merged` does where the order of elements is that of their indices, as along a reduced axis; `dim_words` writes them down for `tasks.locate`, which finds a row's offsets inside a body.
"""

from collections.abc import Collection, Iterable, Sequence
from ctypes import c_int64
from typing import Any, NamedTuple

__all__ = [
    "Dim",
    "as_words",
    "collapse",
    "dim_of",
    "dim_words",
    "is_contiguous",
    "is_contiguous_or_broadcast",
    "kept_axes",
    "merged",
]


class Dim(NamedTuple):
    """`extent` positions; from one to the next, operand i moves by `steps[i]` elements."""

    extent: int
    steps: tuple[int, ...]


def dim_of(shape: Sequence[int], strides: Sequence[Sequence[int]], axis: int) -> Dim:
    """One axis of operands that share `shape`; on an axis of size 1 strides mean nothing and are taken as 1."""
    extent = shape[axis]
    return Dim(extent, tuple(stride[axis] if extent > 1 else 1 for stride in strides))


def collapse(shape: Sequence[int], strides: Sequence[Sequence[int]], without: Iterable[int] = ()) -> list[Dim]:
    """The axes of `shape` but those in `without` as few dims: far steps of the last operand first, neighbours merged."""
    skipped = set(without)
    dims = [dim_of(shape, strides, axis) for axis in range(len(shape)) if axis not in skipped and shape[axis] != 1]
    dims.sort(key=lambda dim: [-abs(step) for step in reversed(dim.steps)])
    merged: list[Dim] = []
    for dim in dims:
        if merged and all(outer == dim.extent * inner for outer, inner in zip(merged[-1].steps, dim.steps, strict=True)):
            merged[-1] = Dim(merged[-1].extent * dim.extent, dim.steps)
        else:
            merged.append(dim)
    return merged


def merged(shape: Sequence[int], strides: Sequence[Sequence[int]], axes: Iterable[int] | None = None) -> list[Dim]:
    """Some or all axes in their order, at least one, neighbours merged where every operand allows it: none is moved."""
    dims: list[Dim] = []
    for axis in range(len(shape)) if axes is None else sorted(axes):
        if shape[axis] == 1:
            continue
        dim = Dim(shape[axis], tuple(stride[axis] for stride in strides))
        if dims and all(outer == dim.extent * inner for outer, inner in zip(dims[-1].steps, dim.steps, strict=True)):
            dims[-1] = Dim(dims[-1].extent * dim.extent, dim.steps)
        else:
            dims.append(dim)
    return dims or [Dim(1, (1,) * len(strides))]


def kept_axes(numbers: Sequence[int], axes: Collection[int]) -> list[int]:
    """Of a number for each axis, extents or strides, those of the axes that are not reduced."""
    return [number for axis, number in enumerate(numbers) if axis not in axes]


def is_contiguous(dim: Dim) -> bool:
    """Whether every operand moves by one element."""
    return all(step == 1 for step in dim.steps)


def is_contiguous_or_broadcast(steps: Sequence[int]) -> bool:
    """Whether every operand moves by one element or not at all, and at least one moves."""
    return 1 in steps and all(step in (0, 1) for step in steps)


def dim_words(dims: Sequence[Dim]) -> list[int]:
    """The dims as `tasks.locate` reads them: their number, then of each the extent and the steps."""
    return [len(dims), *(word for dim in dims for word in (dim.extent, *dim.steps))]


def as_words(numbers: Sequence[int]) -> Any:
    """The words of a launch as a ctypes array; it must live as long as the launches that use its address."""
    return (c_int64 * len(numbers))(*numbers)
