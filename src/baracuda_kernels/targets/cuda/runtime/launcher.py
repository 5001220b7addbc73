"""From calls to a launch: compiled once; then each run fills in addresses and makes one call of the driver."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

from baracuda_kernels.core.cuda_driver import LoadedFunction, driver
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.errors import Unsupported
from baracuda_kernels.core.kernel import Launch
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.targets.cuda.runtime.compile import Binary, compiled
from baracuda_kernels.targets.cuda.runtime.triton_launch import VECTOR_BYTES, At, Lent, TritonLaunch

__all__ = ["launcher"]

_TRAILING_POINTERS = 2  # Triton's own: scratch memory of the runtime and of its profiler, which these kernels do not ask for


def launcher(device: Device, *calls: TritonLaunch) -> Launch:
    """A launch of the calls, one after the other, on the stream it is given. Calls without programs are left out."""
    calls = tuple(call for call in calls if call.blocks)
    if device.kind is DeviceKind.CPU:
        from baracuda_kernels.targets.cuda.runtime.interpret import interpreted

        return interpreted(calls)
    queued = [Queued(device, call) for call in calls]
    return queued[0] if len(queued) == 1 else InTurn(queued)


class InTurn:
    """Several launches, or none, one after the other on the same stream."""

    def __init__(self, launches: Sequence[Queued]) -> None:
        self.launches = launches

    @property
    def calls(self) -> tuple[TritonLaunch, ...]:
        return tuple(launch.call for launch in self.launches)

    def __call__(self, addresses: tuple[int, ...], workspace: int, stream: Stream) -> None:
        # All are compiled before the first is queued: where a capture refuses one, nothing has been written.
        forms = [launch.form_for(addresses, workspace, stream) for launch in self.launches]
        for form in forms:
            form.launch(addresses, workspace, stream)

    def get_ready(self) -> None:
        for launch in self.launches:
            launch.get_ready()

    def get_ready_for(self, offsets: Sequence[int]) -> None:
        for launch in self.launches:
            launch.get_ready_for(offsets)


class Queued:
    """One call on one CUDA device. It has two forms in machine code: for addresses that allow vector loads, and for any."""

    def __init__(self, device: Device, call: TritonLaunch) -> None:
        self.device, self.call = device, call
        self.forms = {vectors: _Form(device, form, vectors) for vectors, form in call.forms().items()}
        self.vectors, self.scalars = self.forms.get(True), self.forms[False]
        self.operands = (self.vectors or self.scalars).operands

    def get_ready(self) -> None:
        """Compiles and loads the form that ordinary arrays need."""
        (self.vectors or self.scalars).load()

    def get_ready_for(self, offsets: Sequence[int]) -> None:
        """The form for operands that begin so many bytes after ordinary arrays."""
        in_vectors = all(offsets[operand] % VECTOR_BYTES == 0 for operand in self.operands)
        ((in_vectors and self.vectors) or self.scalars).load()

    @property
    def calls(self) -> tuple[TritonLaunch, ...]:
        return (self.call,)

    def __call__(self, addresses: tuple[int, ...], workspace: int, stream: Stream) -> None:
        self.form_for(addresses, workspace, stream).launch(addresses, workspace, stream)

    def form_for(self, addresses: tuple[int, ...], workspace: int, stream: Stream) -> _Form:
        """The compiled form for these addresses."""
        form = self.scalars
        if self.vectors is not None:
            together = workspace
            for operand in self.operands:
                together |= addresses[operand]
            if not together % VECTOR_BYTES:
                form = self.vectors
        if form.function is None:
            form.load_unless_capturing(_handle(stream))
        return form


class _Form:
    """A compiled call, and its launch arguments."""

    def __init__(self, device: Device, call: TritonLaunch, vectors: bool) -> None:
        self.device, self.call, self.has_vectors = device, call, vectors
        flat = call.flat()
        self.addresses = tuple((slot, leaf.operand) for slot, leaf in enumerate(flat) if isinstance(leaf, At))
        self.lent = tuple((slot, leaf.offset) for slot, leaf in enumerate(flat) if isinstance(leaf, Lent))
        self.operands = tuple({leaf.operand for leaf in flat if isinstance(leaf, At) and leaf.is_whole})
        self.words = call.words() + [0] * _TRAILING_POINTERS
        self.function: LoadedFunction | None = None  # until it is loaded
        self.buffers: list[tuple[Any, int]] = []  # that no launch is using: threads and signal handlers may launch at once

    def load(self) -> LoadedFunction:
        if self.function is None:
            binary = compiled(self.call, self.device.profile().capability, self.has_vectors)
            self.function = _loaded(self.device.index, binary)
        return self.function

    def load_unless_capturing(self, stream: int) -> None:
        if driver().is_capturing(self.device.index, stream):
            got = f"a {'vector' if self.has_vectors else 'scalar'} form of {self.call.body.__name__} that has not been compiled"
            wanted = "one run with operands of these layouts and alignments before the capture"
            raise Unsupported(self.call.body.__name__, [Reason(ReasonCode.CAPTURE, "stream", got, wanted)])
        self.load()

    def launch(self, addresses: tuple[int, ...], workspace: int, stream: Stream) -> None:
        try:
            buffer = self.buffers.pop()
        except IndexError:
            buffer = _buffer(self.words)
        words, parameters = buffer
        for slot, operand in self.addresses:
            words[slot] = addresses[operand]
        for slot, offset in self.lent:
            words[slot] = workspace + offset
        assert self.function is not None
        driver().launch(self.function, self.call.blocks, _handle(stream), parameters)
        self.buffers.append(buffer)


@functools.cache
def _loaded(device: int, binary: Binary) -> LoadedFunction:
    """The loaded kernel, shared by all calls that differ in numbers only; it stays loaded on the device."""
    return driver().load(device, binary.image, binary.name, binary.threads, binary.shared)


def _buffer(words: list[int]) -> tuple[Any, int]:
    """The words in memory, and the address of an array that points at each of them."""
    room = (ctypes.c_int64 * len(words))(*words)
    start = ctypes.addressof(room)
    pointers = (ctypes.c_void_p * len(words))(*(start + 8 * slot for slot in range(len(words))))
    room.pointers = pointers  # type: ignore[attr-defined] # lives as long as the words
    return room, ctypes.addressof(pointers)


def _handle(stream: Stream) -> int:
    return _current_stream()(stream.device.index) if stream.handle is None else stream.handle


@functools.cache
def _current_stream() -> Callable[[int], int]:
    """PyTorch's function that gives the handle of a device's current stream."""
    import torch

    ask: Callable[[int], int] = torch._C._cuda_getCurrentRawStream
    return ask
