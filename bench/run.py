"""The bench from a checkout: `python bench/run.py --help`."""

import sys

from baracuda_kernels.cli.bench import main

if __name__ == "__main__":
    sys.exit(main())
