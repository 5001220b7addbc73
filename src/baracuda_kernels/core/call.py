"""Calling a function: arrays in, plan found, results made, plan run.

The first call with certain layouts and options works everything out and leaves a `Call`; the next one like it finds that by
how it was written, makes the results and launches.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core.arrays import Seen
from baracuda_kernels.core.bounded import Bounded
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import Error, rejection
from baracuda_kernels.core.framework import Framework, framework_of
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.preference import PlanPreference
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.tensor import TensorRef
from baracuda_kernels.core.view import View
from baracuda_kernels.core.workspace import Workspace

if TYPE_CHECKING:
    from baracuda_kernels.core.function import Function

__all__ = ["GUARDED", "PLAIN", "Call", "Calls", "planned", "public_signature"]

MOST_CALLS = 1024  # kept of each function
MOST_PLANS = 1024  # kept in all
COMMON = ("out", "preference", "stream")  # what every function takes
_ARRAYS = "an array of NumPy, PyTorch, JAX or CuPy"
_LAYOUTS = (ReasonCode.STRIDE, ReasonCode.LAYOUT, ReasonCode.MISALIGNED)

Seers = dict[type, Callable[[Any], Seen]]
PLAIN: Seers = {}  # how arrays of types met before are seen
GUARDED: Seers = {}  # the same, but what needs a gradient raises

_plans = Bounded(MOST_PLANS)
_selecting = threading.RLock()


def public_signature(declared: inspect.Signature, inputs: Mapping[str, Any]) -> inspect.Signature:
    """The describing function's, with arrays for views and what every function takes."""
    parameters = [
        each.replace(annotation=inspect.Parameter.empty) if each.name in inputs else each for each in declared.parameters.values()
    ]
    parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in COMMON]
    return inspect.Signature(parameters)


def planned(
    plan: type[Plan[Any, Any]], descriptor: Descriptor, device: Device, preference: PlanPreference | None
) -> Plan[Any, Any]:
    """The plan for a problem: the one selected before, where there is one."""
    if preference is not None and not isinstance(preference, PlanPreference):
        return plan.select(Stream.on(device), descriptor, preference)  # which says what is wrong with it
    key = (plan, descriptor, device, preference)
    found: Plan[Any, Any] | None = _plans.get(key)
    if found is None:
        with _selecting:  # so that threads that meet a new problem together compile it once
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
        operands = plan.args_type.OPERANDS
        positions = {operand.name: position for position, operand in enumerate(operands)}
        self.function, self.framework, self.plan = function, framework, plan
        self.given, self.returned = tuple(given), tuple(returned)
        made = {
            operand.name: operand.contiguous_layout(plan.descriptor, plan.device)
            for operand in operands
            if operand.writes and operand.is_given(plan.descriptor, True)
        }
        self.layouts = tuple(given.get(operand.name) or made.get(operand.name) for operand in operands)
        self.places = tuple(positions[name] for name in given)
        self.makers = tuple((positions[name], self._maker(name, layout)) for name, layout in made.items())
        self.result_places = tuple(positions[name] for name in returned)
        self.only_place = self.result_places[0] if len(self.result_places) == 1 else None
        self.nothing, self.nowhere = [None] * len(operands), [0] * len(operands)
        self.address, self.finished = framework.address, framework.finished
        moves = plan.device.kind is not DeviceKind.CPU and framework.current_stream is not Stream.on
        self.stream = None if moves else Stream.on(plan.device)
        self.scratch = framework.maker((plan.workspace_size,), ElementKind.U8, plan.device) if plan.workspace_size else None
        self.admitted: tuple[object, Any] | None = None  # what the plan found the first time

    def _maker(self, name: str, layout: Layout) -> Callable[[], Any]:
        try:
            return self.framework.maker(layout.shape, layout.element, layout.device)
        except (ValueError, ImportError) as cause:
            reason = Reason(ReasonCode.ELEMENT, name, layout.element, f"an element that {self.framework.name} has ({cause})")
            raise rejection(self.function.name, [reason]) from cause

    def fresh(self, seen: Sequence[Seen], stream: Stream | None) -> Any:
        """Runs into new memory."""
        sources, addresses = self.nothing[:], self.nowhere[:]
        for place, view in zip(self.places, seen, strict=True):
            addresses[place], _, _, sources[place] = view
        address = self.address
        if stream is None:
            for place, make in self.makers:
                array = sources[place] = make()
                addresses[place] = address(array)
        else:
            with self._queued_on(stream):
                for place, make in self.makers:
                    array = sources[place] = make()
                    addresses[place] = address(array)
        args = self.plan.args_type.over(sources, self.layouts, tuple(addresses), self.admitted)
        self._run(args, stream)
        self.admitted = args.ready
        if self.only_place is not None and self.finished is None:
            return sources[self.only_place]
        return self._result([sources[place] for place in self.result_places])

    def into(self, seen: Sequence[Seen], out: Any, stream: Stream | None) -> Any:
        """Runs into the caller's memory, as far as there is any."""
        given = self._outputs(out)
        names = self.plan.args_type.OPERANDS
        operands: dict[str, Any] = {
            name: TensorRef.over(view[0], self.layouts[place] or view[1], view[3])
            for name, place, view in zip(self.given, self.places, seen, strict=True)
        }
        with self._queued_on(stream):
            made = {names[place].name: make() for place, make in self.makers if names[place].name not in given}
        args = self.plan.args_type(**operands, **made, **given)
        self._run(args, stream)
        arrays = [self._finish(made[name]) if name in made else given.get(name) for name in self.returned]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _run(self, args: Any, stream: Stream | None) -> None:
        if stream is None:
            stream = self.stream or self.framework.current_stream(self.plan.device)
        if self.scratch is None:
            self.plan.run(stream, Workspace.none(), args)
        else:
            with self._queued_on(stream):
                buffer = self.scratch()
            self.plan.run(stream, Workspace.borrowed(buffer), args)

    def _queued_on(self, stream: Stream | None) -> Any:
        """Memory is made where it will be used, so that it is not given to others too early."""
        if stream is None or not isinstance(stream, Stream) or self.framework.queued_on is None:
            return nullcontext()
        return self.framework.queued_on(stream)

    def _finish(self, array: Any) -> Any:
        return array if self.finished is None or array is None else self.finished(array)

    def _result(self, arrays: Sequence[Any]) -> Any:
        finished = tuple(map(self._finish, arrays))
        return finished[0] if len(finished) == 1 else finished

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
        writable = [operand.name for operand in self.plan.args_type.OPERANDS if operand.writes]
        reasons = []
        for name, array in given.items():
            if name not in writable:
                reasons.append(Reason(ReasonCode.UNKNOWN_OPERAND, str(name), str(name), f"one of {', '.join(writable)}"))
            elif array is not None and framework_of(array) is not self.framework:
                reasons.append(_of_another(name, array, self.framework))
        if reasons:
            self._refuse(*reasons)
        return {name: array for name, array in given.items() if array is not None}

    def _refuse(self, *reasons: Reason) -> None:
        raise rejection(self.function.name, reasons)


class Calls:
    """The calls of one function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.known = Bounded(MOST_CALLS)

    def answer(self, seers: Seers, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        out = preference = stream = None
        if named:
            out, preference, stream = (named.pop(name, None) for name in COMMON)
        key: list[Any] = [preference, *named]
        seen = []
        try:
            for value in (*given, *named.values()) if named else given:
                kind = type(value)
                see = seers.get(kind)
                if see is None:
                    key += kind, value
                else:
                    view = see(value)
                    key += kind, view[1]
                    seen.append(view)
            call = self.known.get(tuple(key))
        except (RuntimeError, TypeError, ValueError, AttributeError, BufferError):  # the long way says what is wrong
            call = None
        if call is None:
            return self._first(seers, given, named, out, preference, stream)
        return call.fresh(seen, stream) if out is None else call.into(seen, out, stream)

    def _first(self, seers: Seers, given: Any, named: Any, out: Any, preference: Any, stream: Any) -> Any:
        function = self.function
        try:
            bound = function.declared.bind(*given, **named)
        except TypeError as cause:
            raise TypeError(f"{function.name}: {cause}") from None
        order = [name for name in bound.arguments if name not in named] + list(named)
        bound.apply_defaults()
        arrays = {name: bound.arguments[name] for name in order if name in function.inputs}
        options = {name: bound.arguments[name] for name in function.options}
        framework = self._framework(arrays, options)
        arrays = {name: array for name, array in arrays.items() if array is not None}
        if framework.traced is not None and any(map(framework.traced, arrays.values())):
            assert framework.trace is not None
            return framework.trace(function, arrays, options, out, preference, stream)
        seen = self._seen(framework, arrays, guarded=seers is GUARDED)
        views = {name: View(function.name, name, view[1]) for name, view in seen.items()}
        descriptor = function.describe(**{name: views.get(name) for name in function.inputs}, **options)
        device = next(iter(seen.values()))[1].device
        plan = planned(function.plan, descriptor, device, preference)
        layouts = {name: view[1] for name, view in seen.items()}
        call = Call(function, framework, plan, layouts, function.returned(options))
        try:
            views_in_order = list(seen.values())
            result = call.fresh(views_in_order, stream) if out is None else call.into(views_in_order, out, stream)
        except Error as error:
            raise _advised(error, framework, arrays) from error.__cause__
        self._keep(framework, given, named, preference, call, seen)
        return result

    def _framework(self, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Framework:
        """The one that made all arrays."""
        function, reasons, first = self.function, [], None
        for name, array in arrays.items():
            found = framework_of(array)
            if array is None:
                if not function.optional(name):
                    reasons.append(Reason(ReasonCode.MISSING_OPERAND, name, None, _ARRAYS))
            elif found is None:
                kind = f"{type(array).__module__}.{type(array).__qualname__}"
                reasons.append(Reason(ReasonCode.NOT_AN_ARRAY, name, kind, _ARRAYS))
            elif first is None:
                first = found
            elif found is not first:
                reasons.append(_of_another(name, array, first))
        for name, value in options.items():
            if framework_of(value) is not None:
                reasons.append(Reason(ReasonCode.WRONG_TYPE, name, f"a {type(value).__name__}", "a plain value, not an array"))
        if reasons or first is None:
            raise rejection(function.name, reasons)
        return first

    def _seen(self, framework: Framework, arrays: Mapping[str, Any], guarded: bool) -> dict[str, Seen]:
        seen, reasons = {}, []
        for name, array in arrays.items():
            if guarded and framework.needs_gradient is not None and framework.needs_gradient(array):
                wanted = f"baracuda_kernels.torch.{self.function.name}, which records it, or a detached tensor"
                reasons.append(Reason(ReasonCode.NEEDS_GRADIENT, name, "requires_grad=True", wanted))
                continue
            against, view = TensorRef.examine(array, name)
            reasons += against
            if view is not None:
                seen[name] = (view.address, view.layout, True, view.data)
        if reasons:
            raise rejection(self.function.name, reasons)
        return seen

    def _keep(self, framework: Framework, given: Any, named: Any, preference: Any, call: Call, seen: Mapping[str, Seen]) -> None:
        """Under the key that `answer` will look for."""
        key: list[Any] = [preference, *named]
        layouts = iter([view[1] for view in seen.values()])
        for value in (*given, *named.values()):
            kind = type(value)
            if framework_of(value) is framework:
                PLAIN[kind] = framework.see
                GUARDED[kind] = _guarded(framework)
                key += kind, next(layouts)
            else:
                key += kind, value
        try:
            self.known.put(tuple(key), call)
        except TypeError:  # an option such as a list, that cannot be looked up
            return


def _guarded(framework: Framework) -> Callable[[Any], Seen]:
    see, needs_gradient = framework.see, framework.needs_gradient
    if needs_gradient is None:
        return see

    def see_plain(array: Any) -> Seen:
        if needs_gradient(array):
            raise ValueError("needs a gradient")
        return see(array)

    return see_plain


def _of_another(name: str, array: Any, framework: Framework) -> Reason:
    found = framework_of(array)
    got = f"a {type(array).__name__}" if found is None else f"an array of {found.name}"
    return Reason(ReasonCode.FRAMEWORK, name, got, f"an array of {framework.name}, as the first one is")


def _advised(error: Error, framework: Framework, arrays: Mapping[str, Any]) -> Error:
    """The error, with what to do about inputs whose layout is refused."""

    def advised(reason: Reason) -> Reason:
        if reason.code not in _LAYOUTS or reason.where not in arrays:
            return reason
        return replace(reason, wanted=f"{reason.wanted}: pass {framework.contiguous.format(reason.where)}")

    reasons = [advised(reason) for reason in error.reasons]
    return error if reasons == list(error.reasons) else rejection(error.subject, reasons)
