"""Traces of runs that happened, and of runs that did not."""
