"""Tests of the API for scripts."""
