"""Mathematical functions as formulas, from exp to the Bessel functions, each with its derivative.

A module for each kind: `elementary`, `trigonometry`, `hyperbolic`, `powers`, `log_sums`, `normal`, `gamma`, `incomplete`, `bessel`.
They share `pieces` (polynomials, exact sums and products, the bits of floats) and `fits`; coefficients of gamma are in `gamma_fits`.
Start with `elementary.py`: exp shows how a function is reduced, approximated and tested.
"""
