"""Tests of the live harness."""
