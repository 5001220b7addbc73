"""The functions as PyTorch operators: differentiable, traceable, in the namespace `baracuda`. `import baracuda_kernels.torch as bt`.

`bt.softmax(x, axis=-1)` takes what `bk.softmax` takes, and records gradients.
"""

from baracuda_kernels.core import registry
from baracuda_kernels.torch.operators import entry

globals().update({name: entry(name) for name in registry.functions()})
