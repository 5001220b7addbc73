"""Small native kernels over one array, for tests of what bodies are written in."""

from __future__ import annotations

from ctypes import addressof
from typing import Any

import numpy

from baracuda_kernels.targets.cpu.runtime.native import build
from baracuda_kernels.targets.geometry import as_words


def map_body(function: str, source: str, target: str, conversion: str) -> Any:
    """y = function(x), sixteen at a time; `conversion` says how f16 is converted."""
    from baracuda_kernels.targets.cpu import float16
    from baracuda_kernels.targets.cpu.vectors import simd, tasks, vmath

    float16.force_integer_f16(conversion == "integer")
    if function == "copy":

        @simd.inline
        def apply(v: Any) -> Any:
            return v

    else:
        apply = getattr(vmath, function)

    def body(words, counter, x, y):  # type: ignore[no-untyped-def]
        count = words[0]
        i = 0
        while i + simd.LANES <= count:
            simd.store(y, i, 1, apply(simd.load(x, i, 1)))
            i += simd.LANES
        if i < count:
            simd.store_part(y, i, 1, apply(simd.load_part(x, i, 1, count - i)), count - i)

    return body, (tasks.words, tasks.words, simd.pointer_to(source), simd.pointer_to(target))


def scale_body(element: str, streamed: str) -> Any:
    """y = x · 1.1 in pairs of vectors."""
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    put_pair = simd.stream_pair if streamed == "streamed" else simd.store_pair

    def body(words, counter, x, y):  # type: ignore[no-untyped-def]
        for i in range(0, words[0], 2 * simd.LANES):
            a, b = simd.load_pair(x, i)
            put_pair(y, i, a * 1.1, b * 1.1)

    return body, (tasks.words, tasks.words, simd.pointer_to(element), simd.pointer_to(element))


def scaled(x: numpy.ndarray, y: numpy.ndarray, element: str, streamed: str) -> None:
    words = as_words([x.size])
    build(scale_body, 2, element, streamed)(addressof(words), None, x.ctypes.data, y.ctypes.data)


def mapped(function: str, x: numpy.ndarray, source: str, target: str, dtype: Any, conversion: str = "processor") -> numpy.ndarray:
    y = numpy.zeros(x.shape, dtype)
    native = build(map_body, 2, function, source, target, conversion)
    words = as_words([x.size])
    native(addressof(words), None, x.ctypes.data, y.ctypes.data)
    if conversion == "integer":
        from baracuda_kernels.targets.cpu import float16

        float16.force_integer_f16(False)
    return y
