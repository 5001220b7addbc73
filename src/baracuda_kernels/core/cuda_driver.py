"""The few functions of the CUDA driver that a launch needs, called directly.

PyTorch, CuPy and JAX all work in a device's primary context; so does this, and handles of their streams are valid here.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any

from baracuda_kernels.core.errors import KernelInternal

__all__ = ["DriverError", "LoadedFunction", "driver"]

_INVALID_CONTEXT, _INVALID_HANDLE = 201, 400
_DYNAMIC_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_LOCAL_BYTES, _REGISTERS = 3, 4
_SHARED_WITHOUT_ASKING = 48 * 1024


class DriverError(KernelInternal):
    """A call of the CUDA driver failed. `status` is the driver's number for it."""

    def __init__(self, status: int, name: str, text: str, doing: str) -> None:
        super().__init__(f"{doing}: CUDA error {status} ({name}): {text}")
        self.status = status


class LoadedFunction:
    """A loaded kernel: its handle in one device's context, and its resources."""

    __slots__ = ("device", "handle", "local_bytes", "name", "registers", "shared", "threads")

    def __init__(self, device: int, handle: int, name: str, threads: int, shared: int, registers: int, local_bytes: int) -> None:
        self.device, self.handle, self.name = device, handle, name
        self.threads, self.shared, self.registers, self.local_bytes = threads, shared, registers, local_bytes


class Driver:
    def __init__(self) -> None:
        names = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
        self._library = _first_library(names)
        self._process = os.getpid()
        self._contexts: dict[int, int] = {}
        self._modules: list[ctypes.c_void_p] = []  # never unloaded: graphs may hold their kernels
        self._call("cuInit", ctypes.c_uint(0))
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        self.many_devices = count.value > 1
        word, pointer = ctypes.c_uint, ctypes.c_void_p
        self.launch_kernel = self._library.cuLaunchKernel
        self.launch_kernel.argtypes = [pointer, word, word, word, word, word, word, word, pointer, pointer, pointer]

    def version(self) -> int:
        """The newest CUDA version that the driver knows, such as 12080."""
        number = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(number))
        return number.value

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise self.error(status, name)

    def error(self, status: int, doing: str) -> DriverError:
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        if os.getpid() != self._process:
            doing = f"{doing} in a process that was forked after CUDA had begun: start it by 'spawn' or 'forkserver'"
        self._library.cuGetErrorName(status, ctypes.byref(name))
        self._library.cuGetErrorString(status, ctypes.byref(text))
        return DriverError(status, (name.value or b"unknown").decode(), (text.value or b"no description").decode(), doing)

    def context(self, device: int) -> int:
        """The primary context of a device, retained from the first use on."""
        if device not in self._contexts:
            handle, context = ctypes.c_int(), ctypes.c_void_p()
            self._call("cuDeviceGet", ctypes.byref(handle), ctypes.c_int(device))
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
            assert context.value is not None
            self._contexts[device] = context.value
        return self._contexts[device]

    def within(self, device: int) -> _Within:
        """Makes the device's context current within, and restores the previous one."""
        return _Within(self, self.context(device))

    def load(self, device: int, image: bytes, name: str, threads: int, shared: int) -> LoadedFunction:
        with self.within(device):
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image))
            self._modules.append(module)
            self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            if shared > _SHARED_WITHOUT_ASKING:
                self._call("cuFuncSetAttribute", function, ctypes.c_int(_DYNAMIC_SHARED_BYTES), ctypes.c_int(shared))
            # Asking also makes the driver load the code now, which it could not do while a graph is being captured.
            registers, local_bytes = (self._attribute(function, which) for which in (_REGISTERS, _LOCAL_BYTES))
        assert function.value is not None
        return LoadedFunction(device, function.value, name, threads, shared, registers, local_bytes)

    def _attribute(self, function: ctypes.c_void_p, which: int) -> int:
        value = ctypes.c_int()
        self._call("cuFuncGetAttribute", ctypes.byref(value), ctypes.c_int(which), function)
        return value.value

    def launch(self, function: LoadedFunction, blocks: int, stream: int, parameters: int) -> None:
        """Queues the kernel on the stream. `parameters` is the address of an array of addresses, one per parameter."""
        if self.many_devices:
            with self.within(function.device):
                status = self._launch(function, blocks, stream, parameters)
        else:
            status = self._launch(function, blocks, stream, parameters)
            if status in (_INVALID_CONTEXT, _INVALID_HANDLE):  # a thread that has no context yet, or another library's
                with self.within(function.device):
                    status = self._launch(function, blocks, stream, parameters)
        if status:
            raise self.error(status, f"launch of {function.name} with {blocks} blocks of {function.threads} threads")

    def _launch(self, function: LoadedFunction, blocks: int, stream: int, parameters: int) -> int:
        status: int = self.launch_kernel(
            function.handle, blocks, 1, 1, function.threads, 1, 1, function.shared, stream, parameters, None
        )
        return status

    def is_capturing(self, device: int, stream: int) -> bool:
        """Whether a graph is being captured from the stream."""
        state = ctypes.c_int()
        with self.within(device):
            self._call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(state))
        return state.value != 0

    def push(self, context: int) -> None:
        self._call("cuCtxPushCurrent_v2", ctypes.c_void_p(context))

    def pop(self) -> None:
        self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


class _Within:
    __slots__ = ("context", "driver")

    def __init__(self, driver: Driver, context: int) -> None:
        self.driver, self.context = driver, context

    def __enter__(self) -> None:
        self.driver.push(self.context)

    def __exit__(self, *_: object) -> None:
        self.driver.pop()


def _first_library(names: tuple[str, ...]) -> ctypes.CDLL:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise KernelInternal(f"no CUDA driver was found: looked for {' and '.join(names)}")


@functools.cache
def driver() -> Driver:
    """The one driver of this process."""
    return Driver()
