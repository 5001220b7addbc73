"""A launch that is given only the operands that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from baracuda_kernels.core.kernel import CompilesWhenBound

__all__ = ["of_present"]


def of_present(bind: Callable[[tuple[Any, ...]], Any]) -> Callable[[Sequence[Any]], Any]:
    """Wraps `bind` for operands of which some may be absent."""

    def bind_present(layouts: Sequence[Any]) -> Any:
        present = tuple(place for place, layout in enumerate(layouts) if layout is not None)
        launch = bind(tuple(layouts[place] for place in present))
        return launch if len(present) == len(layouts) else _Chosen(launch, present)

    return bind_present


class _Chosen:
    def __init__(self, launch: Any, places: tuple[int, ...]) -> None:
        self.launch, self.places = launch, places
        self.calls = getattr(launch, "calls", ())

    def __call__(self, addresses: tuple[int, ...], workspace: Any, stream: Any) -> None:
        self.launch(tuple([addresses[place] for place in self.places]), workspace, stream)

    def get_ready(self) -> None:
        if isinstance(self.launch, CompilesWhenBound):
            self.launch.get_ready()
