"""Where a launch is queued: the CPU, or one stream of one CUDA device."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.tensor import TensorRef


class Stream:
    """A device and, on CUDA, the native handle of a stream there. On the CPU a launch has finished when `run` returns."""

    __slots__ = ("device", "handle")

    def __init__(self, device: Device, handle: int | None = None) -> None:
        self.device = device
        self.handle = handle

    @staticmethod
    @functools.cache
    def cpu() -> Stream:
        """The host: a launch has finished when `run` returns."""
        return Stream(Device.cpu())

    @staticmethod
    def cuda(index: int = 0, handle: int | None = None) -> Stream:
        """A stream of CUDA device `index`: the given native handle, or PyTorch's current one at each launch.

        The device need not be there: `select` then says so, with a reason.
        """
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise rejection("Stream.cuda", [Reason(ReasonCode.WRONG_TYPE, "index", repr(index), "a device index of at least 0")])
        return Stream(Device.cuda(index), handle)

    @staticmethod
    @functools.cache
    def on(device: Device) -> Stream:
        """The current stream of a device."""
        return Stream.cpu() if device.kind is DeviceKind.CPU else Stream.cuda(device.index)

    @staticmethod
    def of(array: Any) -> Stream:
        """The current stream of the array's device."""
        return Stream.on((array if isinstance(array, TensorRef) else TensorRef.of(array)).device)

    def queue(self) -> Any:
        """PyTorch's object for the stream. Handle 0 is the default stream, for which PyTorch would make a new stream."""
        import torch

        cuda: Any = torch.cuda  # partly without types
        if self.handle is None:
            return cuda.current_stream(self.device.index)
        if self.handle == 0:
            return cuda.default_stream(self.device.index)
        return cuda.ExternalStream(self.handle, device=self.device.index)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Makes it PyTorch's current stream within the context, for work and for allocations."""
        if self.device.kind is DeviceKind.CPU:
            yield
            return
        import torch

        cuda: Any = torch.cuda
        with cuda.device(self.device.index) if self.handle is None else cuda.stream(self.queue()):
            yield

    def __repr__(self) -> str:
        return f"Stream({self.device})"
