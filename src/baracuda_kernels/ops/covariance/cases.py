"""What covariances are tested and timed on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from baracuda_kernels.core.cases import Cases, Extreme
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.covariance.descriptor import CovKind

FEW = 2  # observations from which correlations follow whatever the numbers are


class CovCases(Cases[Any]):
    on_matrix_units = True
    extremes = (Extreme.NAN, Extreme.ZEROS)  # squares of the smallest numbers are 0 in their element

    def corners(self, element: ElementKind) -> Iterator[Any]:
        for kind in CovKind:
            yield self.descriptor(kind, (5, 70), element, 1, ElementKind.I64, True)
            yield self.descriptor(kind, (35, 33), element)
            if element is ElementKind.F32:
                yield self.descriptor(kind, (3, 17), element, 0, ElementKind.I32)
                yield self.descriptor(kind, (2, 40), element, 2, None, True)
                for shape in ((67,), (1, 9), (3, 1), (), (3, 0), (0, 5)):  # one variable, one observation, nothing
                    yield self.descriptor(kind, shape, element)

    def draw(self, random: Random, element: ElementKind) -> Any:
        shape = (random.choice((0, 1, 2, 3, 8)), random.choice((0, 1, 9, 17, 33)))
        weights = random.choice((None, None, ElementKind.I64, ElementKind.I32)), random.random() < 0.5
        return self.descriptor(
            random.choice(list(CovKind)), shape[random.choice((0, 0, 1)) :], element, random.choice((0, 1, 2)), *weights
        )

    def showcase(self) -> Iterator[Any]:
        for kind in CovKind:
            for variables in (64, 512):
                yield self.descriptor(kind, (variables, 4096), ElementKind.F32)

    def cuda_showcase(self) -> Iterator[Any]:
        for problem in self.showcase():
            yield replace(problem, shape=(8 * problem.shape[0], 8 * problem.shape[1]))

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        """Weights by which a single observation divides without rest."""
        import numpy

        often = (
            rng.integers(0, 4, descriptor.weights_shape) if descriptor.observations > FEW else numpy.ones(descriptor.weights_shape)
        )
        return {"fweights": often, "aweights": rng.choice([0.5, 1.0, 2.0], descriptor.weights_shape)}

    def flops(self, descriptor: Any) -> int:
        return 2 * int(descriptor.variables) ** 2 * int(descriptor.observations)

    def summed_extent(self, descriptor: Any) -> int:
        return max(descriptor.observations, descriptor.variables)
