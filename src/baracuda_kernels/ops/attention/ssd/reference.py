"""The recurrence step by step in NumPy float64, and its adjoint, sharing nothing with any kernel. CuPy's arrays will do as well."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanDescriptor


def scan(descriptor: SsdChunkScanDescriptor, x: Any, dt: Any, a: Any, b: Any, c: Any, initial_state: Any = None) -> tuple[Any, Any]:
    """y, and the state after the last step or None."""
    import numpy

    b, c = (_per_head(descriptor, group) for group in (b, c))
    state = numpy.zeros_like(x, shape=descriptor.state_shape) if initial_state is None else initial_state.copy()
    y = numpy.zeros_like(x)
    with numpy.errstate(over="ignore", invalid="ignore", under="ignore"):
        for t in range(descriptor.seq_len):
            state = _step(state, x, dt, a, b, t)
            y[:, t] = (state @ c[:, t, :, :, None])[..., 0]
    return y, state if descriptor.has_final_state else None


def scan_backward(
    descriptor: SsdChunkScanDescriptor,
    x: Any,
    dt: Any,
    a: Any,
    b: Any,
    c: Any,
    dy: Any,
    initial_state: Any = None,
    d_final_state: Any = None,
) -> tuple[Any, ...]:
    """dx, d_b, d_c, d_dt, d_a, and the gradient of the initial state or None.

    `adjoint` is the gradient of h[t]: dy[t] ⊗ C[t] plus the decayed gradient of h[t+1]. Every step's state is needed again;
    only those at segment starts are kept, the others are computed anew.
    """
    import numpy

    length, group_shape = descriptor.seq_len, descriptor.b_shape
    b, c = (_per_head(descriptor, group) for group in (b, c))
    dx, d_dt, d_a, d_b, d_c = map(numpy.zeros_like, (x, dt, a, b, c))
    start = numpy.zeros_like(x, shape=descriptor.state_shape) if initial_state is None else initial_state
    adjoint = numpy.zeros_like(start) if d_final_state is None else d_final_state.copy()
    segment = max(1, int(length**0.5))
    with numpy.errstate(over="ignore", invalid="ignore", under="ignore"):
        starts = {0: start}
        state = start
        for t in range(length):
            if t % segment == 0:
                starts[t] = state
            state = _step(state, x, dt, a, b, t)
        for first in reversed(range(0, length, segment)):
            states = [starts[first]]
            for t in range(first, min(first + segment, length)):
                states.append(_step(states[-1], x, dt, a, b, t))
            for t in reversed(range(first, min(first + segment, length))):
                before, after = states[t - first], states[t - first + 1]
                adjoint = adjoint + dy[:, t, :, :, None] * c[:, t, :, None, :]
                d_c[:, t] = (dy[:, t, :, None, :] @ after)[..., 0, :]
                source = (adjoint @ b[:, t, :, :, None])[..., 0]
                dx[:, t] = dt[:, t, :, None] * source
                d_b[:, t] = dt[:, t, :, None] * (x[:, t, :, None, :] @ adjoint)[..., 0, :]
                decay = numpy.exp(dt[:, t] * a)
                adjoint = decay[..., None, None] * adjoint
                d_exponent = (adjoint * before).sum(axis=(-2, -1))
                d_dt[:, t] = (x[:, t] * source).sum(axis=-1) + a * d_exponent
                d_a += (dt[:, t] * d_exponent).sum(axis=0)
    split = (*group_shape[:2], descriptor.groups, descriptor.heads_per_group, descriptor.state_dim)
    d_b, d_c = (gradient.reshape(split).sum(axis=3) for gradient in (d_b, d_c))
    return dx, d_b, d_c, d_dt, d_a, adjoint if descriptor.has_initial_state else None


def _per_head(descriptor: SsdChunkScanDescriptor, group: Any) -> Any:
    return group.repeat(descriptor.heads_per_group, axis=2)


def _step(state: Any, x: Any, dt: Any, a: Any, b: Any, t: int) -> Any:
    import numpy

    decay = numpy.exp(dt[:, t] * a)[..., None, None]
    return decay * state + (dt[:, t, :, None] * x[:, t])[..., None] * b[:, t, :, None, :]
