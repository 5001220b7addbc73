"""The functions as PyTorch operators: differentiable, traceable, in the namespace `baracuda`. `import baracuda_kernels.torch as bt`.

`bt.softmax(x, axis=-1)` takes what `bk.softmax` takes but `out`, `preference` and `stream`, and records gradients.
"""

from baracuda_kernels.core import registry
from baracuda_kernels.torch.fusion import fuse
from baracuda_kernels.torch.modules import GatedRMSNorm, Mamba2, RMSNorm, RotaryEmbedding
from baracuda_kernels.torch.operators import entry
from baracuda_kernels.torch.patching import Report, patched

__all__ = ["GatedRMSNorm", "Mamba2", "RMSNorm", "Report", "RotaryEmbedding", "fuse", "patched"]
__all__ += list(registry.function_homes())


def __getattr__(name: str) -> object:
    """An operator is registered when it is first asked for."""
    if name not in registry.function_homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = entry(name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *registry.function_homes()])
