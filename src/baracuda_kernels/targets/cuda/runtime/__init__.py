"""From a Triton body to a launch."""
