"""How a sequence is cut: chunks that are multiplied out at once, and spans of chunks whose states are kept."""

from __future__ import annotations

from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanDescriptor

CHUNK = 64  # steps multiplied out at once: half of what is computed grows with it, the other half shrinks
MOST_COLUMNS = 256  # of a head or a state


def span_length(descriptor: SsdChunkScanDescriptor) -> int:
    """Steps between two kept states: the requested chunk, rounded up to whole chunks, so that no more are kept than asked for."""
    return -(-descriptor.chunk_size // CHUNK) * CHUNK


def span_count(descriptor: SsdChunkScanDescriptor) -> int:
    return -(-descriptor.seq_len // span_length(descriptor))


def _records(descriptor: SsdChunkScanDescriptor) -> int:
    return descriptor.batch_size * descriptor.num_heads * span_count(descriptor)


def forward_workspace(descriptor: SsdChunkScanDescriptor) -> int:
    """The state at the start of each span."""
    return _records(descriptor) * descriptor.head_dim * descriptor.state_dim * descriptor.state_element.size


def backward_workspace(descriptor: SsdChunkScanDescriptor) -> int:
    """For each span the state at its start, the gradient of the state at its end, and its share of d_a."""
    state = descriptor.head_dim * descriptor.state_dim
    return _records(descriptor) * (2 * state + 1) * descriptor.state_element.size if state else 0
