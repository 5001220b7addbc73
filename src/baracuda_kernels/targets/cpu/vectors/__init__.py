"""What kernel bodies in Numba are written in."""
