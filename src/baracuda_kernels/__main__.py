"""`python -m baracuda_kernels`."""

import sys

from baracuda_kernels.cli import main

if __name__ == "__main__":
    sys.exit(main())
