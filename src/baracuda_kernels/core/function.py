"""Functions: an op as one call on arrays of any framework, declared by how its descriptor follows from them.

@function(SoftmaxPlan, gradient="softmax_backward")
def softmax(x: View, axis: int = -1) -> SoftmaxDescriptor:
    '''Softmax along one axis.'''
    return SoftmaxDescriptor(SoftmaxKind.SOFTMAX, x.shape, x.axis(axis), x.element)

The signature is the public one. Parameters named like an operand that the plan reads are arrays, all others options. An option
`return_rms` decides whether the output `rms` is among the results; other outputs always are. `names` are those that a function has
for operands of its plan, where they are not the plan's own.

A call is answered by one like it that was answered before (see `call`), or from scratch. It is found again by how it was written: the
layouts and types of the arrays, and the options as they were given.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.args import Access, Operand
from baracuda_kernels.core.arrays import Seen, Seer, seer_of
from baracuda_kernels.core.bounded import Bounded
from baracuda_kernels.core.call import Call, of_another, planned
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import Device
from baracuda_kernels.core.errors import Error, rejection
from baracuda_kernels.core.framework import Framework, framework_of
from baracuda_kernels.core.identity import IDENTITIES, identity
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.preference import PlanPreference
from baracuda_kernels.core.reason import ABOUT_LAYOUT, Reason, ReasonCode
from baracuda_kernels.core.tensor import TensorRef
from baracuda_kernels.core.view import Number, View

__all__ = ["COMMON", "RETURN", "Function", "Gradient", "Option", "function"]

COMMON = ("out", "preference", "stream")  # what every function takes
RETURN = "return_"
MOST_CALLS = 1024  # kept of each function
_ARRAYS = "an array of NumPy, PyTorch, JAX or CuPy"

_Seers = dict[type, Seer]
_PLAIN: _Seers = {}  # how arrays of types met before are seen
_GUARDED: _Seers = {}  # the same, but what needs a gradient raises


@dataclass(frozen=True)
class Option:
    """A parameter that is no array."""

    name: str
    type: Any  # its annotation
    default: Any  # inspect.Parameter.empty where there is none

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Gradient:
    """The inputs and results of a function's backward, derived from the names of its operands."""

    function: Function  # the backward
    saved_inputs: tuple[str, ...]  # its inputs that are the forward's
    saved_outputs: tuple[str, ...]  # its inputs that are outputs of the forward
    upstream: Mapping[str, str]  # its other inputs, each with the output of the forward it is the gradient of
    results: Mapping[str, str]  # its outputs, each with the input of the forward it is the gradient of
    options: tuple[str, ...]  # of the forward that it takes too
    elements: Mapping[str, str]  # its options `x_element`, each with the input of the forward that has this element

    def saving(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The forward's options, so that everything the backward reads is among the results."""
        flags = [f"{RETURN}{name}" for name in self.saved_outputs]
        return {name: True if name in flags else value for name, value in options.items()}


def _answering(seers: _Seers) -> Callable[..., Any]:
    """The method that answers a call. It is all that a repeated call goes through, so it is one piece."""

    def answer(self: Function, *given: Any, **named: Any) -> Any:
        out = preference = stream = None
        if named:
            out, preference, stream = named.pop("out", None), named.pop("preference", None), named.pop("stream", None)
        key: list[Any] = [preference, *named]
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


class Function:
    """One op on arrays of NumPy, PyTorch, JAX or CuPy: makes the results, finds the plan or the one it had before, runs it.

    It may have `names` of its own for the plan's operands.
    """

    former: Mapping[str, str] = {}  # names that parameters had before, each with today's

    def __init__(
        self,
        describe: Callable[..., Descriptor],
        plan: type[Plan[Any, Any]],
        gradient: str | None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.describe, self.plan, self.gradient = describe, plan, gradient
        self.names = {operand: name for name, operand in (names or {}).items()}  # by the plan's own
        operands = self.renamed(plan.args_type.OPERANDS)
        self.name = self.__name__ = self.__qualname__ = describe.__name__
        self.__doc__, self.__module__ = describe.__doc__, describe.__module__
        reads = {operand.name: operand for operand in operands if not operand.writes}
        self.scalars = {name: operand.scalar for name, operand in reads.items() if operand.scalar is not None}
        own = inspect.signature(describe, eval_str=True)
        hidden = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Number | None)
            for name in self.scalars.values()
        ]
        shown = [each for each in own.parameters.values() if each.name not in self.scalars.values()]
        self.public, self.declared = own.replace(parameters=shown), own.replace(parameters=[*shown, *hidden])
        parameters = self.declared.parameters.values()
        self.inputs: dict[str, Operand] = {each.name: reads[each.name] for each in parameters if each.name in reads}
        self.options = {
            each.name: Option(each.name, each.annotation, each.default) for each in parameters if each.name not in reads
        }
        self.outputs: dict[str, Operand] = {operand.name: operand for operand in operands if operand.access is Access.WRITE}
        missing = [name for name, operand in reads.items() if name not in self.inputs and operand.present_rule is True]
        if missing:
            raise TypeError(f"{self.name}: {plan.__name__} also reads {', '.join(missing)}")
        # The public signature: arrays instead of views, and what every function takes.
        public = [each.replace(annotation=inspect.Parameter.empty) if each.name in reads else each for each in shown]
        public += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in COMMON]
        self.__signature__ = inspect.Signature(public)
        self.known = Bounded(MOST_CALLS)
        self.find_call = self.known.get
        registry.register_function(self)

    # --- answering calls ----------------------------------------------------------------------------------------------------------

    __call__ = _answering(_GUARDED)
    compute = _answering(_PLAIN)  # for whoever takes care of gradients: tensors that require them are taken as they are

    def select(self, *given: Any, preference: PlanPreference | None = None, **named: Any) -> Plan[Any, Any]:
        """The plan that such a call runs."""
        arrays, options, framework = self._read(given, named)
        return self._planned(self._seen(framework, arrays, guarded=False), options, preference)

    def _first(self, seers: _Seers, given: Any, named: Any, out: Any, preference: Any, stream: Any) -> Any:
        arrays, options, framework = self._read(given, named)
        if framework.is_traced is not None and any(map(framework.is_traced, arrays.values())):
            assert framework.trace is not None
            return framework.trace(self, arrays, options, out, preference, stream)
        seen = self._seen(framework, arrays, guarded=seers is _GUARDED)
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
        """The one that made all arrays."""
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
        """Under the key that `answer` will look for."""
        key = [preference, *named]
        layouts = iter([view[1] for view in seen.values()])
        for value in (*given, *named.values()):
            kind = type(value)
            if framework_of(value) is framework:
                _PLAIN[kind] = seer_of(value)
                _GUARDED[kind] = framework.see_constants or _PLAIN[kind]
                key += kind, next(layouts)
            else:
                key += identity(value)
        try:
            self.known.put(tuple(key), call)
        except TypeError:  # an option that cannot be looked up
            return

    # --- what it takes and gives --------------------------------------------------------------------------------------------------

    def renamed(self, operands: Iterable[Operand]) -> tuple[Operand, ...]:
        """A plan's operands by the names that they have here."""
        return tuple(replace(each, name=self.names.get(each.name, each.name)) for each in operands)

    def bind(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> inspect.BoundArguments:
        """Every argument with its parameter. Raises for a call that has too many or too few, or calls them what they are not called."""
        try:
            return self.declared.bind(*given, **named)
        except TypeError as cause:
            places = list(self.declared.parameters)
            old = [name for name in self.former if name in named and (name not in places or name in places[: len(given)])]
            if old:  # all of them, since a former name may be another parameter's today
                renamed = {name: new for name, new in self.former.items() if name in named}
                reasons = [
                    Reason(ReasonCode.UNKNOWN_OPERAND, name, "a former name", f"{new}=, as it is called now")
                    for name, new in renamed.items()
                ]
                raise rejection(self.name, reasons) from None
            said = str(cause).removeprefix("got ")
            got = f"one {said}" if said.startswith("missing") else f"one with {said}"
            raise rejection(self.name, [Reason(ReasonCode.ARGUMENTS, "the call", got, self.call_text())]) from None

    def separated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with numbers that stand in place of arrays as the options that they are."""
        found = dict(arguments)
        for name, scalar in self.scalars.items():
            if isinstance(found[name], numbers.Real):
                found[scalar], found[name] = found[name], None
        return found

    def optional(self, name: str) -> bool:
        """Whether that input may be None."""
        return self.inputs[name].present_rule is not True

    def returned(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The outputs that make up the result, in order. One that this problem does not have is None there."""
        return tuple([name for name in self.outputs if options.get(f"{RETURN}{name}", True)])

    def results(self, descriptor: Descriptor, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Those of the returned outputs that this problem has."""
        return tuple(name for name in self.returned(options) if self.outputs[name].is_given(descriptor, True))

    def broadcast(self, descriptor: Descriptor, layouts: Mapping[str, Layout]) -> dict[str, Layout]:
        """The layouts of the inputs as the plan is to see them."""
        return {
            name: layout.broadcast_to(self.inputs[name].shapes(descriptor)[0]) if self.inputs[name].broadcasts else layout
            for name, layout in layouts.items()
        }

    def check_inputs(self, descriptor: Descriptor, layouts: Mapping[str, Layout], device: Device) -> None:
        """Raises for inputs that would not do, where there are only layouts yet and nothing to run with."""
        seen = self.broadcast(descriptor, layouts)
        reasons = [
            reason
            for name, operand in self.inputs.items()
            for reason in operand.reasons_against(descriptor, seen.get(name), device)
        ]
        if reasons:
            raise rejection(self.name, reasons)

    def defaults(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """All options: those given, and the default values of the others."""
        return {name: options.get(name, option.default) for name, option in self.options.items()}

    def call_text(self) -> str:
        """How it is called, without types and without what every function takes."""
        plain = [
            each.replace(annotation=inspect.Parameter.empty, default=getattr(each.default, "value", each.default))
            for each in self.public.parameters.values()
        ]
        return f"{self.name}{inspect.Signature(plain)}"

    @property
    def in_torch(self) -> str:
        """What records gradients of it."""
        return f"baracuda_kernels.torch.{self.name}"

    def backward(self) -> Gradient | None:
        """The gradient, found by names: `y` and `x` are what the forward has under these names, `dy` and `d_y` the gradient of y."""
        if self.gradient is None:
            return None
        back = registry.function(self.gradient)
        upstream, saved_inputs, saved_outputs = {}, [], []
        for name in back.inputs:
            if name in self.inputs:
                saved_inputs.append(name)
            elif name in self.outputs:
                saved_outputs.append(name)
            else:
                upstream[name] = _whose_gradient(name, self.outputs, back.name)
        results = {name: _whose_gradient(name, self.inputs, back.name) for name in back.outputs}
        options = tuple(name for name in back.options if name in self.options)
        elements = {f"{name}_element": name for name in self.inputs if f"{name}_element" in back.options}
        return Gradient(back, tuple(saved_inputs), tuple(saved_outputs), upstream, results, options, elements)

    def __reduce__(self) -> str:
        """Like a plain function, it is copied and sent to other processes by its name."""
        return self.name

    def __repr__(self) -> str:
        return f"<function {self.name}{self.__signature__}>"


def _advised(error: Error, framework: Framework, arrays: Mapping[str, Any]) -> Error:
    """The error, with what to do about inputs whose layout is refused."""

    def advised(reason: Reason) -> Reason:
        if reason.code not in ABOUT_LAYOUT or reason.where not in arrays:
            return reason
        return replace(reason, wanted=f"{reason.wanted}: pass {framework.contiguous.format(reason.where)}")

    reasons = [advised(reason) for reason in error.reasons]
    return error if reasons == list(error.reasons) else rejection(error.subject, reasons)


def _whose_gradient(name: str, candidates: Mapping[str, Operand], function: str) -> str:
    for candidate in candidates:
        if name in (f"d{candidate}", f"d_{candidate}"):
            return candidate
    raise TypeError(f"{function}: {name} is no gradient of {' or '.join(candidates)}")


def function(
    plan: type[Plan[Any, Any]], gradient: str | None = None, names: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Descriptor]], Function]:
    """Declares a function by its description. `gradient` is the name of the function that computes its gradient, `names` are the
    function's own for operands, each with the plan's."""
    return lambda describe: Function(describe, plan, gradient, names)
