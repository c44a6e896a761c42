"""Payloads: trees of arrays as bytes, and their transfer."""
