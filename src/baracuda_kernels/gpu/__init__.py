"""What every CUDA kernel stands on: the driver, compilation ahead of the launch, and the launch itself."""
