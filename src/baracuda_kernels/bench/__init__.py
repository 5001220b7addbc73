"""The bench: every op of the registry on its showcase problems, beside the copy floor and its peers, in one run."""
