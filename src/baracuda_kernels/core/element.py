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
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F8E4M3FN = "f8e4m3fn"
    F8E5M2 = "f8e5m2"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E5M2FNUZ = "f8e5m2fnuz"

    size: int  # bytes
    accumulator: ElementKind  # what sums of it are taken in, unless a kernel says otherwise
    framework_name: str  # as PyTorch and NumPy call it: "bfloat16"
    part: ElementKind  # of a complex number what its real and its imaginary part are, side by side; else itself
    word: ElementKind  # as what kernels read and write it: floats of 8 bits as u8, which formulas make numbers of
    is_numpys: bool  # whether NumPy has it itself; the others are ml_dtypes'

    @property
    def is_float(self) -> bool:
        """Whether it is a real floating-point number."""
        return self in FLOATS or self in FLOATS8

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex number."""
        return self.part is not self

    @property
    def is_unsigned(self) -> bool:
        """Whether it is a number that is never negative."""
        return self in UNSIGNED or self is ElementKind.BOOL

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


_SIZES = {
    "f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "bool": 1, "c64": 8, "c128": 16, "u16": 2,
    "u32": 4, "u64": 8, "f8e4m3fn": 1, "f8e5m2": 1, "f8e4m3fnuz": 1, "f8e5m2fnuz": 1,
}  # fmt: skip
_ACCUMULATORS = {
    **dict.fromkeys(("f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"), "f32"),
    **dict.fromkeys(("i8", "i16", "i32", "u8", "bool", "u16", "u32", "u64"), "i64"),
}
_PARTS = {"c64": "f32", "c128": "f64"}
for _kind in ElementKind:
    _kind.size = _SIZES[_kind.value]
    _kind.part = ElementKind(_PARTS.get(_kind.value, _kind.value))
    _kind.accumulator = ElementKind(_ACCUMULATORS.get(_kind.value, _kind.value))
    _kind.word = ElementKind("u8" if _kind.value.startswith("f8") else _kind.value)
    _kind.is_numpys = not _kind.value.startswith(("bf", "f8"))

LIMITS = {  # the least and the largest integer of each element
    ElementKind.I8: (-(1 << 7), (1 << 7) - 1),
    ElementKind.I16: (-(1 << 15), (1 << 15) - 1),
    ElementKind.I32: (-(1 << 31), (1 << 31) - 1),
    ElementKind.I64: (-(1 << 63), (1 << 63) - 1),
    ElementKind.U8: (0, (1 << 8) - 1),
    ElementKind.U16: (0, (1 << 16) - 1),
    ElementKind.U32: (0, (1 << 32) - 1),
    ElementKind.U64: (0, (1 << 64) - 1),
}

COMPLEXES = (ElementKind.C64, ElementKind.C128)
FLOATS = (ElementKind.F32, ElementKind.F64, ElementKind.F16, ElementKind.BF16)
FLOATS8 = (ElementKind.F8E4M3FN, ElementKind.F8E5M2, ElementKind.F8E4M3FNUZ, ElementKind.F8E5M2FNUZ)
UNSIGNED = (ElementKind.U8, ElementKind.U16, ElementKind.U32, ElementKind.U64)

_LONG_NAMES = {
    "float32": "f32", "float": "f32", "float64": "f64", "double": "f64", "float16": "f16", "half": "f16", "bfloat16": "bf16",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "bool_": "bool",
    "complex64": "c64", "complex128": "c128", "uint16": "u16", "uint32": "u32", "uint64": "u64", "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2", "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz",
}  # fmt: skip
for _long, _short in reversed(_LONG_NAMES.items()):
    ElementKind(_short).framework_name = _long.rstrip("_")
_BY_NAME = {kind.value: kind for kind in ElementKind} | {long: ElementKind(short) for long, short in _LONG_NAMES.items()}
