"""Slow twins: the definitions, NumPy and the standard library only."""
