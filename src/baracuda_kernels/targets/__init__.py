"""What kernels stand on, for each device."""
