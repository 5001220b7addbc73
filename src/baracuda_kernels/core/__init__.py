"""The vocabulary and the machine: written once for all ops, and knowing none of them."""
