"""Numeric evidence, one kind a file; torch is imported here alone, and only inside functions."""
