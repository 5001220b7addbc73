"""The operations, one package per category: a declaration beside its kernel bodies."""
