"""Utilities that are independent of games and solvers."""
