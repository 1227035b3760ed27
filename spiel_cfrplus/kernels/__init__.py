"""Compiled functions over flat arrays; they import NumPy and Numba only."""
