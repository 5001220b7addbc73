"""Orthogonal polynomials, of two operands: where, and of which order."""

from __future__ import annotations

from baracuda_kernels.formula.functions.polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

__all__ = ["ROWS"]

ORDER = (-1.0, 9.0)
ROWS = tuple(
    ElementwiseRow(each.name, each, f"{says} of order n, truncated to an integer, at x; 0 for a negative one.", domain=(within, ORDER),
        operands=("input", "n"), differentiable=False)
    for each, says, within in (
        (chebyshev_polynomial_t, "The Chebyshev polynomial of the first kind", (1.0, 3.0)),
        (chebyshev_polynomial_u, "The Chebyshev polynomial of the second kind", (1.0, 3.0)),
        (chebyshev_polynomial_v, "The Chebyshev polynomial of the third kind", (-3.0, -1.0)),
        (chebyshev_polynomial_w, "The Chebyshev polynomial of the fourth kind", (1.0, 3.0)),
        (shifted_chebyshev_polynomial_t, "The Chebyshev polynomial of the first kind of 2 x - 1", (1.0, 2.0)),
        (shifted_chebyshev_polynomial_u, "The Chebyshev polynomial of the second kind of 2 x - 1", (1.0, 2.0)),
        (shifted_chebyshev_polynomial_v, "The Chebyshev polynomial of the third kind of 2 x - 1", (-1.0, 0.0)),
        (shifted_chebyshev_polynomial_w, "The Chebyshev polynomial of the fourth kind of 2 x - 1", (1.0, 2.0)),
        (hermite_polynomial_h, "The physicist's Hermite polynomial", (-8.0, -4.0)),
        (hermite_polynomial_he, "The probabilist's Hermite polynomial", (-9.0, -6.0)),
        (laguerre_polynomial_l, "The Laguerre polynomial", (-4.0, 0.0)),
        (legendre_polynomial_p, "The Legendre polynomial", (-3.0, -1.0)),
    )
)  # fmt: skip
