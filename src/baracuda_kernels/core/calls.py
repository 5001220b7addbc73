"""Calls of functions: repeated from the cache, or prepared from scratch.

A call is found again by how it was written: the layouts and types of the arrays, and the options as they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from baracuda_kernels.core.arrays import Seen, Seer, seer_of
from baracuda_kernels.core.bounded import Bounded
from baracuda_kernels.core.call import Call, of_another, planned
from baracuda_kernels.core.described import Described
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.errors import Error, rejection
from baracuda_kernels.core.framework import Framework, framework_of
from baracuda_kernels.core.identity import IDENTITIES, identity
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.preference import PlanPreference
from baracuda_kernels.core.reason import ABOUT_LAYOUT, Reason, ReasonCode
from baracuda_kernels.core.tensor import TensorRef
from baracuda_kernels.core.view import View

__all__ = ["GUARDED", "PLAIN", "Calls"]

MOST_CALLS = 1024  # kept of each function
_ARRAYS = "an array of NumPy, PyTorch, JAX or CuPy"

Seers = dict[type, Seer]
PLAIN: Seers = {}  # how arrays of types met before are seen
GUARDED: Seers = {}  # the same, but what needs a gradient raises


def answering(seers: Seers) -> Callable[..., Any]:
    """Makes the method that answers a call, in one piece: it is the fast path of a repeated call."""

    def answer(self: Calls, *given: Any, **named: Any) -> Any:
        out = preference = stream = None
        key: list[Any] = []
        if named:
            out, preference, stream = named.pop("out", None), named.pop("preference", None), named.pop("stream", None)
            key = _beginning(preference, named)
        sources: list[Any] = []
        addresses: list[int] = []
        try:
            for value in (*given, *named.values()) if named else given:
                kind = type(value)
                see = seers.get(kind)
                if see is None:
                    make = IDENTITIES[kind]
                    key += kind, value if make is None else make(value)
                else:
                    address, layout, _, source = see(value)
                    key += kind, layout
                    sources.append(source)
                    addresses.append(address)
            call: Call | None = self.find_call(tuple(key))
        except (RuntimeError, TypeError, ValueError, AttributeError, BufferError):  # the long way says what is wrong
            call = None
        if call is None:
            return self._first(seers, given, named, out, preference, stream)
        if out is None and stream is None and call.stream is not None:
            return call.fresh(sources, addresses, call.stream)
        return call.run(sources, addresses, out, stream)

    return answer


class Calls(Described):
    """A described function that answers calls, and caches them."""

    def __init__(
        self, describe: Callable[..., Descriptor], plan: type[Plan[Any, Any]], names: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(describe, plan, names)
        self.known = Bounded(MOST_CALLS)
        self.find_call = self.known.get

    @property
    def in_torch(self) -> str:
        """The PyTorch operator of the same name, which records gradients."""
        return f"baracuda_kernels.torch.{self.name}"

    __call__ = answering(GUARDED)
    compute = answering(PLAIN)  # for whoever takes care of gradients: tensors that require them are taken as they are

    def select(self, *given: Any, preference: PlanPreference | None = None, **named: Any) -> Plan[Any, Any]:
        """The plan that such a call runs."""
        arrays, options, framework = self._read(given, named)
        return self._planned(self._seen(framework, arrays, guarded=False), options, preference)

    def _first(self, seers: Seers, given: Any, named: Any, out: Any, preference: Any, stream: Any) -> Any:
        arrays, options, framework = self._read(given, named)
        if framework.is_traced is not None and any(map(framework.is_traced, arrays.values())):
            assert framework.trace is not None
            return framework.trace(self, arrays, options, out, preference, stream)
        seen = self._seen(framework, arrays, guarded=seers is GUARDED)
        plan = self._planned(seen, options, preference)
        layouts = self.broadcast(plan.descriptor, {name: view[1] for name, view in seen.items()})
        call = Call(self, framework, plan, layouts, self.returned(options))
        try:
            result = call.run([view[3] for view in seen.values()], [view[0] for view in seen.values()], out, stream)
        except Error as error:
            raise _advised(error, framework, arrays) from error.__cause__
        self._keep(framework, given, named, preference, call, seen)
        return result

    def _read(self, given: Any, named: Any) -> tuple[dict[str, Any], dict[str, Any], Framework]:
        """The arrays in the order in which they were given, all options, and the framework of the arrays."""
        bound = self.bind(given, named)
        order = [name for name in bound.arguments if name not in named] + list(named)
        bound.apply_defaults()
        arguments = self.separated(bound.arguments) if self.scalars else bound.arguments
        arrays = {name: arguments[name] for name in order if name in self.inputs}
        options = {name: arguments[name] for name in self.options}
        framework = self._framework(arrays, options)
        return {name: array for name, array in arrays.items() if array is not None}, options, framework

    def _planned(self, seen: Mapping[str, Seen], options: Mapping[str, Any], preference: PlanPreference | None) -> Plan[Any, Any]:
        views = {name: View(self.name, name, view[1]) for name, view in seen.items()}
        descriptor = self.describe(**{name: views.get(name) for name in self.inputs}, **options)
        device = next(iter(seen.values()))[1].device
        return planned(self.plan, descriptor, device, preference)

    def _framework(self, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Framework:
        """The framework that made all arrays."""
        reasons, first = [], None
        for name, array in arrays.items():
            found = framework_of(array)
            if array is None:
                if not self.optional(name):
                    reasons.append(Reason(ReasonCode.MISSING_OPERAND, name, None, _ARRAYS))
            elif found is None:
                kind = f"{type(array).__module__}.{type(array).__qualname__}"
                reasons.append(Reason(ReasonCode.NOT_AN_ARRAY, name, kind, _ARRAYS))
            elif first is None:
                first = found
            elif found is not first:
                reasons.append(of_another(name, array, first))
        for name, value in options.items():
            if framework_of(value) is not None:
                reasons.append(Reason(ReasonCode.WRONG_TYPE, name, f"a {type(value).__name__}", "a plain value, not an array"))
        if first is None and not reasons:  # numbers in place of all arrays
            reasons.append(Reason(ReasonCode.MISSING_OPERAND, next(iter(self.inputs)), "numbers alone", _ARRAYS))
        if reasons or first is None:
            raise rejection(self.name, reasons)
        return first

    def _seen(self, framework: Framework, arrays: Mapping[str, Any], guarded: bool) -> dict[str, Seen]:
        seen, reasons = {}, []
        for name, array in arrays.items():
            if guarded and framework.derivative is not None and (derivative := framework.derivative(array)):
                wanted = f"{self.in_torch}, which records gradients, or a detached tensor"
                reasons.append(Reason(ReasonCode.NEEDS_GRADIENT, name, derivative, wanted))
                continue
            against, view = TensorRef.examine(array, name)
            reasons += against
            if view is not None:
                seen[name] = (view.address, view.layout, True, view.data)
        if reasons:
            raise rejection(self.name, reasons)
        return seen

    def _keep(self, framework: Framework, given: Any, named: Any, preference: Any, call: Call, seen: Mapping[str, Seen]) -> None:
        """Caches the call under the key that `answer` will look for."""
        key = _beginning(preference, named)
        layouts = iter([view[1] for view in seen.values()])
        for value in (*given, *named.values()):
            kind = type(value)
            if framework_of(value) is framework:
                PLAIN[kind] = seer_of(value)
                GUARDED[kind] = framework.see_constants or PLAIN[kind]
                key += kind, next(layouts)
            else:
                key += identity(value)
        try:
            self.known.put(tuple(key), call)
        except TypeError:  # an option that cannot be looked up
            return


def _beginning(preference: Any, named: Mapping[str, Any]) -> list[Any]:
    """The beginning of a cache key: the names of keyword arguments."""
    return [*named] if preference is None else [preference, *named]


def _advised(error: Error, framework: Framework, arrays: Mapping[str, Any]) -> Error:
    """The error, with advice for inputs whose layout is refused."""

    def advised(reason: Reason) -> Reason:
        if reason.code not in ABOUT_LAYOUT or reason.where not in arrays:
            return reason
        return replace(reason, wanted=f"{reason.wanted}: pass {framework.contiguous.format(reason.where)}")

    reasons = [advised(reason) for reason in error.reasons]
    return error if reasons == list(error.reasons) else rejection(error.subject, reasons)
