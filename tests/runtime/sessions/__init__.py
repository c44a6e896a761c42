"""Whole sessions over the simulated ports."""
