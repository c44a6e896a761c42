"""Mutants: what the properties would not notice if it were gone."""
