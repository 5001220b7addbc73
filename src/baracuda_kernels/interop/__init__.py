"""Bridges to the frameworks whose arrays and kernels the library meets."""
