"""Policies of compiled games: made, read, evaluated, fixed."""
