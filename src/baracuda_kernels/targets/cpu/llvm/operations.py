"""What each operation of a formula is in LLVM, on vectors of numbers."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.formula.expression import Expr, Program, in_order, input_of
from baracuda_kernels.formula.functions.elementary import exp2_by_operations, log2_by_operations
from baracuda_kernels.targets.cpu import float16

__all__ = ["OPERATIONS", "Emitter", "computed", "operations_of", "stored_type"]

_REGISTERS = {
    ElementKind.F32: ir.FloatType(), ElementKind.F64: ir.DoubleType(), ElementKind.BOOL: ir.IntType(1), ElementKind.I8: ir.IntType(8),
    ElementKind.I16: ir.IntType(16), ElementKind.I32: ir.IntType(32), ElementKind.I64: ir.IntType(64), ElementKind.U8: ir.IntType(8),
}  # fmt: skip


def stored_type(element: ElementKind) -> ir.Type:
    """What an element is in memory."""
    if element.is_float and element.size == 2:
        return ir.IntType(16)
    return ir.IntType(8) if element is ElementKind.BOOL else _REGISTERS[element]


class Emitter:
    """Writes the operations of a formula on `lanes` numbers at a time."""

    def __init__(self, builder: ir.IRBuilder, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes

    def vector(self, scalar: ir.Type) -> ir.VectorType:
        return ir.VectorType(scalar, self.lanes)

    def register(self, element: ElementKind) -> ir.VectorType:
        return self.vector(_REGISTERS[element])

    def constant(self, value: float | int, element: ElementKind) -> ir.Constant:
        return ir.Constant(self.register(element), [value] * self.lanes)

    def splat(self, value: ir.Value) -> ir.Value:
        kind, first = self.vector(value.type), ir.Constant(ir.IntType(32), 0)
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), value, first)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

    def loaded(self, raw: ir.Value, element: ElementKind) -> ir.Value:
        """Stored elements as they are computed with."""
        if element.is_float and element.size == 2:
            return float16.widen(self.builder, element.value, raw)
        if element is ElementKind.BOOL:
            return self.builder.icmp_unsigned("!=", raw, ir.Constant(raw.type, [0] * self.lanes))
        return raw

    def stored(self, value: ir.Value, element: ElementKind) -> ir.Value:
        """What is written of numbers that are computed in the element's register."""
        if element.is_float and element.size == 2:
            return float16.narrow(self.builder, element.value, value)
        return self.builder.zext(value, self.vector(ir.IntType(8))) if element is ElementKind.BOOL else value

    def intrinsic(self, name: str, result: ir.Type, *args: ir.Value) -> ir.Value:
        """A call of LLVM's own function of that name for such vectors."""
        overloaded = ".".join(_suffix(kind) for kind in dict.fromkeys((result, *(arg.type for arg in args[:1]))))
        kind = ir.FunctionType(result, [arg.type for arg in args])
        return self.builder.call(self.builder.module.declare_intrinsic(f"llvm.{name}.{overloaded}", fnty=kind), args)

    def emit(self, here: Expr, args: list[ir.Value]) -> ir.Value:
        return OPERATIONS[here.operation](self, here, *args)


def _suffix(kind: ir.Type) -> str:
    scalar = {"float": "f32", "double": "f64"}.get(str(kind.element), str(kind.element))
    return f"v{kind.count}{scalar}"


def _is_float(here: Expr) -> bool:
    return here.args[0].element.is_float


def _is_unsigned(here: Expr) -> bool:
    return here.args[0].element in (ElementKind.U8, ElementKind.BOOL)


def _arithmetic(name: str) -> Callable[..., ir.Value]:
    return lambda e, here, *args: getattr(e.builder, "f" + name if _is_float(here) else name)(*args)


def _comparison(sign: str) -> Callable[..., ir.Value]:
    def emit(e: Emitter, here: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
        if _is_float(here):
            return e.builder.fcmp_unordered(sign, a, b) if sign == "!=" else e.builder.fcmp_ordered(sign, a, b)
        return (e.builder.icmp_unsigned if _is_unsigned(here) else e.builder.icmp_signed)(sign, a, b)

    return emit


def _same_kind(name: str) -> Callable[..., ir.Value]:
    return lambda e, here, *args: e.intrinsic(name, args[0].type, *args)


def _absolute(e: Emitter, here: Expr, x: ir.Value) -> ir.Value:
    if _is_float(here):
        return e.intrinsic("fabs", x.type, x)
    if _is_unsigned(here):
        return x
    return e.builder.select(e.builder.icmp_signed("<", x, ir.Constant(x.type, [0] * e.lanes)), e.builder.neg(x), x)


def _shift(name: str, unsigned: str) -> Callable[..., ir.Value]:
    def emit(e: Emitter, here: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
        # LLVM leaves a shift by all bits or more undefined, in ways that could spoil more than this number.
        count = e.builder.and_(b, ir.Constant(b.type, [b.type.element.width - 1] * e.lanes))
        return getattr(e.builder, unsigned if _is_unsigned(here) else name)(a, count)

    return emit


def _divided(gives_remainder: bool) -> Callable[..., ir.Value]:
    def emit(e: Emitter, here: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
        """A processor stops at a division by zero, and at the one quotient that does not fit."""
        zero, one, minus = (ir.Constant(a.type, [number] * e.lanes) for number in (0, 1, -1))
        is_zero = e.builder.icmp_signed("==", b, zero)
        if _is_unsigned(here):
            return (e.builder.urem if gives_remainder else e.builder.udiv)(a, e.builder.select(is_zero, one, b))
        negates = e.builder.icmp_signed("==", b, minus)
        safe = e.builder.select(e.builder.or_(is_zero, negates), one, b)
        if gives_remainder:
            return e.builder.srem(a, safe)
        return e.builder.select(negates, e.builder.neg(a), e.builder.sdiv(a, safe))

    return emit


def _mul_high(e: Emitter, here: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
    width = a.type.element.width
    wide = e.vector(ir.IntType(2 * width))
    widen = e.builder.zext if _is_unsigned(here) else e.builder.sext
    product = e.builder.mul(widen(a, wide), widen(b, wide))
    return e.builder.trunc(e.builder.lshr(product, ir.Constant(wide, [width] * e.lanes)), a.type)


def _convert(e: Emitter, here: Expr, x: ir.Value) -> ir.Value:
    target, (source,) = e.register(here.element), here.args
    if source.element.is_float and here.element.is_float:
        return (e.builder.fpext if here.element.size > source.element.size else e.builder.fptrunc)(x, target)
    if source.element.is_float:
        return _saturated(e, source.element, here.element, x)
    if here.element.is_float:
        return (e.builder.uitofp if _is_unsigned(here) else e.builder.sitofp)(x, target)
    before, after = x.type.element.width, target.element.width
    if before == after:
        return x
    if after < before:
        return e.builder.trunc(x, target)
    return (e.builder.zext if _is_unsigned(here) else e.builder.sext)(x, target)


def _saturated(e: Emitter, source: ElementKind, element: ElementKind, x: ir.Value) -> ir.Value:
    """The bits of `fptosi.sat`, of which LLVM makes one number at a time: first those that fit, then the others."""
    low, high = LIMITS[element]
    least, past, zero = (e.constant(float(number), source) for number in (low, high + 1, 0))
    fits = e.builder.and_(e.builder.fcmp_ordered(">=", x, least), e.builder.fcmp_ordered("<", x, past))
    wide = e.vector(ir.IntType(max(32, 8 * element.size)))
    whole = e.builder.fptosi(e.builder.select(fits, x, zero), wide)
    whole = whole if wide == e.register(element) else e.builder.trunc(whole, e.register(element))
    below = e.builder.select(e.builder.fcmp_ordered("<", x, least), e.constant(low, element), e.constant(0, element))
    beyond = e.builder.select(e.builder.fcmp_ordered(">=", x, past), e.constant(high, element), below)
    return e.builder.select(fits, whole, beyond)


_X = input_of(0, ElementKind.F32)
_BY_OPERATIONS = {"exp2_roughly": exp2_by_operations(_X), "log2_roughly": log2_by_operations(_X)}  # for want of an instruction


def _by_operations(e: Emitter, here: Expr, x: ir.Value) -> ir.Value:
    result = _BY_OPERATIONS[here.operation]
    return computed(e, in_order((result,)), [x], [])[result]


def operations_of(program: Program) -> int:
    """How many there are, those of which no instruction is made counted by what they come to."""
    lengths = {name: len(in_order((result,))) for name, result in _BY_OPERATIONS.items()}
    return sum(lengths.get(here.operation, 1) for here in in_order(program.results))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _arithmetic("add"),
    "sub": _arithmetic("sub"),
    "mul": _arithmetic("mul"),
    "neg": _arithmetic("neg"),
    "absolute": _absolute,
    "div": lambda e, here, a, b: e.builder.fdiv(a, b),
    "div_roughly": lambda e, here, a, b: e.builder.fdiv(a, b),
    "reciprocal": lambda e, here, x: e.builder.fdiv(e.constant(1.0, here.element), x),
    "exp2_roughly": _by_operations,
    "log2_roughly": _by_operations,
    "rsqrt_roughly": lambda e, here, x: e.builder.fdiv(e.constant(1.0, here.element), e.intrinsic("sqrt", x.type, x)),
    "fma": _same_kind("fma"),
    "sqrt": _same_kind("sqrt"),
    "sqrt_roughly": _same_kind("sqrt"),
    "floor": _same_kind("floor"),
    "ceil": _same_kind("ceil"),
    "trunc": _same_kind("trunc"),
    "rint": _same_kind("roundeven"),
    "lt": _comparison("<"),
    "le": _comparison("<="),
    "eq": _comparison("=="),
    "ne": _comparison("!="),
    "bit_and": lambda e, here, a, b: e.builder.and_(a, b),
    "bit_or": lambda e, here, a, b: e.builder.or_(a, b),
    "bit_xor": lambda e, here, a, b: e.builder.xor(a, b),
    "bit_not": lambda e, here, x: e.builder.not_(x),
    "shl": _shift("shl", "shl"),
    "shr": _shift("ashr", "lshr"),
    "shr_logical": _shift("lshr", "lshr"),
    "quotient": _divided(gives_remainder=False),
    "remainder": _divided(gives_remainder=True),
    "mul_high": _mul_high,
    "popcount": _same_kind("ctpop"),
    "clz": lambda e, here, x: e.intrinsic("ctlz", x.type, x, ir.Constant(ir.IntType(1), 0)),
    "where": lambda e, here, c, a, b: e.builder.select(c, a, b),
    "rarely": lambda e, here, c, a, b: e.builder.select(c, a, b),
    "convert": _convert,
    "bitcast": lambda e, here, x: e.builder.bitcast(x, e.register(here.element)),
}


def computed(e: Emitter, order: list[Expr], inputs: list[ir.Value], parameters: list[ir.Value]) -> dict[Expr, ir.Value]:
    """Every number of a formula, from those of its operands and parameters."""
    values: dict[Expr, ir.Value] = {}
    for here in order:
        if here.operation == "constant":
            assert here.value is not None
            values[here] = e.constant(here.value, here.element)
        elif here.operation == "input":
            values[here] = inputs[int(here.value or 0)]
        elif here.operation == "parameter":
            values[here] = parameters[int(here.value or 0)]
        else:
            values[here] = e.emit(here, [values[arg] for arg in here.args])
    return values
