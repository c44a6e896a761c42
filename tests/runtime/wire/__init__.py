"""Tests of troth.runtime.wire."""
