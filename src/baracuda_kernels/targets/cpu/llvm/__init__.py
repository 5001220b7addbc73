"""From formulas to LLVM."""
