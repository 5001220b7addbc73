"""Attention and what goes with it: rotary embedding, attention that materializes its weights, the state-space scan."""
