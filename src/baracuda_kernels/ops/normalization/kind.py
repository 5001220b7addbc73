"""The kinds of the normalization category."""

from enum import Enum


class NormalizationKind(Enum):
    RMS_NORM = "rms_norm"
