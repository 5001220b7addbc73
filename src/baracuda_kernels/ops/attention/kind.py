"""The kinds of the attention category."""

from enum import Enum


class AttentionKind(Enum):
    ROPE = "rope"
    SDPA = "sdpa"
    SSD_CHUNK_SCAN = "ssd_chunk_scan"
