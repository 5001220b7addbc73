"""Functions of formulas, from exp to bessel."""
