"""Special functions of two and three operands: what statistics and combinatorics use, exponential integrals, hypergeometric functions."""

from __future__ import annotations

from baracuda_kernels.formula.functions.gamma_ratios import comb, poch
from baracuda_kernels.formula.functions.gamma_slopes import igamma_grad_a, random_gamma_grad
from baracuda_kernels.formula.functions.hypergeometric import expn, hyp1f1
from baracuda_kernels.formula.functions.statistics import boxcox, boxcox1p, kl_div, owens_t
from baracuda_kernels.ops.elementwise.rows import ElementwiseRow

__all__ = ["BINARY", "TERNARY"]

POWER = ((1.5, 6.0), (0.5, 3.0))
BINARY = (
    ElementwiseRow("kl_div_elementwise", kl_div, "x log(x / y) - x + y; y where x is 0, +inf where one is negative.", domain=((0.1, 1.0), (3.0, 10.0)),
        wide=True, operands=("p", "q")),
    ElementwiseRow("boxcox", boxcox, "(x^lmbda - 1) / lmbda; log(x) where lmbda is 0.", domain=POWER, wide=True, operands=("x", "lmbda")),
    ElementwiseRow("boxcox1p", boxcox1p, "((1 + x)^lmbda - 1) / lmbda; log(1 + x) where lmbda is 0.", domain=POWER, wide=True, operands=("x", "lmbda")),
    ElementwiseRow("comb", comb, "How many ways there are to take k of N things; 0 where k is negative or more than N.",
        domain=((9.0, 16.0), (1.0, 4.0)), wide=True, operands=("N", "k")),
    ElementwiseRow("expn", expn, "The exponential integral of order n, truncated to an integer, at x; the gradient of n is NaN.",
        domain=((0.0, 9.0), (0.1, 8.0)), wide=True, operands=("n", "x")),
    ElementwiseRow("owens_t", owens_t, "Owen's T function.", domain=((-4.0, 4.0), (0.1, 4.0)), wide=True, operands=("h", "a")),
    ElementwiseRow("poch", poch, "gamma(z + m) / gamma(z).", domain=((0.5, 8.0), (0.0, 4.0)), wide=True, operands=("z", "m")),
    ElementwiseRow("igamma_grad_a", igamma_grad_a, "The derivative of igamma(a, x) along a.", domain=((3.0, 10.0), (0.5, 5.0)), operands=("a", "x"),
        differentiable=False),
    ElementwiseRow("random_gamma_grad", random_gamma_grad, "How a sample of the gamma distribution of order a changes with a.",
        domain=((3.0, 10.0), (0.5, 5.0)), operands=("a", "sample"), differentiable=False),
)  # fmt: skip
TERNARY = (
    ElementwiseRow("hyp1f1", hyp1f1, "The confluent hypergeometric function: the sum over k of (a)_k x^k / (b)_k k!; second derivatives along a and b are NaN.",
        domain=((0.5, 4.0), (0.5, 4.0), (0.1, 4.0)), wide=True, operands=("a", "b", "x")),
)  # fmt: skip
