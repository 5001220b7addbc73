"""Formulas: scalar arithmetic in Python, traced once, from which kernels for every device and derivatives are made."""
