"""The dtypes of operands."""

from __future__ import annotations

from enum import Enum


class ElementKind(Enum):
    """The dtype of an operand. The value is the short name used on the command line and in reports."""

    F32 = "f32"
    F64 = "f64"
    F16 = "f16"
    BF16 = "bf16"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    BOOL = "bool"
    C64 = "c64"
    C128 = "c128"

    size: int  # bytes
    accumulator: ElementKind  # what sums of it are taken in, unless a kernel says otherwise
    framework_name: str  # as PyTorch and NumPy call it: "bfloat16"
    part: ElementKind  # of a complex number what its real and its imaginary part are, side by side; else itself

    @property
    def is_float(self) -> bool:
        """Whether it is a real floating-point number."""
        return self in FLOATS

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex number."""
        return self.part is not self

    @classmethod
    def of(cls, dtype: object) -> ElementKind:
        """The element of a framework's dtype, or of a name such as "bf16" or "bfloat16". Raises `ValueError` for others."""
        if isinstance(dtype, cls):
            return dtype
        # Frameworks spell the same names: torch.bfloat16, dtype('bfloat16'), <class 'numpy.float32'>.
        name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
        kind = _BY_NAME.get(str(name).removeprefix("torch."))
        if kind is None:
            raise ValueError(f"no dtype corresponds to {dtype!r}; known are {', '.join(k.value for k in cls)}")
        return kind

    def __str__(self) -> str:
        return str(self.value)


_SIZES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "bool": 1, "c64": 8, "c128": 16}
_ACCUMULATORS = {"f16": "f32", "bf16": "f32", "i8": "i64", "i16": "i64", "i32": "i64", "u8": "i64", "bool": "i64"}
_PARTS = {"c64": "f32", "c128": "f64"}
for _kind in ElementKind:
    _kind.size = _SIZES[_kind.value]
    _kind.part = ElementKind(_PARTS.get(_kind.value, _kind.value))
    _kind.accumulator = ElementKind(_ACCUMULATORS.get(_kind.value, _kind.value))

LIMITS = {  # the least and the largest integer of each element
    ElementKind.I8: (-(1 << 7), (1 << 7) - 1),
    ElementKind.I16: (-(1 << 15), (1 << 15) - 1),
    ElementKind.I32: (-(1 << 31), (1 << 31) - 1),
    ElementKind.I64: (-(1 << 63), (1 << 63) - 1),
    ElementKind.U8: (0, (1 << 8) - 1),
}

FLOATS = (ElementKind.F32, ElementKind.F64, ElementKind.F16, ElementKind.BF16)

_LONG_NAMES = {
    "float32": "f32", "float": "f32", "float64": "f64", "double": "f64", "float16": "f16", "half": "f16", "bfloat16": "bf16",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "bool_": "bool",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip
for _long, _short in reversed(_LONG_NAMES.items()):
    ElementKind(_short).framework_name = _long.rstrip("_")
_BY_NAME = {kind.value: kind for kind in ElementKind} | {long: ElementKind(short) for long, short in _LONG_NAMES.items()}
