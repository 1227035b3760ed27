"""Helpers that know nothing of games or solvers."""
