"""Covariances, correlations and their gradients in NumPy float64, sharing nothing with any kernel."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.ops.covariance.descriptor import CovBackwardDescriptor, CovDescriptor, CovKind

__all__ = ["cov", "cov_backward"]


def _centred(problem: CovDescriptor, input: Any, fweights: Any, aweights: Any) -> tuple[Any, Any, Any]:
    """The variables less their means, the weights of observations, and what sums are divided by."""
    import numpy

    x = input.reshape(problem.variables, problem.observations)
    how_often = numpy.ones(problem.observations) if fweights is None else fweights
    weights = how_often if aweights is None else how_often * aweights
    total = weights.sum()
    mean = (x * weights).sum(1, keepdims=True) / total
    reliability = 1.0 if aweights is None else (weights * aweights).sum() / total
    # A variable that is always the same does not vary, whatever becomes of it in the mean.
    centred = numpy.where((x == x[:, :1]).all(1, keepdims=True), 0.0, x - mean) if problem.observations else x
    return centred, weights, max(total - problem.correction * reliability, 0.0)


def cov(problem: CovDescriptor, input: Any, fweights: Any = None, aweights: Any = None) -> Any:
    import numpy

    with numpy.errstate(all="ignore"):
        x, weights, norm = _centred(problem, input, fweights, aweights)
        together = (x * weights) @ x.T / norm
        if problem.kind is CovKind.CORRCOEF:
            together = _correlations((x * weights) @ x.T)
    return together.reshape(problem.result_shape)


def _correlations(together: Any) -> Any:
    import numpy

    lengths = numpy.sqrt(numpy.diagonal(together))
    return (together / lengths[:, None] / lengths).clip(-1.0, 1.0)


def cov_backward(problem: CovBackwardDescriptor, d_result: Any, input: Any, fweights: Any = None, aweights: Any = None) -> Any:
    import numpy

    with numpy.errstate(all="ignore"):
        x, weights, norm = _centred(problem, input, fweights, aweights)
        d = d_result.reshape(problem.variables, problem.variables)
        if problem.kind is CovKind.CORRCOEF:
            together = (x * weights) @ x.T
            lengths, norm = numpy.sqrt(numpy.diagonal(together)), 1.0
            # What stands on the diagonal is 1, whatever the variables are.
            apart = numpy.where(numpy.eye(problem.variables, dtype=bool), 0.0, d)
            shrinks = (apart + apart.T) * _correlations(together)
            d = apart / numpy.outer(lengths, lengths) - numpy.diag(shrinks.sum(1) / 2 / lengths**2)
        return ((d + d.T) @ x * weights / norm).reshape(problem.shape)
