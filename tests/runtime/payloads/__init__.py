"""Payloads."""
