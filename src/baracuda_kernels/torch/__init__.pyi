from baracuda_kernels.torch.functional import *  # noqa: F403
from baracuda_kernels.torch.fusion import fuse as fuse
from baracuda_kernels.torch.modules import GatedRMSNorm as GatedRMSNorm
from baracuda_kernels.torch.modules import Mamba2 as Mamba2
from baracuda_kernels.torch.modules import RMSNorm as RMSNorm
from baracuda_kernels.torch.modules import RotaryEmbedding as RotaryEmbedding
from baracuda_kernels.torch.patching import Report as Report
from baracuda_kernels.torch.patching import patched as patched
