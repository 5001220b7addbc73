"""A call that is ready to be repeated: its plan is selected, and how its results are allocated is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core import recording
from baracuda_kernels.core.arrays import glance
from baracuda_kernels.core.bounded import Bounded
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import Error, rejection
from baracuda_kernels.core.framework import Framework, framework_of
from baracuda_kernels.core.kernel import Launch
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.preference import PlanPreference
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.tensor import TensorRef
from baracuda_kernels.core.turns import LOADING
from baracuda_kernels.core.workspace import Workspace

if TYPE_CHECKING:
    from baracuda_kernels.core.function import Function

__all__ = ["Call", "of_another", "planned"]

MOST_PLANS = 1024  # kept in all

_plans = Bounded(MOST_PLANS)


def planned(
    plan: type[Plan[Any, Any]], descriptor: Descriptor, device: Device, preference: PlanPreference | None
) -> Plan[Any, Any]:
    """The plan for a problem: the one selected before, where there is one."""
    if preference is not None and not isinstance(preference, PlanPreference):
        return plan.select(Stream.on(device), descriptor, preference)  # which says what is wrong with it
    key = (plan, descriptor, device, preference)
    found: Plan[Any, Any] | None = _plans.get(key)
    if found is None:
        with LOADING:  # so that threads that meet a new problem together compile it once
            found = _plans.get(key)
            if found is None:
                found = plan.select(Stream.on(device), descriptor, preference)
                _plans.put(key, found)
    return found


class Call:
    """A function with certain layouts and options, ready to be repeated with other arrays."""

    def __init__(
        self, function: Function, framework: Framework, plan: Plan[Any, Any], given: Mapping[str, Layout], returned: Sequence[str]
    ) -> None:
        operands = self.operands = function.renamed(plan.args_type.OPERANDS)
        self.function, self.framework, self.plan = function, framework, plan
        self.given, self.returned = dict(given), tuple(returned)
        made = {
            operand.name: operand.contiguous_layout(plan.descriptor, plan.device)
            for operand in operands
            if operand.writes and operand.is_given(plan.descriptor, True)
        }
        self.layouts = tuple(given.get(operand.name) or made.get(operand.name) for operand in operands)
        self.makers = tuple(framework.maker(layout.shape, layout.element, layout.device) for layout in made.values())
        self.made = tuple(made)
        # Where operands and results are found among what is given and made; last of all stands nothing, for those left out.
        together = [*given, *made, None]
        self.places = [together.index(operand.name) if operand.name in together else len(together) - 1 for operand in operands]
        self.results = [together.index(name if name in made else None) for name in returned]
        moves = plan.device.kind is not DeviceKind.CPU and framework.current_stream is not Stream.on
        self.stream = None if moves else Stream.on(plan.device)
        self._derivative = framework.derivative or _no_derivative
        scratch = Layout.of(ElementKind.U8, (plan.workspace_size,), (1,), plan.device)
        self.scratch = (scratch, framework.maker(scratch.shape, scratch.element, plan.device)) if plan.workspace_size else None
        self.fresh = self._runner()

    def run(self, sources: list[Any], addresses: list[int], out: Any, stream: Stream | None) -> Any:
        """With the given arrays, in the order of `given`."""
        try:
            if stream is None:
                stream = self.stream or self.framework.current_stream(self.plan.device)
            else:
                self.plan.check_stream(stream)
            with self._queued_on(stream):
                self._used_on(stream, sources)
                return self.fresh(sources, addresses, stream) if out is None else self._into(sources, addresses, out, stream)
        except Error as error:
            raise self._by_our_names(error) from error.__cause__

    def _runner(self) -> Callable[[list[Any], list[int], Stream], Any]:
        """Runs into new memory, on a stream of the plan's device. This is all there is to a repeated call, so everything it needs is at
        hand, and what is the same in every call is checked in the first."""
        plan, layouts, makers, address_of = self.plan, self.layouts, self.makers, self.framework.address
        lend = None if self.scratch is None else self.scratch[1]
        in_order, picked, finished = itemgetter(*self.places), itemgetter(*self.results), self.framework.finished
        launch: Launch | None = None

        def fresh(sources: list[Any], addresses: list[int], stream: Stream) -> Any:
            nonlocal launch
            if launch is None:
                launch = plan.launch_for(layouts)
            for make in makers:
                array = make()
                sources.append(array)
                addresses.append(address_of(array))
            sources.append(None)
            addresses.append(0)
            workspace = 0
            if lend is not None:
                lent = lend()
                workspace = address_of(lent)
            try:
                (plan.noted(launch) if recording.active else launch)(in_order(addresses), workspace, stream)
            except Error:
                raise
            except Exception as cause:
                raise plan.failure(cause) from cause
            return picked(sources) if finished is None else self._finished(picked(sources), sources[0])

        return fresh

    def _into(self, sources: list[Any], addresses: list[int], out: Any, stream: Stream) -> Any:
        """Runs into the caller's memory; outputs that are not given are allocated."""
        straight = self._straight(sources, addresses, out) if self.returned == self.made and len(self.made) == 1 else None
        if straight is not None:
            self._used_on(stream, (out,))
            self.plan.run(stream, self._workspace(), straight)
            if self.framework.written is not None:
                self.framework.written((out,))
            return out
        outputs = self._outputs(out)
        self._used_on(stream, outputs.values())
        operands = dict(zip(self.given, map(TensorRef.over, addresses, self.given.values(), sources), strict=True))
        made = {name: make() for name, make in zip(self.made, self.makers, strict=True) if name not in outputs}
        together = operands | made | outputs
        both = zip(self.plan.args_type.OPERANDS, self.operands, strict=True)
        args = self.plan.args_type(**{declared.name: together[ours.name] for declared, ours in both if ours.name in together})
        self.plan.run(stream, self._workspace(), args)
        if self.framework.written is not None:
            self.framework.written(outputs.values())
        arrays = [self._finish(made[name], sources[0]) if name in made else outputs.get(name) for name in self.returned]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _workspace(self) -> Workspace:
        if self.scratch is None:
            return Workspace.none()
        layout, make = self.scratch
        buffer = make()
        return Workspace.over(self.framework.address(buffer), layout, buffer)

    def _straight(self, sources: list[Any], addresses: list[int], out: Any) -> Any:
        """The args of a call into one valid array, the fast path; None if a full check is needed."""
        seen, framework = glance(out), self.framework
        if seen is None or not seen[2] or seen[1].self_overlap is not False or framework_of(out) is not framework:
            return None
        if self._derivative(out):
            return None
        together = [*zip([*sources, seen[3]], [*addresses, seen[0]], [*self.given.values(), seen[1]], strict=True), (None, 0, None)]
        data, at, layouts = zip(*[together[place] for place in self.places], strict=True)
        return self.plan.args_type.over(data, layouts, at)

    def _queued_on(self, stream: Stream) -> Any:
        """Allocates on the stream that uses the memory, so that the allocator does not reuse it too early."""
        queued_on = self.framework.queued_on
        return nullcontext() if queued_on is None or not self._is_queue(stream) else queued_on(stream)

    def _used_on(self, stream: Stream, arrays: Iterable[Any]) -> None:
        """Tells the allocator that a stream uses these arrays, if that is not the one they were made on."""
        used_on = self.framework.used_on
        if used_on is not None and self._is_queue(stream) and stream.handle is not None:
            used_on(arrays, stream)

    def _is_queue(self, stream: object) -> bool:
        """Whether it is a stream that queues work. The plan refuses streams of another device."""
        device = self.plan.device
        return device.kind is not DeviceKind.CPU and isinstance(stream, Stream) and stream.device == device

    def _finish(self, array: Any, first: Any) -> Any:
        finished = self.framework.finished
        return array if finished is None or array is None else finished(array, first)

    def _finished(self, results: Any, first: Any) -> Any:
        return tuple(self._finish(each, first) for each in results) if len(self.results) > 1 else self._finish(results, first)

    def _outputs(self, out: Any) -> dict[str, Any]:
        """The caller's outputs by name: one array, a sequence in the order of the results, or a dict."""
        if isinstance(out, Mapping):
            given = dict(out)
        elif isinstance(out, tuple | list):
            given = dict(zip(self.returned, out, strict=False))
            if len(out) != len(self.returned):
                self._refuse(
                    Reason(ReasonCode.WRONG_TYPE, "out", f"{len(out)} arrays", f"one for each of {', '.join(self.returned)}")
                )
        elif len(self.returned) > 1:
            wanted = f"a tuple or dict of {', '.join(self.returned)}"
            self._refuse(Reason(ReasonCode.WRONG_TYPE, "out", type(out).__name__, wanted))
        else:
            given = {self.returned[0]: out}
        writable = [operand.name for operand in self.operands if operand.writes]
        reasons = []
        for name, array in given.items():
            if name not in writable:
                reasons.append(Reason(ReasonCode.UNKNOWN_OPERAND, str(name), str(name), f"one of {', '.join(writable)}"))
            elif array is not None and framework_of(array) is not self.framework:
                reasons.append(of_another(name, array, self.framework))
            elif array is not None and (derivative := self._derivative(array)):
                reasons.append(Reason(ReasonCode.NEEDS_GRADIENT, name, derivative, "memory that no gradient is taken of"))
        if reasons:
            self._refuse(*reasons)
        return {name: array for name, array in given.items() if array is not None}

    def _refuse(self, *reasons: Reason) -> None:
        raise rejection(self.function.name, reasons)

    def _by_our_names(self, error: Error) -> Error:
        """The error about the plan's operands, with the function's names for them."""
        names = self.function.names
        reasons = [replace(reason, where=names.get(reason.where, reason.where)) for reason in error.reasons]
        return error if reasons == list(error.reasons) else rejection(error.subject, reasons)


def _no_derivative(array: Any) -> None:
    return None


def of_another(name: str, array: Any, framework: Framework) -> Reason:
    found = framework_of(array)
    got = f"a {type(array).__name__}" if found is None else f"an array of {found.name}"
    return Reason(ReasonCode.FRAMEWORK, name, got, f"an array of {framework.name}, as the first one is")
