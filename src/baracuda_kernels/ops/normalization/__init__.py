"""Normalization over the trailing axes, a package each.

So far it is `rms_norm`.
"""
