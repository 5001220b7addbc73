"""`python -m baracuda_kernels.bench`."""

import sys

from baracuda_kernels.cli.bench import main

if __name__ == "__main__":
    sys.exit(main())
