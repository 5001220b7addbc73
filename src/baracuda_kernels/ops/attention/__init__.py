"""Attention and what goes with it: rotary embedding, attention with kept weights, the state-space scan."""
