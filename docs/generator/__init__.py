"""The parts of the docs that are derived: from the declarations of the ops, and from recorded bench runs."""
