"""What all CUDA kernels use: the driver, compilation ahead of the launch, and the launch itself."""
