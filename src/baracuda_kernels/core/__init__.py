"""What all ops share: descriptors, plans, kernels, layouts, functions. It imports no op."""
