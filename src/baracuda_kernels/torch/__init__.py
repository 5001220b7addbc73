"""The functions as PyTorch operators: differentiable, traceable, in the namespace `baracuda`. `import baracuda_kernels.torch as bt`.

`bt.softmax(x, axis=-1)` takes what `bk.softmax` takes but `out`, `preference` and `stream`, and records gradients.
"""

from baracuda_kernels.core import registry
from baracuda_kernels.torch.modules import GatedRMSNorm, Mamba2, RMSNorm, RotaryEmbedding
from baracuda_kernels.torch.operators import entry
from baracuda_kernels.torch.patching import Report, patched

__all__ = ["GatedRMSNorm", "Mamba2", "RMSNorm", "Report", "RotaryEmbedding", "patched"]
__all__ += registry.functions()

globals().update({name: entry(name) for name in registry.functions()})
