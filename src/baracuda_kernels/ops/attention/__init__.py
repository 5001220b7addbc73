"""Attention and what belongs to it, a package each.

`rope` is the rotary position embedding, `sdpa` attention that materializes its weights, `ssd` the state-space scan of Mamba-2.
Start with `rope`, the smallest.
"""
