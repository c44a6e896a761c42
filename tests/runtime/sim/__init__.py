"""Tests of troth.runtime.sim."""
