"""The operands of one launch, each declared once: shape, element, access, presence, layout, in-place partners, a line of doc.

class SoftmaxArgs(Args):
    x: TensorRef = read("input_shape", "the logits")
    y: TensorMut = write("input_shape", "the probabilities", may_be=("x",))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Self

from baracuda_kernels.core.arrays import glance
from baracuda_kernels.core.descriptor import Descriptor, element_of
from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.layout import Layout, Shape, row_major
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.tensor import TensorMut, TensorRef

__all__ = ["Access", "Args", "LayoutRule", "Operand", "contiguous", "read", "scratch", "unit_last_axis", "write"]

LayoutRule = Callable[[str, Layout], Iterator[Reason]]


class Access(Enum):
    READ = "read"
    WRITE = "write"
    SCRATCH = "scratch"


@dataclass(frozen=True)
class Operand:
    """One operand's declaration. Rules given as a name are looked up on the descriptor."""

    name: str
    access: Access
    doc: str
    shape_rule: str | tuple[str, ...]
    element_rule: str | ElementKind
    present_rule: str | bool
    layout_rule: LayoutRule | None
    may_be: tuple[str, ...]
    shared_axes: tuple[int, ...]
    broadcasts: bool  # whether functions take smaller arrays for it
    scalar: str | None  # the descriptor's field that has its number, where functions take one instead of an array

    @property
    def writes(self) -> bool:
        return self.access is not Access.READ

    @property
    def view(self) -> type[TensorRef]:
        return TensorMut if self.writes else TensorRef

    def shapes(self, descriptor: Descriptor) -> tuple[Shape, ...]:
        """The shapes it may have; most operands have just one."""
        names = (self.shape_rule,) if isinstance(self.shape_rule, str) else self.shape_rule
        return tuple(getattr(descriptor, name) for name in names)

    def element(self, descriptor: Descriptor) -> ElementKind:
        if isinstance(self.element_rule, ElementKind):
            return self.element_rule
        element = getattr(descriptor, self.element_rule)
        return element_of(descriptor) if element is None else element

    def presence(self, descriptor: Descriptor) -> bool | None:
        """True where it must be given, False where it must not, None where the caller may choose."""
        if isinstance(self.present_rule, str):
            return bool(getattr(descriptor, self.present_rule))
        return True if self.present_rule else None

    def is_given(self, descriptor: Descriptor, with_optional: bool) -> bool:
        """Whether it is given in a call with all, or with none, of the optional operands."""
        presence = self.presence(descriptor)
        return with_optional if presence is None else presence

    def size(self, descriptor: Descriptor) -> int:
        """Bytes of the data it stands for."""
        count = 1
        for extent in self.shapes(descriptor)[0]:
            count *= extent
        return count * self.element(descriptor).size

    def contiguous_layout(self, descriptor: Descriptor, device: Device) -> Layout:
        """The layout of an array made for it."""
        shape = self.shapes(descriptor)[0]
        return Layout.of(self.element(descriptor), shape, row_major(shape), device)

    def reasons_against(self, descriptor: Descriptor, layout: Layout | None, device: Any) -> Iterator[Reason]:
        presence = self.presence(descriptor)
        if layout is None:
            if presence:
                yield Reason(ReasonCode.MISSING_OPERAND, self.name, None, f"an array: {self.doc}")
            return
        if presence is False:
            yield Reason(ReasonCode.UNEXPECTED_OPERAND, self.name, repr(layout), f"None, since {self.present_rule} is False")
            return
        shapes = self.shapes(descriptor)
        if layout.shape not in shapes:
            yield Reason(ReasonCode.SHAPE, self.name, layout.shape, " or ".join(map(str, shapes)))
        element = self.element(descriptor)
        if layout.element is not element:
            yield Reason(ReasonCode.ELEMENT, self.name, layout.element, element)
        if layout.device != device:
            yield Reason(ReasonCode.DEVICE, self.name, layout.device, device)
        if layout.misalignment:
            got = f"an address {layout.misalignment} bytes off"
            yield Reason(ReasonCode.MISALIGNED, self.name, got, f"a multiple of the element's {layout.element.size} bytes")
        if self.layout_rule is not None:
            yield from self.layout_rule(self.name, layout)


def _declare(
    access: Access,
    shape: str | tuple[str, ...],
    doc: str,
    *,
    element: str | ElementKind = "element",
    present: str | bool = True,
    layout: LayoutRule | None = None,
    may_be: tuple[str, ...] = (),
    shared_axes: tuple[int, ...] = (),
    broadcasts: bool = False,
    scalar: str | None = None,
) -> Any:
    return Operand("", access, doc, shape, element, present, layout, may_be, shared_axes, broadcasts, scalar)


def read(shape: str | tuple[str, ...], doc: str, **rules: Any) -> Any:
    """An input. `shape` names a descriptor attribute (or several, any of which will do), as does `element`; `present` names a
    flag that decides whether it must be there, or is False where it may always be left out; `layout` is a rule on strides; functions
    take an array of any shape that `broadcasts` to its own, a plan only a view that has that shape; `scalar` names the field that
    has the number for which there is no array."""
    return _declare(Access.READ, shape, doc, **rules)


def write(shape: str | tuple[str, ...], doc: str, **rules: Any) -> Any:
    """An output: every element is written. `may_be` names the inputs it may be, exactly, to work in place; along `shared_axes` it
    may have stride 0, and all positions then share one slot."""
    return _declare(Access.WRITE, shape, doc, **rules)


def scratch(shape: str | tuple[str, ...], doc: str, **rules: Any) -> Any:
    """Memory the caller lends by name; what it holds afterwards means nothing."""
    return _declare(Access.SCRATCH, shape, doc, **rules)


def unit_last_axis(name: str, layout: Layout) -> Iterator[Reason]:
    """The last axis is contiguous. Of an array without elements strides mean nothing."""
    if layout.count and layout.shape and layout.shape[-1] > 1 and layout.stride[-1] != 1:
        yield Reason(ReasonCode.STRIDE, name, f"stride {layout.stride[-1]} on the last axis", "stride 1")


def contiguous(name: str, layout: Layout) -> Iterator[Reason]:
    """Row-major without gaps; any other layout is `Unsupported`."""
    if not layout.is_contiguous:
        yield Reason(ReasonCode.LAYOUT, name, f"shape {layout.shape} with stride {layout.stride}", "a contiguous array")


def _nth_operand(position: int) -> Callable[[Args], TensorRef | None]:
    return lambda args: args.operands[position]


_new = object.__new__


class Args:
    """Base of all args. Operands are given by keyword, as arrays of any DLPack framework or as views, and wrapped here."""

    OPERANDS: ClassVar[tuple[Operand, ...]] = ()
    _NAMED: ClassVar[tuple[tuple[str, bool, Operand], ...]] = ()  # name, writes, operand: what construction looks at

    __slots__ = ("_sources", "_views", "addresses", "layouts", "ready")

    _sources: Sequence[Any]  # the arrays, or views of them
    layouts: tuple[Layout | None, ...]
    addresses: tuple[int, ...]
    ready: tuple[object, Any] | None  # the plan that accepted these views and its launch, so that a repeated run need not ask again

    def __init_subclass__(cls) -> None:
        declared = [(name, value) for name, value in vars(cls).items() if isinstance(value, Operand)]
        cls.OPERANDS = tuple(replace(value, name=name) for name, value in declared)
        cls._NAMED = tuple((operand.name, operand.writes, operand) for operand in cls.OPERANDS)
        for position, operand in enumerate(cls.OPERANDS):
            setattr(cls, operand.name, property(_nth_operand(position), doc=operand.doc))

    def __init__(self, **given: Any) -> None:
        sources, layouts, addresses = [], [], []
        reasons: list[Reason] = []
        absent = 0
        for name, writes, operand in self._NAMED:
            array = given.get(name)
            if array is None:
                absent += name not in given
                address, layout, source = 0, None, None
            else:
                # What is plainly fine takes the short way; the long one finds every reason.
                seen = glance(array)
                if seen is not None and (not writes or (seen[2] and seen[1].self_overlap is False)):
                    address, layout, _, source = seen
                else:
                    against, source = operand.view.examine(array, name, operand.shared_axes)
                    reasons += against
                    address, layout = (0, None) if source is None else (source.address, source.layout)
            sources.append(source)
            layouts.append(layout)
            addresses.append(address)
        if len(given) + absent != len(sources):
            reasons += self._reasons_against_unknown(given)
        if reasons:
            raise rejection(type(self).__name__, reasons)
        self._sources = sources
        self._views: tuple[TensorRef | None, ...] | None = None
        self.layouts = tuple(layouts)
        self.addresses = tuple(addresses)
        self.ready = None

    @classmethod
    def over(cls, sources: Sequence[Any], layouts: tuple[Layout | None, ...], addresses: tuple[int, ...]) -> Self:
        """Operands whose views are known to be fine, in the order of declaration."""
        args = _new(cls)
        args._sources, args._views = sources, None
        args.layouts, args.addresses, args.ready = layouts, addresses, None
        return args

    @classmethod
    def _reasons_against_unknown(cls, given: dict[str, Any]) -> Iterator[Reason]:
        names = [operand.name for operand in cls.OPERANDS]
        for name in given:
            if name not in names:
                yield Reason(ReasonCode.UNKNOWN_OPERAND, name, name, f"one of {', '.join(names)}")

    @property
    def operands(self) -> tuple[TensorRef | None, ...]:
        """The views, in the order of declaration."""
        if self._views is None:
            everything = zip(self.OPERANDS, self._sources, self.addresses, self.layouts, strict=True)
            self._views = tuple(
                source if isinstance(source, TensorRef) or layout is None else operand.view.over(address, layout, source)
                for operand, source, address, layout in everything
            )
        return self._views

    def __repr__(self) -> str:
        pairs = zip(self.OPERANDS, self.operands, strict=True)
        return f"{type(self).__name__}({', '.join(f'{operand.name}={value!r}' for operand, value in pairs)})"
