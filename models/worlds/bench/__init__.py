"""Worlds to measure the checker with."""
