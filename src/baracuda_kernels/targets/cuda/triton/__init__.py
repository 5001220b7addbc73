"""What kernel bodies in Triton share."""
