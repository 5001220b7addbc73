"""From formulas to Triton."""
