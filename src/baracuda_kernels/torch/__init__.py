"""The functions as PyTorch operators: differentiable, traceable, in the namespace `baracuda`. `import baracuda_kernels.torch as bt`.

`bt.softmax(x, axis=-1)` takes what `bk.softmax` takes, and records gradients.
"""

from baracuda_kernels.core import registry
from baracuda_kernels.torch.modules import GatedRMSNorm, Mamba2, RMSNorm, RotaryEmbedding
from baracuda_kernels.torch.operators import entry

__all__ = ["GatedRMSNorm", "Mamba2", "RMSNorm", "RotaryEmbedding"]
__all__ += list(registry.functions())

globals().update({name: entry(name) for name in registry.functions()})
