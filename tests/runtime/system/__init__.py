"""Tests of troth.runtime.system."""
