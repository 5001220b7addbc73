"""Normalization over the trailing axes."""
