"""The same calls in Triton's interpreter, on the CPU's memory: slow, but it needs no GPU, and it computes what the bodies say."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.kernel import Launch
from baracuda_kernels.core.turns import Turn
from baracuda_kernels.targets.cuda.runtime.compile import as_constant
from baracuda_kernels.targets.cuda.runtime.triton_launch import VECTOR_BYTES, At, Lent, Step, TritonLaunch

__all__ = ["in_order", "interpreted", "running_max", "scanned"]

_turn = Turn()  # the interpreter patches the language for the time of a launch


def interpreted(calls: Sequence[TritonLaunch]) -> Launch:
    import numpy

    def launch(addresses: tuple[int, ...], workspace: int, stream: Any) -> None:
        for call in (_form_for(call, addresses, workspace) for call in calls):
            given = [_argument(argument, addresses, workspace) for argument in call.arguments]
            constants = {name: as_constant(value) for name, value in call.constants.items()}
            with _turn, numpy.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # a GPU does not warn of infinities and NaN either
                call.body[(call.blocks,)](*given, **constants)

    return launch


def _form_for(call: TritonLaunch, addresses: tuple[int, ...], workspace: int) -> TritonLaunch:
    """The one that a device would take."""
    forms = call.forms()
    used = [addresses[leaf.operand] for leaf in call.flat() if isinstance(leaf, At) and leaf.is_whole]
    return forms.get(all(address % VECTOR_BYTES == 0 for address in (workspace, *used)), forms[False])


def _argument(argument: Any, addresses: tuple[int, ...], workspace: int) -> Any:
    if isinstance(argument, tuple):
        return tuple(_argument(leaf, addresses, workspace) for leaf in argument)
    if isinstance(argument, At):
        return _first_element(addresses[argument.operand], argument.element)
    if isinstance(argument, Lent):
        return _first_element(workspace + argument.offset, argument.element)
    return argument.value if isinstance(argument, Step) else argument


def _first_element(address: int, element: Any) -> Any:
    """A tensor of one element there: the interpreter takes its address and its type, and nothing else."""
    import torch

    from baracuda_kernels.targets.aten import DTYPES

    buffer = (ctypes.c_char * element.size).from_address(address)
    return torch.frombuffer(buffer, dtype=DTYPES[element])


def scanned(states: tuple[Any, ...], join: Any, is_back: bool = False) -> tuple[Any, ...]:
    """A scan of blocks along their first axis, as `tl.associative_scan` makes it, for all elements at once."""
    import numpy

    if is_back:
        flipped = scanned(tuple(_block(state.handle.data[::-1], state) for state in states), join)
        return tuple(_block(state.handle.data[::-1], state) for state in flipped)
    distance = 1
    while distance < states[0].shape[0]:
        earlier = [_block(numpy.roll(state.handle.data, distance, axis=0), state) for state in states]
        found = join.fn(*earlier, *states)
        joined = zip(states, found if isinstance(found, tuple) else (found,), strict=True)
        states = tuple(
            _block(numpy.concatenate([state.handle.data[:distance], later.handle.data[distance:]]), state)
            for state, later in joined
        )
        distance *= 2
    return states


def in_order(keys: Any) -> Any:
    """A block as `tl.sort` puts it in order."""
    import numpy

    return _block(numpy.sort(keys.handle.data), keys)


def running_max(numbers: Any) -> Any:
    """The largest of a block up to each number."""
    import numpy

    return _block(numpy.maximum.accumulate(numbers.handle.data), numbers)


def _block(data: Any, like: Any) -> Any:
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    return tl.core.tensor(TensorHandle(data, like.dtype.scalar), like.type)
