"""Paths of models, performed on the live runtime."""
